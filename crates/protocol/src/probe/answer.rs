use sweetspot_sizing::{CongestionState, ProbeAnswer, SenderReport};
use sweetspot_units::{Bytes, Duration, Rate};

use super::float_code::{THREE_BYTES, TWO_BYTES};
use super::words::{put_word, take_word};

/// Flags of an answer, above the three bits of the congestion state.
const APP_LIMITED_FLAG: u8 = 1 << 3;
const STARVED_FLAG: u8 = 1 << 4;
const STATE_MASK: u8 = 0b111;

pub(super) fn put_answer(out: &mut Vec<u8>, answer: &ProbeAnswer) {
    let report = &answer.report;
    put_word(out, answer.probe);
    put_word(out, answer.sequence);
    let counters = [
        report.retransmitted,
        report.marked.into(),
        report.busy.as_micros(),
        report.window_limited.as_micros(),
    ];
    counters.into_iter().for_each(|n| THREE_BYTES.put(out, THREE_BYTES.encode(n)));
    let threshold = report.ssthresh.map_or(TWO_BYTES.none(), |n| TWO_BYTES.encode(n.get()));
    TWO_BYTES.put(out, threshold);
    let others = [
        answer.held.as_micros(),
        report.cwnd.get(),
        report.in_flight.get(),
        report.delivery_rate.bits_per_second(),
        report.minimum_rtt.as_micros(),
        report.reordering.into(),
        report.dsacks.into(),
    ];
    others.into_iter().for_each(|n| TWO_BYTES.put(out, TWO_BYTES.encode(n)));
    let flag = |is_set, flag| if is_set { flag } else { 0 };
    out.push(
        state_code(report.state)
            | flag(report.app_limited, APP_LIMITED_FLAG)
            | flag(report.starved, STARVED_FLAG),
    );
}

pub(super) fn take_answer(rest: &mut &[u8]) -> Option<ProbeAnswer> {
    let (probe, sequence) = (take_word(rest)?, take_word(rest)?);
    let mut long = || THREE_BYTES.take_number(rest);
    let (retransmitted, marked, busy, window_limited) = (long()?, long()?, long()?, long()?);
    let threshold = TWO_BYTES.take(rest)?;
    let mut short = || TWO_BYTES.take_number(rest);
    let held = Duration::from_micros(short()?);
    let (cwnd, in_flight) = (Bytes::new(short()?), Bytes::new(short()?));
    let delivery_rate = Rate::from_bits_per_second(short()?);
    let minimum_rtt = Duration::from_micros(short()?);
    let (reordering, dsacks) = (short()?, short()?);
    let flags = *rest.first()?;
    let report = SenderReport {
        retransmitted,
        cwnd,
        ssthresh: (threshold != TWO_BYTES.none()).then(|| Bytes::new(TWO_BYTES.decode(threshold))),
        in_flight,
        delivery_rate,
        app_limited: flags & APP_LIMITED_FLAG != 0,
        busy: Duration::from_micros(busy),
        window_limited: Duration::from_micros(window_limited),
        minimum_rtt,
        state: state_of(flags & STATE_MASK)?,
        reordering: u32::try_from(reordering).ok()?,
        dsacks: u32::try_from(dsacks).ok()?,
        marked: u32::try_from(marked).ok()?,
        starved: flags & STARVED_FLAG != 0,
    };
    Some(ProbeAnswer { probe, sequence, held, report })
}

/// Linux's own numbers (`enum tcp_ca_state`).
fn state_code(state: CongestionState) -> u8 {
    match state {
        CongestionState::Open => 0,
        CongestionState::Disorder => 1,
        CongestionState::Reduced => 2,
        CongestionState::Recovery => 3,
        CongestionState::Loss => 4,
    }
}

pub(super) fn state_of(code: u8) -> Option<CongestionState> {
    Some(match code {
        0 => CongestionState::Open,
        1 => CongestionState::Disorder,
        2 => CongestionState::Reduced,
        3 => CongestionState::Recovery,
        4 => CongestionState::Loss,
        _ => return None,
    })
}
