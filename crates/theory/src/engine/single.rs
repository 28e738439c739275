//! Transfers without cross traffic, or with unresponsive cross traffic: equations (3), (4), (5),
//! (9), (10)-(17).

use sweetspot_scenario::{EngineError, Transfer};
use sweetspot_units::{Bytes, Rate, Significant};

use super::not_covered;
use super::steady::{SOBAS, Steady, SteadyFlow, formula, late_packet_rtt, mean_packet_rtt};
use super::terms::{KnownCross, Terms, is_reno, segments_per_step};
use crate::path::Path;
use crate::path::saturation::{self, Regime};
use crate::path::sawtooth::sawtooth;
use crate::reno::pftk;

pub(super) fn steady(terms: &Terms<'_>) -> Result<Steady, EngineError> {
    match terms.transfers {
        [_] if terms.loss.get() > 0.0 => lossy(terms),
        [transfer] => alone(terms, transfer),
        several => shared(terms, several),
    }
}

fn alone(terms: &Terms<'_>, transfer: &Transfer) -> Result<Steady, EngineError> {
    let (window, left) = (terms.window(transfer)?, terms.left()?);
    let found = saturation::throughput(&left, window.wire)?;
    let mut steady = match found.regime {
        Regime::BufferLimited => limited(&left, window.wire),
        Regime::Saturated => saturated(&left, window.wire),
        Regime::CongestionLimited => congested(terms, transfer, &left, window.wire)?,
    };
    let (a, t, b) = (left.capacity(), left.minimum_rtt(), left.buffer());
    let spot = saturation::sweet_spot(&left);
    let (rule, result) = match found.regime {
        Regime::BufferLimited => ("R = S / T_m, as S <= C T_m", "S < C T_m"),
        Regime::Saturated => ("R = C, as C T_m < S <= C T_m + B_t", "in the sweet spot"),
        Regime::CongestionLimited if left.is_under_buffered() => (
            "R = 3C/4 (C T_m + B_t)^2 / ((C T_m + B_t)^2 - C T_m B_t), as S > C T_m + B_t",
            "loss halves the window",
        ),
        Regime::CongestionLimited => (
            "R = C, as S > C T_m + B_t and B_t >= C T_m",
            "loss halves \
            the window, but the buffer keeps the link busy",
        ),
    };
    let numbers = format!(
        "S = {} ({}), C T_m = {a} x {t} = {}, C T_m + B_t = {} (B_t = {b}): {result}, R = {}",
        window.wire, window.rule, spot.low, spot.high, found.rate
    );
    let source = match terms.cross {
        KnownCross::Unresponsive => {
            format!("{SOBAS}, equations (4) and (5) with A for C (section V-A)")
        }
        _ => format!("{SOBAS}, equations (4) and (5)"),
    };
    steady.formulas.insert(0, formula("throughput", rule, numbers, &source));
    steady.cross = terms.used;
    // The target's packets are the share A/C of all waiting packets.
    let all = terms.path.capacity().as_f64() / left.capacity().as_f64();
    steady.backlog = (steady.backlog.0.scaled(all), steady.backlog.1.scaled(all));
    Ok(steady)
}

/// S <= C T_m.
fn limited(left: &Path, window: Bytes) -> Steady {
    let rtt = left.minimum_rtt();
    one(SteadyFlow { rate: window / rtt, window, rtt_mean: rtt, rtt_p99: rtt, loss: 0.0 }, (0, 0))
}

/// C T_m < S <= C T_m + B_t: the excess over C T_m waits in the buffer.
fn saturated(left: &Path, window: Bytes) -> Steady {
    let rtt = window / left.capacity();
    let queue = window.saturating_sub(left.bdp()).get();
    let rate = left.capacity();
    one(SteadyFlow { rate, window, rtt_mean: rtt, rtt_p99: rtt, loss: 0.0 }, (queue, queue))
}

fn congested(
    terms: &Terms<'_>,
    transfer: &Transfer,
    left: &Path,
    window: Bytes,
) -> Result<Steady, EngineError> {
    if !is_reno(transfer.congestion) {
        return Err(not_covered(format!(
            "the window exceeds what the path holds, so {} meets its own losses, and the \
             sawtooth's formulas are for Reno",
            transfer.congestion.name()
        )));
    }
    let tooth = sawtooth(left, terms.packet)?;
    // If the window grows by half a packet per round, a period lasts twice as long.
    let step = f64::from(segments_per_step(transfer));
    let flow = SteadyFlow {
        rate: saturation::congestion_limited(left),
        window,
        rtt_mean: mean_packet_rtt(left, &tooth, terms.packet),
        rtt_p99: late_packet_rtt(left, &tooth, terms.packet),
        loss: tooth.loss.get() / step,
    };
    let backlog = (tooth.mean_backlog.get(), tooth.largest_backlog.get());
    let mut steady = one(flow, backlog);
    steady.formulas.push(formula(
        "sawtooth",
        "p = 8 / (3 (C T_m + B_t)^2) in packets, T_V = N_V / R, mean backlog of its rounds",
        format!(
            "peak {}, one loss in {:.0} packets or {}, {} waiting on average",
            tooth.peak,
            tooth.packets.get() * step,
            tooth.period.scaled(step),
            tooth.mean_backlog
        ),
        &format!("{SOBAS}, equations (10) to (17)"),
    ));
    steady.assumptions.push(
        "One loss per period, recovered by fast retransmit without a timeout. A window just above \
         C T_m + B_t can do worse: it stops new data during recovery."
            .to_owned(),
    );
    Ok(steady)
}

/// With random loss, the path looks congested to the transfer.
fn lossy(terms: &Terms<'_>) -> Result<Steady, EngineError> {
    let transfer = &terms.transfers[0];
    if !is_reno(transfer.congestion) {
        return Err(not_covered(format!(
            "the path loses packets at random, and this engine models Reno's response to that, not {}'s",
            transfer.congestion.name()
        )));
    }
    let (window, left) = (terms.window(transfer)?, terms.left()?);
    let timeout = (left.minimum_rtt() + transfer.tcp.clock).max(transfer.tcp.min_rto);
    let flow = pftk::Flow::new(terms.packet, left.minimum_rtt(), timeout, terms.loss)?
        .with_segments_per_ack(segments_per_step(transfer))?;
    let rate = flow.on_congested_path(window.wire);
    let max = saturation::congestion_limited(&left);
    if rate > max.scaled(0.8) {
        return Err(not_covered(format!(
            "loss of {} alone would leave {rate}, so near to the capacity that random losses and \
             those of the buffer mix",
            terms.loss
        )));
    }
    let rtt = left.minimum_rtt();
    let single = SteadyFlow {
        rate,
        window: window.wire,
        rtt_mean: rtt,
        rtt_p99: rtt,
        loss: terms.loss.get(),
    };
    let mut steady = one(single, (0, 0));
    steady.cross = terms.used;
    steady.formulas.push(formula(
        "throughput",
        "R = min(S/T, m / (T sqrt(2bp/3) + T_0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2)))",
        format!(
            "S = {} ({}), m = {}, T = {rtt}, T_0 = {timeout}, p = {} %: R = {rate}",
            window.wire,
            window.rule,
            terms.packet,
            Significant::<4>(terms.loss.get() * 100.0)
        ),
        &format!("{SOBAS}, equation (9); Padhye, Firoiu, Towsley, Kurose 1998"),
    ));
    steady.assumptions.push(
        "Losses are single and independent; lost ACKs do not matter, because a later ACK covers \
         them."
            .to_owned(),
    );
    Ok(steady)
}

/// Several transfers with windows that together neither overflow the buffer nor lose packets.
fn shared(terms: &Terms<'_>, transfers: &[Transfer]) -> Result<Steady, EngineError> {
    if terms.loss.get() > 0.0 {
        return Err(not_covered("several transfers share a path that loses at random"));
    }
    let left = terms.left()?;
    let windows = transfers
        .iter()
        .map(|transfer| Ok(terms.window(transfer)?.wire))
        .collect::<Result<Vec<Bytes>, EngineError>>()?;
    let all = windows.iter().fold(Bytes::ZERO, |sum, window| sum.saturating_add(*window));
    let spot = saturation::sweet_spot(&left);
    if all > spot.high {
        return Err(not_covered(format!(
            "the transfers' windows, {all} together, exceed the {} that the path holds, and no \
             closed form predicts how they share losses",
            spot.high
        )));
    }
    let rtt = left.minimum_rtt().max(all / left.capacity());
    let queue = all.saturating_sub(spot.low).get();
    let flow = |window: &Bytes| SteadyFlow {
        rate: *window / rtt,
        window: *window,
        rtt_mean: rtt,
        rtt_p99: rtt,
        loss: 0.0,
    };
    Ok(Steady {
        flows: windows.iter().map(flow).collect(),
        cross: terms.used,
        backlog: (Bytes::new(queue), Bytes::new(queue)),
        formulas: vec![formula(
            "throughput of each",
            "R = W_s / T(W_s), T = max(T_m, sum of W_s / C)",
            format!("windows of {all} together, C T_m = {}: T = {rtt}", spot.low),
            &format!("{SOBAS}, equation (3)"),
        )],
        assumptions: vec![
            "The transfers have the same RTT and one first-in first-out queue.".into(),
        ],
    })
}

fn one(flow: SteadyFlow, (mean, max): (u64, u64)) -> Steady {
    Steady {
        flows: vec![flow],
        cross: Rate::ZERO,
        backlog: (Bytes::new(mean), Bytes::new(max)),
        formulas: Vec::new(),
        assumptions: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;

    #[test]
    fn a_standing_queue_is_the_window_minus_the_bdp() {
        // 50 Mbit/s x 100 ms = 625 kB; a window of 700 kB: 112 ms, 75 kB waiting.
        let rtt = Duration::from_millis(100);
        let path = Path::new(Rate::from_mbit_per_second(50), rtt, Bytes::new(625_000)).unwrap();
        let steady = saturated(&path, Bytes::new(700_000));
        assert_eq!(steady.flows[0].rtt_mean, Duration::from_millis(112));
        assert_eq!(steady.backlog.0, Bytes::new(75_000));
    }
}
