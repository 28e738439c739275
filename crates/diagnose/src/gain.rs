//! The gain without a limit, and the rates that other limits allow.

use sweetspot_theory::reno::pftk;
use sweetspot_units::{Duration, Probability, Rate};

use crate::explained::{FACTOR, allowed};
use crate::{Class, Evidence};

/// The window with which a connection starts, in segments (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// The gain if `class`, which limited for `share` of the time, no longer does: up to the path's capacity, where that was seen and
/// no other known limit comes first. A rate at or below another limit shows what that limit left, and not how much more it allows.
pub fn gain(class: Class, share: f64, e: &Evidence) -> Option<Rate> {
    match class {
        Class::Bandwidth => return Some(Rate::ZERO),
        Class::ReceiverWindow
        | Class::ReceiverApplication
        | Class::SenderWindow
        | Class::Congestion
        | Class::Application
        | Class::Pacing
        | Class::Transport => {}
        Class::WaitingForPeer if e.granted.is_some() => {}
        _ => return None,
    }
    // A mean over all time with data in flight shows neither the rate over time nor a faster one.
    let capacity = e.capacity.filter(|_| !e.is_one_reading && !e.doubts_capacity)?;
    if allowed(class, e).is_some_and(|allowed| allowed > capacity) {
        return None;
    }
    let windows = windows_limit(e).filter(|_| class != Class::ReceiverWindow);
    let losses = loss_limit(e).filter(|_| class != Class::Congestion);
    let others = [windows, losses, starting_limit(e), remaining_limit(share, e)];
    let first = others.into_iter().flatten().all(|other| other >= capacity);
    first.then(|| capacity.saturating_sub(e.goodput))
}

/// The rate that the largest advertised window allows.
fn windows_limit(e: &Evidence) -> Option<Rate> {
    Some(e.largest_window? / usual_rtt(e)?)
}

/// The RTT to expect. The shortest one may be of an empty path that does not come back, and would promise too much.
pub fn usual_rtt(e: &Evidence) -> Option<Duration> {
    e.rtt.or(e.rtt_min).filter(|rtt| *rtt > Duration::ZERO)
}

/// The mean rate if a limit's `share` of the time took no time at all: the rest of the time still passes (G. Amdahl, "Validity of
/// the single processor approach", AFIPS 1967).
fn remaining_limit(share: f64, e: &Evidence) -> Option<Rate> {
    (share < 1.0).then(|| e.goodput.scaled(1.0 / (1.0 - share)))
}

/// The rate that slow start allows a transfer of this size: the window doubles each round trip.
fn starting_limit(e: &Evidence) -> Option<Rate> {
    let rtt = usual_rtt(e)?;
    let first = e.mss.as_f64().max(1.0) * INITIAL_WINDOW;
    let rounds = (e.bytes.as_f64() / first + 1.0).log2().ceil().max(1.0);
    Some(e.bytes / rtt.scaled(rounds))
}

/// Reno's rate at the losses seen.
fn loss_limit(e: &Evidence) -> Option<Rate> {
    Some(loss_model(e)?.approximate())
}

/// The rates that the losses seen allow loss-based senders: the lower and the higher of Reno's and CUBIC's.
pub fn rates_at_losses(e: &Evidence) -> Option<[Rate; 2]> {
    let model = loss_model(e)?;
    let [reno, cubic] = [model.approximate(), model.cubic()];
    Some([reno.min(cubic), reno.max(cubic)])
}

/// Whether the flow is faster than the losses seen allow a loss-based sender.
pub fn outruns_losses(e: &Evidence) -> bool {
    rates_at_losses(e).is_some_and(|[_, high]| e.goodput > high.scaled(FACTOR))
}

fn loss_model(e: &Evidence) -> Option<pftk::Flow> {
    // PFTK holds where loss is a steady state and not a few events.
    const STEADY: u64 = 5;
    let rtt = e.rtt.filter(|_| e.loss_events >= STEADY)?;
    // A receiver does not know how many segments were sent, only the payload that they brought.
    let segments = match e.retransmitted {
        Some(_) => e.segments,
        None => e.bytes.get() / e.mss.get().max(1),
    };
    let p = Probability::new(e.loss_events as f64 / segments.max(1) as f64)?;
    let timeout = rtt + Duration::from_millis(200);
    pftk::Flow::new(e.mss, rtt, timeout, p).ok()
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Bytes;

    use super::*;

    #[test]
    fn no_gain_rests_on_a_doubtful_capacity_or_one_below_the_limit() {
        // 50 kB each 40 ms are 10 Mbit/s, half of the capacity.
        let e = Evidence {
            goodput: Rate::from_mbit_per_second(8),
            capacity: Some(Rate::from_mbit_per_second(20)),
            window: Some(Bytes::new(50_000)),
            rtt: Some(Duration::from_millis(40)),
            bytes: Bytes::new(100_000_000),
            mss: Bytes::new(1448),
            ..Evidence::default()
        };
        let of = |e: &Evidence| gain(Class::ReceiverWindow, 1.0, e);
        assert_eq!(of(&e), Some(Rate::from_mbit_per_second(12)));
        assert_eq!(of(&Evidence { doubts_capacity: true, ..e }), None);
        let capacity = Some(Rate::from_mbit_per_second(9));
        assert_eq!(of(&Evidence { capacity, ..e }), None);
    }
}
