//! The formulas behind the advice, with the numbers put in.

use sweetspot_theory::path::saturation;
use sweetspot_units::Bytes;

use super::situation::Situation;
use crate::{AdviceError, Formula};

pub(super) fn formulas(s: &Situation, window: Bytes) -> Result<Vec<Formula>, AdviceError> {
    let (a, t, b) = (s.left.capacity(), s.left.minimum_rtt(), s.bare.buffer());
    let spot = saturation::sweet_spot(&s.left);
    let mut all = vec![Formula {
        what: "sweet spot",
        rule: "A T_e <= S <= A (T_e + B/C)",
        numbers: format!("{a} x {t} = {}; with B = {b}: {}", spot.low, spot.high),
        // They print A T_e + B. Other traffic fills its part of a shared buffer, so that A / C of it is the transfer's.
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
    all.push(Formula {
        what: "beyond the sweet spot",
        rule: "R = 3A/4 (A T_e + B)^2 / ((A T_e + B)^2 - A T_e B), A if B >= A T_e; B: its share",
        numbers: format!(
            "A T_e = {}, B = {b}: {}",
            spot.low,
            saturation::congestion_limited(&s.left)
        ),
        source: "Jain, Prasad, Dovrolis, eqs (4), (5), (17)",
    });
    if let (Some(max), Some(p)) = (s.lossy, s.question.loss) {
        all.push(Formula {
            what: "what loss allows",
            rule: "R = m / (T sqrt(2bp/3) + T_0 min(1, 3 sqrt(3bp/8)) p (1 + 32 p^2))",
            numbers: format!("p = {}, T = {t}, b = 2: {max}", p.get()),
            source: "Padhye, Firoiu, Towsley, Kurose 1998",
        });
    }
    let kernel = s.question.kernel;
    all.push(Formula {
        what: "memory for the window",
        rule: "tcp_rmem[2] x (share that is window) >= S",
        numbers: format!("{} on kernel {kernel}", kernel.era().memory_for(window, None)),
        source: "Linux include/net/tcp.h, tcp_win_from_space()",
    });
    Ok(all)
}
