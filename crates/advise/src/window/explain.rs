//! The formulas behind the advice, with their numbers.

use sweetspot_theory::host::send_buffer;
use sweetspot_theory::path::saturation::{self, SweetSpot};
use sweetspot_units::{Bytes, Rate};

use super::situation::Situation;
use super::{FillsPath, LossResponse, WindowQuestion};
use crate::text::percent;
use crate::{AdviceError, Formula};

/// The formulas of the situation, including the rates of `window` under loss unless a simulation replaces them.
pub(super) fn formulas(s: &Situation, window: Option<Bytes>) -> Result<Vec<Formula>, AdviceError> {
    let (a, t, b) = (s.left.capacity(), s.left.minimum_rtt(), s.bare.buffer());
    let spot = saturation::sweet_spot(&s.left);
    let mut all = vec![Formula {
        what: "sweet spot",
        rule: "A T_e <= S <= A (T_e + B/C)",
        numbers: format!("{a} x {t} = {}; with B = {b}: {}", spot.low, spot.high),
        // The paper prints A T_e + B. In a shared buffer, other traffic fills its part, so only A / C of B is the
        // transfer's.
        source: "Jain, Prasad, Dovrolis, sections IV and V-A, whose A T_e + B counts the whole buffer as the transfer's",
    }];
    if let Some(e) = s.elephants {
        let best = e.optimum();
        all.push(Formula {
            what: "largest throughput against elephants",
            rule: "R = A (T_ct + B/A) / (T_ct + B/C), S = R (T_e + B/C)",
            numbers: format!(
                "{a} against C = {}, T_ct = {t}, B = {b}: R = {}, S = {}",
                s.bare.capacity(),
                best.rate,
                e.window_at_backlog(b)
            ),
            source: "Jain, Prasad, Dovrolis, eqs (3) and (8)",
        });
    }
    all.extend(s.elephants.is_none().then(|| beyond(s, &spot)));
    if let Some(window) = window {
        all.extend(under_loss(s, window)?);
    }
    Ok(all)
}

/// The rate of a window that overflows the buffer; unknown beside elephants.
fn beyond(s: &Situation, spot: &SweetSpot) -> Formula {
    let (rule, source) = match s.question.congestion {
        LossResponse::Reno => (
            "R = 3A/4 (A T_e + B)^2 / ((A T_e + B)^2 - A T_e B), A if B >= A T_e; B: its share",
            "Jain, Prasad, Dovrolis, eqs (4), (5), (17)",
        ),
        LossResponse::Cubic => (
            "R = mean of min(W/T_e, A) while W = 0.4 (t - K)^3 + W_max grows from 0.7 W_max to W_max = A T_e + B",
            "RFC 9438, sections 4.2 and 4.3",
        ),
    };
    Formula {
        what: "beyond the sweet spot",
        rule,
        numbers: format!("A T_e = {}, B = {}: {}", spot.low, s.bare.buffer(), s.sawtooth()),
        source,
    }
}

/// The remedies for loss if one connection carries the rate `one`.
pub(super) fn to_fill(fills: &FillsPath, one: Rate) -> Formula {
    let n = fills.connections;
    let numbers = match fills.loss {
        Some(_) => format!("R = {one}: p = {}, n = {n}", percent(fills.loss)),
        None => format!("R = {one}: n = {n}"),
    };
    Formula {
        what: "to fill 95 % of the path",
        rule: "the loss p at which R = 0.95 A; n = 0.95 A / R at the present loss, rounded up",
        numbers,
        source: "as above; losses are assumed not to depend on the load",
    }
}

/// The formulas for the packets of a window of `payload`, and for its memory at both ends.
pub(super) fn memory(q: &WindowQuestion, payload: Bytes) -> [Formula; 3] {
    let (kernel, mss) = (q.kernel, q.mss());
    let packets = payload.scaled(1.0 / q.payload_share());
    [
        Formula {
            what: "payload of the window",
            rule: "S x (MTU - headers) / MTU; above, S counts packets",
            numbers: format!("S = {packets}: {payload}"),
            source: "RFC 791, 9293, 7323: 52 B of headers",
        },
        Formula {
            what: "memory for the window",
            rule: "tcp_rmem[2] x (share that is window) >= payload of S",
            numbers: format!(
                "{payload}: {} on kernel {kernel}",
                kernel.era().memory_for(payload, None)
            ),
            source: "Linux include/net/tcp.h, tcp_win_from_space()",
        },
        Formula {
            what: "memory to send the window",
            rule: "tcp_wmem[2] = max(2 P, 3/2 P (1 + 832 B / (2 MSS))), P: payload of S",
            numbers: format!(
                "P = {payload}, MSS = {mss}: {}",
                send_buffer::memory_for(payload, mss)
            ),
            source: "Linux tcp_sndbuf_expand(): fast recovery holds two windows; refills of small packets, sk_stream_is_writeable()",
        },
    ]
}

/// The rates of `window` under loss with each congestion control; the question's comes first.
fn under_loss(s: &Situation, window: Bytes) -> Result<Vec<Formula>, AdviceError> {
    let Some(p) = s.loss() else { return Ok(Vec::new()) };
    let mut both = [LossResponse::Cubic, LossResponse::Reno];
    both.sort_by_key(|congestion| *congestion != s.question.congestion);
    let mut formulas = Vec::new();
    for congestion in both {
        let Some(rate) = s.bounded_by_loss(congestion, window)? else { continue };
        formulas.push(Formula {
            what: "rate with loss and this window",
            rule: "R = E[packets] / E[seconds] from one random loss to the next, W <= min(S, A T_e + B)",
            numbers: format!("p = {}, S = {window}, {congestion}: {rate}", p.get()),
            source: "after Ott, Kemperman, Mathis 1996; windows by RFC 5681 and RFC 9438",
        });
    }
    Ok(formulas)
}
