//! Window advice: the sweet spot, the six bandwidth-delay products and the rate of each, the cost
//! of a wrong window, and the settings that reach the right one.

mod cross;
mod explain;
mod five_lines;
mod settings;
mod show;
mod simulated;
mod situation;

pub use cross::{CrossKind, CrossShare};
pub use settings::WindowSettings;
pub use simulated::{TriedWindow, TriedWindows};

use sweetspot_theory::path::saturation::SweetSpot;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use crate::error::possible;
use crate::limit::window_to_allow;
use crate::{AdviceError, Formula, Kernel};
use situation::Situation;

/// The path, and its known load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WindowQuestion {
    /// The capacity of the path's narrowest link.
    pub rate: Rate,
    /// The RTT without queues.
    pub rtt: Duration,
    /// The buffer of that link, if it is known.
    pub buffer: Option<Bytes>,
    /// Cross traffic, if there is any.
    pub cross: Option<CrossShare>,
    /// Random loss, or the loss of a path that was congested before.
    pub loss: Option<Probability>,
    /// The largest packet.
    pub mtu: Bytes,
    /// The receiver's kernel.
    pub kernel: Kernel,
}

/// A window and its expected rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WindowChoice {
    /// Name of the window, e.g. "bdp1".
    pub name: &'static str,
    /// Definition, e.g. "C x T_m".
    pub rule: &'static str,
    /// The window; `None` where no closed form gives it.
    pub window: Option<Bytes>,
    /// The expected rate on the bottleneck, `None` where no closed form gives it.
    pub rate: Option<Rate>,
}

/// The window advice.
#[derive(Debug, Clone, PartialEq)]
pub struct WindowAdvice {
    /// The question.
    pub question: WindowQuestion,
    /// The windows that fill the path without loss.
    pub sweet_spot: SweetSpot,
    /// The window to hold.
    pub recommended: WindowChoice,
    /// Half and twice the recommended window.
    pub wrong_by_two: [WindowChoice; 2],
    /// The ends of the sweet spot.
    pub ends: [WindowChoice; 2],
    /// The six bandwidth-delay products.
    pub bdps: Vec<WindowChoice>,
    /// The queueing delays that the recommended window and twice this window add.
    pub added_delay: [Duration; 2],
    /// Whether loss, not the window, limits the transfer.
    pub loss_limited: bool,
    /// The settings that allow the recommended window; alone on a path those that `advise host`
    /// recommends for it.
    pub settings: WindowSettings,
    /// Assumptions.
    pub assumptions: Vec<String>,
    /// The formula behind each number.
    pub formulas: Vec<Formula>,
    /// Results of windows tried in the simulator. If present, they decide the recommendation.
    pub simulated: Option<TriedWindows>,
}

/// Answers `question`.
///
/// # Errors
/// If a quantity is impossible, or the path holds too few packets for the formulas.
pub fn advise(question: &WindowQuestion) -> Result<WindowAdvice, AdviceError> {
    let q = question;
    possible(q.rate > Rate::ZERO, "rate", q.rate, "a path has a rate above zero")?;
    possible(q.rtt > Duration::ZERO, "rtt", q.rtt, "a path has an RTT above zero")?;
    possible(q.rtt <= Duration::from_secs(120), "rtt", q.rtt, "it must be 120s or less")?;
    let mtu = (576..=65_535).contains(&q.mtu.get());
    possible(mtu, "mtu", q.mtu, "it must lie between 576B and 65535B")?;
    if let Some(loss) = q.loss {
        possible(loss.get() < 1.0, "loss", loss, "nothing would pass; it must be below 1")?;
    }
    if let Some(buffer) = q.buffer {
        let fits = buffer <= Bytes::new(1 << 42);
        possible(fits, "buffer", buffer, "no router has that much; it must be 4 TB or less")?;
    }

    let largest = Bytes::new(65_535 << 14);
    let why = "TCP has no window above 1.07 GB (RFC 7323); share the path among connections";
    possible(window_to_allow(q.rate, q.rtt) <= largest, "C x T =", q.rate * q.rtt, why)?;

    // Three duplicate ACKs show a loss (RFC 5681): the formulas need four packets.
    let held = q.rate * q.rtt + q.buffer.unwrap_or(Bytes::ZERO);
    if held < q.mtu * 4 {
        return Err(AdviceError::NoWindowHelps { held });
    }

    let s = Situation::new(q)?;
    let sweet_spot = s.sweet_spot();
    let window = s.recommended();
    let at = |name, rule, w: Option<Bytes>| -> Result<WindowChoice, AdviceError> {
        let rate = w.map(|w| s.rate_at(w)).transpose()?.flatten();
        Ok(WindowChoice { name, rule, window: w, rate })
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
        sweet_spot,
        recommended: at("hold", "recommended", Some(window))?,
        wrong_by_two: [
            at("half", "half that", Some(Bytes::new((window.get() / 2).max(1))))?,
            at("double", "twice that", Some(window.saturating_add(window)))?,
        ],
        ends: [
            at("sweet_spot_low", "sweet spot, low", Some(sweet_spot.low))?,
            at("sweet_spot_high", "sweet spot, high", Some(sweet_spot.high))?,
        ],
        bdps,
        added_delay: [s.added_delay(window), s.added_delay(window.saturating_add(window))],
        loss_limited: s.loss_limited(),
        settings: WindowSettings::for_window(allowed(q, window), q.kernel)?,
        assumptions: s.assumptions(),
        formulas: explain::formulas(&s, window)?,
        simulated: None,
    })
}

/// The window that limits should allow where `window` is to be held.
fn allowed(question: &WindowQuestion, window: Bytes) -> Bytes {
    match question.cross {
        None => window.max(window_to_allow(question.rate, question.rtt)),
        Some(_) => window,
    }
}
