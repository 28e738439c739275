//! Plans of flows, drawn at random for each cause.

use sweetspot_diagnose::Class;
use sweetspot_emulator::Middlebox;
use sweetspot_path::{DirectionSpec, PathSpec, Random};
use sweetspot_units::{Bytes, Duration, Probability, Rate, Volume};

use super::cause::{Cause, ExchangePattern, Fault, FlowPlan};
use super::field::{self, MiddleboxBehaviour};

/// Causes that are also captured with offloads.
const OFFLOADED: [Cause; 5] = [
    Cause::SmallReceiveBuffer,
    Cause::SmallSendBuffer,
    Cause::SlowReader,
    Cause::RandomLoss,
    Cause::CleanPath,
];

/// The first `flows` flows of each cause; `seed` determines paths and strengths.
pub fn plans(seed: u64, flows: u64) -> Vec<FlowPlan> {
    let all = Cause::ALL.into_iter().flat_map(|cause| (0..flows).map(move |n| (cause, n)));
    all.map(|(cause, n)| plan(cause, n, seed)).collect()
}

/// Flow number `n` of `cause`.
fn plan(cause: Cause, n: u64, seed: u64) -> FlowPlan {
    let mut random = Random::new(seed * 1_000_003 + cause as u64 * 1009 + n);
    let mut plan = drawn(cause, n, &mut random);
    shape(&mut plan, finished(cause, n), &mut random);
    field::shape(&mut plan, cause, n, &mut random);
    plan
}

/// The cause actually simulated for flow number `n` of `cause`.
fn finished(cause: Cause, n: u64) -> Cause {
    match cause {
        Cause::Offload => OFFLOADED[n as usize % OFFLOADED.len()],
        Cause::Middlebox if MiddleboxBehaviour::of(n) != MiddleboxBehaviour::NoScale => {
            Cause::RandomLoss
        }
        cause => cause,
    }
}

/// A flow on a path where a flow of a few seconds leaves slow start (its BDP is at most 500 kB), and that this machine
/// emulates well.
fn drawn(cause: Cause, n: u64, random: &mut Random) -> FlowPlan {
    let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
    let ([short, long], [small, large]) = field::drawn_from(cause, n);
    let (rate, rtt) = loop {
        let rate = Rate::from_f64(between(8e6, 60e6));
        let rtt = Duration::from_millis(between(short, long) as u64);
        if (small..=large).contains(&(rate * rtt).get()) {
            break (rate, rtt);
        }
    };
    let buffer = Volume::Bytes((rate * rtt).max(Bytes::new(60_000)));
    let direction = DirectionSpec::new(rate, rtt / 2, buffer);
    let mtu = [1500, 1500, 1280, 1500][(random.unit() * 4.0) as usize % 4];
    FlowPlan {
        name: format!(
            "{}-{n:02}-{:.0}Mbit-{}ms",
            cause.name(),
            rate.as_f64() / 1e6,
            rtt.as_micros() / 1000
        ),
        cause,
        right: finished(cause, n).class(),
        path: PathSpec { up: direction, down: direction, mtu: Bytes::new(mtu), seed: n + 1 },
        congestion: {
            // The effect of losses depends on the congestion control: BBR ignores them.
            let lossy = finished(cause, n).class() == Class::Congestion;
            let controls: &[_] = if lossy { &["cubic", "reno"] } else { &["cubic", "reno", "bbr"] };
            controls[(random.unit() * controls.len() as f64) as usize % controls.len()]
        },
        receive_buffer: None,
        send_buffer: None,
        read_at: None,
        pause: None,
        piece: Bytes::new(65_536),
        fault: None,
        answer: None,
        proxy: false,
        no_delay: false,
        size: None,
        lasts: Duration::from_secs(3),
        loopback: false,
        offload: cause == Cause::Offload,
        shaped: None,
        // About one host in four does not use timestamps.
        timestamps: random.unit() < 0.75,
        talk: ExchangePattern::Plain,
        middleboxes: [Middlebox::default(); 2],
        shrinks: None,
        expected_words: None,
    }
}

/// One of three pauses. If RTT plus burst time is a multiple of the pause, a program that writes periodically and one that
/// waits for ACKs look the same.
fn pause_of_writer(round_trip: Duration, first: usize) -> Duration {
    let apart = |pause: &Duration| {
        let phase = round_trip.as_secs_f64() / pause.as_secs_f64() % 1.0;
        (0.05..0.7).contains(&phase)
    };
    let pauses = [19, 60, 210].map(Duration::from_millis);
    let mut drawn = pauses.into_iter().cycle().skip(first).take(pauses.len());
    drawn.find(apart).unwrap_or(pauses[2])
}

/// Sets the parameters of `plan` that produce `cause`, with a strength drawn from `random`.
fn shape(plan: &mut FlowPlan, cause: Cause, random: &mut Random) {
    let strong = random.unit();
    let rate = plan.path.up.rate;
    let bdp = rate * (plan.path.up.delay * 2);
    let third = (strong * 3.0) as usize % 3;
    match cause {
        Cause::SmallReceiveBuffer => plan.receive_buffer = Some(bdp.scaled(0.5 - 0.3 * strong)),
        Cause::SmallSendBuffer => {
            plan.send_buffer = Some(bdp.scaled(0.5 - 0.25 * strong));
            // Linux waits for free send buffer only when it needs another buffer: a large write, or small writes coalesced
            // by Nagle's algorithm, exceed the limit.
            (plan.piece, plan.no_delay) = (Bytes::new(4096), true);
        }
        Cause::SlowReader => plan.read_at = Some(rate.scaled(0.3 - 0.2 * strong)),
        Cause::SlowWriter => {
            // A burst takes a fifth of the pause.
            let pause = pause_of_writer(plan.path.up.delay * 2, third);
            (plan.piece, plan.pause) = ((rate * pause).scaled(0.2), Some(pause));
        }
        Cause::RandomLoss => {
            plan.path.up.loss = Probability::new(0.01 + 0.02 * strong).unwrap_or_default();
        }
        Cause::SmallRouterBuffer => {
            plan.path.up.buffer = Volume::Packets([4, 6, 8][third]);
            plan.lasts = Duration::from_secs(4);
        }
        Cause::CleanPath => plan.lasts = Duration::from_secs(4),
        Cause::PeerGone | Cause::Outage | Cause::LostAcks => {
            let after = Duration::from_millis(400 + (600.0 * strong) as u64);
            let lasts = (cause == Cause::Outage).then_some(Duration::from_secs(3));
            plan.fault = Some(Fault { after, lasts, at_sender: cause == Cause::LostAcks });
            plan.lasts = Duration::from_secs(6);
        }
        Cause::PingPong => {
            (plan.piece, plan.no_delay) = (Bytes::new([300, 1200, 8000][third]), true);
            plan.answer = Some(Bytes::new([200, 100, 2000][third]));
        }
        Cause::Proxy => {
            plan.read_at = Some(rate.scaled(0.3 - 0.2 * strong));
            plan.proxy = true;
            plan.lasts = Duration::from_secs(6);
        }
        Cause::ShortFlow => plan.size = Some(Bytes::new([5_000, 20_000, 60_000][third])),
        Cause::LoopbackReader => {
            plan.loopback = true;
            // A loopback segment holds 65,483 bytes.
            plan.receive_buffer = Some(Bytes::new(90_000 + (100_000.0 * strong) as u64));
            plan.read_at = Some(Rate::from_mbit_per_second(20 + (60.0 * strong) as u64));
        }
        Cause::LoopbackRequests => {
            plan.loopback = true;
            (plan.piece, plan.no_delay) = (Bytes::new([300, 8000, 100_000][third]), true);
            plan.answer = Some(Bytes::new([200, 2000, 500][third]));
            // A program works on a response before it sends the next request.
            plan.pause = Some(Duration::from_millis([2, 5, 11][third]));
        }
        Cause::Shaper => plan.shaped = Some(rate.scaled(0.7 - 0.4 * strong)),
        Cause::Offload
        | Cause::WindowAbove
        | Cause::Nagle
        | Cause::BlackHole
        | Cause::ShrunkWindow
        | Cause::Middlebox => {}
    }
}
