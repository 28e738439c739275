use thiserror::Error;

use super::frame::{FrameError, FramePart};
use super::{Hello, Message, MessageError, SenderSummary};

/// What the other end did that the protocol does not allow.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ProtocolError {
    /// A frame that is none.
    #[error("the other end sent {0}")]
    Frame(#[from] FrameError),
    /// A message that is none.
    #[error("the other end sent {0}")]
    Message(#[from] MessageError),
    /// Something that may not come now.
    #[error("the other end sent {what} {when}")]
    OutOfOrder {
        /// What came.
        what: &'static str,
        /// At which stage.
        when: &'static str,
    },
    /// More content than announced.
    #[error("the other end sent more than the {0} bytes it announced")]
    TooMuch(u64),
    /// Less content than announced.
    #[error("the other end ended {0} bytes before the announced length")]
    TooLittle(u64),
}

/// What the sender may say when, seen by the receiver.
#[derive(Debug)]
pub struct ReceiverOrder {
    stage: ReceiverStage,
}

#[derive(Debug)]
enum ReceiverStage {
    /// Nothing but a hello.
    Handshake,
    /// The hello is being judged: nothing at all.
    Judging { size: u64 },
    /// Content, then the end.
    Content { size: u64, left: u64 },
    /// The closing.
    Ended,
    /// Nothing more.
    Closed,
}

/// What came in order.
#[derive(Debug, PartialEq)]
pub enum Arrival<'a> {
    /// The hello; answer it with [`ReceiverOrder::accept`] or hang up.
    Hello(Hello),
    /// The next bytes of the content.
    Content(&'a [u8]),
    /// All content came; its hash follows from the sender's side.
    End {
        /// BLAKE3, hexadecimal, as the sender gave it.
        hash: String,
    },
    /// The sender's numbers.
    SenderSummary(SenderSummary),
    /// The sender gave up, because.
    Failed(String),
}

impl Default for ReceiverOrder {
    fn default() -> ReceiverOrder {
        ReceiverOrder { stage: ReceiverStage::Handshake }
    }
}

impl ReceiverOrder {
    /// The hello is accepted: content may come.
    pub fn accept(&mut self) {
        if let ReceiverStage::Judging { size } = self.stage {
            self.stage = ReceiverStage::Content { size, left: size };
        }
    }

    /// Checks that `piece` may come now.
    pub fn handle<'a>(&mut self, piece: FramePart<'a>) -> Result<Arrival<'a>, ProtocolError> {
        let message = match piece {
            FramePart::Content(bytes) => return self.handle_content(bytes),
            FramePart::Message(body) => Message::read(&body)?,
        };
        match (&self.stage, message) {
            (_, Message::Failed { reason }) => Ok(Arrival::Failed(reason)),
            (ReceiverStage::Handshake, Message::Hello(hello)) => {
                self.stage = ReceiverStage::Judging { size: hello.size };
                Ok(Arrival::Hello(hello))
            }
            (ReceiverStage::Content { left: 0, .. }, Message::End { hash }) => {
                self.stage = ReceiverStage::Ended;
                Ok(Arrival::End { hash })
            }
            (ReceiverStage::Content { left, .. }, Message::End { .. }) => {
                Err(ProtocolError::TooLittle(*left))
            }
            (ReceiverStage::Ended, Message::SenderSummary(closing)) => {
                self.stage = ReceiverStage::Closed;
                Ok(Arrival::SenderSummary(closing))
            }
            (_, message) => {
                Err(ProtocolError::OutOfOrder { what: message.kind(), when: self.when() })
            }
        }
    }

    fn handle_content<'a>(&mut self, bytes: &'a [u8]) -> Result<Arrival<'a>, ProtocolError> {
        let ReceiverStage::Content { size, left } = &mut self.stage else {
            return Err(ProtocolError::OutOfOrder { what: "content", when: self.when() });
        };
        *left = left.checked_sub(bytes.len() as u64).ok_or(ProtocolError::TooMuch(*size))?;
        Ok(Arrival::Content(bytes))
    }

    fn when(&self) -> &'static str {
        match self.stage {
            ReceiverStage::Handshake => "before a hello",
            ReceiverStage::Judging { .. } => "before its hello was answered",
            ReceiverStage::Content { .. } => "in the midst of content",
            ReceiverStage::Ended => "after the end",
            ReceiverStage::Closed => "after closing",
        }
    }
}

/// What the receiver may say when, seen by the sender.
#[derive(Debug)]
pub struct SenderOrder {
    stage: SenderStage,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SenderStage {
    Handshake,
    Sending,
    /// The end was sent: a summary may come.
    Ended,
    Judged,
}

impl Default for SenderOrder {
    fn default() -> SenderOrder {
        SenderOrder { stage: SenderStage::Handshake }
    }
}

impl SenderOrder {
    /// The end was sent.
    pub fn end(&mut self) {
        if self.stage == SenderStage::Sending {
            self.stage = SenderStage::Ended;
        }
    }

    /// Checks that `piece` may come now.
    pub fn handle(&mut self, piece: FramePart<'_>) -> Result<Message, ProtocolError> {
        let message = match piece {
            FramePart::Content(_) => {
                return Err(ProtocolError::OutOfOrder { what: "content", when: "to a sender" });
            }
            FramePart::Message(body) => Message::read(&body)?,
        };
        let (next, when) = match self.stage {
            SenderStage::Handshake => (SenderStage::Sending, "before answering the hello"),
            SenderStage::Sending => (SenderStage::Sending, "in the midst of content"),
            SenderStage::Ended => (SenderStage::Ended, "after the end"),
            SenderStage::Judged => (SenderStage::Judged, "after its summary"),
        };
        let running = matches!(self.stage, SenderStage::Sending | SenderStage::Ended);
        self.stage = match &message {
            Message::Failed { .. } => self.stage,
            Message::Accept(_) | Message::Refuse { .. } if self.stage == SenderStage::Handshake => {
                next
            }
            Message::Steer { .. } | Message::Train { .. } | Message::Busy if running => next,
            Message::ReceiverSummary(_) if self.stage == SenderStage::Ended => SenderStage::Judged,
            other => return Err(ProtocolError::OutOfOrder { what: other.kind(), when }),
        };
        Ok(message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::frame::HEADER;
    use proptest::prelude::*;

    fn hello(size: u64) -> Message {
        Message::Hello(Hello {
            version: crate::protocol::VERSION,
            proof: String::new(),
            name: "f".into(),
            size,
            sizing: None,
            congestion: None,
            path: None,
            probes: true,
        })
    }

    fn end() -> Message {
        Message::End { hash: "h".into() }
    }

    fn closing() -> Message {
        let congestion = "cubic".into();
        Message::SenderSummary(SenderSummary {
            congestion,
            segments: 1,
            retransmitted_segments: 0,
            limits: vec![],
        })
    }

    fn say(order: &mut ReceiverOrder, message: Message) -> Result<(), ProtocolError> {
        order.handle(FramePart::Message(message.to_frame().split_off(HEADER))).map(|_| ())
    }

    fn accepted(size: u64) -> ReceiverOrder {
        let mut order = ReceiverOrder::default();
        say(&mut order, hello(size)).unwrap();
        order.accept();
        order
    }

    #[test]
    fn an_orderly_transfer_passes() {
        let mut order = accepted(3);
        assert_eq!(order.handle(FramePart::Content(b"ab")), Ok(Arrival::Content(b"ab")));
        assert_eq!(order.handle(FramePart::Content(b"c")), Ok(Arrival::Content(b"c")));
        say(&mut order, end()).unwrap();
        say(&mut order, closing()).unwrap();
    }

    #[test]
    fn content_never_exceeds_what_was_announced() {
        let mut order = accepted(3);
        assert_eq!(order.handle(FramePart::Content(b"abcd")), Err(ProtocolError::TooMuch(3)));
    }

    #[test]
    fn an_early_end_is_noticed() {
        let mut order = accepted(3);
        order.handle(FramePart::Content(b"a")).unwrap();
        assert_eq!(say(&mut order, end()), Err(ProtocolError::TooLittle(2)));
    }

    #[test]
    fn nothing_comes_before_the_hello_is_accepted() {
        let mut order = ReceiverOrder::default();
        assert!(order.handle(FramePart::Content(b"a")).is_err());
        assert!(say(&mut order, end()).is_err());
        say(&mut order, hello(3)).unwrap();
        assert!(order.handle(FramePart::Content(b"a")).is_err());
        assert!(say(&mut order, hello(3)).is_err());
    }

    proptest! {
        /// Whatever a hostile sender says in whatever order, content passed on never exceeds what
        /// the accepted hello announced, and an end comes only when all of it came.
        #[test]
        fn no_order_of_messages_breaks_the_count(
            steps in proptest::collection::vec(0u8..6, 0..40),
            size in 0u64..20,
        ) {
            let (mut order, mut passed, mut is_accepted) = (ReceiverOrder::default(), 0, false);
            for step in steps {
                match step {
                    0 => { let _ = say(&mut order, hello(size)); }
                    1 => { order.accept(); is_accepted = true; }
                    2 => if order.handle(FramePart::Content(b"xyz")).is_ok() { passed += 3 },
                    3 => if say(&mut order, end()).is_ok() {
                        prop_assert!(is_accepted && passed == size);
                    },
                    4 => { let _ = say(&mut order, closing()); }
                    _ => { let _ = say(&mut order, Message::Busy); }
                }
                prop_assert!(passed <= size);
            }
        }
    }
}
