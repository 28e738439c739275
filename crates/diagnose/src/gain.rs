//! The gain from removing a limit, and the rates that other limits allow.

use sweetspot_theory::reno::pftk;
use sweetspot_units::{Duration, Probability, Rate};

use crate::explained::{FACTOR, allowed};
use crate::{Class, Evidence};

/// The initial window, in segments (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0;

/// The gain if `class`, the limit for `share` of the time, is removed: capacity - goodput. Unknown if the capacity was not
/// seen, if the limit itself allows more than the capacity, or if another known limit is below it.
pub fn gain(class: Class, share: f64, e: &Evidence) -> Option<Rate> {
    match class {
        Class::Bandwidth => return (!e.may_be_paced()).then_some(Rate::ZERO),
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
    // If others fill the path, their rates change with this one.
    if e.others_fill_path {
        return None;
    }
    // A mean over all time with data in flight shows neither the course of the rate nor a capacity above it.
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

/// The RTT to expect: the median. The min RTT would promise too much, because the path may not be empty again.
pub fn usual_rtt(e: &Evidence) -> Option<Duration> {
    e.rtt.or(e.rtt_min).filter(|rtt| *rtt > Duration::ZERO)
}

/// The mean rate if the `share` of the time of one limit shrank to zero and the rest stayed: goodput / (1 - share) (G. Amdahl,
/// "Validity of the single processor approach", AFIPS 1967).
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

/// Reno's rate at the observed losses.
fn loss_limit(e: &Evidence) -> Option<Rate> {
    Some(loss_model(e)?.approximate())
}

/// The rates of loss-based senders at the observed losses: the lower and the higher of Reno's and CUBIC's.
pub fn rates_at_losses(e: &Evidence) -> Option<[Rate; 2]> {
    let model = loss_model(e)?;
    let [reno, cubic] = [model.approximate(), model.cubic()];
    Some([reno.min(cubic), reno.max(cubic)])
}

/// Whether the flow is faster than a loss-based sender could be at the observed losses.
pub fn outruns_losses(e: &Evidence) -> bool {
    rates_at_losses(e).is_some_and(|[_, high]| e.goodput > high.scaled(FACTOR))
}

fn loss_model(e: &Evidence) -> Option<pftk::Flow> {
    // PFTK applies to losses in steady state, not to a few events.
    const MIN_LOSS_EVENTS: u64 = 5;
    let rtt = e.rtt.filter(|_| e.loss_events >= MIN_LOSS_EVENTS)?;
    // A receiver knows the payload that arrived, not the number of segments sent.
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
    fn a_doubtful_capacity_or_one_below_the_limit_promises_no_gain() {
        // 50 kB per 40 ms is 10 Mbit/s, half of the capacity.
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
