//! Laws for every path, flow and link: no NaN, no panic, limits, and orderings.

use proptest::prelude::*;
use sweetspot_theory::Packets;
use sweetspot_theory::host::advertised_window::{Era, ScalingRatio};
use sweetspot_theory::path::elephants::Elephants;
use sweetspot_theory::path::saturation::{congestion_limited, sweet_spot, throughput};
use sweetspot_theory::path::sawtooth::sawtooth;
use sweetspot_theory::path::{Path, six_bdps};
use sweetspot_theory::reno::pftk::Flow;
use sweetspot_theory::reno::s_model::ShortFlow;
use sweetspot_theory::router::loss_form::LossForm;
use sweetspot_theory::router::mm1b::Mm1b;
use sweetspot_theory::router::optimum::{Best, optimum};
use sweetspot_theory::router::per_flow::{Favoured, Router, RouterLink};
use sweetspot_theory::router::sensitivity::tolerance;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

prop_compose! {
    fn any_path()(
        kbit in 100u64..100_000_000,
        micros in 100u64..1_000_000,
        buffer in 0u64..1_000_000_000,
    ) -> Path {
        let rate = Rate::from_bits_per_second(kbit * 1000);
        Path::new(rate, Duration::from_micros(micros), Bytes::new(buffer)).unwrap()
    }
}

prop_compose! {
    fn any_router()(
        mbit in 1u64..100_000,
        millis in 1u64..500,
        f in 0.05f64..1.0,
        power in any::<bool>(),
        a in 0.001f64..1.0,
        b in 0.01f64..3.0,
        segments in proptest::option::of(1u64..100_000),
    ) -> Router {
        let packet = Bytes::new(1500);
        let rate = Rate::from_mbit_per_second(mbit);
        let link = RouterLink::new(rate, Duration::from_millis(millis), packet, f).unwrap();
        // The exponential's decay is per packet: a hundredth keeps it in the paper's range.
        let loss = match power {
            true => LossForm::power_law(a, b),
            false => LossForm::exponential(a, b / 100.0),
        };
        let favoured = match segments {
            Some(n) => Favoured::Short(ShortFlow::new(packet * n, packet).unwrap()),
            None => Favoured::Long,
        };
        Router { link, loss: loss.unwrap(), favoured }
    }
}

proptest! {
    #[test]
    fn no_window_beats_the_sweet_spot(path in any_path(), window in 1u64..10_000_000_000) {
        let best = throughput(&path, sweet_spot(&path).high.max(Bytes::new(1))).unwrap();
        let some = throughput(&path, Bytes::new(window)).unwrap();
        prop_assert!(some.rate <= path.capacity());
        prop_assert!(some.rate <= best.rate);
    }

    #[test]
    fn a_lone_flow_gets_at_least_three_quarters_of_the_capacity(path in any_path()) {
        let share = congestion_limited(&path).as_f64() / path.capacity().as_f64();
        prop_assert!((0.75 - 1e-6..=1.0).contains(&share), "{share}");
    }

    #[test]
    fn more_router_buffer_never_lowers_the_congestion_limited_rate(path in any_path(), more in 1u64..1 << 30) {
        let larger = Path::new(path.capacity(), path.minimum_rtt(), path.buffer() + Bytes::new(more));
        // C T_m is in whole bytes, the ratio exact: allow one bit per second for rounding.
        prop_assert!(congestion_limited(&larger.unwrap()).as_f64() >= congestion_limited(&path).as_f64() - 1.0);
    }

    #[test]
    fn a_sawtooths_backlog_lies_between_its_ends(path in any_path()) {
        let packet = Bytes::new(1500);
        if let Ok(s) = sawtooth(&path, packet) {
            prop_assert!(s.smallest_backlog <= s.mean_backlog + Bytes::new(1));
            prop_assert!(s.mean_backlog <= s.largest_backlog + Bytes::new(1));
            prop_assert!(s.loss.get() > 0.0 && s.loss.get() < 0.17);
            let six = six_bdps::six_bdps(&six_bdps::alone(&path, packet).unwrap()).unwrap();
            prop_assert!(six.bdp5 < six.bdp6);
        }
    }

    #[test]
    fn elephants_yield_only_to_a_backlog(
        mbit in 1u64..10_000, share in 0.0f64..1.0, te in 1u64..500, tct in 1u64..500,
        buffer in 0u64..100_000_000, fraction in 0.001f64..1.0,
    ) {
        let c = Rate::from_mbit_per_second(mbit);
        let ms = Duration::from_millis;
        let link = Elephants::new(c, c.scaled(share), ms(te), ms(tct), Bytes::new(buffer)).unwrap();
        let best = link.optimum();
        prop_assert!(best.rate >= c.scaled(share) && best.rate <= c);
        let window = best.socket_buffer.scaled(fraction);
        if window > Bytes::ZERO {
            let rate = link.throughput(window).unwrap().rate;
            prop_assert!(rate.as_f64() <= best.rate.as_f64() * (1.0 + 1e-6) + 100.0);
        }
    }

    #[test]
    fn reno_is_never_faster_than_its_window_allows(
        p in 1e-8f64..0.5, micros in 100u64..1_000_000, segments in 1u64..100_000,
    ) {
        let mss = Bytes::new(1448);
        let rtt = Duration::from_micros(micros);
        let loss = Probability::new(p).unwrap();
        let flow = Flow::new(mss, rtt, Duration::from_millis(200) + rtt, loss).unwrap();
        let limit = (mss * segments) / rtt;
        let full = flow.full(Some(mss * segments)).unwrap();
        // The model also counts the packets of the last round, about a percent in short periods.
        prop_assert!(full.as_f64() <= 1.5 * limit.as_f64() + 1.0);
        prop_assert!(flow.on_congested_path(mss * segments) <= limit);
    }

    #[test]
    fn no_buffer_size_beats_the_optimum(router in any_router(), ratio in 0.001f64..1000.0) {
        let rate = |b: f64| router.throughput(Packets::new(b).unwrap());
        if let Ok(found) = optimum(&router)
            && let Best::At(best) = found.best
            && let (Ok(highest), Ok(other)) = (rate(best.get()), rate(best.get() * ratio))
            && !(matches!(router.favoured, Favoured::Long) && router.loss.b() >= 2.0)
        {
            prop_assert!(other.as_f64() <= highest.as_f64() * (1.0 + 1e-9) + 1.0);
        }
    }

    #[test]
    fn inside_the_range_throughput_keeps_its_share(router in any_router(), at in 0.0f64..1.0) {
        if let Ok(range) = tolerance(&router, 0.9)
            && let Some(high) = range.high
            && let Ok(found) = optimum(&router)
        {
            let best = if let Best::At(b) = found.best { b } else { Packets::ZERO };
            let inside = range.low.get() + at * (high.get() - range.low.get());
            let top = router.throughput(best);
            let rate = router.throughput(Packets::new(inside).unwrap());
            if let (Ok(top), Ok(rate)) = (top, rate) {
                prop_assert!(rate.as_f64() >= 0.9 * top.as_f64() * (1.0 - 1e-9) - 1.0);
            }
        }
    }

    #[test]
    fn a_queue_conserves_its_packets(load in 0.001f64..10.0, places in 1u64..1_000_000) {
        let q = Mm1b::new(load, places).unwrap();
        let busy = load * (1.0 - q.loss().get());
        prop_assert!(busy <= 1.0 + 1e-9);
        prop_assert!(q.mean_packets() >= 0.0 && q.mean_packets() <= places as f64);
    }

    #[test]
    fn the_memory_for_a_window_sustains_it(window in 0u64..1 << 40, memory in 1u64..10_000, payload in 0u64..10_000) {
        for era in [Era::ThreeQuarters, Era::Half, Era::CautiousRatio, Era::Ratio] {
            let measured = ScalingRatio::measured(Bytes::new(payload), Bytes::new(memory)).ok();
            let window = Bytes::new(window);
            prop_assert!(era.window(era.memory_for(window, measured), measured) >= window);
        }
    }
}
