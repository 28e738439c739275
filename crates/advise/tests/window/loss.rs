//! Advice where random loss limits the transfer.

use sweetspot_advise::Formula;
use sweetspot_advise::window::{LossResponse, WindowAdvice, WindowQuestion, advise};
use sweetspot_units::Bytes;

use crate::question;

#[test]
fn where_loss_limits_no_window_is_said_to_help() {
    let q = WindowQuestion { loss: Some("1e-5".parse().unwrap()), ..question("10Gbit/s", "80ms") };
    let advice = advise(&q).unwrap();
    assert!(advice.loss_limited);
    let json = advice.json();
    // A window that never limits gains a percent at most, and half the recommended one loses more.
    let rate = |name: &str| json["expected_bps"][name].as_f64().unwrap();
    let gain = rate("bdp6") / rate("recommended");
    assert!((1.0..1.015).contains(&gain), "{gain}");
    assert!(rate("half") < 0.99 * rate("recommended"), "{json}");
    assert!(advice.text(false, 80).contains("loss, not the window, limits it"));
}

/// A window of W = 66,667 packets of 1500 B fills 10 Gbit/s x 80 ms. After a loss CUBIC lacks 0.3 W, and 0.3 W (1 - t/K)^3 at t, until
/// K = (0.3 W / 0.4)^(1/3) = 36.84 s (RFC 9438, section 4.2): D = 0.3 W K/4 / 80 ms packets. 95 % of the path are
/// 1 / (1 + p D), p = 0.05 / 0.95 / D, but for losses before K, which cost more. They come K p 833,333 / s: less than 0.7 at that p.
#[test]
fn the_loss_and_the_connections_that_fill_a_path_follow_from_the_growth_after_a_loss() {
    let q = WindowQuestion { loss: Some("1e-5".parse().unwrap()), ..question("10Gbit/s", "80ms") };
    let advice = advise(&q).unwrap();
    let fills = advice.fills_path.unwrap();
    let lacks = 0.3 * 66_667.0_f64;
    let by_hand = 0.05 / 0.95 / (lacks * (lacks / 0.4).cbrt() / 4.0 / 0.08);
    let loss = fills.loss.unwrap();
    assert!(loss < by_hand && loss > by_hand / 3.0, "{loss} {by_hand}");
    let at = WindowQuestion { loss: Some(loss.to_string().parse().unwrap()), ..q };
    let rate = advise(&at).unwrap().recommended.rate.unwrap().as_f64();
    assert!((rate / 0.95e10 - 1.0).abs() < 0.011, "{rate}");
    // With one connection less they would not fill it.
    let one = advice.recommended.rate.unwrap().as_f64();
    let n = fills.connections as f64;
    assert!(n * one >= 0.95e10 && (n - 1.0) * one < 0.95e10, "{fills:?}");
    let text = advice.text(false, 80).replace("\n          ", " ");
    let fix = format!("a loss of {loss:.1e}, BBR or {n} connections");
    assert!(text.contains(&fix), "{text}");
    // BBR slows down above a loss of 2 % (draft-ietf-ccwg-bbr).
    let q = WindowQuestion { loss: Some("3%".parse().unwrap()), ..q };
    assert!(!advise(&q).unwrap().text(false, 80).contains("BBR"));
    // With that loss or less, loss is no limit.
    let just = WindowQuestion { loss: Some((0.99 * loss).to_string().parse().unwrap()), ..q };
    assert_eq!(advise(&just).unwrap().fills_path, None);
}

/// Rate, remedies and the line between them are one model's: nothing jumps where loss begins to limit, and less loss is no slower.
#[test]
fn the_answer_has_no_jump_where_loss_begins_to_limit() {
    for buffer in [None, Some(250_000), Some(500_000)] {
        let of = |loss: f64| {
            let loss = Some(loss.to_string().parse().unwrap());
            let buffer = buffer.map(Bytes::new);
            advise(&WindowQuestion { loss, buffer, ..question("100Mbit/s", "40ms") }).unwrap()
        };
        let limit = of(1e-3).fills_path.unwrap().loss.unwrap();
        let rates = [0.5, 0.9, 0.99, 1.03, 1.1, 2.0].map(|times| {
            let advice = of(limit * times);
            assert_eq!(advice.loss_limited, times > 1.0, "{limit} {times}");
            assert_eq!(advice.fills_path.is_some(), times > 1.0, "{limit} {times}");
            assert!(advice.fills_path.is_none_or(|fills| fills.loss.unwrap() < limit * times));
            advice.recommended.rate.unwrap().as_f64()
        });
        assert!(rates.windows(2).all(|pair| pair[1] < pair[0] * 1.002), "{rates:?}");
        // A hundredth is the tolerance of the recommended window.
        assert!((rates[2] / rates[3] - 1.0).abs() < 0.02, "{rates:?}");
    }
}

#[test]
fn loss_limits_cubic_less_than_reno_and_the_gain_names_which() {
    let loss = Some("1e-5".parse().unwrap());
    let q = WindowQuestion { loss, ..question("200Mbit/s", "80ms") };
    // RFC 9438, section 5.1: 1.0538 (0.08 / 1e-5)^0.75 = 891.4 packets of 1500 B per 80 ms, 133.71 Mbit/s. That is the mean with
    // periodic losses if no path bounds the window: random ones give more, but this path of 1333 packets cuts off the peaks.
    let cubic = advise(&q).unwrap();
    let of = |advice: &WindowAdvice| -> Vec<String> {
        let with_loss = |f: &&Formula| f.what == "rate with loss and this window";
        advice.formulas.iter().filter(with_loss).map(|f| f.numbers.clone()).collect()
    };
    // The answer's rate, and the other congestion control's beside it.
    let rate = cubic.recommended.rate.unwrap();
    assert!(of(&cubic)[0].ends_with(&format!(" cubic: {rate}")), "{:?}", of(&cubic));
    assert!(of(&cubic)[1].contains(" reno: "), "{:?}", of(&cubic));
    let ratio = rate.as_f64() / 133.71e6;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    // A buffer of a tenth of that overflows at the peaks, so that a window that never does is faster.
    let buffer = Some(Bytes::new(200_000));
    let small = advise(&WindowQuestion { buffer, ..q }).unwrap();
    // 2.2 MB of packets, or a little less, as 99 % of the rate are enough.
    let window = small.recommended.window.unwrap().get();
    assert!((2_000_000..=2_123_733).contains(&window), "{window}");
    assert!(small.recommended.rate > small.wrong_by_two[1].rate);
    let text = small.text(false, 80);
    assert!(text.contains("larger peaks overflow the buffer; twice the window gives"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // With room for every peak random losses give more than the formula's periodic ones: Reno 1.3098 / sqrt(p) packets of 1500 B
    // per 80 ms, 62.13 Mbit/s (Ott, Kemperman, Mathis 1996).
    let roomy =
        WindowQuestion { rate: "100Gbit/s".parse().unwrap(), congestion: LossResponse::Reno, ..q };
    let rate = advise(&roomy).unwrap().recommended.rate.unwrap().as_f64();
    assert!((rate / 62.13e6 - 1.0).abs() < 0.02, "{rate}");
    assert_eq!(cubic.json()["congestion"], "cubic");
    let text = cubic.text(true, 80);
    let folded = text.replace("\n          ", " ");
    assert!(
        folded.contains(" Mbit/s on the wire with cubic: loss limits it, and the window its peaks"),
        "{text}"
    );
    let reno = advise(&WindowQuestion { congestion: LossResponse::Reno, ..q }).unwrap();
    assert!(of(&reno)[0].contains(" reno: ") && of(&reno)[1].contains(" cubic: "));
    let gain = reno.text(false, 80);
    assert!(
        gain.contains("Mbit/s on the wire with reno: loss, not the window, limits it"),
        "{gain}"
    );
}

#[test]
fn where_loss_limits_the_rate_is_known_beside_any_cross_traffic() {
    let base =
        WindowQuestion { loss: Some("1e-5".parse().unwrap()), ..question("10Gbit/s", "80ms") };
    let alone = advise(&base).unwrap();
    for cross in ["udp:30%", "elephants:30%", "mice:30%"] {
        let q = WindowQuestion { cross: Some(cross.parse().unwrap()), ..base };
        let advice = advise(&q).unwrap();
        // The window that loss allows is far below the path's free capacity.
        assert_eq!(advice.recommended.rate, alone.recommended.rate, "{cross}");
        let gain = advice.wrong_by_two[1].rate.unwrap().as_f64();
        assert!(gain <= alone.recommended.rate.unwrap().as_f64() * 1.015, "{cross}");
        assert!(!advice.text(false, 80).contains("to not known"), "{cross}");
    }
}

/// Losses every 1000 packets leave Reno a mean window of 1.3 / sqrt(p) = 41 packets: the recommended window holds its peaks, and half
/// of it cuts them. At a loss of 50 % it has 2 packets of 1500 B, and even half of TCP's initial window, the smallest recommended, holds
/// them.
#[test]
fn half_a_window_costs_rate_only_if_the_losses_leave_more() {
    for (rtt, loss, costs) in
        [("600ms", "50%", false), ("600ms", "1e-3", true), ("48ms", "1e-3", true)]
    {
        let (loss, congestion) = (Some(loss.parse().unwrap()), LossResponse::Reno);
        let q = WindowQuestion { loss, congestion, ..question("10Mbit/s", rtt) };
        let advice = advise(&q).unwrap();
        assert!(advice.loss_limited);
        let [whole, half] = [&advice.recommended, &advice.wrong_by_two[0]];
        let kept = half.rate.unwrap().as_f64() / whole.rate.unwrap().as_f64();
        assert_eq!(kept < 0.99, costs, "{rtt}");
        let text = advice.text(false, 80);
        assert_eq!(!text.contains("half the window is almost as fast"), costs, "{text}");
        let [whole, double] =
            [&advice.recommended, &advice.wrong_by_two[1]].map(|c| c.rate.unwrap().as_f64());
        // An unknown buffer counts as none for the window and as one that never overflows for the peaks.
        assert_eq!(double <= whole * 1.02, !text.contains("; twice, if buffered, "), "{text}");
        assert_eq!(double <= whole * 1.02, text.contains("loss, not the window, limits it"));
        assert_eq!(double <= whole * 1.02, rtt == "600ms", "{text}");
        let mean = 1.31 / q.loss.unwrap().get().sqrt();
        let held = advice.recommended.window.unwrap().as_f64() / 1448.0;
        // 10 Mbit/s x 48 ms are 40 packets.
        assert!(held >= mean.min(40.0) && held <= (4.0 * mean).max(10.0), "{held} {mean}");
    }
}

/// At 30 % the rate times 20 us is less than a packet, below which no window was ever tried to suffice.
#[test]
fn a_loss_that_leaves_less_than_a_packet_in_flight_has_an_answer() {
    let loss = Some("30%".parse().unwrap());
    for buffer in [None, Some(Bytes::new(100_000))] {
        let q = WindowQuestion { loss, buffer, ..question("10Gbit/s", "20us") };
        let advice = advise(&q).unwrap();
        assert!(advice.recommended.rate.unwrap() * q.rtt < q.mtu);
        assert!(advice.recommended.window.unwrap() >= q.payload(q.mtu), "{advice:?}");
    }
}
