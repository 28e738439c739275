//! A fluid path that scripts a controller's samples: a bottleneck with a drop-tail buffer, a
//! sender in slow start and then congestion avoidance, probes every 20 ms, trains on request. It
//! steps by a millisecond and is deterministic.

use std::collections::VecDeque;

use sweetspot_path::Random;
use sweetspot_sizing::{
    Controller, ControllerConfig, EventKind, Input, Output, Probe, SenderReport, Sizing, Train,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

pub const MSS: f64 = 1448.0;
pub const PACKET: f64 = 1500.0;
const STEP: f64 = 0.001;

/// The number of initial trains; later trains are requested one by one.
pub const TRAINS: u64 = 5;

/// The parameters of a test.
#[derive(Debug, Clone)]
pub struct Fluid {
    /// Payload rate of the bottleneck in bit/s, as a function of time.
    pub rate: fn(f64) -> f64,
    /// Round-trip propagation delay in seconds, as a function of time.
    pub rtt: fn(f64) -> f64,
    /// Buffer in bytes.
    pub buffer: f64,
    /// Cross traffic through the bottleneck in bit/s of payload, as a function of the queueing delay
    /// in seconds.
    pub cross: fn(f64) -> f64,
    /// Whether the sender's application has nothing to send at this time.
    pub sender_stalls: fn(f64) -> bool,
    /// Whether the receiver's application does not read at this time.
    pub receiver_stalls: fn(f64) -> bool,
    /// The largest extra RTT of a probe in seconds, uniformly distributed.
    pub probe_noise: f64,
    /// Every n-th probe is lost on the forward path, independent of the queue.
    pub lose_every: Option<u64>,
    /// Interval in seconds at which congestion by cross traffic makes the sender lose a segment, and a
    /// probe with it.
    pub others_congest: Option<f64>,
    /// Whether the path carries probes and trains at all.
    pub udp_passes: bool,
    /// The relative error of the trains' dispersion.
    pub train_error: f64,
    /// The relative error of the trains after the first five.
    pub later_train_error: Option<f64>,
    /// The number of one train, counted from the first, and its relative error.
    pub odd_train: Option<(u64, f64)>,
    /// The time in seconds at which the sender loses a segment although the buffer was not full.
    pub loses_at: Option<f64>,
    /// Whether the sender obeys pacing requests.
    pub paces: bool,
    /// The largest extra delay of a packet in seconds, uniformly distributed, each way. Packets stay
    /// in order, so a packet also waits for late ones before it.
    pub jitter: f64,
}

impl Fluid {
    /// 100 Mbit/s of payload, 100 ms, a buffer of a tenth of a BDP, no faults.
    pub fn clean() -> Fluid {
        Fluid {
            rate: |_| 100e6,
            rtt: |_| 0.1,
            buffer: 125e3,
            cross: |_| 0.0,
            sender_stalls: |_| false,
            receiver_stalls: |_| false,
            probe_noise: 0.000_2,
            lose_every: None,
            others_congest: None,
            udp_passes: true,
            train_error: 1.0,
            later_train_error: None,
            odd_train: None,
            loses_at: None,
            paces: true,
            jitter: 0.0,
        }
    }
}

/// One direction of a path, with jitter.
struct JitteredDirection {
    jitter: f64,
    random: Random,
    /// The latest arrival of all packets that entered so far.
    latest: f64,
}

impl JitteredDirection {
    fn new(jitter: f64, seed: u64) -> JitteredDirection {
        JitteredDirection { jitter, random: Random::new(seed), latest: 0.0 }
    }

    /// The delay of the last of `packets` packets that enter at `t`.
    fn late(&mut self, t: f64, packets: f64) -> f64 {
        // The latest of k packets, each late by U: P(late <= x) = x^k.
        let late = self.jitter * self.random.unit().powf(1.0 / packets);
        self.latest = self.latest.max(t + late);
        self.latest - t
    }
}

/// The results of a run.
#[derive(Debug, Clone, Default)]
pub struct Run {
    /// Rows of 100 ms: time, goodput in bit/s, window in force, queue in bytes.
    pub rows: Vec<(f64, f64, f64, f64)>,
    pub events: Vec<(f64, EventKind)>,
    pub dropped_bytes: f64,
    /// Trains requested.
    pub trains: u64,
    /// Lost train packets: padding, not included in `dropped_bytes`.
    pub lost_train_packets: u64,
    /// Time of the last drop, in seconds.
    pub last_drop: f64,
    pub window: Option<Bytes>,
    /// The last requested pacing rate.
    pub pacing: Option<Rate>,
}

impl Run {
    /// Mean goodput between two times.
    pub fn goodput(&self, from: f64, to: f64) -> f64 {
        self.mean(from, to, |r| r.1)
    }
    /// Mean queue between two times.
    pub fn queue(&self, from: f64, to: f64) -> f64 {
        self.mean(from, to, |r| r.3)
    }
    fn mean(&self, from: f64, to: f64, of: impl Fn(&(f64, f64, f64, f64)) -> f64) -> f64 {
        let rows: Vec<f64> = self.rows.iter().filter(|r| r.0 >= from && r.0 < to).map(of).collect();
        rows.iter().sum::<f64>() / rows.len() as f64
    }
    pub fn has_seen(&self, is_expected: impl Fn(&EventKind) -> bool) -> bool {
        self.first(is_expected).is_some()
    }
    /// Time of the first such event, in seconds.
    pub fn first(&self, is_expected: impl Fn(&EventKind) -> bool) -> Option<f64> {
        self.events.iter().find(|(_, kind)| is_expected(kind)).map(|(at, _)| *at)
    }
}

struct Sender {
    cwnd: f64,
    ssthresh: f64,
    in_flight: f64,
    window: f64,
    pacing: f64,
    retransmitted: u64,
    /// End of the current recovery, because the sender reduces its window at most once per round trip.
    recovers_until: f64,
}

/// The controller of `sizing` on a host that allows windows of `max_window`.
pub fn controller(sizing: Sizing, max_window: u64) -> Box<dyn Controller + Send> {
    sizing.controller(&config(max_window)).unwrap()
}

/// The configuration of such a host, for a transfer without an end.
pub fn config(max_window: u64) -> ControllerConfig {
    ControllerConfig {
        mss: Bytes::new(MSS as u64),
        packet: Bytes::new(PACKET as u64),
        max_window: Bytes::new(max_window),
        size: None,
        path: None,
    }
}

/// Drives that controller over the path for `seconds`.
pub fn simulate(sizing: Sizing, max_window: u64, fluid: &Fluid, seconds: f64) -> Run {
    drive(&mut *controller(sizing, max_window), fluid, seconds)
}

/// Drives `controller` over the path for `seconds`.
pub fn drive(controller: &mut dyn Controller, fluid: &Fluid, seconds: f64) -> Run {
    drive_from(controller, fluid, seconds, 0.0)
}

/// As [`drive`], with a clock that starts at `began` seconds, for a transfer after another one.
pub fn drive_from(controller: &mut dyn Controller, fluid: &Fluid, seconds: f64, began: f64) -> Run {
    let mut run = Run::default();
    let mut sender = Sender {
        cwnd: 10.0 * MSS,
        ssthresh: f64::INFINITY,
        in_flight: 0.0,
        window: f64::INFINITY,
        pacing: f64::INFINITY,
        retransmitted: 0,
        recovers_until: 0.0,
    };
    let (mut queue, mut ours, mut backlog) = (0.0f64, 0.0f64, 0.0f64);
    // Packets and reports in flight, each with its due time.
    let mut arriving: VecDeque<(f64, f64)> = VecDeque::new();
    let mut acked: VecDeque<(f64, f64)> = VecDeque::new();
    let mut steering: VecDeque<(f64, Output)> = VecDeque::new();
    let mut trains: VecDeque<(f64, Train)> = VecDeque::new();
    let mut ways =
        [JitteredDirection::new(fluid.jitter, 1), JitteredDirection::new(fluid.jitter, 2)];
    let (mut probes, mut forward_lost, mut starved) = (0u64, 0u64, false);
    let (mut row_bytes, mut record) = (0.0, 0.0);

    let steps = (seconds / STEP) as u64;
    for n in 0..steps {
        let t = n as f64 * STEP;
        let now = Time::from_nanos(((began + t) * 1e9) as u64 + 1);
        let (capacity, rtt) = ((fluid.rate)(t) / 8.0, (fluid.rtt)(t));
        if n == 0 {
            // The handshake's RTT sample.
            controller.handle(now, &Input::MinimumRtt(Duration::from_secs_f64(rtt)));
        }

        while steering.front().is_some_and(|(due, _)| *due <= t) {
            match steering.pop_front().unwrap().1 {
                Output::Window(w) => sender.window = w.map_or(f64::INFINITY, |w| w.as_f64()),
                Output::Pacing(p) if fluid.paces => {
                    sender.pacing = p.map_or(f64::INFINITY, |p| p.as_f64() / 8.0);
                }
                Output::Train(request) if fluid.udp_passes => {
                    // All packets arrive at once; those beyond the free buffer are lost.
                    let room = ((fluid.buffer - queue) / MSS).max(0.0) as u32;
                    let received = request.packets.min(room);
                    run.lost_train_packets += u64::from(request.packets - received);
                    queue += f64::from(received) * MSS;
                    let gaps = f64::from(received.saturating_sub(1)) * request.size.as_f64();
                    let wire = capacity * PACKET / MSS;
                    let odd = fluid.odd_train.filter(|(which, _)| *which == run.trains);
                    let usual = fluid.later_train_error.filter(|_| run.trains >= TRAINS);
                    let usual = usual.unwrap_or(fluid.train_error);
                    run.trains += 1;
                    let error = odd.map_or(usual, |(_, error)| error);
                    let dispersion = gaps / wire * error;
                    let first = ways[0].late(t, 1.0);
                    let late = (1..received).fold(first, |_, i| {
                        let gap = dispersion / f64::from(received - 1);
                        ways[0].late(t + f64::from(i) * gap, 1.0)
                    });
                    let dispersion = (dispersion + late - first).max(1e-6);
                    let train = Train {
                        sent: request.packets,
                        received,
                        bytes_after_first: Bytes::from_f64(gaps),
                        dispersion: Duration::from_secs_f64(dispersion),
                    };
                    trains.push_back((t + rtt / 2.0 + queue / capacity, train));
                }
                Output::Event(_) => unreachable!("recorded at once"),
                // The sender obeys no pacing requests, or has only one congestion control.
                _ => {}
            }
        }
        while acked.front().is_some_and(|(due, _)| *due <= t) {
            let bytes = acked.pop_front().unwrap().1;
            sender.in_flight -= bytes;
            if sender.cwnd < sender.ssthresh {
                sender.cwnd += bytes;
            } else {
                sender.cwnd += MSS * bytes / sender.cwnd;
            }
            // A cwnd far above the data in flight does not grow (RFC 7661).
            sender.cwnd = sender.cwnd.min(2.0 * sender.window);
        }

        let room = (sender.cwnd.min(sender.window) - sender.in_flight).max(0.0);
        let own_pacing = 2.0 * sender.cwnd / rtt;
        let mut sent = room.min(sender.pacing.min(own_pacing) * STEP);
        if (fluid.sender_stalls)(t) {
            starved |= room > 0.0;
            sent = 0.0;
        }
        sender.in_flight += sent;
        // First in, first out: our share of the served data equals our share of the queue.
        let crossing = (fluid.cross)(queue / capacity) / 8.0 * STEP;
        ours += sent;
        queue += sent + crossing;
        let all_served = queue.min(capacity * STEP);
        let served = all_served * ours / queue.max(1.0);
        ours -= served;
        queue -= all_served;
        if fluid.others_congest.is_some_and(|every| (n + 1).is_multiple_of((every / STEP) as u64)) {
            sender.retransmitted += 1;
            forward_lost += 1;
            sender.cwnd *= 0.5;
            sender.ssthresh = sender.cwnd;
        }
        if fluid.loses_at.is_some_and(|at| n == (at / STEP) as u64) {
            sender.retransmitted += 1;
            sender.cwnd *= 0.7;
            sender.ssthresh = sender.cwnd;
        }
        if queue > fluid.buffer {
            let lost = queue - fluid.buffer;
            queue = fluid.buffer;
            ours -= lost.min(ours);
            run.dropped_bytes += lost;
            run.last_drop = t;
            sender.retransmitted += (lost / MSS).ceil() as u64;
            sender.in_flight -= lost;
            if t >= sender.recovers_until {
                sender.cwnd *= 0.7;
                sender.ssthresh = sender.cwnd;
                sender.recovers_until = t + rtt;
            }
        }
        let mut late = [0.0; 2];
        if served > 0.0 {
            late[0] = ways[0].late(t, served / MSS);
            late[1] = ways[1].late(t + late[0], served / (2.0 * MSS));
        }
        arriving.push_back((t + rtt / 2.0 + late[0], served));
        acked.push_back((t + rtt + late[0] + late[1], served));

        // The receiver reads records of 16 kB. It also acknowledges unread data.
        while arriving.front().is_some_and(|(due, _)| *due <= t) {
            backlog += arriving.pop_front().unwrap().1;
        }
        if !(fluid.receiver_stalls)(t) {
            let readable = backlog + record;
            let whole = (readable / 16384.0).floor() * 16384.0;
            record = readable - whole;
            backlog = 0.0;
            if whole > 0.0 {
                row_bytes += whole;
                controller.handle(
                    now,
                    &Input::Data { bytes: Bytes::from_f64(whole), unread: Bytes::ZERO },
                );
            }
        } else if n.is_multiple_of(20) && backlog > 0.0 {
            controller.handle(
                now,
                &Input::Data { bytes: Bytes::new(1), unread: Bytes::from_f64(backlog) },
            );
        }

        if n.is_multiple_of(20) {
            probes += 1;
            if fluid.lose_every.is_some_and(|k| probes.is_multiple_of(k)) {
                forward_lost += 1;
            } else if fluid.udp_passes {
                let noise = fluid.probe_noise * ((probes * 7919) % 101) as f64 / 101.0;
                let forth = ways[0].late(t, 1.0);
                let back = ways[1].late(t + forth, 1.0);
                let seen = rtt + queue / capacity + noise + forth + back;
                let report = SenderReport {
                    retransmitted: sender.retransmitted,
                    cwnd: Bytes::from_f64(sender.cwnd),
                    ssthresh: Some(sender.ssthresh).filter(|s| s.is_finite()).map(Bytes::from_f64),
                    in_flight: Bytes::from_f64(sender.in_flight.max(0.0)),
                    starved: std::mem::take(&mut starved),
                    ..SenderReport::default()
                };
                controller.handle(now, &Input::Sender(report));
                let probe = Probe {
                    rtt: Duration::from_secs_f64(seen),
                    forward_lost: std::mem::take(&mut forward_lost),
                };
                controller.handle(now, &Input::Probe(probe));
            } else {
                // Timestamps count milliseconds.
                let ms = ((rtt + queue / capacity) * 1e3).floor() as u64;
                controller.handle(now, &Input::KernelRtt(Duration::from_millis(ms)));
            }
        }
        while trains.front().is_some_and(|(due, _)| *due <= t) {
            controller.handle(now, &Input::Train(trains.pop_front().unwrap().1));
        }
        if controller.poll_timeout().is_some_and(|due| due <= now) {
            controller.handle(now, &Input::Timeout);
        }
        while let Some(output) = controller.poll_output() {
            match output {
                Output::Event(event) => {
                    run.events.push((t, event.kind));
                    continue;
                }
                Output::Window(window) => run.window = window,
                Output::Pacing(pace) => run.pacing = pace,
                _ => {}
            }
            steering.push_back((t + rtt / 2.0, output));
        }
        if n % 100 == 99 {
            run.rows.push((t, row_bytes * 80.0, sender.window, queue));
            row_bytes = 0.0;
        }
    }
    run
}
