//! Properties of the exporters.

mod synthetic;

use sweetspot_report::{DemoOutcome, VariantOutcome, headline, page, table};
use sweetspot_units::{Bytes, Duration, Rate};

#[test]
fn the_table_fits_80_columns_and_is_aligned() {
    let text = table(&synthetic::outcome());
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "too wide: {line:?}");
    }
    let lengths: Vec<usize> =
        text.lines().filter(|l| l.contains('+')).map(|l| l.chars().count()).collect();
    assert!(lengths.windows(2).all(|w| w[0] == w[1]), "ragged:\n{text}");
    // A name and nine values, separated by two spaces, so that a narrow terminal can divide the table there.
    for row in text.lines().filter(|line| line.contains('+')) {
        assert_eq!(row.split("  ").filter(|cell| !cell.trim().is_empty()).count(), 10, "{row}");
    }
}

#[test]
fn an_untrusted_row_is_marked() {
    let text = table(&synthetic::outcome());
    let marked: Vec<&str> = text.lines().filter(|l| l.ends_with(" NO")).collect();
    assert_eq!(marked.len(), 1);
    assert!(marked[0].starts_with("bdp+cubic"));
    assert!(page(&synthetic::outcome()).contains("Do not trust the row above"));
}

#[test]
fn a_failed_variant_has_a_row_with_the_reason() {
    let mut outcome = synthetic::outcome();
    let mut failed = VariantOutcome::new("kernel", "bbr");
    failed.failure = Some("congestion control bbr is not here; modprobe tcp_bbr".into());
    outcome.variants[1] = failed;
    assert!(table(&outcome).contains("kernel+bbr         failed: congestion control bbr is not"));
    assert!(page(&outcome).contains("failed: congestion control bbr is not here"));
}

#[test]
fn an_outcome_round_trips_through_json() {
    let outcome = synthetic::outcome();
    let json = serde_json::to_string(&outcome).expect("serialises");
    let parsed: DemoOutcome = serde_json::from_str(&json).expect("deserialises");
    assert_eq!(parsed, outcome);
}

#[test]
fn outcome_json_names_its_units() {
    let json = serde_json::to_value(synthetic::outcome()).expect("serialises");
    let first = &json["variants"][0];
    for field in [
        "sizing",
        "congestion",
        "goodput_bps",
        "share_of_capacity",
        "segments",
        "retransmitted_segments",
        "bottleneck_drops",
        "rtt_median_s",
        "rtt_p99_s",
        "seconds_to_90_percent",
        "hash_ok",
        "certificate",
    ] {
        assert!(first.get(field).is_some(), "{field} is missing");
    }
    // C = 100 Mbit/s of 1500-byte packets with 1448 bytes of payload each: 96,533,333 bit/s.
    assert_eq!(json["path"]["payload_capacity_bps"], 96_533_333);
}

#[test]
fn the_page_loads_nothing_from_the_network() {
    let page = page(&synthetic::outcome());
    for reference in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference} in the page");
    }
}

#[test]
fn hostile_text_does_not_become_markup() {
    let mut outcome = synthetic::outcome();
    outcome.machine = "<script>alert(1)</script>".into();
    outcome.variants[0].failure = Some("<img>".into());
    let page = page(&outcome);
    assert!(!page.contains("<script>alert") && !page.contains("<img>"));
}

#[test]
fn the_headline_is_about_sobas_and_counts_retransmissions() {
    let words = headline(&synthetic::outcome());
    assert!(words[0].starts_with("sobas+cubic moved 200 MB in 17."), "{words:?}");
    assert!(words[0].contains("without retransmissions"), "{words:?}");
    assert!(words[2].contains("5,709 segments retransmitted"), "{words:?}");
}

/// 33.9 / 21.6 = 1.569, 18 / 21.6 = 0.833, and 21.7 is within 1 %.
#[test]
fn the_headline_compares_median_rtts_that_differ() {
    let mut outcome = synthetic::outcome();
    let places = outcome.variants.len();
    let mut set = |place: usize, us: u64| {
        outcome.variants[place].rtt_median = Some(Duration::from_micros(us));
    };
    [33_900, 18_000, 21_700, 21_700, 21_600].into_iter().enumerate().for_each(|(n, us)| set(n, us));
    assert_eq!(outcome.variants[places - 1].sizing, "sobas");
    let words = headline(&outcome);
    assert!(words[0].contains("at a median RTT of 21.6 ms (100 ms without a queue)"), "{words:?}");
    assert!(words[1].ends_with("; its median RTT was 57 % longer (33.9 ms)."), "{words:?}");
    assert!(words[2].ends_with("; its median RTT was 17 % shorter (18.0 ms)."), "{words:?}");
    assert_eq!(words.iter().filter(|line| line.contains("its median RTT")).count(), 2, "{words:?}");
    assert!(page(&outcome).contains("its median RTT was 57\u{a0}% longer"));
}

#[test]
fn the_headline_states_how_much_less_time_another_run_took() {
    let mut outcome = synthetic::outcome();
    let sobas = outcome.variants.iter().position(|c| c.sizing == "sobas").expect("SOBAS");
    let time = outcome.variants[sobas].duration.expect("finished");
    outcome.variants[0].duration = Some(time.scaled(0.75));
    let words = headline(&outcome);
    assert!(words.iter().any(|line| line.contains("took 25 % less time (")), "{words:?}");
}

/// A difference of 0.9 % counts as equal, 1.6 % as 2 % longer, and so on up to twice the time. A variant is better if it wins in
/// time, RTT or retransmissions and loses in none.
#[test]
fn the_headline_compares_times_uniformly_and_ends_with_better_variants() {
    let mut outcome = synthetic::outcome();
    let sobas = outcome.variants.iter().position(|c| c.sizing == "sobas").expect("SOBAS");
    let (time, rtt) = (outcome.variants[sobas].duration, outcome.variants[sobas].rtt_median);
    let (time, rtt) = (time.expect("finished"), rtt.expect("measured"));
    outcome.variants[sobas].retransmitted_segments = Some(20);
    for (ratio, rtt_ratio, retransmitted, words, is_better) in [
        (1.009, 1.0, 20, "took as long (", false),
        (1.016, 0.5, 20, "took 2 % longer (", false),
        (1.5, 1.0, 20, "took 50 % longer (", false),
        (2.5, 1.0, 20, "took 2.5 times as long (", false),
        (0.984, 1.0, 20, "took 2 % less time (", true),
        (0.984, 1.2, 20, "took 2 % less time (", false),
        (1.0, 0.8, 20, "took as long (", true),
        (1.0, 1.0, 14, "took as long (", true),
        (1.0, 0.8, 21, "took as long (", false),
    ] {
        for (place, other) in outcome.variants.iter_mut().enumerate().filter(|(n, _)| *n != sobas) {
            let (ratio, rtt_ratio) = if place == 0 { (ratio, rtt_ratio) } else { (1.5, 1.5) };
            other.duration = Some(time.scaled(ratio));
            other.rtt_median = Some(rtt.scaled(rtt_ratio));
            other.retransmitted_segments = Some(retransmitted);
        }
        let lines = headline(&outcome);
        let case = (ratio, rtt_ratio, retransmitted);
        assert!(lines.iter().any(|line| line.contains(words)), "{case:?}: {lines:?}");
        let conclusion = lines.iter().find(|line| line.contains("etter than sobas+cubic"));
        let conclusion = conclusion.expect("a conclusion");
        let is_named = conclusion.starts_with("Better than sobas+cubic here, in time, RTT or ")
            && conclusion.ends_with(": kernel+cubic.");
        assert_eq!(is_named, is_better, "{case:?}: {lines:?}");
        let is_equal = conclusion.ends_with(" within 1 % of it in time and RTT: kernel+cubic.");
        assert_eq!(is_equal, case == (1.009, 1.0, 20), "{case:?}: {lines:?}");
    }
}

/// Both runs of SOBAS have an event after 0.31 s, and two after 1.62 s. The kernel's window grows to 6.3 MB.
#[test]
fn events_at_one_place_share_a_mark_and_far_values_have_a_unit() {
    let page = page(&synthetic::outcome());
    assert_eq!(page.matches("class=\"mark\"").count(), 4);
    let both = "1.62\u{a0}s: saturated: 95.1\u{a0}Mbit/s, 101\u{a0}ms\n1.62\u{a0}s: limited";
    assert_eq!(page.matches(both).count(), 2);
    assert!(page.contains("▲ to 6.3\u{a0}MB"));
}

#[test]
fn the_headline_compares_only_certified_runs() {
    let mut outcome = synthetic::outcome();
    let variants = outcome.variants.len();
    let certify = |outcome: &mut DemoOutcome, i: usize, trust: bool| {
        let certificate = outcome.variants[i].certificate.as_mut().expect("emulated");
        (certificate.trust, certificate.reasons) = (trust, vec!["late packets".into()]);
    };
    (0..variants).for_each(|i| certify(&mut outcome, i, i != 0));
    let words = headline(&outcome);
    // The first line is SOBAS's. Each other run has a line, the doubtful run the last one, after the conclusion.
    assert_eq!(words.len(), variants + 1, "{words:?}");
    let (last, compared) = words.split_last().expect("lines");
    assert_eq!(last, "kernel+cubic is not compared: its emulation could not be certified.");
    assert!(compared.iter().all(|line| !line.contains("kernel+cubic")), "{words:?}");
    (0..variants).for_each(|i| certify(&mut outcome, i, false));
    let words = headline(&outcome);
    // The table has the reasons.
    assert!(words.len() == 1 && words[0].starts_with("No run is certified"), "{words:?}");
}

#[test]
fn goodput_is_averaged_over_half_a_second() {
    let mut series = sweetspot_report::Series::default();
    // 1 MB every 100 ms: 80 Mbit/s after the first half second, and a fifth of it after 100 ms.
    for i in 1..=10_u64 {
        series.t.push(Duration::from_millis(100 * i));
        series.received.push(Bytes::new(1_000_000 * i));
    }
    series.fill_goodput();
    assert_eq!(series.goodput[0], Rate::from_mbit_per_second(16));
    assert_eq!(series.goodput[4], Rate::from_mbit_per_second(80));
    assert_eq!(series.goodput[9], Rate::from_mbit_per_second(80));
    assert_eq!(series.time_to(Rate::from_mbit_per_second(72)), Some(Duration::from_millis(500)));
}

/// Five transfers in one frame: each has its own dashes, in the picture and in the names above it.
#[test]
fn transfers_in_one_frame_are_distinguishable_without_colour() {
    let page = page(&synthetic::outcome());
    let style = page.split("</style>").next().unwrap();
    let dashes: Vec<&str> = (1..5)
        .map(|class| {
            let rule = format!("#race .line.c{class}{{stroke-dasharray:");
            style.split_once(&rule).expect(&rule).1.split_once('}').unwrap().0
        })
        .collect();
    let different: std::collections::BTreeSet<&&str> = dashes.iter().collect();
    assert_eq!(different.len(), 4, "{dashes:?}");
    let names = page.split_once("<ul class=\"legend\">").unwrap().1.split_once("</ul>").unwrap().0;
    assert_eq!(names.matches("<path class=\"line c").count(), 5);
}

#[test]
fn only_the_sobas_curve_is_bold_on_the_demo_page() {
    let outcome = synthetic::outcome();
    let page = sweetspot_report::page(&outcome);
    let own: Vec<usize> =
        (0..outcome.variants.len()).filter(|i| outcome.variants[*i].sizing == "sobas").collect();
    assert!(!own.is_empty());
    for variant in 0..outcome.variants.len() {
        let bold = page.contains(&format!("class=\"line c{variant} ours\""));
        assert_eq!(bold, own.contains(&variant), "{variant}");
    }
}
