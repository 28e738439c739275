//! Advice where random loss limits the transfer.

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

/// By RFC 9438, section 5.1, CUBIC has 1.0538 (T / p)^0.75 packets in flight: 66,667 of 1500 B, 10 Gbit/s x 80 ms, where
/// p = T (1.0538 / 66,667)^(4/3) = 3.17e-8, but for timeouts.
#[test]
fn the_loss_and_the_connections_that_fill_a_path_follow_from_the_response_function() {
    let q = WindowQuestion { loss: Some("1e-5".parse().unwrap()), ..question("10Gbit/s", "80ms") };
    let advice = advise(&q).unwrap();
    let fills = advice.fills_path.unwrap();
    let by_hand = 0.08 * (1.0538_f64 / 66_667.0).powf(4.0 / 3.0);
    assert!((fills.loss / by_hand - 1.0).abs() < 0.01, "{fills:?}");
    let one = advise(&q).unwrap().bdps[5].rate.unwrap().as_f64();
    assert_eq!(fills.connections, (1e10 / one).ceil() as u64);
    let text = advice.text(false, 80);
    assert!(text.contains("to fill the path: a loss of 3.2e-8, BBR, or 67 connections"), "{text}");
    // BBR slows down above a loss of 2 % (draft-ietf-ccwg-bbr).
    let q = WindowQuestion { loss: Some("3%".parse().unwrap()), ..q };
    assert!(!advise(&q).unwrap().text(false, 80).contains("BBR"));
    // With that loss or less, loss is no limit.
    let just = WindowQuestion { loss: Some((0.99 * fills.loss).to_string().parse().unwrap()), ..q };
    assert_eq!(advise(&just).unwrap().fills_path, None);
}

#[test]
fn loss_limits_cubic_less_than_reno_and_the_gain_names_which() {
    let loss = Some("1e-5".parse().unwrap());
    let q = WindowQuestion { loss, ..question("200Mbit/s", "80ms") };
    // RFC 9438, section 5.1: 1.0538 (0.08 / 1e-5)^0.75 = 891.4 packets of 1500 B per 80 ms, 133.71 Mbit/s; less 0.02 % for timeouts.
    // That is the mean with periodic losses if no path bounds the window: random ones give more, but this path of 1333 packets cuts
    // off the peaks.
    let cubic = advise(&q).unwrap();
    let formula = |advice: &WindowAdvice, what: &str| -> String {
        advice.formulas.iter().find(|f| f.what == what).unwrap().numbers.clone()
    };
    assert!(formula(&cubic, "rate that loss allows cubic").ends_with(": 133.7 Mbit/s"));
    let ratio = cubic.recommended.rate.unwrap().as_f64() / 133.68e6;
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
    // A buffer of a tenth of that overflows at the peaks, so that a window that never does is faster.
    let buffer = Some(Bytes::new(200_000));
    let small = advise(&WindowQuestion { buffer, ..q }).unwrap();
    assert_eq!(small.recommended.window, Some(Bytes::new(2_123_733)));
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
    assert!(
        text.contains(" Mbit/s with cubic: loss limits it, and the window its peaks"),
        "{text}"
    );
    // sqrt(1.5 / 1e-5) = 387.3 packets, 58.09 Mbit/s; labelled beside CUBIC's.
    assert!(text.contains("rate that loss allows reno:"), "{text}");
    let reno = advise(&WindowQuestion { congestion: LossResponse::Reno, ..q }).unwrap();
    assert!(formula(&reno, "rate that loss allows reno").ends_with(": 58.09 Mbit/s"));
    let gain = reno.text(false, 80);
    assert!(gain.contains("Mbit/s with reno: loss, not the window, limits it"), "{gain}");
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
