//! The buffer that maximises per-flow throughput: router-buffer eqs (6), (7), (11), (13), (16),
//! (18).

use super::capacity_ratio::Form;
use super::per_flow::{Favoured, Router};
use crate::Result;
use crate::packets::Packets;
use crate::reno::s_model::ShortFlow;
use sweetspot_statistics::roots;

/// Largest buffer considered, packets. If throughput still grows there, it grows without bound.
const MAX_BUFFER_PACKETS: f64 = 1e18;

/// The best buffer.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Best {
    /// No buffer: throughput only decreases with the buffer. In practice the bursts of single
    /// flows, which the loss forms neglect, need 20 to 30 packets (router-buffer §VII-C).
    Zero,
    /// This buffer.
    At(Packets),
    /// The larger the buffer, the better: loss decreases faster than delay grows. In practice this
    /// holds up to the cutoff at which the offered load no longer fills the buffer (router-buffer
    /// §VI-A).
    Unbounded,
}

/// Kind of a stationary point of throughput.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Extremum {
    /// A local maximum.
    Maximum,
    /// A local minimum.
    Minimum,
}

/// A buffer at which the derivative of throughput is zero.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Root {
    /// The buffer.
    pub buffer: Packets,
    /// Whether throughput has a maximum or a minimum there.
    pub kind: Extremum,
}

/// The best buffer and every root of dR/dB, in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct BufferOptimum {
    /// The best buffer.
    pub best: Best,
    /// The positive roots: none, one or two.
    pub roots: Vec<Root>,
}

/// The buffer that maximises the throughput of `router`'s favoured flows.
///
/// For the EX form with long flows, throughput eventually grows without bound. As in the paper, the
/// slope at B = 0 then decides between no buffer and an unbounded one.
///
/// # Errors
/// If the loss form gives more than 1 at the optimum: its parameters do not fit this link.
pub fn optimum(router: &Router) -> Result<BufferOptimum> {
    let found = match (router.loss.form(), router.favoured) {
        (Form::PowerLaw, Favoured::Long) => power_law_long(router),
        (Form::PowerLaw, Favoured::Short(flow)) => power_law_short(router, flow),
        (Form::Exponential, Favoured::Long) => exponential_long(router),
        (Form::Exponential, Favoured::Short(flow)) => exponential_short(router, flow),
    }?;
    if let Best::At(buffer) = found.best {
        router.loss.loss(buffer)?;
    }
    Ok(found)
}

fn single(buffer: f64, kind: Extremum, best: Best) -> Result<BufferOptimum> {
    let root = Root { buffer: Packets::new(buffer)?, kind };
    Ok(BufferOptimum { best, roots: vec![root] })
}

fn none(best: Best) -> Result<BufferOptimum> {
    Ok(BufferOptimum { best, roots: Vec::new() })
}

// Eq. (11): B = b / (f (2 - b)) C T_o; (7) is b = 1, f = 1/2: 2 C T_o. For b >= 2, loss decreases
// faster than delay grows at every buffer.
fn power_law_long(router: &Router) -> Result<BufferOptimum> {
    let (b, f) = (router.loss.b(), router.link.delay_slope());
    if b >= 2.0 {
        return none(Best::Unbounded);
    }
    let buffer = b / (f * (2.0 - b)) * router.link.bdp().get();
    single(buffer, Extremum::Maximum, Best::At(Packets::new(buffer)?))
}

// Eq. (13): a b M C T_o B^-(1+b) = a M f (1-b) B^-b + f D; (6) is a = b = 1, f = 1/2. Times
// B^(1+b)/f: f D B^(1+b) + a M f (1-b) B = a b M C T_o. The left side is zero at zero, and convex
// (b > 0). So it meets the positive right side exactly once, from below: a maximum.
fn power_law_short(router: &Router, flow: ShortFlow) -> Result<BufferOptimum> {
    let (a, b, f) = (router.loss.a(), router.loss.b(), router.link.delay_slope());
    let lost = flow.rtts_per_loss() * flow.segments() as f64 * a;
    if lost == 0.0 {
        // Losses cost nothing, so only delay matters.
        return none(Best::Zero);
    }
    let d = flow.slow_start_rtts() as f64;
    let right = b * lost * router.link.bdp().get() / f;
    let left = |x: f64| d * libm::pow(x, 1.0 + b) + lost * (1.0 - b) * x;
    match roots::beyond(0.0, MAX_BUFFER_PACKETS, |x| left(x) < right) {
        Some(x) => single(x, Extremum::Maximum, Best::At(Packets::new(x)?)),
        None => none(Best::Unbounded),
    }
}

// Eq. (16): B = 2/(fb) (f - b C T_o / 2), a minimum. It is positive if dR/dB < 0 at zero.
fn exponential_long(router: &Router) -> Result<BufferOptimum> {
    let (b, f) = (router.loss.b(), router.link.delay_slope());
    let buffer = 2.0 / (f * b) * (f - b * router.link.bdp().get() / 2.0);
    if buffer > 0.0 {
        return single(buffer, Extremum::Minimum, Best::Zero);
    }
    none(Best::Unbounded)
}

// Eq. (18): f D / (v M) + (a f - a b C T_o) e^-bB = a b f B e^-bB. With x = bB and k = b C T_o / f
// it is (x + k - 1) e^-x = D / (v M a). The left side rises up to x = 2 - k, where it is e^(k-2),
// and falls beyond. So there is at most one root on each side of that point: a minimum of
// throughput on the rising side, a maximum on the falling side.
fn exponential_short(router: &Router, flow: ShortFlow) -> Result<BufferOptimum> {
    let (a, b, f) = (router.loss.a(), router.loss.b(), router.link.delay_slope());
    let lost = flow.rtts_per_loss() * flow.segments() as f64 * a;
    if lost == 0.0 {
        return none(Best::Zero);
    }
    let k = b * router.link.bdp().get() / f;
    let level = flow.slow_start_rtts() as f64 / lost;
    let left = |x: f64| (x + k - 1.0) * libm::exp(-x);
    let top = (2.0 - k).max(0.0);

    let mut found = Vec::new();
    if left(0.0) < level && left(top) > level {
        let x = roots::between(0.0, top, |x| left(x) < level);
        found.push(Root { buffer: Packets::new(x / b)?, kind: Extremum::Minimum });
    }
    if left(top) > level
        && let Some(x) = roots::beyond(top, MAX_BUFFER_PACKETS, |x| left(x) > level)
    {
        found.push(Root { buffer: Packets::new(x / b)?, kind: Extremum::Maximum });
    }
    let best = match found.last() {
        // The maximum may still be lower than the throughput without a buffer.
        Some(root) if raw(router, root) > router.raw_throughput(0.0) => Best::At(root.buffer),
        _ => Best::Zero,
    };
    Ok(BufferOptimum { best, roots: found })
}

fn raw(router: &Router, root: &Root) -> f64 {
    router.raw_throughput(root.buffer.get())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::loss_form::LossForm;
    use crate::router::per_flow::RouterLink;
    use sweetspot_units::{Bytes, Duration, Rate};

    const PACKET: Bytes = Bytes::new(1500);

    /// 50 Mbit/s, 60 ms: C T_o is 250 packets of 1500 B.
    fn router(loss: LossForm, f: f64, favoured: Favoured) -> Router {
        let rate = Rate::from_mbit_per_second(50);
        let link = RouterLink::new(rate, Duration::from_millis(60), PACKET, f).unwrap();
        Router { link, loss, favoured }
    }

    fn thirty() -> Favoured {
        Favoured::Short(ShortFlow::new(PACKET * 30, PACKET).unwrap())
    }

    fn at(best: Best) -> f64 {
        match best {
            Best::At(b) => b.get(),
            other => panic!("{other:?}"),
        }
    }

    fn pl(a: f64, b: f64) -> LossForm {
        LossForm::power_law(a, b).unwrap()
    }

    fn ex(a: f64, b: f64) -> LossForm {
        LossForm::exponential(a, b).unwrap()
    }

    #[test]
    fn long_flows_under_a_power_law_match_a_hand_calculation() {
        // b = 0.5, f = 0.4: 0.5 / (0.4 * 1.5) = 0.8333 of 250 packets = 208.33.
        let best = optimum(&router(pl(0.2, 0.5), 0.4, Favoured::Long)).unwrap().best;
        assert!((at(best) - 208.333).abs() < 1e-3);
    }

    #[test]
    fn short_flows_at_heavy_mm1b_load_have_a_closed_form() {
        // Eq. (6): sqrt(2 M C T_o / D) = sqrt(2 * 30 * 250 / 5) = 54.7723.
        let best = optimum(&router(pl(1.0, 1.0), 0.5, thirty())).unwrap().best;
        assert!((at(best) - 54.772_255_75).abs() < 1e-8);
        // Eq. (7): 2 C T_o.
        let best = optimum(&router(pl(1.0, 1.0), 0.5, Favoured::Long)).unwrap().best;
        assert!((at(best) - 500.0).abs() < 1e-9);
    }

    #[test]
    fn no_buffer_size_beats_the_optimum() {
        let cases = [
            router(pl(0.2, 0.5), 0.4, Favoured::Long),
            router(pl(0.2, 0.5), 0.4, thirty()),
            router(pl(0.9, 1.7), 0.4, thirty()),
            router(ex(0.3, 0.02), 0.4, thirty()),
        ];
        for r in cases {
            let best = optimum(&r).unwrap().best;
            let highest = r.raw_throughput(at(best));
            for i in 0..20_000 {
                let b = 0.05 * f64::from(i) + r.loss.smallest_buffer().get();
                assert!(r.raw_throughput(b) <= highest * (1.0 + 1e-12), "{r:?} at {b}");
            }
        }
    }

    #[test]
    fn the_power_law_factor_moves_only_the_short_flow_optimum() {
        let best = |a, favoured| at(optimum(&router(pl(a, 0.5), 0.4, favoured)).unwrap().best);
        assert_eq!(best(0.1, Favoured::Long), best(0.3, Favoured::Long));
        assert!(best(0.1, thirty()) < best(0.3, thirty()));
    }

    #[test]
    fn a_steep_power_law_favours_an_unbounded_buffer() {
        let found = optimum(&router(pl(0.5, 2.0), 0.4, Favoured::Long)).unwrap();
        assert_eq!(found, BufferOptimum { best: Best::Unbounded, roots: vec![] });
    }

    #[test]
    fn an_exponential_with_long_flows_has_a_minimum_or_no_root() {
        // Eq. (16) with b = 0.002, f = 0.4: 2 / 0.0008 * (0.4 - 0.25) = 375 packets.
        let found = optimum(&router(ex(0.05, 0.002), 0.4, Favoured::Long)).unwrap();
        assert_eq!(found.best, Best::Zero);
        assert_eq!(found.roots[0].kind, Extremum::Minimum);
        assert!((found.roots[0].buffer.get() - 375.0).abs() < 1e-9);
        // b = 0.0032 makes b C T_o / 2 = f: the slope at zero turns positive.
        let found = optimum(&router(ex(0.05, 0.0033), 0.4, Favoured::Long)).unwrap();
        assert_eq!(found, BufferOptimum { best: Best::Unbounded, roots: vec![] });
    }

    #[test]
    fn an_exponential_with_short_flows_has_up_to_two_roots() {
        // k = b 250 / f, level = 5 / (30 a).
        // a = 0.3: level 0.5556. b = 0.02: k = 12.5, the left side starts at 11.5: one maximum.
        let one = optimum(&router(ex(0.3, 0.02), 0.4, thirty())).unwrap();
        assert_eq!(one.roots.iter().map(|r| r.kind).collect::<Vec<_>>(), [Extremum::Maximum]);
        // b = 0.002: k = 1.25, it starts at 0.25 and reaches e^-0.75 = 0.472: no root.
        let no = optimum(&router(ex(0.3, 0.002), 0.4, thirty())).unwrap();
        assert_eq!(no, BufferOptimum { best: Best::Zero, roots: vec![] });
        // a = 0.36: level 0.463 is between 0.25 and 0.472: a minimum, then a maximum.
        let two = optimum(&router(ex(0.36, 0.002), 0.4, thirty())).unwrap();
        let kinds: Vec<_> = two.roots.iter().map(|r| r.kind).collect();
        assert_eq!(kinds, [Extremum::Minimum, Extremum::Maximum]);
        // That maximum is below the throughput without a buffer.
        assert_eq!(two.best, Best::Zero);
    }

    #[test]
    fn the_slope_is_zero_at_every_root() {
        let cases = [
            router(pl(0.2, 0.5), 0.4, thirty()),
            router(ex(0.36, 0.002), 0.4, thirty()),
            router(ex(0.05, 0.002), 0.4, Favoured::Long),
        ];
        for r in cases {
            for root in optimum(&r).unwrap().roots {
                let (b, h) = (root.buffer.get(), 1e-4 * root.buffer.get());
                let bend = r.raw_throughput(b + h) - r.raw_throughput(b - h);
                let drop = r.raw_throughput(b + 1000.0 * h) - r.raw_throughput(b);
                assert!(bend.abs() < 1e-2 * drop.abs(), "{r:?} {root:?}");
                let below = drop < 0.0;
                assert_eq!(below, root.kind == Extremum::Maximum);
            }
        }
    }

    #[test]
    fn if_losses_cost_nothing_the_best_buffer_is_zero() {
        let free = ShortFlow::new(PACKET * 30, PACKET).unwrap().with_rtts_per_loss(0.0).unwrap();
        for loss in [pl(0.2, 0.5), ex(0.2, 0.5)] {
            let found = optimum(&router(loss, 0.4, Favoured::Short(free))).unwrap();
            assert_eq!(found.best, Best::Zero);
        }
    }

    #[test]
    fn an_optimum_outside_the_loss_forms_range_is_rejected() {
        // a = 100, b = 0.5 is above 1 up to 10,000 packets; the optimum is 208.
        assert!(optimum(&router(pl(100.0, 0.5), 0.4, Favoured::Long)).is_err());
    }
}
