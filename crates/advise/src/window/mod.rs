//! Window advice: the sweet spot, the six bandwidth-delay products with the rate of each, the cost of a wrong window, and
//! the settings that allow the recommended window.

mod cross;
mod explain;
mod five_lines;
mod lossy;
mod settings;
mod settings_lines;
mod show;
mod simulated;
mod situation;

pub use cross::{CrossKind, CrossShare};
pub use lossy::FillsPath;
pub use settings::WindowSettings;
pub use simulated::{STEADY_LOSSES, TriedWindow, TriedWindows};

use sweetspot_theory::path::saturation::SweetSpot;
pub use sweetspot_theory::reno::response::LossResponse;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::error::possible;
use crate::limit::{INITIAL_WINDOW_PACKETS, LARGEST_WINDOW};
use crate::{AdviceError, Formula, Kernel};
use situation::Situation;

/// The path and its load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowQuestion {
    /// The capacity of the path's bottleneck.
    pub rate: Rate,
    /// The RTT without queues.
    pub rtt: Duration,
    /// The buffer of the bottleneck, if known.
    pub buffer: Option<Bytes>,
    /// Cross traffic, if there is any.
    pub cross: Option<CrossShare>,
    /// Random loss, or the loss of a path that was already congested.
    pub loss: Option<Probability>,
    /// The sender's congestion control, which decides the rate under loss.
    pub congestion: LossResponse,
    /// The largest packet on the path, in bytes.
    pub mtu: Bytes,
    /// The receiver's kernel.
    pub kernel: Kernel,
}

/// Headers of IPv4 and TCP with timestamps, in bytes (RFC 791, 9293, 7323).
const HEADER_BYTES: Bytes = Bytes::new(52);

/// Added to the RTT for the first RTO: Linux's minimum, TCP_RTO_MIN (RFC 6298).
const SMALLEST_VARIANCE: Duration = Duration::from_millis(200);

/// The most connections that `send --streams` opens (`MAX_STREAMS` of the protocol).
pub const MOST_STREAMS: u64 = 64;

/// The MTU of most paths.
pub const COMMON_MTU: Bytes = Bytes::new(1500);

impl WindowQuestion {
    /// The smallest window to recommend or simulate, in bytes of packets.
    fn initial_window(&self) -> Bytes {
        self.mtu * INITIAL_WINDOW_PACKETS
    }

    /// The time until the first retransmission timeout.
    fn first_timeout(&self) -> Duration {
        self.rtt + SMALLEST_VARIANCE
    }

    /// The share of packets lost at random; `None` if it is unknown or zero.
    pub fn random_loss(&self) -> Option<Probability> {
        self.loss.filter(|loss| loss.get() > 0.0)
    }

    /// The share of a full packet that is payload.
    pub fn payload_share(&self) -> f64 {
        (self.mtu - HEADER_BYTES).as_f64() / self.mtu.as_f64()
    }

    /// The payload of a full packet.
    pub fn mss(&self) -> Bytes {
        self.payload(self.mtu)
    }

    /// The payload in `packets` bytes of packets. Windows and socket buffers count payload; paths and their buffers count
    /// packets.
    pub fn payload(&self, packets: Bytes) -> Bytes {
        packets.scaled(self.payload_share())
    }
}

/// A window and its expected rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowChoice {
    /// Name of the window, e.g. "bdp1".
    pub name: &'static str,
    /// Definition, e.g. "C x T_m".
    pub rule: &'static str,
    /// The window, in payload; `None` where no closed form gives it.
    pub window: Option<Bytes>,
    /// The expected rate on the bottleneck; `None` if no closed form gives it, or if TCP cannot have such a window.
    pub rate: Option<Rate>,
    /// Whether the rate is the simulator's for exactly this window, not a closed form's.
    pub is_simulated: bool,
}

/// The window advice.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowAdvice {
    /// The question; with several connections, each connection's share of the path.
    pub question: WindowQuestion,
    /// The number of connections that share the path: more than one if no TCP window fills it.
    pub connections: u64,
    /// The windows that fill the path without loss, in payload.
    pub sweet_spot: SweetSpot,
    /// The window to hold.
    pub recommended: WindowChoice,
    /// Half and twice the recommended window.
    pub wrong_by_two: [WindowChoice; 2],
    /// The ends of the sweet spot.
    pub ends: [WindowChoice; 2],
    /// The six bandwidth-delay products.
    pub bdps: Vec<WindowChoice>,
    /// The queueing delays that the recommended window and twice this window add; `None` if no window near it was simulated.
    pub added_delay: [Option<Duration>; 2],
    /// Whether loss limits the transfer, not the window.
    pub loss_limited: bool,
    /// Whether loss limits the transfer and a window larger than the recommended one would overflow the buffer at its peaks.
    pub peaks_overflow: bool,
    /// The ways to fill the path, if loss limits the transfer.
    pub fills_path: Option<FillsPath>,
    /// The settings that allow the recommended window and no more.
    pub settings: WindowSettings,
    /// Warnings about facts that the numbers do not include.
    pub warnings: Vec<String>,
    /// Assumptions.
    pub assumptions: Vec<String>,
    /// The formula behind each number.
    pub formulas: Vec<Formula>,
    /// Results of windows tried in the simulator. If present, they decide the recommendation.
    pub simulated: Option<TriedWindows>,
    /// The closed form's rate with the recommended window under loss, if it lies outside of the simulated rate's 95 % interval.
    pub closed_form: Option<Rate>,
    /// Whether a simulation began but did not finish.
    pub is_interrupted: bool,
}

/// More bytes than any path or router holds.
const MAX_HELD: Bytes = Bytes::new(1 << 42);

/// Recommends a window for the path.
///
/// # Errors
/// If a quantity is impossible, or TCP's initial window already fills or overflows the path.
pub fn advise(question: &WindowQuestion) -> Result<WindowAdvice, AdviceError> {
    let (situation, connections) = situation(question)?;
    advise_one(&situation, connections)
}

/// The window of each connection on a path, and the number of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct WindowToHold {
    /// The window, in payload.
    pub window: Bytes,
    /// The number of connections that share the path: more than one if no TCP window fills it.
    pub connections: u64,
}

/// The window that [`advise`] recommends, or TCP's initial window if no window helps.
///
/// # Errors
/// If a quantity is impossible.
pub(crate) fn to_hold(question: &WindowQuestion) -> Result<WindowToHold, AdviceError> {
    match situation(question) {
        Ok((situation, connections)) => {
            let window = question.payload(situation.recommended());
            Ok(WindowToHold { window, connections })
        }
        Err(AdviceError::NoWindowHelps { initial, .. }) => {
            Ok(WindowToHold { window: question.payload(initial), connections: 1 })
        }
        Err(other) => Err(other),
    }
}

/// The situation of each connection, and the number of connections needed to fill the path.
fn situation(question: &WindowQuestion) -> Result<(Situation, u64), AdviceError> {
    let q = question;
    possible(q.rate > Rate::ZERO, "rate", q.rate, "a path has a rate above zero")?;
    possible(q.rtt > Duration::ZERO, "rtt", q.rtt, "a path has an RTT above zero")?;
    possible(q.rtt <= Duration::from_secs(120), "rtt", q.rtt, "it must be 120s or less")?;
    let mtu = (576..=65_535).contains(&q.mtu.get());
    possible(mtu, "mtu", q.mtu, "it must lie between 576B and 65535B")?;
    if let Some(loss) = q.loss {
        possible(loss.get() < 1.0, "loss", loss, "nothing would pass; it must be below 1")?;
    }
    let product = q.rate * q.rtt;
    let why = "no path holds that much; it must be 4 TB or less";
    possible(product <= MAX_HELD, "rate x RTT of", product, why)?;
    if let Some(buffer) = q.buffer {
        let why = "no router has that much; it must be 4 TB or less";
        possible(buffer <= MAX_HELD, "buffer", buffer, why)?;
    }

    let initial = q.initial_window();
    if product < initial {
        return Err(AdviceError::NoWindowHelps { room: "rate x RTT", holds: product, initial });
    }
    let full_path = Situation::new(q)?;
    let largest = full_path.largest_to_try();
    if largest < initial {
        let room = "the room beside cross traffic, the buffer's included,";
        return Err(AdviceError::NoWindowHelps { room, holds: largest, initial });
    }
    match windows_needed(&full_path) {
        1 => Ok((full_path, 1)),
        n => shared(q, n),
    }
}

/// The number of TCP's largest windows that the recommended one takes.
fn windows_needed(s: &Situation) -> u64 {
    s.question.payload(s.recommended()).get().div_ceil(LARGEST_WINDOW.get()).max(1)
}

/// The situation of each of `connections`, or of as many more as it takes: the window that loss allows does not shrink with the
/// share of the path.
fn shared(q: &WindowQuestion, connections: u64) -> Result<(Situation, u64), AdviceError> {
    let (mut few, mut enough) = (connections - 1, connections);
    let mut each = Situation::new(&share(q, enough))?;
    while windows_needed(&each) > 1 {
        (few, enough) = (enough, enough * 2);
        each = Situation::new(&share(q, enough))?;
    }
    while enough - few > 1 {
        let middle = u64::midpoint(few, enough);
        let tried = Situation::new(&share(q, middle))?;
        match windows_needed(&tried) {
            1 => (enough, each) = (middle, tried),
            _ => few = middle,
        }
    }
    Ok((each, enough))
}

/// The path as seen by one of several equal connections: its share of the queue equals its share of the rate.
fn share(q: &WindowQuestion, connections: u64) -> WindowQuestion {
    WindowQuestion {
        rate: q.rate.scaled(1.0 / connections as f64),
        buffer: q.buffer.map(|buffer| buffer / connections),
        ..*q
    }
}

/// The advice for one of `connections` in the situation `s`.
fn advise_one(s: &Situation, connections: u64) -> Result<WindowAdvice, AdviceError> {
    let q = &s.question;
    let spot = s.sweet_spot();
    let sweet_spot = SweetSpot { low: q.payload(spot.low), high: q.payload(spot.high) };
    let window = s.recommended();
    let at = |name, rule, w: Option<Bytes>| -> Result<WindowChoice, AdviceError> {
        let possible = w.filter(|w| q.payload(*w) <= LARGEST_WINDOW);
        let rate = possible.map(|w| s.rate_at(w)).transpose()?.flatten();
        Ok(WindowChoice { name, rule, window: w.map(|w| q.payload(w)), rate, is_simulated: false })
    };
    let recommended = at("hold", "recommended", Some(window))?;
    let fills_path = match recommended.rate.filter(|_| s.loss_limited) {
        Some(one) => s.fills_path(one, one)?,
        None => None,
    };
    let products = s.six_bdps()?;
    let names = [
        ("bdp1", "C x T_m"),
        ("bdp2", "C x T_e"),
        ("bdp3", "A x T_m"),
        ("bdp4", "A x T_e"),
        ("bdp5", "BTC x T_a"),
        ("bdp6", "above max W_c"),
    ];
    let named = names.into_iter().zip(products);
    let bdps = named.map(|((name, rule), w)| at(name, rule, w)).collect::<Result<Vec<_>, _>>()?;
    Ok(WindowAdvice {
        question: *q,
        connections,
        sweet_spot,
        recommended,
        wrong_by_two: [
            at("half", "half that", Some(window / 2))?,
            at("double", "twice that", Some(window.saturating_add(window)))?,
        ],
        ends: [
            at("sweet_spot_low", "sweet spot, low", Some(spot.low))?,
            at("sweet_spot_high", "sweet spot, high", Some(spot.high))?,
        ],
        bdps,
        added_delay: [window, window.saturating_add(window)].map(|w| Some(s.added_delay(w))),
        loss_limited: s.loss_limited,
        peaks_overflow: s.loss_limited && s.peaks_overflow(),
        fills_path,
        settings: WindowSettings::for_window(q.payload(window), q.mss(), q.kernel)?,
        warnings: Vec::new(),
        assumptions: s.assumptions(connections),
        formulas: explain::formulas(s, Some(window))?,
        simulated: None,
        closed_form: None,
        is_interrupted: false,
    })
}
