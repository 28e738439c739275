use std::collections::VecDeque;

use sweetspot_sizing::{Controller, Output};
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::protocol::Message;
use crate::series::{Line, Mark, Row};

/// How often the window is read back and the limit held: what the kernel overwrote stands no
/// longer than this even when nothing is read.
pub const CONTROL_INTERVAL: Duration = Duration::from_millis(10);
/// Between two rows of the series: fine enough for a ramp on a path of 20 ms.
pub const ROW_INTERVAL: Duration = Duration::from_millis(50);

/// The loop around a controller at the receiver, without its I/O: measurements go in with their
/// time, effects come out.
///
/// **Contract.** `now` never goes backwards. After every `handle_*` call the caller performs the
/// effects of [`Steering::poll_effect`] until there are none; at [`Steering::poll_timeout`] it
/// calls [`Steering::handle_timeout`] with what the kernel says.
pub struct Steering {
    controller: Box<dyn Controller + Send>,
    start: Time,
    effects: VecDeque<Effect>,
    next_tick: Time,
    row: RowInProgress,
    content: Bytes,
    window: Option<Bytes>,
    limit: Option<Option<Bytes>>,
    pacing: Option<Rate>,
}

/// What the loop wants done.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Limit the receive window, or lift the limit.
    Limit(Option<Bytes>),
    /// Say this to the sender.
    Tell(Message),
    /// Record this.
    Record(Line),
}

/// What the kernel says of the receiving socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelView {
    /// The window advertised last, where it tells.
    pub window: Option<Bytes>,
    /// Its receiver-side estimate of the round-trip time; zero where it has none.
    pub rtt: Duration,
}

#[derive(Debug)]
struct RowInProgress {
    since: Time,
    content: Bytes,
}

impl Steering {
    /// The loop of one transfer that began at `start`.
    pub fn new(controller: Box<dyn Controller + Send>, start: Time, now: Time) -> Steering {
        Steering {
            controller,
            start,
            effects: VecDeque::new(),
            next_tick: now,
            row: RowInProgress { since: now, content: Bytes::ZERO },
            content: Bytes::ZERO,
            window: None,
            limit: None,
            pacing: None,
        }
    }

    /// `bytes` were read from the connection, of which `content` were the file's, and `unread`
    /// were left in the receive buffer.
    pub fn handle_data(&mut self, now: Time, bytes: Bytes, content: Bytes, unread: Bytes) {
        self.content += content;
        self.controller.handle_data(now, bytes, unread);
        self.drain();
    }

    /// The time that [`Steering::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time, kernel: &KernelView) {
        if self.controller.poll_timeout().is_some_and(|due| due <= now) {
            self.controller.handle_timeout(now);
            self.drain();
        }
        if now >= self.next_tick {
            self.next_tick = now + CONTROL_INTERVAL;
            if let Some(window) = kernel.window {
                self.window = Some(window);
                self.controller.handle_window(now, window);
            }
            self.drain();
        }
        if now >= self.row.since + ROW_INTERVAL {
            self.end_row(now);
        }
    }

    /// When [`Steering::handle_timeout`] next wants to be called.
    pub fn poll_timeout(&self) -> Time {
        let controller = self.controller.poll_timeout().unwrap_or(Time::MAX);
        self.next_tick.min(controller)
    }

    /// The next thing to do, until `None`.
    pub fn poll_effect(&mut self) -> Option<Effect> {
        self.effects.pop_front()
    }

    /// The window advertised last.
    pub fn window(&self) -> Option<Bytes> {
        self.window
    }

    fn drain(&mut self) {
        while let Some(output) = self.controller.poll_output() {
            match output {
                Output::Window(limit) => {
                    self.limit = Some(limit);
                    self.effects.push_back(Effect::Limit(limit));
                    self.tell_steer();
                }
                Output::Pacing(rate) => {
                    self.pacing = rate;
                    self.tell_steer();
                }
                Output::Train(_) => {}
                Output::Event(event) => {
                    let mark = Mark::new(&event, self.start);
                    self.effects.push_back(Effect::Record(Line::Event(mark)));
                }
            }
        }
    }

    fn tell_steer(&mut self) {
        // A wish that a newer one overtook before it was said need not be said.
        self.effects.retain(|e| !matches!(e, Effect::Tell(Message::Steer { .. })));
        self.effects.push_back(Effect::Tell(Message::Steer {
            pacing_bps: self.pacing.map(Rate::bits_per_second),
            window_bytes: match self.limit {
                Some(limit) => limit.map(Bytes::get),
                None => None,
            },
        }));
    }

    fn end_row(&mut self, now: Time) {
        let goodput = (self.content - self.row.content) / now.since(self.row.since);
        self.effects.push_back(Effect::Record(Line::Row(Row {
            t_s: now.since(self.start).as_secs_f64(),
            bytes: self.content.get(),
            goodput_bps: goodput.as_f64(),
            window_bytes: self.window.map(Bytes::get),
            rtt_s: None,
            phase: Some(self.controller.phase().to_string()),
            pacing_bps: self.pacing.map(Rate::as_f64),
            cwnd_bytes: None,
            retransmitted: None,
        })));
        self.row = RowInProgress { since: now, content: self.content };
    }
}
