//! Defaults for configurations, ACKs and congestion events, and one flow over one bottleneck.

use std::collections::VecDeque;

use sweetspot_tcp::congestion::{
    AckSample, Congestion, CongestionConfig, CongestionControl, CongestionEvent, DeliveryRate,
    Growth, SentStamp,
};
use sweetspot_units::{Bytes, Duration, Time};

pub fn config() -> CongestionConfig {
    CongestionConfig {
        initial_window: 2.0,
        initial_ssthresh: f64::INFINITY,
        growth: Growth::PerPacket,
        backoff: 0.5,
        packet: Bytes::new(1000),
        seed: 1,
    }
}

pub fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// An ACK of one packet at `now`, with the window as the limit.
pub fn ack(now: Time) -> AckSample {
    AckSample {
        now,
        acked: 1,
        delivered: 1,
        rtt: None,
        lost: 0,
        una: 0,
        nxt: 0,
        in_flight: 0,
        cwnd_limited: true,
        recovering: false,
        paced: false,
        rate: None,
    }
}

pub fn event(now: Time) -> CongestionEvent {
    CongestionEvent { now, window: f64::INFINITY, in_flight: 0, nxt: 0, reduced: false }
}

/// One flow that always has data, over a link of `rate` packets per second with an infinite queue.
/// The only other delay is `rtt`. No packet is lost; every packet is ACKed.
pub struct Flow {
    pub control: Congestion,
    rate: f64,
    rtt: Duration,
    link_free: Time,
    flying: VecDeque<InFlight>,
    next_send: Time,
    delivery: DeliveryRate,
    min_rtt: Duration,
    una: u64,
    nxt: u64,
    now: Time,
}

struct InFlight {
    sent: Time,
    acked: Time,
    stamp: SentStamp,
}

impl Flow {
    pub fn new(control: Congestion, rate: f64, rtt: Duration) -> Flow {
        Flow {
            control,
            rate,
            rtt,
            link_free: Time::ZERO,
            flying: VecDeque::new(),
            next_send: Time::ZERO,
            delivery: DeliveryRate::default(),
            min_rtt: Duration::ZERO,
            una: 0,
            nxt: 0,
            now: Time::ZERO,
        }
    }

    /// Runs until `end`; returns the number of packets delivered meanwhile.
    pub fn run_until(&mut self, end: Time) -> u64 {
        let before = self.una;
        loop {
            let ack = self.flying.front().map(|p| p.acked);
            let room = (self.flying.len() as f64) < self.control.cwnd().floor();
            let send = room.then_some(self.next_send.max(self.now));
            let next = [ack, send].into_iter().flatten().min().expect("data never runs out");
            if next > end {
                return self.una - before;
            }
            self.now = next;
            if ack == Some(next) { self.receive() } else { self.send() }
        }
    }

    /// Packets that wait at the bottleneck.
    pub fn queued(&self) -> f64 {
        self.link_free.since(self.now).as_secs_f64() * self.rate
    }

    /// Changes the bottleneck's rate.
    pub fn set_rate(&mut self, rate: f64) {
        self.rate = rate;
    }

    fn send(&mut self) {
        let stamp = self.delivery.handle_sent(self.now, self.flying.len() as u32);
        let service = Duration::from_secs_f64(1.0 / self.rate);
        self.link_free = self.link_free.max(self.now) + service;
        let acked = self.link_free + self.rtt;
        self.flying.push_back(InFlight { sent: self.now, acked, stamp });
        self.nxt += 1;
        if let Some(pacing) = self.control.pacing_rate() {
            self.next_send = self.now + Bytes::new(1000) / pacing;
        }
    }

    fn receive(&mut self) {
        let packet = self.flying.pop_front().expect("an ACK answers a packet");
        self.una += 1;
        let rtt = self.now.since(packet.sent);
        self.min_rtt = if self.una == 1 { rtt } else { self.min_rtt.min(rtt) };
        self.delivery.handle_delivered(self.now, &packet.stamp);
        self.control.handle_ack(&AckSample {
            rtt: Some(rtt),
            una: self.una,
            nxt: self.nxt,
            in_flight: self.flying.len() as u32,
            rate: self.delivery.poll_sample(self.now, self.min_rtt),
            ..ack(self.now)
        });
    }
}
