//! The origin of each number in the advice.

use sweetspot_theory::Packets;
use sweetspot_theory::router::capacity_ratio::Form;
use sweetspot_theory::router::per_flow::{Favoured, Router};

use super::RouterQuestion;
use super::model::LinkModel;
use super::size;
use crate::Formula;
use crate::text::percent;
use sweetspot_units::{Rate, Significant};

const PAPER: &str = "Prasad, Dovrolis, Thottan";
const MANUAL: &str = "sweetspot-advise-router(1)";
const REGRESSION: &str = "Sweetspot's simulations of 240 links drawn at random";

/// The formulas for `buffer`.
pub(super) fn formulas(
    q: &RouterQuestion,
    model: &LinkModel,
    r: &Router,
    buffer: Packets,
) -> Vec<Formula> {
    let gamma = model.ratio.gamma();
    let bdp = model.link.bdp();
    let mut all = vec![
        Formula {
            what: "capacity ratio",
            rule: "Gamma = C_out / C_in",
            numbers: format!("{} / {} = {gamma:.3}", q.rate, q.input_rate),
            source: PAPER,
        },
        Formula {
            what: "bandwidth-delay product",
            rule: "C T_o",
            numbers: format!("{} x {} / {} = {bdp}", q.rate, q.rtt, q.packet),
            source: "Villamizar and Song 1994",
        },
    ];
    // The formula for flows that may persist has this one in it.
    let share = size::persistence(q, model.mean.size(), bdp).filter(|share| *share > 0.0);
    all.extend(share.is_none().then(|| square_root(model.flows(), bdp)));
    if !model.is_outside() {
        all.push(predicted(model, bdp));
    }
    if share != Some(1.0) {
        all.push(best_buffer(r, bdp, buffer));
    }
    all.extend(share.map(|share| Formula {
        what: "flows that may persist",
        rule: "B = (C T / sqrt(n))^w B_best^(1-w), w = ln(M / M_fill) / ln 50 within 0 and 1. Transfers of M packets on average; with \
               M_fill, n of them fill the link in slow start",
        numbers: format!(
            "n = {}, M = {:.1}, M_fill = {:.1}, w = {share:.3}; used: {buffer}",
            model.flows(),
            model.mean.size().as_f64() / q.packet.as_f64(),
            size::filling(q, model.flows(), bdp),
        ),
        source: MANUAL,
    }));
    match model.is_closed_form() {
        true => all.extend(shared(model, buffer)),
        false => all.extend(loss(r, model, buffer)),
    }
    all
}

/// The rule for `n` flows that persist.
pub(super) fn square_root(n: u64, bdp: Packets) -> Formula {
    let root = bdp.get() / libm::sqrt(n as f64);
    Formula {
        what: "buffer for n flows that persist",
        rule: "C T_o / sqrt(n)",
        numbers: format!("{bdp} / sqrt({n}) = {root:.1} pkt"),
        source: "Appenzeller, Keslassy, McKeown 2004",
    }
}

fn predicted(model: &LinkModel, bdp: Packets) -> Formula {
    let t = &model.traffic;
    let gamma = model.ratio.gamma();
    Formula {
        what: "loss and delay",
        rule: "regression of a, b and f over simulated links; mean delay f B / C. With this loss and delay, flows may use less of \
               the link than in the simulations. The table then reduces loss and delay in proportion",
        numbers: format!(
            "Gamma {gamma:.3}, tail index {}, load {}, {:.4} flows per packet of C T_o, C T_o {bdp}, {:.1} \
             packets per transfer: a = {:.4}, b = {:.4}, f = {:.3}",
            t.tail_index,
            t.load,
            t.flows / bdp.get(),
            t.size,
            model.prediction.power_law.a(),
            model.prediction.power_law.b(),
            model.prediction.delay_slope
        ),
        source: REGRESSION,
    }
}

/// The loss at which the flows share the link, if they fill it.
fn shared(model: &LinkModel, buffer: Packets) -> Option<Formula> {
    let effect = model.effect(buffer);
    if model.assumes_shares() || effect.is_some_and(|effect| effect.is_calm()) {
        return None;
    }
    Some(Formula {
        what: "loss",
        rule: "R = 1.22 m / (T sqrt(p)), eq. (3)",
        numbers: format!(
            "R = {}: p = {}",
            effect.and_then(|effect| effect.used).map_or(Rate::ZERO, |used| model.flow(used)),
            percent(effect.and_then(|effect| effect.loss))
        ),
        source: PAPER,
    })
}

fn best_buffer(r: &Router, bdp: Packets, buffer: Packets) -> Formula {
    let [a, b, f] = [r.loss.a(), r.loss.b(), r.link.delay_slope()].map(Significant::<4>);
    let (rule, numbers) = match (r.loss.form(), r.favoured) {
        (Form::PowerLaw, Favoured::Long) => (
            "B = b / (f (2 - b)) C T_o, eq. (11)",
            format!("{b} / ({f} x {:.3}) x {bdp}", 2.0 - r.loss.b()),
        ),
        (Form::PowerLaw, Favoured::Short(s)) => (
            "a b M C T_o B^-(1+b) = a M f (1-b) B^-b + f D for M packets in D round trips of slow start, eq. (13)",
            format!(
                "a = {a}, b = {b}, f = {f}, M = {}, D = {}, C T_o = {bdp}",
                s.segments(),
                s.slow_start_rtts()
            ),
        ),
        (Form::Exponential, Favoured::Long) => (
            "no buffer if b C T_o < 2 f, else unbounded, eq. (16)",
            format!("{b} x {bdp} against 2 x {f}"),
        ),
        (Form::Exponential, Favoured::Short(s)) => (
            "f D / (v M) + (a f - a b C T_o) e^-bB = a b f B e^-bB for M packets in D round trips of slow start, eq. (18)",
            format!("a = {a}, b = {b}, f = {f}, M = {}, D = {}", s.segments(), s.slow_start_rtts()),
        ),
    };
    let numbers = format!("{numbers}; used: {buffer}");
    Formula { what: "best buffer", rule, numbers, source: PAPER }
}

/// The loss of the loss form, reduced until the flows reach the rate at which they use the link.
fn loss(r: &Router, model: &LinkModel, buffer: Packets) -> Option<Formula> {
    let loss = r.loss.loss(buffer).ok()?;
    let [a, b] = [r.loss.a(), r.loss.b()].map(Significant::<4>);
    let (rule, numbers) = match r.loss.form() {
        Form::PowerLaw => ("p = a B^-b, eq. (8)", format!("{a} x {:.1}^-{b}", buffer.get())),
        Form::Exponential => ("p = a e^-bB, eq. (14)", format!("{a} x e^-{b}x{:.1}", buffer.get())),
    };
    let numbers = format!("{numbers} = {}", percent(Some(loss.get())));
    let used =
        model.effect(buffer).and_then(|effect| effect.loss).filter(|used| *used < loss.get());
    let numbers = used.map_or(numbers.clone(), |used| {
        format!("{numbers}; flows that use so much of the link lose only {}", percent(Some(used)))
    });
    Some(Formula { what: "loss", rule, numbers, source: PAPER })
}
