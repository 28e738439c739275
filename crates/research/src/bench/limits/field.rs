//! Causes common in practice: the behaviour of programs above TCP and of devices on the path.

use sweetspot_emulator::StrippedOption;
use sweetspot_path::Random;
use sweetspot_units::{Bytes, Duration, Probability};

use super::cause::{Cause, ExchangePattern, ExpectedWords, FlowPlan};

/// TCP option kinds (RFC 9293 §3.1, RFC 2018, RFC 7323).
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const TIMESTAMPS: u8 = 8;

/// A program's receive buffer before it is shrunk.
pub const LARGE_BUFFER: Bytes = Bytes::new(400_000);

/// The middlebox behaviours, assigned to flows in rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MiddleboxBehaviour {
    /// Sequence numbers are shifted, but SACK blocks are not.
    ForeignSacks,
    /// ACKs lose their timestamps.
    NoTimestampsBack,
    /// The SYN loses "SACK permitted".
    NoSack,
    /// The SYN loses the window scale.
    NoScale,
}

impl MiddleboxBehaviour {
    /// The behaviour for flow number `n`.
    pub fn of(n: u64) -> MiddleboxBehaviour {
        use MiddleboxBehaviour::*;
        [ForeignSacks, NoTimestampsBack, NoSack, NoScale][n as usize % 4]
    }
}

/// The ranges from which the path of flow number `n` is drawn: minimum and maximum RTT, in ms, and minimum and maximum BDP.
pub fn drawn_from(cause: Cause, n: u64) -> ([f64; 2], [u64; 2]) {
    let emulated = [12.0, 120.0];
    match cause {
        // A delayed ACK is long compared with the RTT.
        Cause::Nagle => ([1.0, 15.0], [0, 500_000]),
        // A window above TCP holds a few segments.
        Cause::WindowAbove => (emulated, [60_000, 500_000]),
        // The BDP is at least twice the largest unscaled window.
        Cause::Middlebox if MiddleboxBehaviour::of(n) == MiddleboxBehaviour::NoScale => {
            (emulated, [140_000, 500_000])
        }
        _ => (emulated, [25_000, 500_000]),
    }
}

/// Sets the parameters of `plan` that produce `cause` in flow number `n`.
pub fn shape(plan: &mut FlowPlan, cause: Cause, n: u64, random: &mut Random) {
    let strong = random.unit();
    let third = (random.unit() * 3.0) as usize % 3;
    let rate = plan.path.up.rate;
    let bdp = rate * (plan.path.up.delay * 2);
    let expected_words = |words, at_receiver| Some(ExpectedWords { words, at_receiver });
    match cause {
        Cause::WindowAbove => {
            let window = bdp.scaled(0.5 - 0.3 * strong);
            // Most programs grant more once half of the window is read (nghttp2, OpenSSH), some earlier.
            let grant = window.scaled([0.5, 0.35, 0.25][third]);
            plan.talk = ExchangePattern::Granted { window, grant };
            (plan.piece, plan.no_delay) = (Bytes::new(16_384), true);
            plan.expected_words = expected_words("a window above TCP", true);
            plan.lasts = Duration::from_secs(4);
        }
        Cause::Nagle => {
            plan.talk = ExchangePattern::TwoWrites { head: Bytes::new([9, 40, 200][third]) };
            plan.piece = Bytes::new(220 + (700.0 * strong) as u64);
            // Smaller than the message, so that the sender's data is the flow.
            plan.answer = Some(Bytes::new([100, 2, 200][third]));
            plan.expected_words = expected_words("Nagle", true);
            plan.lasts = Duration::from_secs(4);
        }
        Cause::BlackHole => {
            plan.path.mtu = Bytes::new(1500);
            let passes = Bytes::new(1000 + (480.0 * strong) as u64);
            plan.middleboxes[0].passes = Some(passes);
            plan.talk = ExchangePattern::SmallFirst {
                messages: [5, 10, 20][third],
                size: Bytes::new([120, 500, 900][third]),
                pause: Duration::from_millis(40),
            };
            plan.no_delay = true;
            plan.expected_words = expected_words("black hole", false);
            plan.lasts = Duration::from_secs(6);
        }
        Cause::ShrunkWindow => {
            plan.read_at = Some(rate.scaled(0.3 - 0.2 * strong));
            plan.receive_buffer = Some(LARGE_BUFFER);
            plan.shrinks = Some(Bytes::new([16_000, 32_000, 64_000][third]));
            plan.expected_words = expected_words("took back a part of its window", true);
            plan.lasts = Duration::from_secs(4);
        }
        Cause::Middlebox => {
            plan.timestamps = true;
            meddle(plan, MiddleboxBehaviour::of(n), strong);
        }
        _ => {}
    }
}

fn meddle(plan: &mut FlowPlan, meddling: MiddleboxBehaviour, strong: f64) {
    let [up, down] = &mut plan.middleboxes;
    let (words, at_receiver) = match meddling {
        MiddleboxBehaviour::ForeignSacks => {
            let shift = 1_000_000_000 + (2e9 * strong) as u32;
            up.sequence = shift;
            down.acknowledgement = shift.wrapping_neg();
            ("SACK blocks far from all data", false)
        }
        MiddleboxBehaviour::NoTimestampsBack => {
            down.strips = Some(StrippedOption::FromOthers(TIMESTAMPS));
            ("receiver's segments have none", false)
        }
        MiddleboxBehaviour::NoSack => {
            up.strips = Some(StrippedOption::FromSyn(SACK_PERMITTED));
            ("no selective acknowledgements", true)
        }
        MiddleboxBehaviour::NoScale => {
            up.strips = Some(StrippedOption::FromSyn(WINDOW_SCALE));
            ("no window scaling", true)
        }
    };
    plan.expected_words = Some(ExpectedWords { words, at_receiver });
    if meddling != MiddleboxBehaviour::NoScale {
        plan.path.up.loss = Probability::new(0.01 + 0.02 * strong).unwrap_or_default();
    }
}
