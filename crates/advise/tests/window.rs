//! Invariants of the window advice.

use proptest::prelude::*;
use sweetspot_advise::AdviceError;
use sweetspot_advise::window::{
    LossResponse, TriedWindow, TriedWindows, WindowAdvice, WindowQuestion, WindowSettings, advise,
};
use sweetspot_units::{Bytes, Duration, Rate};

fn question(rate: &str, rtt: &str) -> WindowQuestion {
    WindowQuestion {
        rate: rate.parse().unwrap(),
        rtt: rtt.parse().unwrap(),
        buffer: None,
        cross: None,
        loss: None,
        congestion: LossResponse::Cubic,
        mtu: Bytes::new(1500),
        kernel: "6.18".parse().unwrap(),
    }
}

#[test]
fn ten_gigabit_over_80_ms_by_hand() {
    // C T = 1e10 * 0.08 / 8 = 100 MB of packets, + 12 MB; 1448 of 1500 B are payload; hold 105 MB: 5 MB * 8 / 1e10 = 4 ms
    // queue; half of it is 52.5e6 * 8 / 0.08 = 5.25 Gbit/s; beyond, Reno gets 0.75e10 * 112^2 / (112^2 - 1200) = 8.293. CUBIC is back
    // at 112 MB by 1 - 0.3 x^3 of them: 0.9721 of the link on average.
    let q = WindowQuestion { buffer: Some(Bytes::new(12_000_000)), ..question("10Gbit/s", "80ms") };
    let json = advise(&q).unwrap().json();
    assert_eq!(json["sweet_spot_low_bytes"], 96_533_333);
    assert_eq!(json["sweet_spot_high_bytes"], 108_117_333);
    assert_eq!(json["bdp1_bytes"], 96_533_333);
    assert_eq!(json["bdp6_bytes"], 108_120_229);
    assert_eq!(json["expected_bps"]["recommended"], 10_000_000_000_u64);
    assert_eq!(json["expected_bps"]["half"], 5_250_000_000_u64);
    let double = json["expected_bps"]["double"].as_f64().unwrap();
    assert!((double / 9.721e9 - 1.0).abs() < 0.002, "{double}");
    let reno = advise(&WindowQuestion { congestion: LossResponse::Reno, ..q }).unwrap();
    assert_eq!(reno.json()["expected_bps"]["double"].as_u64().unwrap() / 1_000_000, 8_293);
    assert!(reno.text(false, 80).contains("twice the window gives 8.293 Gbit/s with reno"));
    assert_eq!(json["added_delay_s"]["recommended"], 0.004);
    assert_eq!(json["settings"]["window_scale"], 11);
    assert_eq!(json["settings"]["tcp_rmem_max_bytes"], 202_720_000);
}

#[test]
fn against_elephants_the_advice_is_equation_8() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(625_000)),
        cross: Some("elephants:70%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    };
    let json = advise(&q).unwrap().json();
    // R = 32.5 Mbit/s over 100 ms and a full buffer's 100 ms: 812.5 kB in packets of 1448 B of payload in 1500.
    assert_eq!(json["recommended_bytes"], 784_333);
    assert_eq!(json["expected_bps"]["recommended"], 32_500_000);
    // A value without a closed form is null, not a guess.
    assert!(json["expected_bps"]["double"].is_null() && json["bdp5_bytes"].is_null());
}

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
    assert!(
        text.contains("a loss of 3.2e-8, BBR, or 67 connections would fill the path"),
        "{text}"
    );
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
    assert!(text.contains(" Mbit/s with cubic: loss, not the window, limits it"), "{text}");
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

#[test]
fn an_unknown_buffer_is_said_to_be_assumed_away() {
    let advice = advise(&question("100Mbit/s", "20ms")).unwrap();
    assert_eq!(advice.sweet_spot.low, advice.sweet_spot.high);
    assert!(advice.assumptions.iter().any(|a| a.contains("A stated buffer gives")));
}

#[test]
fn impossible_paths_are_refused_in_words() {
    let refused = |q: &WindowQuestion| advise(q).unwrap_err().to_string();
    let q = question("1Gbit/s", "1ms");
    assert!(refused(&WindowQuestion { rate: Rate::ZERO, ..q }).contains("rate "));
    assert!(refused(&WindowQuestion { rtt: Duration::ZERO, ..q }).contains("rtt "));
    assert!(refused(&WindowQuestion { loss: Some("1".parse().unwrap()), ..q }).contains("loss "));
    assert!(refused(&WindowQuestion { mtu: Bytes::new(10), ..q }).contains("mtu "));
    assert!(refused(&question("1000Tbit/s", "120s")).contains("rate x RTT of "));
    assert!(matches!(advise(&question("1kbit/s", "1ms")), Err(AdviceError::NoWindowHelps { .. })));
}

#[test]
fn a_path_that_no_window_fills_is_shared_among_connections() {
    // 1.25 GB, 1.207 GB of payload, and TCP has no window above 65,535 x 2^14 = 1.074 GB: two of 603.3 MB, 50 Gbit/s each.
    let advice = advise(&question("100Gbit/s", "100ms")).unwrap();
    let json = advice.json();
    assert_eq!(
        (json["connections"].as_u64(), json["recommended_bytes"].as_u64()),
        (Some(2), Some(603_333_333))
    );
    assert_eq!(json["expected_bps"]["recommended"], 50_000_000_000_u64);
    let text = advice.text(true, 80);
    assert!(text.contains("603.3 MB for each of 2 connections"), "{text}");
    assert!(text.contains("50 Gbit/s each"), "{text}");
    // 125 GB x 1448 / 1500 / 1.074 GB = 112.4.
    let all = advise(&question("1Tbit/s", "1s")).unwrap();
    assert_eq!(all.connections, 113);
    // C T alone fits, 1.05 C T does not: with a buffer of a tenth of it, 1.05 C T are held.
    let buffer = Some(Bytes::new(106_250_000));
    let just = WindowQuestion { buffer, ..question("85Gbit/s", "100ms") };
    assert_eq!(advise(&just).unwrap().connections, 2);
    assert_eq!(advise(&question("85Gbit/s", "100ms")).unwrap().connections, 1);
}

#[test]
fn small_windows_are_set_where_they_act() {
    // 10 Mbit/s x 20 ms = 25 kB, 24,133 B of it payload; tcp_rmem[2] would be below the buffer that a connection starts with.
    let text = advise(&question("10Mbit/s", "20ms")).unwrap().text(true, 80);
    assert!(
        text.contains("settings  SO_RCVBUF 24133 (receiver), tcp_wmem[2] 48266 (sender)"),
        "{text}"
    );
    assert!(!text.contains("net.ipv4.tcp_rmem[2]"), "{text}");
}

#[test]
fn no_line_is_longer_than_80_columns() {
    for cross in [None, Some("udp:30%"), Some("mice:30%"), Some("elephants:99%")] {
        for buffer in [None, Some(Bytes::new(123_456_789))] {
            let cross = cross.map(|c| c.parse().unwrap());
            let q = WindowQuestion { cross, buffer, ..question("9.999Gbit/s", "88.88ms") };
            let text = advise(&q).unwrap().text(true, 80);
            assert!(text.lines().all(|l| l.chars().count() <= 80), "{text}");
        }
    }
}

#[test]
fn windows_are_tried_only_where_others_share_a_path_of_known_buffer() {
    let shared = WindowQuestion {
        buffer: Some(Bytes::new(625_000)),
        cross: Some("elephants:70%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    };
    let windows = advise(&shared).unwrap().windows_to_try().unwrap();
    // From half of A T_e = 187.5 kB to a fifth beyond the edge of equation 8, 812.5 kB, both with 52 B of headers in 1500.
    assert!(windows.first().unwrap().get().abs_diff(90_500) <= 1, "{windows:?}");
    assert!(windows.last().unwrap().get().abs_diff(941_200) <= 1, "{windows:?}");
    assert!(windows.windows(2).all(|pair| pair[0] < pair[1]));
    let lossy = Some("1e-3".parse().unwrap());
    for other in [
        WindowQuestion { cross: None, ..shared },
        WindowQuestion { buffer: None, ..shared },
        WindowQuestion { loss: lossy, ..shared },
    ] {
        assert_eq!(advise(&other).unwrap().windows_to_try(), None, "{other:?}");
    }
}

/// A simulation of every window that the advice wants tried, the third as fast as all above it.
fn simulated(q: &WindowQuestion) -> WindowAdvice {
    let advice = advise(q).unwrap();
    let windows = advice.windows_to_try().unwrap();
    let of = |(i, window): (usize, &Bytes)| TriedWindow {
        window: *window,
        ..tried(1, 1000 + 7 * i as u64, i > 1)
    };
    let windows = windows.iter().enumerate().map(of).collect();
    advice.decided_by(TriedWindows { windows, seeds: 8 }).unwrap()
}

/// One source for each table: what has a simulated neighbour is simulated, the rest stands apart.
#[test]
fn windows_with_a_name_are_simulated_and_no_table_has_two_sources() {
    for (cross, buffer) in [
        ("udp:30%", 625_000),
        ("elephants:70%", 625_000),
        ("mice:50%", 100_000),
        ("mice:10%", 1_250_000),
        ("udp:60%", 20_000),
    ] {
        let (buffer, cross) = (Some(Bytes::new(buffer)), Some(cross.parse().unwrap()));
        let q = WindowQuestion { buffer, cross, ..question("50Mbit/s", "100ms") };
        let closed = advise(&q).unwrap();
        let windows = closed.windows_to_try().unwrap();
        assert_eq!(windows.len(), 12, "{windows:?}");
        let (first, last) = (windows[0], windows[11]);
        let named = [&closed.recommended].into_iter().chain(&closed.ends).chain(&closed.bdps);
        for window in named.filter_map(|choice| choice.window) {
            let is_inside = window >= first && window <= last;
            assert_eq!(windows.contains(&window), is_inside, "{window} {windows:?}");
        }
        let advice = simulated(&q);
        let json = advice.json();
        let text = advice.text(true, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let (_, tables) = text.split_once("Simulated, means of 8 runs each").unwrap();
        let (tables, _) = tables.split_once("  bdp1: capacity").unwrap();
        let (by_simulation, by_closed_form) = match tables.split_once("By closed form alone") {
            Some((one, other)) => (one, other),
            None => (tables, ""),
        };
        for choice in advice.ends.iter().chain(&advice.bdps) {
            let is_inside = choice.window.is_some_and(|window| windows.contains(&window));
            assert_eq!(choice.is_simulated, is_inside, "{choice:?}");
            let name = choice.name.trim_start_matches("sweet_spot_");
            assert_eq!(
                by_simulation.contains(name),
                is_inside || name == "low" || name == "high",
                "{text}"
            );
            assert_eq!(by_closed_form.contains(choice.name), !is_inside, "{text}");
            if choice.rate.is_some() {
                let source = if is_inside { "simulation" } else { "closed form" };
                assert_eq!(json["expected_by"][choice.name], source, "{json}");
            }
        }
        assert_eq!(json["expected_by"]["recommended"], "simulation");
    }
}

#[test]
fn a_window_of_about_twice_the_size_is_not_one_a_little_larger() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(625_000)),
        cross: Some("elephants:70%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    };
    // 1.7 is within half a doubling of 2, 1.3 is not.
    for (larger, has_twice) in [(1020, true), (780, false)] {
        let windows = [tried(600, 29_000, true), tried(larger, 29_100, true)].to_vec();
        let advice = advise(&q).unwrap().decided_by(TriedWindows { windows, seeds: 8 }).unwrap();
        assert_eq!(!advice.json()["expected_bps"]["double"].is_null(), has_twice, "{larger}");
    }
}

#[test]
fn what_was_simulated_decides_window_rate_delay_and_settings() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(625_000)),
        cross: Some("elephants:70%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    };
    let tried = |kb: u64, mbit: u64, ms: u64| TriedWindow {
        delay: Duration::from_millis(ms),
        ..tried(kb, mbit * 1000, kb == 600)
    };
    let windows =
        vec![tried(300, 20, 20), tried(600, 29, 70), tried(800, 24, 40), tried(1200, 22, 25)];
    let advice = advise(&q).unwrap().decided_by(TriedWindows { windows, seeds: 8 }).unwrap();
    let json = advice.json();
    assert_eq!(json["recommended_bytes"], 600_000);
    assert_eq!(json["expected_bps"]["recommended"], 29_000_000);
    assert_eq!(json["expected_bps"]["half"], 20_000_000);
    assert_eq!(json["expected_bps"]["double"], 22_000_000);
    assert_eq!(json["added_delay_s"]["recommended"], 0.07);
    assert_eq!(json["settings"]["so_rcvbuf_bytes"], 600_000);
    assert_eq!(json["simulated"]["windows"][2]["window_bytes"], 800_000);
    let text = advice.text(false, 80);
    assert_eq!(line_names(&text), FIVE, "{text}");
    assert!(text.contains("risk      800 kB gives 24 Mbit/s, 40 ms queue"), "{text}");
    assert!(text.contains("the fastest of 4 windows simulated, 8 runs each"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(advice.text(true, 80).contains("Simulated, means of 8 runs each,"));
}

/// A simulated window.
fn tried(kb: u64, kbit: u64, as_fast: bool) -> TriedWindow {
    TriedWindow {
        window: Bytes::new(kb * 1000),
        rate: Rate::from_bits_per_second(kbit * 1000),
        rate_error: Rate::from_bits_per_second(1000),
        as_fast,
        delay: Duration::from_millis(20),
        loss: 0.0,
    }
}

#[test]
fn the_smallest_window_tried_is_not_compared_with_itself() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(10_000)),
        cross: Some("mice:30%".parse().unwrap()),
        ..question("10Mbit/s", "100ms")
    };
    // Half of 44 kB is nearest to 44 kB itself, and twice 44 kB to 80 kB.
    let windows = [44, 80, 150].map(|kb| tried(kb, 814, true)).to_vec();
    let advice = advise(&q).unwrap().decided_by(TriedWindows { windows, seeds: 8 }).unwrap();
    let text = advice.text(false, 80);
    assert!(text.contains("20 ms queue; no smaller window was simulated"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let expected = &advice.json()["expected_bps"];
    assert!(expected["half"].is_null() && expected["double"] == 814_000, "{expected}");
}

#[test]
fn of_windows_that_are_as_fast_the_smallest_is_recommended_and_the_first_slower_one_is_the_risk() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(625_000)),
        cross: Some("elephants:70%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    };
    let text = |marks: [bool; 4]| {
        let windows = [(300, 25_800), (600, 28_900), (800, 29_000), (1200, 28_500)];
        let windows = windows.iter().zip(marks).map(|((kb, kbit), is)| tried(*kb, *kbit, is));
        let simulated = TriedWindows { windows: windows.collect(), seeds: 8 };
        advise(&q).unwrap().decided_by(simulated).unwrap().text(false, 80)
    };
    let some = text([false, true, true, false]);
    assert!(some.starts_with("window    600 kB per connection"), "{some}");
    assert!(some.contains("risk      1.2 MB gives 28.5 Mbit/s, 20 ms queue"), "{some}");
    let why = "why       the smallest of 2 as fast as the best of 4 simulated, 8 runs each";
    assert!(some.contains(why), "{some}");
    let all = text([false, true, true, true]);
    let risk = "risk      1.2 MB, the largest simulated, is as fast, 20 ms queue";
    assert!(all.contains(risk), "{all}");
    let last = text([false, false, false, true]);
    assert!(last.contains("risk      no larger window was simulated"), "{last}");
}

/// Half of the memory is window from kernel 6.8 on.
#[test]
fn the_window_line_says_how_the_settings_follow() {
    let line = |buffer, kernel: &str| {
        let kernel = kernel.parse().unwrap();
        let q = WindowQuestion { buffer, kernel, ..question("100Mbit/s", "100ms") };
        let text = advise(&q).unwrap().text(false, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.lines().next().unwrap().to_owned()
    };
    let unknown = line(None, "6.18");
    assert_eq!(unknown, "window    1.207 MB per connection; half of a buffer's memory is window");
    let known = line(Some(Bytes::new(125_000)), "6.18");
    assert_eq!(known, "window    1.267 MB per connection; half of a buffer's memory is window");
    assert_eq!(line(None, "5.10"), unknown);
    // 6.6 starts from about a quarter.
    assert_eq!(line(None, "6.6"), "window    1.207 MB per connection");
}

/// Neither host-wide settings nor a program's own buffer allow more than path and buffer hold. An unknown buffer holds nothing.
#[test]
fn the_settings_allow_the_window_that_is_held() {
    for (rate, rtt) in [("10Gbit/s", "80ms"), ("100Mbit/s", "100ms"), ("1Gbit/s", "3ms")] {
        for buffer in [None, Some(Bytes::new(7_500)), Some(Bytes::new(500_000_000))] {
            let q = WindowQuestion { buffer, ..question(rate, rtt) };
            let advice = advise(&q).unwrap();
            let window = advice.recommended.window.unwrap();
            assert_eq!(advice.settings, WindowSettings::for_window(window, q.kernel).unwrap());
            // 52 of 1500 B are headers. Bytes are rounded.
            let held = (q.rate * q.rtt + buffer.unwrap_or(Bytes::ZERO)).as_f64() * 1448.0 / 1500.0;
            assert!(window.as_f64() <= held + 0.5, "{rate} {buffer:?}");
        }
    }
}

/// BTC T_a is the mean window of the congestion control: 3/4 of the peak for Reno (SOBAS eqs 12, 13). Without a buffer CUBIC grows
/// from 0.7 of the peak by W (1 - 0.3 x^3), 0.925 W on average.
#[test]
fn the_fifth_product_is_the_mean_window_of_the_congestion_control() {
    for (congestion, share) in [(LossResponse::Reno, 0.75), (LossResponse::Cubic, 0.925)] {
        let advice = advise(&WindowQuestion { congestion, ..question("10Gbit/s", "80ms") });
        let bdp5 = advice.unwrap().bdps[4].window.unwrap().as_f64();
        assert!((bdp5 / (100e6 * 1448.0 / 1500.0) / share - 1.0).abs() < 0.005, "{bdp5}");
    }
}

/// TCP's largest window is 1.074 GB (RFC 7323, section 2.3): it has no window twice one of more than half of that.
#[test]
fn no_rate_is_given_for_a_window_that_tcp_cannot_have() {
    for (rate, has_twice) in [("40Gbit/s", true), ("50Gbit/s", false)] {
        let advice = advise(&question(rate, "100ms")).unwrap();
        assert_eq!(advice.wrong_by_two[1].rate.is_some(), has_twice, "{rate}");
        let text = advice.text(false, 80);
        assert_eq!(!text.contains("TCP has no window twice as large"), has_twice, "{text}");
    }
}

/// The queue of a window that overflows the buffer is the buffer's at its peak only; in a buffer with room it stands.
#[test]
fn a_peak_is_told_from_a_standing_queue() {
    for (buffer, is_peak) in [(250_000, true), (600_000, false)] {
        let q =
            WindowQuestion { buffer: Some(Bytes::new(buffer)), ..question("100Mbit/s", "40ms") };
        let text = advise(&q).unwrap().text(false, 80);
        assert_eq!(text.contains(", up to "), is_peak, "{text}");
    }
}

/// Losses every 1000 packets leave Reno a mean window of 1.3 / sqrt(p) = 41 packets: the recommended window holds its peaks, and half
/// of it cuts them. At a loss of 50 % it has 2 packets of 1500 B, and even half of TCP's initial window, the smallest recommended, holds them.
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
        assert_eq!(double <= whole * 1.02, !text.contains("twice the window gives"), "{text}");
        assert_eq!(double <= whole * 1.02, rtt == "600ms", "{text}");
        let mean = 1.31 / q.loss.unwrap().get().sqrt();
        let held = advice.recommended.window.unwrap().as_f64() / 1448.0;
        // 10 Mbit/s x 48 ms are 40 packets.
        assert!(held >= mean.min(40.0) && held <= (4.0 * mean).max(10.0), "{held} {mean}");
    }
}

const FIVE: [&str; 5] = ["window", "settings", "rate", "risk", "why"];

fn line_names(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| line.split(' ').next()).collect()
}

#[test]
fn every_path_is_answered_in_five_lines_of_eighty_columns() {
    let buffer = Some(Bytes::new(12_000_000));
    let loss = Some("1e-5".parse().unwrap());
    let plain = question("10Gbit/s", "80ms");
    for cross in [None, Some("udp:30%"), Some("mice:30%"), Some("elephants:70%")] {
        let plain = WindowQuestion { cross: cross.map(|c| c.parse().unwrap()), ..plain };
        for q in [plain, WindowQuestion { buffer, ..plain }, WindowQuestion { loss, ..plain }] {
            let text = advise(&q).unwrap().text(false, 80);
            assert_eq!(line_names(&text), FIVE, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
    // The six products, each with a sentence, are there where they are asked for.
    let explained = advise(&plain).unwrap().text(true, 80);
    for name in ["bdp1", "bdp2", "bdp3", "bdp4", "bdp5", "bdp6"] {
        assert!(explained.contains(&format!("  {name}: ")), "{explained}");
    }
}

/// Ten packets with 1448 B of payload: RFC 6928, section 2.
const INITIAL_WINDOW: Bytes = Bytes::new(14_480);

#[test]
fn a_path_that_the_initial_window_fills_or_overflows_needs_no_window() {
    // 1 Mbit/s x 119 ms = 14,875 B; one millisecond more are 15 kB. A deep buffer is no reason for a window: it only queues.
    for buffer in [None, Some(Bytes::new(1_000_000))] {
        let at = |rtt| advise(&WindowQuestion { buffer, ..question("1Mbit/s", rtt) });
        let error = at("119ms").unwrap_err().to_string();
        assert!(error.contains("rate x RTT is 14.88 kB, less than the ten packets"), "{error}");
        assert!(at("120ms").unwrap().recommended.window >= Some(INITIAL_WINDOW));
    }
    // 80 % of UDP leave 1 Mbit/s of five: 6 kB of 48 ms, and a fifth of the buffer.
    let beside = |buffer| {
        let (buffer, cross) = (Some(Bytes::new(buffer)), Some("udp:80%".parse().unwrap()));
        advise(&WindowQuestion { buffer, cross, ..question("5Mbit/s", "48ms") })
    };
    let error = beside(44_000).unwrap_err().to_string();
    assert!(error.contains("buffer's included, is 14.8 kB, less than the ten packets"), "{error}");
    assert_eq!(beside(45_000).unwrap().recommended.window, Some(INITIAL_WINDOW));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the path: a window to hold or to simulate has ten packets or more.
    #[test]
    fn no_window_is_smaller_than_the_initial_one(
        kbit in 100_u64..1_000_000,
        ms in 1_u64..500,
        buffer in proptest::option::of(1000_u64..10_000_000),
        cross in proptest::option::of(("udp|elephants|mice", 1_u32..95)),
        loss in proptest::option::of(1e-6..0.1),
    ) {
        let q = WindowQuestion {
            rate: Rate::from_bits_per_second(kbit * 1000),
            rtt: Duration::from_millis(ms),
            buffer: buffer.map(Bytes::new),
            cross: cross.map(|(kind, percent)| format!("{kind}:{percent}%").parse().unwrap()),
            loss: loss.map(|loss: f64| loss.to_string().parse().unwrap()),
            ..question("1Mbit/s", "1ms")
        };
        match advise(&q) {
            Err(AdviceError::NoWindowHelps { .. }) => {}
            Err(other) => prop_assert!(false, "{}", other),
            Ok(advice) => {
                let tried = advice.windows_to_try().unwrap_or_default();
                let all = tried.iter().copied().chain(advice.recommended.window);
                prop_assert!(all.min() >= Some(INITIAL_WINDOW));
                prop_assert!(tried.windows(2).all(|pair| pair[0] < pair[1]));
                let text = advice.text(false, 80);
                prop_assert!(text.lines().all(|line| line.chars().count() <= 80), "{}", text);
            }
        }
    }
}
