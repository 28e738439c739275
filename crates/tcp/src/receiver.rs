use core::hint::black_box;

use sweetspot_units::{Duration, Time};

use crate::config::{DelayedAck, ReceiverConfig};
use crate::runs::Runs;
use crate::segment::{Acknowledgement, Run, SackBlocks};

/// The receiving half of a connection: puts packets in order and acknowledges them.
///
/// **Contract.** `now` never goes backwards. [`Receiver::handle_data`] and [`Receiver::handle_timeout`] return the ACK to send,
/// if any; the latter is due at the time of [`Receiver::poll_timeout`]. The application reads in-order data at once.
///
/// A receiver fills one cache line.
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
    /// The part of the window that has been opened so far, if it opens slowly (Linux: `rcv_ssthresh`).
    opened: Option<u64>,
    /// Packets beyond `next`, once there are any.
    out_of_order: Option<Box<OutOfOrder>>,
    /// Delayed ACKs, if the receiver uses them.
    delayed: Option<Box<DelayedAckState>>,
    /// Whether ACKs carry SACK blocks.
    sack: bool,
    /// Congestion marks seen and not yet answered by the sender.
    congestion_echo: bool,
}

/// Packets that arrived ahead of a missing one, and the latest reported blocks.
#[derive(Debug, Clone, Default)]
struct OutOfOrder {
    runs: Runs,
    blocks: SackBlocks,
    /// Total number of packets that arrived ahead of a missing one (Linux: `tcpi_rcv_ooopack`).
    arrived: u64,
}

#[derive(Debug, Clone)]
struct DelayedAckState {
    delay: Duration,
    /// Packets still to be acknowledged at once.
    quick: u32,
    pending: Option<PendingAck>,
}

/// A delayed ACK: its deadline and its timestamp echo.
#[derive(Debug, Clone, Copy)]
struct PendingAck {
    until: Time,
    echo: Time,
}

/// The effects of a packet's arrival.
#[derive(Debug, Clone, Copy)]
pub struct Received {
    /// Packets that the application can read now.
    pub delivered: u64,
    /// The ACK to send, if any.
    pub ack: Option<Acknowledgement>,
}

/// A data packet that arrived.
#[derive(Debug, Clone, Copy)]
pub struct Arrival {
    /// The packet's number.
    pub number: u64,
    /// When it was sent.
    pub sent: Time,
    /// CE of RFC 3168: a router marked the packet.
    pub congested: bool,
    /// CWR of RFC 3168: the sender has reacted to a congestion echo.
    pub window_reduced: bool,
}

impl Receiver {
    /// A receiver before the SYN.
    pub fn new(config: &ReceiverConfig) -> Receiver {
        Receiver {
            next: 0,
            right_edge: 0,
            window: config.window,
            opened: config.first_window,
            out_of_order: None,
            delayed: config.delayed_ack.map(|DelayedAck { delay, quick_start }| {
                Box::new(DelayedAckState { delay, quick: quick_start, pending: None })
            }),
            sack: config.sack,
            congestion_echo: false,
        }
    }

    /// Handles a packet that arrived.
    #[inline(always)]
    pub fn handle_data(&mut self, now: Time, arrival: &Arrival) -> Received {
        self.note_congestion(arrival);
        if arrival.number == self.next && self.is_in_order() {
            self.next += 1;
            // Linux `__tcp_grow_window`: two segments for each segment that arrives in order.
            if let Some(opened) = &mut self.opened {
                *opened += 2;
            }
            return Received { delivered: 1, ack: self.acknowledge_in_order(now, arrival) };
        }
        self.handle_disorder(arrival)
    }

    /// Acknowledges a packet in order, at once or later.
    #[inline]
    fn acknowledge_in_order(&mut self, now: Time, arrival: &Arrival) -> Option<Acknowledgement> {
        let Some(delayed) = &mut self.delayed else {
            return Some(self.acknowledge(arrival.sent));
        };
        // The SYN is answered at once, and so is every second packet.
        let at_once = arrival.number == 0 || delayed.quick > 0;
        delayed.quick = delayed.quick.saturating_sub(1);
        match delayed.pending.take() {
            // RFC 7323 section 4.2: the echo is the waiting packet's timestamp.
            Some(pending) => Some(self.acknowledge(pending.echo)),
            None if at_once => Some(self.acknowledge(arrival.sent)),
            None => {
                let until = now + delayed.delay;
                delayed.pending = Some(PendingAck { until, echo: arrival.sent });
                None
            }
        }
    }

    /// Whether nothing has arrived beyond a missing packet.
    #[inline]
    fn is_in_order(&self) -> bool {
        self.out_of_order.as_ref().is_none_or(|beyond| beyond.runs.is_empty())
    }

    /// Handles a packet that is out of order, fills a hole or is a duplicate: RFC 5681 section 4.2 requires an immediate ACK.
    #[cold]
    fn handle_disorder(&mut self, arrival: &Arrival) -> Received {
        if let Some(delayed) = &mut self.delayed {
            delayed.pending = None;
        }
        let before = self.next;
        let number = arrival.number;
        let beyond = self.out_of_order.get_or_insert_default();
        beyond.arrived += u64::from(number > self.next);
        let runs = &mut beyond.runs;
        if number >= self.next {
            runs.insert(Run { start: number, end: number + 1 });
        }
        self.next = runs.first_missing(self.next);
        runs.remove_below(self.next);
        let mut ack = self.acknowledge(arrival.sent);
        ack.sacks = self.report(number);
        Received { delivered: self.next - before, ack: Some(ack) }
    }

    /// Chooses the blocks to report (RFC 2018 section 4): first the one with the latest packet, then those reported most
    /// recently. Returns whether there are any.
    fn report(&mut self, number: u64) -> bool {
        let Some(beyond) = self.out_of_order.as_mut().filter(|_| self.sack) else { return false };
        let mut blocks = SackBlocks::NONE;
        let candidates = beyond.blocks.as_slice().iter().map(|run| run.start);
        for candidate in [number].into_iter().chain(candidates) {
            if let Some(run) = beyond.runs.holding(candidate) {
                blocks.push(run);
            }
        }
        beyond.blocks = blocks;
        !blocks.is_empty()
    }

    /// Packets that arrived ahead of a missing one since the connection began.
    #[inline]
    pub fn out_of_order(&self) -> u64 {
        self.out_of_order.as_ref().map_or(0, |beyond| beyond.arrived)
    }

    /// The SACK blocks of the last ACK returned, if it has any.
    pub fn sack_blocks(&self) -> SackBlocks {
        self.out_of_order.as_ref().map_or(SackBlocks::NONE, |beyond| beyond.blocks)
    }

    #[inline]
    fn acknowledge(&mut self, echo: Time) -> Acknowledgement {
        self.right_edge = self.right_edge.max(self.next + self.open());
        Acknowledgement {
            next: self.next,
            window: u32::try_from(self.right_edge - self.next).unwrap_or(u32::MAX),
            echo,
            congestion_echo: self.congestion_echo,
            sacks: false,
        }
    }

    /// The open part of the window, packets.
    #[inline]
    fn open(&self) -> u64 {
        self.opened.map_or(self.window, |opened| opened.min(self.window))
    }

    /// Echoes marks until the sender has reacted (RFC 3168 section 6.1.3).
    #[inline]
    fn note_congestion(&mut self, arrival: &Arrival) {
        self.congestion_echo =
            arrival.congested || (self.congestion_echo && !arrival.window_reduced);
    }

    /// The deadline of a delayed ACK; `None` if no ACK is delayed.
    #[inline]
    pub fn poll_timeout(&self) -> Option<Time> {
        self.delayed.as_ref()?.pending.map(|pending| pending.until)
    }

    /// The time of [`Receiver::poll_timeout`] has come. Returns the ACK to send, if any.
    pub fn handle_timeout(&mut self, now: Time) -> Option<Acknowledgement> {
        let delayed = self.delayed.as_mut()?;
        let pending = delayed.pending.filter(|pending| pending.until <= now)?;
        delayed.pending = None;
        Some(self.acknowledge(pending.echo))
    }

    /// Sets the window to advertise from now on, packets. The right edge does not move back.
    pub fn set_window(&mut self, packets: u64) {
        self.window = packets;
        // Linux: rcv_ssthresh = min(rcv_ssthresh, window_clamp).
        if let Some(opened) = &mut self.opened {
            *opened = packets.min(*opened);
        }
    }

    /// Sets the free part of the window to `packets`, which depends on unread data. The open part stays open.
    pub fn set_free(&mut self, packets: u64) {
        self.window = packets;
    }

    /// One past the highest number that was ever advertised.
    pub fn right_edge(&self) -> u64 {
        self.right_edge
    }

    /// The window for an ACK just created, after [`Receiver::set_window`]. The edge of that ACK has not left the host, so it
    /// moves to the new window's edge, but not below `before`, its earlier position.
    pub fn readvertise(&mut self, before: u64) -> u32 {
        self.right_edge = before.max(self.next + self.open());
        u32::try_from(self.advertised()).unwrap_or(u32::MAX)
    }

    /// A window update without data: the number expected next and the window to advertise, if the window is at least `min`
    /// packets.
    pub fn update_window(&mut self, min: u64) -> Option<(u64, u32)> {
        (self.open() >= min.max(1)).then(|| (self.next, self.readvertise(self.right_edge)))
    }

    /// The advertised window, packets.
    pub fn advertised(&self) -> u64 {
        self.right_edge.saturating_sub(self.next)
    }

    /// Prefetches the fields that a packet needs.
    #[inline]
    pub fn read_ahead(&self) {
        black_box(self.next);
    }

    /// The number expected next.
    pub fn next(&self) -> u64 {
        self.next
    }
}
