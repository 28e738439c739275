//! Expected results of the window advice.

use sweetspot_advise::AdviceError;
use sweetspot_advise::window::{
    LossResponse, WindowAdvice, WindowQuestion, WindowSettings, advise,
};
use sweetspot_units::{Bytes, Duration, Rate};

mod laws;
mod loss;
mod simulation;

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

/// A path with a known buffer. Elephants use most of it.
fn shared() -> WindowQuestion {
    WindowQuestion {
        buffer: Some(Bytes::new(625_000)),
        cross: Some("elephants:70%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    }
}

#[test]
fn advice_for_10_gbit_per_s_over_80_ms_matches_hand_calculation() {
    // C T = 1e10 * 0.08 / 8 = 100 MB of packets, and the buffer has 12 MB; 1448 of 1500 B are payload. A window of 105 MB has a
    // queue of 5 MB * 8 / 1e10 = 4 ms; half of it carries 52.5e6 * 8 / 0.08 = 5.25 Gbit/s. Beyond the sweet spot, Reno gets
    // 0.75e10 * 112^2 / (112^2 - 1200) = 8.293 Gbit/s. CUBIC grows back to 112 MB by 1 - 0.3 x^3 of them, on average 0.9721 of
    // the link.
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
    assert!(reno.text(false, 80).contains("overflows the buffer: at most 8.293"));
    assert_eq!(json["added_delay_s"]["recommended"], 0.004);
    assert_eq!(json["settings"]["window_scale"], 11);
    assert_eq!(json["settings"]["tcp_rmem_max_bytes"], 202_720_000);
}

#[test]
fn advice_against_elephants_follows_equation_8() {
    let json = advise(&shared()).unwrap().json();
    // R = 32.5 Mbit/s over 100 ms and the 100 ms of a full buffer: 812.5 kB of packets, each with 1448 B of payload in 1500.
    assert_eq!(json["recommended_bytes"], 784_333);
    assert_eq!(json["expected_bps"]["recommended"], 32_500_000);
    // A value without a closed form is null.
    assert!(json["expected_bps"]["double"].is_null() && json["bdp5_bytes"].is_null());
}

#[test]
fn an_unknown_buffer_is_listed_as_an_assumption() {
    let advice = advise(&question("100Mbit/s", "20ms")).unwrap();
    assert_eq!(advice.sweet_spot.low, advice.sweet_spot.high);
    assert!(advice.assumptions.iter().any(|a| a.contains("A stated buffer gives")));
}

#[test]
fn impossible_paths_are_rejected_with_the_reason() {
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
fn a_path_too_large_for_one_window_is_split_among_connections() {
    // C T is 1.25 GB with 1.207 GB of payload, more than TCP's largest window, 65,535 x 2^14 = 1.074 GB. Two windows of 603.3 MB
    // carry 50 Gbit/s each.
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
    // C T alone fits into TCP's largest window, but 1.05 C T does not. With a buffer of a tenth of C T, 1.05 C T is held.
    let buffer = Some(Bytes::new(106_250_000));
    let just = WindowQuestion { buffer, ..question("85Gbit/s", "100ms") };
    assert_eq!(advise(&just).unwrap().connections, 2);
    assert_eq!(advise(&question("85Gbit/s", "100ms")).unwrap().connections, 1);
}

#[test]
fn small_windows_are_set_with_so_rcvbuf() {
    // 10 Mbit/s x 20 ms = 25 kB, 24,133 B without headers. tcp_rmem[2] would be below a connection's initial buffer.
    let text = advise(&question("10Mbit/s", "20ms")).unwrap().text(true, 80);
    assert!(
        text.contains(
            "\nsettings  SO_RCVBUF = 24133 at the receiver (net.core.rmem_max >= 24133)\n"
        ),
        "{text}"
    );
    assert!(text.contains("\n          net.ipv4.tcp_wmem[2] >= 48266 at the sender"), "{text}");
    assert!(!text.contains("net.ipv4.tcp_rmem[2]") && !text.contains("commands for"), "{text}");
}

/// The label names the window of `advise host`: rate x RTT, or 1.05 of it at most. Above 1 GiB (RFC 7323), two connections share the rate.
#[test]
fn the_settings_name_the_call_that_prints_their_commands() {
    let of = |q: WindowQuestion| advise(&q).unwrap().text(false, 120);
    let call = |q| {
        let text = of(q);
        let mut after = text.lines().skip_while(|line| !line.contains("commands for "));
        Some(after.nth(1)?.trim_start().to_owned())
    };
    let host = "sweetspot advise host --rate 1Gbit/s --rtt 40ms";
    assert_eq!(call(question("1Gbit/s", "40ms")).unwrap(), host);
    let mtu = Bytes::new(9000);
    let jumbo = call(WindowQuestion { mtu, ..question("1Gbit/s", "40ms") });
    assert_eq!(jumbo.unwrap(), format!("{host} --path-mtu 9000B"));
    let odd = call(question("123456789bit/s", "40ms")).unwrap();
    assert!(odd.contains("--rate 123.456789Mbit/s "), "{odd}");
    // A known buffer adds 5 % to the window: the call is for rate x RTT, 4,826,667 B of payload.
    let buffer = Some(Bytes::new(5_000_000));
    let more = of(WindowQuestion { buffer, ..question("1Gbit/s", "40ms") });
    assert!(
        more.contains(&format!(
            "\n          commands for 4.827 MB, the whole path, at an MTU of 1500 B:\n          {host}\n"
        )),
        "{more}"
    );
    // Loss asks for a smaller window than the whole path's, which the call is for.
    let loss = "1e-5".parse().ok();
    let lossy = of(WindowQuestion { loss, ..question("1Gbit/s", "40ms") });
    assert!(!lossy.contains("window    4.827 MB"), "{lossy}");
    assert!(lossy.contains("commands for 4.827 MB, the whole path,"), "{lossy}");
    // 30.076 ms and 50.000833 Mbit/s parse back to the same values; a narrow terminal does not fold the command.
    let exact = WindowQuestion { mtu, ..question("50000833bit/s", "30076000ns") };
    let line = "sweetspot advise host --rate 50.000833Mbit/s --rtt 30.076ms --path-mtu 9000B";
    assert!(advise(&exact).unwrap().text(false, 60).contains(line), "{exact:?}");
    assert_eq!(("50.000833Mbit/s".parse(), "30.076ms".parse()), (Ok(exact.rate), Ok(exact.rtt)));
    let two = of(question("170Gbit/s", "100ms"));
    assert!(two.contains("--rate 170Gbit/s --rtt 100ms"), "{two}");
    // 14 connections: 400e9 / 14 is not a whole number.
    let many = of(question("400Gbit/s", "300ms"));
    assert!(many.contains("--rate 400Gbit/s --rtt 300ms"), "{many}");
}

/// At most 64 connections can be opened. BBR tolerates a loss of 2 %, not of 50 %.
#[test]
fn more_connections_than_can_be_opened_are_no_remedy() {
    let fix = |loss: &str| {
        let loss = loss.parse().ok();
        let advice = advise(&WindowQuestion { loss, ..question("1Gbit/s", "40ms") }).unwrap();
        let text = advice.text(false, 500);
        let fix = text.lines().find_map(|line| line.strip_prefix("fix       ")).unwrap().to_owned();
        (advice.fills_path.unwrap().connections, fix)
    };
    let (few, words) = fix("1e-5");
    assert!(few <= 64 && words.ends_with(&format!(" or {few} connections")), "{words}");
    let (many, words) = fix("1%");
    assert!(many > 64 && words.ends_with("opens at most 64"), "{words}");
    assert!(words.starts_with("to fill 95 %") && words.contains("BBR"), "{words}");
    let (_, words) = fix("50%");
    assert!(words.starts_with("repair the path: ") && !words.contains("BBR"), "{words}");
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

/// From kernel 6.8 on, half of a receive buffer is window.
#[test]
fn the_window_line_relates_the_window_to_the_settings() {
    let line = |buffer, kernel: &str| {
        let kernel = kernel.parse().unwrap();
        let q = WindowQuestion { buffer, kernel, ..question("100Mbit/s", "100ms") };
        let text = advise(&q).unwrap().text(false, 80);
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        text.lines().next().unwrap().to_owned()
    };
    let unknown = line(None, "6.18");
    assert_eq!(unknown, "window    1.207 MB per connection; its socket buffers take twice that");
    let known = line(Some(Bytes::new(125_000)), "6.18");
    assert_eq!(known, "window    1.267 MB per connection; its socket buffers take twice that");
    assert_eq!(line(None, "5.10"), unknown);
    // On 6.6, a connection starts with about a quarter of its buffer as window.
    assert_eq!(line(None, "6.6"), "window    1.207 MB per connection");
}

/// Host-wide settings and a program's own buffer allow no more than path and buffer hold. An unknown buffer counts as none.
#[test]
fn the_settings_allow_exactly_the_recommended_window() {
    for (rate, rtt) in [("10Gbit/s", "80ms"), ("100Mbit/s", "100ms"), ("1Gbit/s", "3ms")] {
        for buffer in [None, Some(Bytes::new(7_500)), Some(Bytes::new(500_000_000))] {
            let q = WindowQuestion { buffer, ..question(rate, rtt) };
            let advice = advise(&q).unwrap();
            let window = advice.recommended.window.unwrap();
            assert_eq!(
                advice.settings,
                WindowSettings::for_window(window, q.mss(), q.kernel).unwrap()
            );
            // 52 of 1500 B are headers; sizes are rounded to whole bytes.
            let held = (q.rate * q.rtt + buffer.unwrap_or(Bytes::ZERO)).as_f64() * 1448.0 / 1500.0;
            assert!(window.as_f64() <= held + 0.5, "{rate} {buffer:?}");
        }
    }
}

/// BTC T_a is the mean window of the congestion control: for Reno 3/4 of the peak (SOBAS eqs 12, 13). Without a buffer, CUBIC
/// grows from 0.7 of the peak by W (1 - 0.3 x^3), and its mean is 0.925 W.
#[test]
fn bdp5_is_the_mean_window_of_the_congestion_control() {
    for (congestion, share) in [(LossResponse::Reno, 0.75), (LossResponse::Cubic, 0.925)] {
        let advice = advise(&WindowQuestion { congestion, ..question("10Gbit/s", "80ms") });
        let bdp5 = advice.unwrap().bdps[4].window.unwrap().as_f64();
        assert!((bdp5 / (100e6 * 1448.0 / 1500.0) / share - 1.0).abs() < 0.005, "{bdp5}");
    }
}

/// TCP's largest window is 1.074 GB (RFC 7323, section 2.3), so a window above half of it cannot be doubled.
#[test]
fn a_window_above_tcps_maximum_gets_no_rate() {
    for (rate, has_twice) in [("40Gbit/s", true), ("50Gbit/s", false)] {
        let advice = advise(&question(rate, "100ms")).unwrap();
        assert_eq!(advice.wrong_by_two[1].rate.is_some(), has_twice, "{rate}");
        let text = advice.text(false, 80);
        assert_eq!(!text.contains("TCP has no window twice as large"), has_twice, "{text}");
    }
}

/// Only a simulation knows the rate beyond the sweet spot beside elephants, so no formula with a number for it is printed.
#[test]
fn a_rate_that_no_closed_form_knows_has_no_formula() {
    let beyond = |q| {
        let text = advise(&q).unwrap().text(true, 200);
        assert!(text.contains("sweet spot: A T_e <= S"), "{text}");
        ["beyond the sweet spot: R =", "Beyond the sweet spot, rates are"].map(|w| text.contains(w))
    };
    assert_eq!(beyond(shared()), [false, false]);
    assert_eq!(beyond(WindowQuestion { cross: None, ..shared() }), [true, true]);
}

/// The worst case of an unknown buffer is none, which nothing can overflow.
#[test]
fn twice_the_window_loses_packets_where_there_may_be_no_buffer() {
    let text = advise(&question("50Mbit/s", "25ms")).unwrap().text(false, 200);
    let risk = "no --buffer given, so none is assumed: twice the window loses packets: at most 42.5 Mbit/s";
    assert!(text.contains(risk), "{text}");
}

/// A window that overflows the buffer fills it only at its peaks; a window that fits has a standing queue.
#[test]
fn peak_and_standing_queues_are_distinguished() {
    // 250 kB at 100 Mbit/s are 20 ms.
    for (buffer, is_peak) in [(250_000, true), (600_000, false)] {
        let q =
            WindowQuestion { buffer: Some(Bytes::new(buffer)), ..question("100Mbit/s", "40ms") };
        let text = advise(&q).unwrap().text(false, 200);
        assert_eq!(text.contains("with up to 20 ms of queue"), is_peak, "{text}");
    }
}

const FIVE: [&str; 5] = ["window", "settings", "rate", "risk", "why"];

fn line_names(text: &str) -> Vec<&str> {
    let first = text.lines().filter_map(|line| line.split(' ').next());
    first.filter(|name| !name.is_empty()).collect()
}

#[test]
fn every_answer_is_five_lines_of_at_most_80_columns() {
    let buffer = Some(Bytes::new(12_000_000));
    let loss = Some("1e-5".parse().unwrap());
    let plain = question("10Gbit/s", "80ms");
    for cross in [None, Some("udp:30%"), Some("mice:30%"), Some("elephants:70%")] {
        let plain = WindowQuestion { cross: cross.map(|c| c.parse().unwrap()), ..plain };
        for q in [plain, WindowQuestion { buffer, ..plain }, WindowQuestion { loss, ..plain }] {
            let advice = advise(&q).unwrap();
            let text = advice.text(false, 80);
            let last = if advice.loss_limited { "fix" } else { "why" };
            let (answer, _) = text.split_once("Warning: ").unwrap_or((&text, ""));
            assert_eq!(line_names(answer), [&FIVE[..4], &[last]].concat(), "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        }
    }
    // The six products, each with a sentence, are shown only beside cross traffic: without it they hardly differ.
    let beside = WindowQuestion { cross: Some("udp:30%".parse().unwrap()), ..plain };
    let [explained, alone] = [beside, plain].map(|q| advise(&q).unwrap().text(true, 80));
    for name in ["bdp1", "bdp2", "bdp3", "bdp4", "bdp5", "bdp6"] {
        assert!(explained.contains(&format!("  {name}: ")), "{explained}");
        assert!(!alone.contains(&format!("  {name}")), "{alone}");
    }
}

/// The largest TSO segment is 65,536 B, and a burst is at most the window: 10 Mbit/s x 20 ms plus half of a buffer of 20 kB is 35
/// kB.
#[test]
fn a_buffer_smaller_than_a_sender_burst_draws_a_warning() {
    let of = |rate, rtt, buffer| {
        let buffer = Some(Bytes::new(buffer));
        let advice = advise(&WindowQuestion { buffer, ..question(rate, rtt) }).unwrap();
        let text = advice.text(false, 80);
        let is_warned = text.contains("\nWarning: the buffer of ");
        assert_eq!(is_warned, text.contains("rate      at most "), "{text}");
        assert_eq!(advice.json()["warnings"].as_array().unwrap().len(), usize::from(is_warned));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        is_warned
    };
    assert!(of("50Mbit/s", "40ms", 20_000) && of("50Mbit/s", "40ms", 65_535));
    assert!(!of("50Mbit/s", "40ms", 65_536));
    assert!(of("10Mbit/s", "20ms", 20_000) && !of("10Mbit/s", "20ms", 35_000));
    // An unknown buffer counts as none, so it gets the same caution.
    let text = advise(&question("50Mbit/s", "40ms")).unwrap().text(false, 80);
    assert!(text.contains("\nrate      at most 50 Mbit/s"), "{text}");
    assert!(text.contains("\nWarning: the path's buffer is unknown and may be"), "{text}");
    // Loss keeps the window below any buffer.
    let loss = "1%".parse().ok();
    let lossy = advise(&WindowQuestion { loss, ..question("1Gbit/s", "40ms") }).unwrap();
    assert!(lossy.loss_limited && !lossy.text(false, 80).contains("Warning"));
}

#[test]
fn a_bdp_below_one_byte_is_not_printed_as_zero() {
    // 1 kbit/s x 1 ms is one bit.
    let error = advise(&question("1kbit/s", "1ms")).unwrap_err().to_string();
    assert!(error.contains("rate x RTT is less than 1 B, less than the ten packets"), "{error}");
}

/// Ten packets with 1448 B of payload (RFC 6928, section 2).
const INITIAL_WINDOW: Bytes = Bytes::new(14_480);

#[test]
fn a_path_that_the_initial_window_fills_is_rejected() {
    // 1 Mbit/s x 119 ms = 14,875 B; one more millisecond makes it 15 kB. A deep buffer does not justify a window, which would
    // only queue.
    for buffer in [None, Some(Bytes::new(1_000_000))] {
        let at = |rtt| advise(&WindowQuestion { buffer, ..question("1Mbit/s", rtt) });
        let error = at("119ms").unwrap_err().to_string();
        assert!(error.contains("rate x RTT is 14.88 kB, less than the ten packets"), "{error}");
        assert!(at("120ms").unwrap().recommended.window >= Some(INITIAL_WINDOW));
    }
    // 80 % of UDP leaves 1 of 5 Mbit/s: 6 kB in 48 ms, and a fifth of the buffer.
    let beside = |buffer| {
        let (buffer, cross) = (Some(Bytes::new(buffer)), Some("udp:80%".parse().unwrap()));
        advise(&WindowQuestion { buffer, cross, ..question("5Mbit/s", "48ms") })
    };
    let error = beside(44_000).unwrap_err().to_string();
    assert!(error.contains("buffer's included, is 14.8 kB, less than the ten packets"), "{error}");
    assert_eq!(beside(45_000).unwrap().recommended.window, Some(INITIAL_WINDOW));
}

/// C T is 5 MB: a buffer of that size is deep. The program's SO_RCVBUF is its window, up to net.core.rmem_max.
#[test]
fn closed_forms_warn_of_mice_unless_the_buffer_is_deep() {
    let mice = |buffer: Option<u64>| {
        let (buffer, cross) = (buffer.map(Bytes::new), Some("mice:30%".parse().unwrap()));
        advise(&WindowQuestion { buffer, cross, ..question("1Gbit/s", "40ms") }).unwrap()
    };
    for (buffer, next) in [(None, "give --buffer"), (Some(500_000), "--verify sim")] {
        let text = mice(buffer).text(false, 500);
        assert!(text.contains("\nrate      at most 700 Mbit/s on the wire, "), "{text}");
        assert!(text.contains("\nWarning: mice are bursty: ") && text.contains(next), "{text}");
        assert!(
            text.contains("\n          SO_RCVBUF = 3") && text.contains(" (net.core.rmem_max >= 3"),
            "{text}"
        );
        let json = mice(buffer).json();
        let last = json["warnings"].as_array().unwrap().last().unwrap();
        assert!(last.as_str().unwrap().contains(next), "{last}");
    }
    let stopped = WindowAdvice { is_interrupted: true, ..mice(Some(500_000)) };
    let text = stopped.text(false, 500);
    assert!(text.contains("the rest of the simulation") && !text.contains("--verify"), "{text}");
    let deep = mice(Some(5_000_000));
    assert!(!deep.text(false, 500).contains("at most 700"));
    assert_eq!(deep.json()["warnings"], serde_json::json!([]));
}

#[test]
fn the_explanation_states_the_headroom_above_rate_x_rtt() {
    let buffer = |bytes| {
        let q = WindowQuestion { buffer: Some(Bytes::new(bytes)), ..question("100Mbit/s", "50ms") };
        let text = advise(&q).unwrap().text(true, 80);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    // C T is 625 kB of packets. 5 % of it is 31 kB: less than half of a buffer of 100 kB, but more than half of 25 kB, which is 2
    // %.
    let deep = buffer(100_000);
    assert!(deep.contains("of payload, plus 5 % headroom; with the buffer full, "), "{deep}");
    assert!(
        buffer(25_000).contains("of payload, plus 2 % headroom; with the buffer full, "),
        "{deep}"
    );
    assert!(deep.contains("The margin above rate x RTT keeps the link busy"), "{deep}");
}
