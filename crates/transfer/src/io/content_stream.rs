use sweetspot_linux::clock;
use sweetspot_linux::tcp::options;
use sweetspot_protocol::frame::FrameDecoder;
use sweetspot_protocol::{ReceiverOrder, SenderItem, SenderSummary};
use sweetspot_units::{Bytes, Duration};

use super::admission::AfterHello;
use super::channel::{Channel, Incoming, SOCKET_READ_BYTES};
use super::receiver_control::ReceiverControl;
use super::sink::{Sink, WrittenFile};
use crate::TransferError;

/// The sender's closing words are waited for this long.
const SENDER_SUMMARY_TIMEOUT: Duration = Duration::from_secs(10);

/// The sender's stream: bytes in, content out.
pub(crate) struct ContentStream<'a> {
    channel: &'a Channel,
    order: ReceiverOrder,
    decoder: FrameDecoder,
    raw: Vec<u8>,
    plain: Vec<u8>,
    content: Bytes,
}

impl<'a> ContentStream<'a> {
    /// The stream of an admitted sender over `channel`, from what followed its hello on.
    pub fn new(channel: &'a Channel, admitted: AfterHello) -> ContentStream<'a> {
        ContentStream {
            channel,
            order: admitted.order,
            decoder: admitted.decoder,
            raw: vec![0; SOCKET_READ_BYTES],
            plain: admitted.rest,
            content: Bytes::ZERO,
        }
    }

    /// The hello was accepted.
    pub fn accept(&mut self) {
        self.order.accept();
    }

    /// Receives all content into `sink`; returns what was written, and the hash that the sender
    /// gave.
    pub fn receive(
        &mut self,
        receiver_control: &ReceiverControl<'_>,
        mut sink: Sink,
    ) -> Result<(WrittenFile, String), TransferError> {
        let sent = loop {
            if let Some(hash) = self.take_in(receiver_control, &mut sink)? {
                break hash;
            }
            let read = self.read()?;
            let failed = TransferError::system("SIOCINQ");
            let unread = options::unread(self.channel.socket()).map_err(failed)?;
            receiver_control.handle_data(read, unread)?;
        };
        receiver_control.finishing();
        Ok((sink.finish()?, sent))
    }

    /// Passes what was read on to the disk; returns the sender's hash at the end.
    fn take_in(
        &mut self,
        receiver_control: &ReceiverControl<'_>,
        sink: &mut Sink,
    ) -> Result<Option<String>, TransferError> {
        let plain = std::mem::take(&mut self.plain);
        let (mut input, mut block) = (&plain[..], sink.buffer());
        let mut end = None;
        while let Some(piece) = self
            .decoder
            .next(&mut input)
            .map_err(|e| TransferError::Protocol { error: e.into() })?
        {
            match self.order.handle(piece)? {
                SenderItem::Content(bytes) => block.extend_from_slice(bytes),
                SenderItem::End { hash } => end = Some(hash),
                SenderItem::Failed(reason) => return Err(TransferError::PeerFailed(reason)),
                SenderItem::Hello(_) | SenderItem::SenderSummary(_) => {}
            }
        }
        if !block.is_empty() {
            let content = Bytes::new(block.len() as u64);
            self.content += content;
            receiver_control.handle_content(content);
            sink.write(block)?;
        }
        self.plain = plain;
        self.plain.clear();
        Ok(end)
    }

    fn read(&mut self) -> Result<Bytes, TransferError> {
        match self.channel.read(&mut self.raw, &mut self.plain)? {
            Incoming::Bytes(n) => Ok(n),
            Incoming::Closed => Err(self.channel.gone(self.content)),
        }
    }

    /// The sender's numbers, if it still gives them: the content is safe either way.
    pub fn closing(&mut self) -> Option<SenderSummary> {
        let deadline = clock::now() + SENDER_SUMMARY_TIMEOUT;
        loop {
            let left = deadline.since(clock::now());
            match self.channel.read_within(&mut self.raw, &mut self.plain, left) {
                Ok(Incoming::Bytes(_)) => {}
                _ => return None,
            }
            let mut input = &self.plain[..];
            if let Ok(Some(piece)) = self.decoder.next(&mut input) {
                return match self.order.handle(piece) {
                    Ok(SenderItem::SenderSummary(closing)) => Some(closing),
                    _ => None,
                };
            }
            self.plain.clear();
        }
    }
}
