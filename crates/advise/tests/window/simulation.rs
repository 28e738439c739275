//! Advice decided by a simulation.

use sweetspot_advise::window::{TriedWindow, TriedWindows, WindowAdvice, WindowQuestion, advise};
use sweetspot_units::{Bytes, Duration, Rate};

use crate::{FIVE, line_names, question, shared};

/// A simulation of every window to try; the third is as fast as all larger ones.
fn simulated(q: &WindowQuestion) -> WindowAdvice {
    let advice = advise(q).unwrap();
    let windows = advice.windows_to_try().unwrap();
    let of = |(i, window): (usize, &Bytes)| TriedWindow {
        window: *window,
        ..tried(1, 1000 + 7 * i as u64, i > 1)
    };
    let windows = windows.iter().enumerate().map(of).collect();
    advice.decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() }).unwrap()
}

/// A simulated window.
pub fn tried(kb: u64, kbit: u64, as_fast: bool) -> TriedWindow {
    TriedWindow {
        window: Bytes::new(kb * 1000),
        rate: Rate::from_bits_per_second(kbit * 1000),
        rate_error: Rate::from_bits_per_second(1000),
        as_fast,
        is_unsure: false,
        delay: Duration::from_millis(20),
        loss: 0.0,
    }
}

#[test]
fn windows_are_simulated_only_with_known_buffer_and_cross_traffic_or_loss() {
    let shared = shared();
    let windows = advise(&shared).unwrap().windows_to_try().unwrap();
    // From half of A T_e = 187.5 kB to a fifth above the edge in equation 8, 812.5 kB, both less 52 B of headers in 1500.
    assert!(windows.first().unwrap().get().abs_diff(90_500) <= 1, "{windows:?}");
    assert!(windows.last().unwrap().get().abs_diff(941_200) <= 1, "{windows:?}");
    // UDP does not yield: up to C T_m + B = 1250 kB and two packets.
    let udp = WindowQuestion { cross: Some("udp:70%".parse().unwrap()), ..shared };
    let of_udp = advise(&udp).unwrap().windows_to_try().unwrap();
    assert!(of_udp.last().unwrap().get().abs_diff(1_209_563) <= 1, "{of_udp:?}");
    assert!(windows.windows(2).all(|pair| pair[0] < pair[1]));
    for other in [
        WindowQuestion { cross: None, ..shared },
        WindowQuestion { buffer: None, ..shared },
        WindowQuestion { loss: Some("0".parse().unwrap()), cross: None, ..shared },
    ] {
        assert_eq!(advise(&other).unwrap().windows_to_try(), None, "{other:?}");
    }
    // With loss and without cross traffic, up to twice C T_m + B: segments after a lost one occupy receive window.
    let lossy = Some("1e-5".parse().unwrap());
    let alone = WindowQuestion { cross: None, loss: lossy, ..shared };
    let windows = advise(&alone).unwrap().windows_to_try().unwrap();
    assert!(windows.last().unwrap().get().abs_diff(2 * 1_209_563) <= 1, "{windows:?}");
}

/// A simulation may find that loss limits where the closed form does not. The remedies then follow from the simulated rate.
#[test]
fn loss_remedies_follow_from_the_simulated_rate() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(250_000)),
        loss: Some("1e-5".parse().unwrap()),
        ..question("100Mbit/s", "40ms")
    };
    let closed = advise(&q).unwrap();
    assert!(!closed.loss_limited);
    let with = |kbit| {
        let windows = vec![tried(300, kbit / 2, false), tried(600, kbit, true)];
        closed
            .clone()
            .decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() })
            .unwrap()
    };
    // 95 Mbit/s takes three connections of 40 Mbit/s, or two of 94.
    for (kbit, connections) in [(40_000, 3), (94_000, 2)] {
        let advice = with(kbit);
        assert!(advice.loss_limited);
        let fills = advice.fills_path.unwrap();
        assert_eq!(fills.connections, connections);
        assert!(fills.loss.is_none_or(|loss| loss < 1e-5), "{fills:?}");
        let text = advice.text(true, 80);
        assert!(text.contains(" on the wire, simulated with cubic, "), "{text}");
        assert!(text.contains(&format!("BBR or {connections} connections")), "{text}");
        // An answer never mixes two models.
        assert!(!text.contains("rate with loss and this window"), "{text}");
    }
    let enough = with(96_000);
    assert!(!enough.loss_limited && enough.fills_path.is_none());
    assert_eq!(line_names(&enough.text(false, 80)), FIVE);
}

/// The call for commands gives the whole path's window, 482.7 kB. A smaller one is advised only if that one is slower.
#[test]
fn the_settings_name_no_call_for_a_window_that_is_slower() {
    let buffer = Some(Bytes::new(250_000));
    let loss = Some("0.1%".parse().unwrap());
    let closed = advise(&WindowQuestion { buffer, loss, ..question("100Mbit/s", "40ms") }).unwrap();
    for larger_is_as_fast in [false, true] {
        let windows = vec![
            tried(55, 9_000, false),
            tried(110, 10_700, true),
            tried(500, 10_300, larger_is_as_fast),
        ];
        let measured = Duration::from_secs(600);
        let tried = TriedWindows { windows, seeds: 8, measured, ..TriedWindows::default() };
        let text = closed.clone().decided_by(tried).unwrap().text(false, 80);
        assert_eq!(text.contains("commands for 482.7 kB"), larger_is_as_fast, "{text}");
    }
}

/// Each table has one source: windows with a simulated neighbour are in the table of simulations, the others in a separate one.
#[test]
fn named_windows_are_simulated_and_each_table_has_one_source() {
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
fn a_slightly_larger_window_does_not_count_as_double() {
    // 1.7 is within half a doubling of 2; 1.3 is not.
    for (larger, has_twice) in [(1020, true), (780, false)] {
        let windows = [tried(600, 29_000, true), tried(larger, 29_100, true)].to_vec();
        let advice = advise(&shared())
            .unwrap()
            .decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() })
            .unwrap();
        let json = advice.json();
        assert_eq!(json["double_bytes"].as_u64(), has_twice.then_some(larger * 1000));
        for member in ["expected_bps", "added_delay_s"] {
            assert_eq!(!json[member]["double"].is_null(), has_twice, "{larger} {json}");
        }
        assert!(json["half_bytes"].is_null() && json["expected_bps"]["half"].is_null(), "{json}");
    }
}

#[test]
fn the_simulation_decides_window_rate_delay_and_settings() {
    let tried = |kb: u64, mbit: u64, ms: u64| TriedWindow {
        delay: Duration::from_millis(ms),
        ..tried(kb, mbit * 1000, kb == 600)
    };
    let windows =
        vec![tried(300, 20, 20), tried(600, 29, 70), tried(800, 24, 40), tried(1200, 22, 25)];
    let advice = advise(&shared())
        .unwrap()
        .decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() })
        .unwrap();
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
    assert!(
        text.contains("risk      a larger one is slower: 800 kB gives 24 Mbit/s, 40 ms queue"),
        "{text}"
    );
    assert!(text.contains("the fastest of 4 windows simulated, 8 runs each"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(advice.text(true, 80).contains("Simulated, means of 8 runs each,"));
}

#[test]
fn rare_losses_print_above_zero_and_loss_free_runs_get_a_bound() {
    let losses = [0.0, 4e-6, 4e-4];
    let of = |(i, loss): (u64, f64)| TriedWindow { loss, ..tried(300 + i, 25_000, true) };
    let windows = (0..).zip(losses).map(of).collect();
    let measured = Duration::from_secs(20);
    let all = TriedWindows { windows, seeds: 8, measured, ..TriedWindows::default() };
    let text = advise(&shared()).unwrap().decided_by(all).unwrap().text(true, 80);
    for cell in ["  0 % ", "  <0.001 % ", "  0.040 % "] {
        assert!(text.contains(cell), "{cell}: {text}");
    }
    // The rule of three, applied to 8 runs of 20 s.
    let bound = "lose packets up to three times in 160 s (95 %).";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(bound), "{text}");
}

/// Elephants leave 15 of 50 Mbit/s.
#[test]
fn the_text_names_the_window_that_takes_only_the_free_share() {
    let with = |cross: &str, kbit| {
        let q = WindowQuestion { cross: Some(cross.parse().unwrap()), ..shared() };
        let windows =
            vec![tried(100, 9_000, false), tried(180, 14_900, false), tried(600, kbit, true)];
        let tried = TriedWindows { windows, seeds: 8, ..TriedWindows::default() };
        let text = advise(&q).unwrap().decided_by(tried).unwrap().text(false, 80);
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let polite = "To take only the free 15 Mbit/s, use 180 kB instead";
    let greedy = with("elephants:70%", 29_000);
    assert!(
        greedy.contains(polite) && greedy.contains("it takes 14 Mbit/s that is not free"),
        "{greedy}"
    );
    // UDP does not yield, and a difference of 1 kbit/s is within two standard errors.
    for text in [with("udp:70%", 29_000), with("elephants:70%", 15_001)] {
        assert!(!text.contains("To take only") && !text.contains("not free"), "{text}");
    }
}

#[test]
fn the_reason_is_given_if_no_window_is_simulated() {
    let plain = question("50Mbit/s", "100ms");
    let (loss, cross) = (Some("1%".parse().unwrap()), Some("udp:30%".parse().unwrap()));
    let buffer = Some(Bytes::new(625_000));
    // 10 Tbit/s x 1 s is more than 1000 times TCP's largest window.
    let fast = question("10Tbit/s", "1s");
    for (q, word) in [
        (WindowQuestion { buffer, ..plain }, Some("closed form")),
        (WindowQuestion { loss, ..plain }, Some("--buffer")),
        (WindowQuestion { cross, ..plain }, Some("--buffer")),
        (WindowQuestion { cross, buffer, ..fast }, Some("several connections")),
        (WindowQuestion { cross, buffer, ..plain }, None),
    ] {
        let advice = advise(&q).unwrap();
        assert_eq!(advice.windows_to_try().is_none(), word.is_some(), "{q:?}");
        let why = advice.untried();
        assert!(why.map_or(word.is_none(), |why| why.contains(word.unwrap())), "{why:?}");
    }
}

#[test]
fn the_smallest_window_tried_is_not_compared_with_itself() {
    let q = WindowQuestion {
        buffer: Some(Bytes::new(10_000)),
        cross: Some("mice:30%".parse().unwrap()),
        ..question("10Mbit/s", "100ms")
    };
    // The window nearest to half of 44 kB is 44 kB itself, and the nearest to twice 44 kB is 80 kB.
    let windows = [44, 80, 150].map(|kb| tried(kb, 814, true)).to_vec();
    let advice = advise(&q)
        .unwrap()
        .decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() })
        .unwrap();
    let text = advice.text(false, 80);
    let said = text.replace("\n          ", " ");
    assert!(said.contains("20 ms queue; no smaller window was simulated"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let expected = &advice.json()["expected_bps"];
    assert!(expected["half"].is_null() && expected["double"] == 814_000, "{expected}");
}

/// A packet of 1500 B carries 1448 B of payload: 600 kB of payload are 621.5 kB of packets. The memory at either end is twice the
/// payload.
#[test]
fn the_formulas_and_the_reason_describe_the_simulated_window() {
    let mice = WindowQuestion {
        cross: Some("mice:30%".parse().unwrap()),
        ..question("50Mbit/s", "100ms")
    };
    let buffer = Some(Bytes::new(100_000));
    let closed = advise(&WindowQuestion { buffer, ..mice }).unwrap();
    // The sweet spot begins at 35 Mbit/s x 100 ms = 437.5 kB and adds 70 % of the buffer, both times 1448 / 1500.
    assert_eq!((closed.sweet_spot.low.get(), closed.sweet_spot.high.get()), (422_333, 489_907));
    for (kb, place) in [(600, "larger"), (300, "smaller")] {
        let windows = vec![tried(kb, 40_000, true)];
        let advice = closed
            .clone()
            .decided_by(TriedWindows { windows, seeds: 8, ..TriedWindows::default() })
            .unwrap();
        let text = advice.text(true, 80);
        let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let why = format!("; {place} than the closed form's 422.3 to 489.9 kB");
        assert!(text.contains(&why), "{text}");
        let [packets, memory] =
            [kb * 1500 * 1000 / 1448, 2 * kb * 1000].map(|n| Bytes::new(n).to_string());
        assert!(text.contains(&format!("= S = {packets}: {kb} kB")), "{text}");
        assert!(text.contains(&format!("= P = {kb} kB, MSS = 1.448 kB: {memory}")), "{text}");
    }
}

#[test]
fn the_smallest_of_equally_fast_windows_is_recommended() {
    let text = |marks: [bool; 4]| {
        let windows = [(300, 25_800), (600, 28_900), (800, 28_700), (1200, 28_500)];
        let windows = windows.iter().zip(marks).map(|((kb, kbit), is)| tried(*kb, *kbit, is));
        let simulated =
            TriedWindows { windows: windows.collect(), seeds: 8, ..TriedWindows::default() };
        advise(&shared()).unwrap().decided_by(simulated).unwrap().text(false, 80)
    };
    let some = text([false, true, true, false]);
    assert!(some.starts_with("window    600 kB per connection"), "{some}");
    assert!(
        some.contains("risk      a larger one is slower: 1.2 MB gives 28.5 Mbit/s, 20 ms queue"),
        "{some}"
    );
    let why = "why       2 of 4 simulated windows tie for fastest, 8 runs each; this is the";
    assert!(some.contains(why), "{some}");
    let all = text([false, true, true, true]);
    let risk = "risk      no slower up to 1.2 MB, the largest simulated: 20 ms queue";
    assert!(all.contains(risk), "{all}");
    // Rows without a mark contradict no line.
    let between = text([false, true, false, true]);
    let risk = "risk      a larger one may be slower: 800 kB gives 28.7 Mbit/s, 20 ms queue";
    assert!(between.contains(risk), "{between}");
    let last = text([false, false, false, true]);
    assert!(
        last.contains("risk      a larger one takes more from the other flows; none was simulated"),
        "{last}"
    );
}

/// Student's t for 95 % is 2.365 with seven degrees of freedom and 4.303 with two; the standard error is 1 Mbit/s.
#[test]
fn an_uncertain_rate_is_printed_with_its_interval() {
    for (seeds, words) in [(8, "571 +- 2 Mbit/s (95 %)"), (3, "571 +- 4 Mbit/s (95 %)")] {
        let rate_error = Rate::from_mbit_per_second(1);
        let windows = vec![TriedWindow { rate_error, ..tried(600, 571_000, true) }];
        let all = TriedWindows { windows, seeds, ..TriedWindows::default() };
        let advice = advise(&shared()).unwrap().decided_by(all.clone()).unwrap();
        // This interval is narrower than 1 %.
        assert!(!advice.text(false, 80).contains("95 %"), "{}", advice.text(false, 80));
        let half = advice.json()["simulated"]["windows"][0]["rate_interval_bps"].clone();
        let t = if seeds == 8 { 2.365 } else { 4.303 };
        assert!((half.as_f64().unwrap() / 1e6 - t).abs() < 0.001, "{half}");
        let mut wide = all;
        wide.windows[0].rate = Rate::from_mbit_per_second(57);
        let advice = advice.decided_by(wide).unwrap();
        let words = words.replace("571", "57");
        assert!(advice.text(false, 80).contains(&words), "{}", advice.text(false, 80));
    }
}

#[test]
fn the_text_reports_a_search_that_ends_at_its_largest_window() {
    let why = |fastest: u64| {
        let windows = [300, 600].map(|kb| tried(kb, 20_000 + kb, kb == fastest)).to_vec();
        let all = TriedWindows { windows, seeds: 8, ..TriedWindows::default() };
        let text = advise(&shared()).unwrap().decided_by(all).unwrap().text(false, 200);
        text.contains("the largest of 2 windows simulated is the fastest")
    };
    assert!(why(600) && !why(300));
}

/// A path on which loss limits one flow.
fn lossy_path() -> WindowQuestion {
    WindowQuestion {
        buffer: Some(Bytes::new(10_000_000)),
        loss: Some("1e-6".parse().unwrap()),
        ..question("1Gbit/s", "80ms")
    }
}

fn runs_of(seconds: u64, windows: Vec<TriedWindow>) -> TriedWindows {
    let measured = Duration::from_secs(seconds);
    TriedWindows { windows, seeds: 3, measured, ..TriedWindows::default() }
}

/// 600 Mbit/s are 50,000 packets of 1500 B per second: a loss in 20 s, and four in 80 s.
#[test]
fn runs_with_too_few_losses_keep_the_closed_form() {
    let closed = advise(&lossy_path()).unwrap();
    assert!(closed.loss_limited);
    let of = |seconds| {
        let windows = vec![tried(5_000, 600_000, true), tried(10_000, 600_000, true)];
        closed.clone().decided_by(runs_of(seconds, windows)).unwrap()
    };
    let few = of(60);
    assert!(few.simulated.is_none() && few.recommended == closed.recommended);
    assert!(few.warnings[0].contains("had 3.0 random losses each on average"), "{few:?}");
    assert!(of(81).simulated.is_some() && of(81).warnings.is_empty());
    let text = of(81).text(false, 200);
    assert!(
        text.contains("\nwhy       2 of 2 simulated windows tie ") && text.contains("\nfix "),
        "{text}"
    );
}

/// Three seeds with a standard error of 1 Mbit/s: half of the 95 % interval are 4.303 Mbit/s, by Student's t with two degrees of freedom.
#[test]
fn a_closed_form_outside_the_simulated_interval_is_reported() {
    let q = lossy_path();
    let closed = advise(&q).unwrap();
    let window = closed.recommended.window.unwrap();
    let rate = closed.recommended.rate.unwrap();
    for (off_kbit, is_named) in [(4_200, false), (4_400, true)] {
        let simulated = TriedWindow {
            window,
            rate: rate.saturating_sub(Rate::from_bits_per_second(off_kbit * 1000)),
            rate_error: Rate::from_mbit_per_second(1),
            ..tried(0, 0, true)
        };
        let advice = closed.clone().decided_by(runs_of(400, vec![simulated])).unwrap();
        assert_eq!(advice.closed_form.is_some(), is_named, "{advice:?}");
        let text = advice.text(false, 80).replace("\n          ", " ");
        assert_eq!(
            text.contains(&format!("; at this window the closed form gives {rate};")),
            is_named,
            "{text}"
        );
        assert_eq!(advice.json()["closed_form_bps"].is_u64(), is_named);
    }
}

#[test]
fn if_no_simulated_window_binds_a_larger_one_is_as_good() {
    let text = |fast: [bool; 3]| {
        let windows = [5_000, 10_000, 20_000].into_iter().zip(fast);
        let windows = windows.map(|(kb, fast)| tried(kb, 600_000, fast)).collect();
        let advice = advise(&lossy_path()).unwrap().decided_by(runs_of(400, windows)).unwrap();
        advice.text(false, 80).replace("\n          ", " ")
    };
    let limit = "loss, not the window, limits it";
    let none_binds = text([true, true, true]);
    assert!(none_binds.starts_with("window    5 MB or more per connection"), "{none_binds}");
    assert!(none_binds.contains(limit) && none_binds.contains("no smaller window was simulated"));
    // A smaller one does bind, or a larger one loses.
    let smaller = text([false, true, true]);
    assert!(smaller.starts_with("window    10 MB or more") && !smaller.contains(limit));
    assert!(text([false, true, false]).starts_with("window    10 MB per connection"));
}

/// 800 kB are slower by less than chance explains; 1.2 MB are as fast.
#[test]
fn a_window_that_is_slower_only_by_chance_is_no_risk() {
    let mut windows =
        vec![tried(600, 28_900, true), tried(800, 28_700, false), tried(1200, 28_800, true)];
    windows[1].is_unsure = true;
    let simulated = TriedWindows { windows, seeds: 8, ..TriedWindows::default() };
    let text = advise(&shared()).unwrap().decided_by(simulated).unwrap().text(false, 80);
    assert!(
        text.contains("risk      no significant difference up to 1.2 MB, 20 ms queue\n"),
        "{text}"
    );
}

#[test]
fn the_explanation_gives_the_reason_for_an_unknown_product() {
    let text = |cross: &str| {
        let q = WindowQuestion { cross: cross.parse().ok(), ..shared() };
        [advise(&q).unwrap(), simulated(&q)].map(|advice| advice.text(true, 200))
    };
    for cross in ["elephants:30%", "mice:30%"] {
        let [closed, run] = text(cross);
        assert!(closed.contains("bdp5 is not known: no closed form"), "{closed}");
        assert!(run.contains("bdp5 is not known: no unlimited window was simulated"), "{run}");
    }
    assert!(text("udp:30%").iter().all(|text| !text.contains("not known")));
}
