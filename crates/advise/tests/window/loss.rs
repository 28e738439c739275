//! Advice where random loss limits the transfer.

use sweetspot_advise::Formula;
use sweetspot_advise::window::{LossResponse, WindowAdvice, WindowQuestion, advise};
use sweetspot_units::Bytes;

use crate::question;

#[test]
fn no_window_helps_a_loss_limited_path() {
    let q = WindowQuestion { loss: Some("1e-5".parse().unwrap()), ..question("10Gbit/s", "80ms") };
    let advice = advise(&q).unwrap();
    assert!(advice.loss_limited);
    let json = advice.json();
    // A window that never limits gains at most 1 %; half of the recommended window loses more.
    let rate = |name: &str| json["expected_bps"][name].as_f64().unwrap();
    let gain = rate("bdp6") / rate("recommended");
    assert!((1.0..1.015).contains(&gain), "{gain}");
    assert!(rate("half") < 0.99 * rate("recommended"), "{json}");
    assert!(advice.text(false, 80).contains("loss, not the window, limits it"));
}

/// A window of W = 66,667 packets of 1500 B fills 10 Gbit/s x 80 ms. After a loss CUBIC lacks 0.3 W, and 0.3 W (1 - t/K)^3 at t,
/// until K = (0.3 W / 0.4)^(1/3) = 36.84 s (RFC 9438, section 4.2). In total it lacks D = 0.3 W K/4 / 80 ms packets. The rate is
/// 1 / (1 + p D) of the path's: 95 % at p = 0.05 / 0.95 / D. Losses before K cost more, but there are only K p 833,333 / s of
/// them: less than 0.7 at that p.
#[test]
fn cubic_growth_determines_the_loss_and_connections_that_fill_a_path() {
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
    // One connection fewer would not fill the path.
    let one = advice.recommended.rate.unwrap().as_f64();
    let n = fills.connections as f64;
    assert!(n * one >= 0.95e10 && (n - 1.0) * one < 0.95e10, "{fills:?}");
    let text = advice.text(false, 80).replace("\n          ", " ");
    let fix = format!("a loss of {loss:.1e}, BBR or {n} connections");
    assert!(text.contains(&fix), "{text}");
    // BBR slows down above a loss of 2 % (draft-ietf-ccwg-bbr).
    let q = WindowQuestion { loss: Some("3%".parse().unwrap()), ..q };
    assert!(!advise(&q).unwrap().text(false, 80).contains("BBR"));
    // With that loss or less, loss does not limit the transfer.
    let just = WindowQuestion { loss: Some((0.99 * loss).to_string().parse().unwrap()), ..q };
    assert_eq!(advise(&just).unwrap().fills_path, None);
}

/// One model gives the rate, the remedies and the threshold between them: nothing jumps where loss begins to limit, and less loss
/// never lowers the rate.
#[test]
fn advice_is_continuous_at_the_loss_limit() {
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
        // The tolerance of the recommended window is 1 %.
        assert!((rates[2] / rates[3] - 1.0).abs() < 0.02, "{rates:?}");
    }
}

#[test]
fn loss_limits_cubic_less_than_reno_and_the_text_names_which() {
    let loss = Some("1e-5".parse().unwrap());
    let q = WindowQuestion { loss, ..question("200Mbit/s", "80ms") };
    // RFC 9438, section 5.1: 1.0538 (0.08 / 1e-5)^0.75 = 891.4 packets of 1500 B per 80 ms, 133.71 Mbit/s. This is the mean under
    // periodic losses if the path does not bound the window. Random losses give more, but this path of 1333 packets cuts off the
    // peaks.
    let cubic = advise(&q).unwrap();
    let of = |advice: &WindowAdvice| -> Vec<String> {
        let with_loss = |f: &&Formula| f.what == "rate with loss and this window";
        advice.formulas.iter().filter(with_loss).map(|f| f.numbers.clone()).collect()
    };
    // The rate of the answer, beside the rate of the other congestion control.
    let rate = cubic.recommended.rate.unwrap();
    assert!(of(&cubic)[0].ends_with(&format!(" cubic: {rate}")), "{:?}", of(&cubic));
    assert!(of(&cubic)[1].contains(" reno: "), "{:?}", of(&cubic));
    let ratio = rate.as_f64() / 133.71e6;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    // A buffer of a tenth of C T overflows at the peaks, so a window that never overflows it is faster.
    let buffer = Some(Bytes::new(200_000));
    let small = advise(&WindowQuestion { buffer, ..q }).unwrap();
    // 2.2 MB of packets, or slightly less, because 99 % of the rate is enough.
    let window = small.recommended.window.unwrap().get();
    assert!((2_000_000..=2_123_733).contains(&window), "{window}");
    assert!(small.recommended.rate > small.wrong_by_two[1].rate);
    let text = small.text(false, 80);
    assert!(text.contains("larger peaks overflow the buffer; twice the window gives"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    // If no peak is cut off, random losses give a higher rate than the formula's periodic losses. For Reno it is 1.3098 / sqrt(p)
    // packets of 1500 B per 80 ms, 62.13 Mbit/s (Ott, Kemperman, Mathis 1996).
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
fn the_loss_limited_rate_is_the_same_beside_any_cross_traffic() {
    let base =
        WindowQuestion { loss: Some("1e-5".parse().unwrap()), ..question("10Gbit/s", "80ms") };
    let alone = advise(&base).unwrap();
    for cross in ["udp:30%", "elephants:30%", "mice:30%"] {
        let q = WindowQuestion { cross: Some(cross.parse().unwrap()), ..base };
        let advice = advise(&q).unwrap();
        // The window that loss allows is far below the bandwidth left by the cross traffic.
        assert_eq!(advice.recommended.rate, alone.recommended.rate, "{cross}");
        let gain = advice.wrong_by_two[1].rate.unwrap().as_f64();
        assert!(gain <= alone.recommended.rate.unwrap().as_f64() * 1.015, "{cross}");
        assert!(!advice.text(false, 80).contains("to not known"), "{cross}");
    }
}

/// With one loss in 1000 packets, Reno's mean window is 1.3 / sqrt(p) = 41 packets. The recommended window holds its peaks, and
/// half of it cuts them off. With a loss of 50 % the mean window is 2 packets of 1500 B, which fit even half of TCP's initial
/// window, the smallest recommended.
#[test]
fn half_the_window_costs_rate_only_if_loss_allows_more() {
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
        // For the window, an unknown buffer counts as none; for the peaks, as one that never overflows.
        assert_eq!(double <= whole * 1.02, !text.contains("; twice, if buffered, "), "{text}");
        assert_eq!(double <= whole * 1.02, text.contains("loss, not the window, limits it"));
        assert_eq!(double <= whole * 1.02, rtt == "600ms", "{text}");
        let mean = 1.31 / q.loss.unwrap().get().sqrt();
        let held = advice.recommended.window.unwrap().as_f64() / 1448.0;
        // 10 Mbit/s x 48 ms is 40 packets.
        assert!(held >= mean.min(40.0) && held <= (4.0 * mean).max(10.0), "{held} {mean}");
    }
}

/// At a loss of 30 %, the rate times 20 us is less than one packet. The search for a sufficient window starts at one packet.
#[test]
fn a_loss_that_leaves_under_one_packet_in_flight_gets_advice() {
    let loss = Some("30%".parse().unwrap());
    for buffer in [None, Some(Bytes::new(100_000))] {
        let q = WindowQuestion { loss, buffer, ..question("10Gbit/s", "20us") };
        let advice = advise(&q).unwrap();
        assert!(advice.recommended.rate.unwrap() * q.rtt < q.mtu);
        assert!(advice.recommended.window.unwrap() >= q.payload(q.mtu), "{advice:?}");
    }
}

/// 400 Gbit/s x 150 ms are 7.457 GB of payload in packets of 9000 B: seven of TCP's largest windows, 1.0737 GB. Loss alone would
/// allow one connection 1.5 GB, and each of two as much.
#[test]
fn a_window_that_loss_allows_but_tcp_does_not_is_split_until_it_fits() {
    let q = WindowQuestion {
        loss: Some("1e-7".parse().unwrap()),
        mtu: Bytes::new(9000),
        ..question("400Gbit/s", "150ms")
    };
    let advice = advise(&q).unwrap();
    assert_eq!(advice.connections, 7);
    // Each of seven has 23.49 of 57.14 Gbit/s; 95 % of that takes three.
    assert!(advice.text(false, 200).contains("BBR or 3 times as many connections\n"));
    assert!(advice.recommended.window.unwrap() <= Bytes::new(65_535 << 14));
}
