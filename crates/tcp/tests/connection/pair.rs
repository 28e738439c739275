//! A sender, a receiver, a link of one packet per millisecond, and deliberate losses.

use std::collections::BTreeMap;

use sweetspot_tcp::congestion::{Algorithm, Growth};
use sweetspot_tcp::{
    Acknowledgement, Arrival, DelayedAck, Receiver, ReceiverConfig, RecoveryStyle, Run, Sender,
    SenderConfig,
};
use sweetspot_units::{Bytes, Duration, Time};

/// A sender configured like ns-2's, without optional features.
pub const SENDER: SenderConfig = SenderConfig {
    algorithm: Algorithm::Reno,
    recovery: RecoveryStyle::Sack,
    growth: Growth::PerAck,
    initial_window: 10,
    packet: Bytes::new(1000),
    backoff: 0.5,
    min_rto: Duration::from_millis(200),
    initial_rto: Duration::from_secs(1),
    clock: Duration::from_millis(1),
    clock_phase: Duration::ZERO,
    timestamps: false,
    limited_transmit: false,
    slow_start_restart: false,
    offload: false,
    pacing: false,
    send_buffer: u32::MAX as u64,
    send_memory: None,
    seed: 1,
};

/// Acknowledges every packet, reports out-of-order packets, and advertises the whole window.
pub const RECEIVER: ReceiverConfig =
    ReceiverConfig { delayed_ack: None, sack: true, window: u32::MAX as u64, first_window: None };

/// As [`RECEIVER`], but acknowledges every second packet, after `quick_start` packets acknowledged
/// at once.
pub fn delaying(quick_start: u32) -> ReceiverConfig {
    let delay = Duration::from_millis(100);
    ReceiverConfig { delayed_ack: Some(DelayedAck { delay, quick_start }), ..RECEIVER }
}

pub fn ms(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// One transmission of a data packet.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sent {
    /// Sending time in milliseconds.
    pub at: u64,
    pub number: u64,
    pub retransmitted: bool,
    pub window_reduced: bool,
}

enum Event {
    Data { arrival: Arrival },
    Ack { ack: Acknowledgement, blocks: Vec<Run> },
}

/// One-way delay; a round trip takes 40 ms without a queue.
const DELAY: Duration = Duration::from_millis(20);
const GAP: Duration = Duration::from_millis(1);

pub struct Pair {
    pub now: Time,
    pub sender: Sender,
    pub receiver: Receiver,
    /// Every transmission, including dropped ones.
    pub sent: Vec<Sent>,
    /// Every ACK with its sending time.
    pub acks: Vec<(Time, Acknowledgement)>,
    /// Numbers with a lost next transmission. A number that is listed twice is lost twice.
    drops: Vec<u64>,
    /// Numbers with a marked next transmission.
    marks: Vec<u64>,
    /// The time at which the link becomes free.
    free: Time,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
}

impl Pair {
    pub fn new(sender: SenderConfig, receiver: ReceiverConfig, packets: Option<u64>) -> Pair {
        Pair {
            now: Time::ZERO,
            sender: Sender::new(&sender, packets),
            receiver: Receiver::new(&receiver),
            sent: Vec::new(),
            acks: Vec::new(),
            drops: Vec::new(),
            marks: Vec::new(),
            free: Time::ZERO,
            events: BTreeMap::new(),
            order: 0,
        }
    }

    pub fn dropping(mut self, numbers: &[u64]) -> Pair {
        self.drops = numbers.to_vec();
        self
    }

    pub fn marking(mut self, numbers: &[u64]) -> Pair {
        self.marks = numbers.to_vec();
        self
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Time) {
        self.pump();
        loop {
            let event = self.events.keys().next().map(|(at, _)| *at);
            let timers = [self.sender.poll_timeout(), self.receiver.poll_timeout()];
            let due = timers.into_iter().flatten().chain(event).min();
            let Some(due) = due.filter(|due| *due <= end) else { break };
            self.now = self.now.max(due);
            while let Some(entry) = self.events.first_entry().filter(|e| e.key().0 <= self.now) {
                let event = entry.remove();
                self.handle(event);
            }
            if self.sender.poll_timeout().is_some_and(|due| due <= self.now) {
                self.sender.handle_timeout(self.now);
            }
            if let Some(ack) = self.receiver.handle_timeout(self.now) {
                self.answer(ack);
            }
            self.pump();
        }
        self.now = end;
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Data { arrival } => {
                if let Some(ack) = self.receiver.handle_data(self.now, &arrival).ack {
                    self.answer(ack);
                }
            }
            Event::Ack { ack, blocks } => {
                self.sender.handle_ack(self.now, &ack, &blocks);
                self.pump();
            }
        }
    }

    fn answer(&mut self, ack: Acknowledgement) {
        self.acks.push((self.now, ack));
        let blocks = self.receiver.sack_blocks();
        let blocks = if ack.sacks { blocks.as_slice().to_vec() } else { Vec::new() };
        self.schedule(self.now + DELAY, Event::Ack { ack, blocks });
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.order += 1;
        self.events.insert((at, self.order), event);
    }

    fn pump(&mut self) {
        while let Some(segment) = self.sender.poll_transmit(self.now) {
            let number = segment.number;
            self.sent.push(Sent {
                at: self.now.as_nanos() / 1_000_000,
                number,
                retransmitted: segment.retransmitted,
                window_reduced: segment.window_reduced,
            });
            if let Some(place) = self.drops.iter().position(|n| *n == number) {
                self.drops.swap_remove(place);
                continue;
            }
            let marked = self.marks.iter().position(|n| *n == number);
            let congested = marked.map(|place| self.marks.swap_remove(place)).is_some();
            self.free = self.free.max(self.now) + GAP;
            let window_reduced = segment.window_reduced;
            let arrival = Arrival { number, sent: self.now, congested, window_reduced };
            self.schedule(self.free + DELAY, Event::Data { arrival });
        }
    }

    /// Retransmitted numbers, in order.
    pub fn retransmissions(&self) -> Vec<u64> {
        self.sent.iter().filter(|sent| sent.retransmitted).map(|sent| sent.number).collect()
    }
}
