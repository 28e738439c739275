use core::hint::black_box;

use sweetspot_units::{Duration, Time};

use crate::config::{DelayedAck, ReceiverConfig};
use crate::runs::Runs;
use crate::segment::{Acknowledgement, Run, SackBlocks};

/// A receiver: puts packets in order and acknowledges them.
///
/// **Contract.** `now` never goes backwards. [`Receiver::handle_data`] and
/// [`Receiver::handle_timeout`] give back the ACK to send, if any; the latter is due when
/// [`Receiver::poll_timeout`] says so. The application takes what is in order at once.
///
/// It lies on one line of the cache.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub struct Receiver {
    /// The number expected next.
    next: u64,
    /// One past the highest number that was ever advertised. The edge never retracts
    /// (RFC 9293 section 3.8.6): a smaller window takes effect as data arrives.
    right_edge: u64,
    /// The window to advertise, packets.
    window: u64,
    /// What of it has been opened so far (Linux: `rcv_ssthresh`).
    opened: u64,
    /// What arrived beyond `next`, once something did.
    early: Option<Box<Early>>,
    /// Where ACKs are delayed.
    delayed: Option<Box<Delayed>>,
    /// Whether ACKs carry SACK blocks.
    sack: bool,
    /// Congestion marks seen and not yet answered by the sender.
    congestion_echo: bool,
}

/// What arrived too early, and the blocks reported last.
#[derive(Debug, Clone, Default)]
struct Early {
    runs: Runs,
    blocks: SackBlocks,
    /// Packets that came ahead of a missing one (Linux: `tcpi_rcv_ooopack`).
    out_of_order: u64,
}

/// How ACKs are delayed.
#[derive(Debug, Clone)]
struct Delayed {
    delay: Duration,
    /// Packets still to be acknowledged at once.
    quick: u32,
    /// The ACK that is being delayed.
    waiting: Option<Waiting>,
}

/// An ACK that is being delayed.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    until: Time,
    echo: Time,
}

/// What became of a packet.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Packets that the application can read now.
    pub delivered: u64,
    /// The ACK to send.
    pub ack: Option<Acknowledgement>,
}

/// What arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The packet's number.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
    /// Whether a router marked it (RFC 3168, CE).
    pub congested: bool,
    /// Whether the sender says that it heard the echo (CWR).
    pub window_reduced: bool,
}

impl Receiver {
    /// Before the SYN.
    pub fn new(config: &ReceiverConfig) -> Receiver {
        Receiver {
            next: 0,
            right_edge: 0,
            window: config.window,
            opened: config.first_window.unwrap_or(u64::MAX),
            early: None,
            delayed: config.delayed_ack.map(|DelayedAck { delay, quick_start }| {
                Box::new(Delayed { delay, quick: quick_start, waiting: None })
            }),
            sack: config.sack,
            congestion_echo: false,
        }
    }

    /// A packet arrived.
    #[inline(always)]
    pub fn handle_data(&mut self, now: Time, arrival: &Arrival) -> Received {
        self.note_congestion(arrival);
        if arrival.number == self.next && self.is_in_order() {
            self.next += 1;
            // Linux `__tcp_grow_window`: two segments for each that arrives in order.
            self.opened = self.opened.saturating_add(2);
            return Received { delivered: 1, ack: self.acknowledge_in_order(now, arrival) };
        }
        self.handle_disorder(arrival)
    }

    /// In order: acknowledged at once or delayed.
    #[inline]
    fn acknowledge_in_order(&mut self, now: Time, arrival: &Arrival) -> Option<Acknowledgement> {
        let Some(delayed) = &mut self.delayed else {
            return Some(self.acknowledge(arrival.sent));
        };
        // The SYN is answered at once, and so is every second packet.
        let at_once = arrival.number == 0 || delayed.quick > 0;
        delayed.quick = delayed.quick.saturating_sub(1);
        match delayed.waiting.take() {
            // RFC 7323 section 4.2: the echo is that of the packet that waited.
            Some(waiting) => Some(self.acknowledge(waiting.echo)),
            None if at_once => Some(self.acknowledge(arrival.sent)),
            None => {
                let until = now + delayed.delay;
                delayed.waiting = Some(Waiting { until, echo: arrival.sent });
                None
            }
        }
    }

    /// Whether nothing arrived too early.
    #[inline]
    fn is_in_order(&self) -> bool {
        self.early.as_ref().is_none_or(|early| early.runs.is_empty())
    }

    /// Out of order, filling a hole, or for the second time: RFC 5681 section 4.2 wants an ACK
    /// at once.
    #[cold]
    fn handle_disorder(&mut self, arrival: &Arrival) -> Received {
        if let Some(delayed) = &mut self.delayed {
            delayed.waiting = None;
        }
        let before = self.next;
        let number = arrival.number;
        let early = self.early.get_or_insert_default();
        early.out_of_order += u64::from(number > self.next);
        let runs = &mut early.runs;
        if number >= self.next {
            runs.insert(Run { start: number, end: number + 1 });
        }
        self.next = runs.first_missing(self.next);
        runs.remove_below(self.next);
        let mut ack = self.acknowledge(arrival.sent);
        ack.sacks = self.report(number);
        Received { delivered: self.next - before, ack: Some(ack) }
    }

    /// RFC 2018 section 4: first the block with the packet that just came, then those reported
    /// most recently. Whether there is anything to report.
    fn report(&mut self, number: u64) -> bool {
        let Some(early) = self.early.as_mut().filter(|_| self.sack) else { return false };
        let mut blocks = SackBlocks::NONE;
        let candidates = early.blocks.as_slice().iter().map(|run| run.start);
        for candidate in [number].into_iter().chain(candidates) {
            if let Some(run) = early.runs.holding(candidate) {
                blocks.push(run);
            }
        }
        early.blocks = blocks;
        !blocks.is_empty()
    }

    /// Packets that came ahead of a missing one, since the connection began.
    #[inline]
    pub fn out_of_order(&self) -> u64 {
        self.early.as_ref().map_or(0, |early| early.out_of_order)
    }

    /// The SACK blocks of the ACK just given out, where it has any.
    pub fn sack_blocks(&self) -> SackBlocks {
        self.early.as_ref().map_or(SackBlocks::NONE, |early| early.blocks)
    }

    #[inline]
    fn acknowledge(&mut self, echo: Time) -> Acknowledgement {
        self.right_edge = self.right_edge.max(self.next + self.window.min(self.opened));
        Acknowledgement {
            next: self.next,
            window: u32::try_from(self.right_edge - self.next).unwrap_or(u32::MAX),
            echo,
            congestion_echo: self.congestion_echo,
            sacks: false,
        }
    }

    /// RFC 3168 section 6.1.3: marks are echoed until the sender says that it heard.
    #[inline]
    fn note_congestion(&mut self, arrival: &Arrival) {
        self.congestion_echo =
            arrival.congested || (self.congestion_echo && !arrival.window_reduced);
    }

    /// When a delayed ACK is due.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.delayed.as_ref()?.waiting.map(|waiting| waiting.until)
    }

    /// The time that [`Receiver::poll_timeout`] named has come.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Acknowledgement> {
        let delayed = self.delayed.as_mut()?;
        let waiting = delayed.waiting.filter(|waiting| waiting.until <= now)?;
        delayed.waiting = None;
        Some(self.acknowledge(waiting.echo))
    }

    /// Advertise `packets` from now on, as far as the right edge allows.
    pub fn set_window(&mut self, packets: u64) {
        self.window = packets;
        // Linux: rcv_ssthresh = min(rcv_ssthresh, window_clamp).
        if self.opened < u64::MAX {
            self.opened = self.opened.min(packets);
        }
    }

    /// Advertise `packets`, which unread data leave of the window: what has been opened so far stays open.
    pub fn set_free(&mut self, packets: u64) {
        self.window = packets;
    }

    /// One past the highest number that was ever advertised.
    pub fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// The window that an ACK just given out is to tell, after [`Receiver::set_window`]: the edge that it told has
    /// not left the host, and goes back to what the window says, though not below `before`, where it was.
    pub fn readvertise(&mut self, before: u64) -> u32 {
        self.right_edge = before.max(self.next + self.window.min(self.opened));
        u32::try_from(self.advertised()).unwrap_or(u32::MAX)
    }

    /// A window that opened by itself: the number expected next and the window to tell, where that is `least`
    /// packets or more.
    pub fn update_window(&mut self, least: u64) -> Option<(u64, u32)> {
        let window = self.window.min(self.opened);
        (window >= least.max(1)).then(|| (self.next, self.readvertise(self.right_edge)))
    }

    /// The window that is advertised, packets.
    pub fn advertised(&self) -> u64 {
        self.right_edge.saturating_sub(self.next)
    }

    /// Reads from memory what a packet will need.
    #[inline]
    pub fn read_ahead(&self) {
        black_box(self.next);
    }

    /// The number expected next.
    pub fn next(&self) -> u64 {
        self.next
    }
}
