//! A fluid model of one download over a path that carries 100 Mbit/s of payload, with or without a path group.

use std::collections::VecDeque;

use sweetspot_control::{ConnectionSample, PathGroup, TuneEventKind};
use sweetspot_sizing::{ControllerConfig, Sizing};
use sweetspot_units::{Bytes, Duration, Time};

const MSS: f64 = 1448.0;
pub const RATE: f64 = 100e6 / 8.0;
/// The bandwidth-delay product at an RTT of 40 ms.
pub const BDP: f64 = RATE * 0.04;
const STEP: f64 = 0.001;
/// The receiving kernel's maximum buffer.
const RECEIVE_BUFFER: f64 = 6e6;

/// The parameters of a test.
pub struct Condition {
    pub rtt: f64,
    pub buffer: f64,
    /// The maximum extra delay; the delays are uniformly distributed.
    pub jitter: f64,
    /// The excess of every RTT under load over the handshake's RTT. Jitter that keeps packets in order delays all of them as
    /// much as the latest.
    pub held_back: f64,
    /// The fraction of segments lost at random, and the seed.
    pub loss: f64,
    pub seed: u32,
    /// The bytes per second that the sending program writes and the receiving program reads.
    pub program: f64,
    pub reader: f64,
    /// When a second download begins, which is left alone.
    pub rival: Option<f64>,
    /// Whether the kernel obeys the limits.
    pub obeys: bool,
    /// Whether this is a dry run, in which no limit is applied.
    pub is_dry_run: bool,
    /// The size of each download; the next one follows.
    pub size: f64,
    /// The path's rate as a function of time.
    pub rate: fn(f64) -> f64,
    /// The group's controller.
    pub sizing: &'static str,
}

pub const USUAL: Condition = Condition {
    rtt: 0.04,
    buffer: 2.0 * BDP,
    jitter: 0.0,
    held_back: 0.0,
    loss: 0.0,
    seed: 7,
    program: f64::INFINITY,
    reader: f64::INFINITY,
    rival: None,
    obeys: true,
    is_dry_run: false,
    size: f64::INFINITY,
    rate: |_| RATE,
    sizing: "sobas:live",
};

#[derive(Default)]
pub struct Run {
    /// Bytes that the program read, in total and per second.
    pub received: f64,
    pub seconds: Vec<f64>,
    /// The final limit.
    pub limit: f64,
    pub refusals: usize,
    /// The events, each with the number of its download.
    pub events: Vec<(u64, TuneEventKind)>,
    /// The beginning and end of each finished download.
    pub downloads: Vec<Download>,
    /// The limits left after each download ended.
    pub left_behind: Vec<Bytes>,
    /// The bytes received over time: pairs of time and total.
    progress: Vec<(f64, f64)>,
}

#[derive(Debug, Clone, Copy)]
pub struct Download {
    pub began: f64,
    pub ended: f64,
}

impl Run {
    /// The first time at which at least `size` bytes had been received.
    pub fn took(&self, size: f64) -> f64 {
        self.progress.iter().find(|(_, bytes)| *bytes >= size).unwrap().0
    }
}

struct Sender {
    begins: f64,
    /// Bytes left to send.
    left: f64,
    cwnd: f64,
    slow_start: bool,
    in_flight: f64,
    queued: f64,
    acks: VecDeque<(f64, f64)>,
    reduced: f64,
    delivered: f64,
    out_of_order: u64,
}

impl Sender {
    fn new(begins: f64, left: f64) -> Sender {
        Sender {
            begins,
            left,
            cwnd: 10.0 * MSS,
            slow_start: true,
            in_flight: 0.0,
            queued: 0.0,
            acks: VecDeque::new(),
            reduced: 0.0,
            delivered: 0.0,
            out_of_order: 0,
        }
    }

    fn receive(&mut self, t: f64) {
        while self.acks.front().is_some_and(|(due, _)| *due <= t) {
            let bytes = self.acks.pop_front().unwrap().1;
            // A cwnd that is not used does not grow (RFC 7661).
            if self.in_flight > 0.9 * self.cwnd {
                self.cwnd += if self.slow_start { bytes } else { 3.0 * MSS * bytes / self.cwnd };
            }
            self.in_flight -= bytes;
        }
    }

    fn send(&mut self, t: f64, window: f64, program: f64) {
        if t >= self.begins {
            let room = (self.cwnd.min(window) - self.in_flight).max(0.0);
            let sent = room.min(program * STEP).min(self.left);
            self.left -= sent;
            self.in_flight += sent;
            self.queued += sent;
        }
    }

    /// Handles a loss. There is at most one reduction per RTT (RFC 5681).
    fn lose(&mut self, t: f64, rtt: f64) {
        self.out_of_order += 5;
        if t >= self.reduced {
            (self.cwnd, self.slow_start) = ((self.cwnd * 0.7).max(2.0 * MSS), false);
            self.reduced = t + rtt;
        }
    }
}

/// The random number generator of Numerical Recipes, good enough for jitter.
struct Noise(u32);

impl Noise {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(self.0) / f64::from(u32::MAX)
    }
}

pub fn simulate(condition: &Condition, tuned: bool, seconds: usize) -> Run {
    let Condition { rtt, buffer, .. } = *condition;
    let config = ControllerConfig {
        mss: Bytes::new(MSS as u64),
        packet: Bytes::new(1500),
        max_window: Bytes::new(RECEIVE_BUFFER as u64),
        size: None,
        path: None,
    };
    let sizing: Sizing = condition.sizing.parse().unwrap();
    let mut group = PathGroup::new(sizing.controller(&config).unwrap(), config.mss);
    group.handle_dry_run(condition.is_dry_run);
    let mut senders = vec![Sender::new(0.0, condition.size)];
    senders.extend(condition.rival.map(|begins| Sender::new(begins, f64::INFINITY)));
    let mut known = None;
    let (mut limit, mut limits) = (f64::INFINITY, VecDeque::<(f64, f64)>::new());
    let (mut noise, mut read, mut next_round, mut second) =
        (Noise(condition.seed), 0.0_f64, 0.0, 0.0);
    let mut run = Run { seconds: Vec::new(), limit, ..Run::default() };
    for n in 0..(seconds as f64 / STEP) as u64 {
        let t = n as f64 * STEP;
        while limits.front().is_some_and(|(due, _)| *due <= t) {
            limit = limits.pop_front().unwrap().1;
        }
        let unread = senders[0].delivered - read;
        let window = limit.min(RECEIVE_BUFFER - unread);
        for (i, sender) in senders.iter_mut().enumerate() {
            sender.receive(t);
            let (window, program) =
                if i == 0 { (window, condition.program) } else { (RECEIVE_BUFFER, f64::INFINITY) };
            sender.send(t, window, program);
        }
        let queue: f64 = senders.iter().map(|s| s.queued).sum();
        let rate = (condition.rate)(t);
        let full_rtt = rtt + condition.held_back + queue / rate;
        let lost = (queue - buffer).max(0.0) / queue.max(1.0);
        let served = (rate * STEP).min(queue) / queue.max(1.0);
        for sender in &mut senders {
            if lost > 0.0 && sender.queued > 0.0 {
                sender.in_flight -= sender.queued * lost;
                sender.left += sender.queued * lost;
                sender.queued -= sender.queued * lost;
                sender.lose(t, full_rtt);
            }
            let part = sender.queued * served;
            sender.queued -= part;
            sender.delivered += part;
            if condition.loss > 0.0 && noise.next() < condition.loss * part / MSS {
                sender.lose(t, full_rtt);
            }
            let late = condition.jitter * noise.next();
            let due = sender
                .acks
                .back()
                .map_or(0.0, |(due, _)| *due)
                .max(t + rtt + condition.held_back + late);
            sender.acks.push_back((due, part));
        }
        let read_bytes = (senders[0].delivered - read).min(condition.reader * STEP);
        read += read_bytes;
        second += read_bytes;
        run.received += read_bytes;
        run.progress.push((t + rtt / 2.0, run.received));
        if read >= 0.999 * condition.size {
            let began = senders[0].begins;
            let now = Time::from_nanos((t * 1e9) as u64 + 1);
            group.remove(now, run.downloads.len() as u64);
            run.left_behind.extend(group.window());
            run.downloads.push(Download { began, ended: t });
            // The next download begins after a handshake and a request.
            senders[0] = Sender::new(t + 2.0 * rtt, condition.size);
            (read, limit) = (0.0, f64::INFINITY);
            limits.clear();
        }
        if t >= next_round {
            let seen = full_rtt + condition.jitter * (0.25 + 0.5 * noise.next());
            let sample = ConnectionSample {
                received: Bytes::from_f64(senders[0].delivered),
                unread: Bytes::from_f64(senders[0].delivered - read),
                // The kernel's estimate is in whole milliseconds, rounded down.
                rtt: Duration::from_millis((seen * 1e3) as u64).nonzero(),
                minimum_rtt: Some(Duration::from_secs_f64(rtt)),
                out_of_order: senders[0].out_of_order,
                advertised: Some(Bytes::from_f64(if condition.obeys { window } else { 5e6 })),
            };
            let now = Time::from_nanos((t * 1e9) as u64 + 1);
            let cookie = run.downloads.len() as u64;
            if known.replace(cookie) != Some(cookie) {
                group.add(now, cookie, sample);
            }
            group.handle_sample(now, cookie, sample);
            group.handle_round(now);
            while let Some(action) = group.poll_limit_change() {
                run.limit = action.limit.map_or(f64::INFINITY, |l| l.as_f64());
                if tuned && condition.obeys {
                    limits.push_back((t + rtt / 2.0, run.limit));
                }
            }
            let events = std::iter::from_fn(|| group.poll_event());
            run.events.extend(events.map(|(kind, _)| (cookie, kind)));
            run.refusals += std::iter::from_fn(|| group.poll_ignored_limit()).count();
            next_round = t + group.pause(now, Duration::ZERO).as_secs_f64();
        }
        if (n + 1) % 1000 == 0 {
            run.seconds.push((std::mem::take(&mut second) * 8e-6).round());
        }
    }
    run
}
