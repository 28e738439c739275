//! Properties of the pictures and of the results page.

use sweetspot_experiment::plot::{Axis, MarkPosition, Origin, Plot};
use sweetspot_report::{ReadError, ResultFile, Sheet, Theme, read, report_page, sheets, svg_file};

fn plot() -> Plot {
    let axis = |name: &str| Axis::new(name);
    let mut plot =
        Plot::new("", axis("S, packets").between(0.0, 100.0), axis("Mbit/s").between(0.0, 50.0));
    plot.curve("B = 5", Origin::Sim, 0, vec![(0.0, 0.0), (50.0, 25.0), (100.0, 50.0)]);
    plot.curve("B = 5", Origin::Theory, 0, vec![(0.0, 0.0), (100.0, 50.0)]);
    plot.mark("published", 0, MarkPosition::Point(50.0, 25.0));
    plot
}

fn drawn(plot: &Plot) -> String {
    svg_file("a figure", std::slice::from_ref(plot), Theme::Screen)
}

#[test]
fn a_published_number_is_drawn_at_its_coordinates() {
    // The frame extends from x = 44 to 344 and from y = 214 up to 24, so its middle is (194, 119). A diamond begins
    // five units above its centre.
    assert!(drawn(&plot()).contains(r#"<path class="mark c0" d="M194.0 114.0l5 5"#));
}

#[test]
fn cases_are_drawn_side_by_side_above_their_names() {
    let names = ["first", "second", "third"].map(str::to_owned).to_vec();
    let mut plot = Plot::new("", Axis::named("case", names), Axis::new("%").between(0.0, 100.0));
    plot.curve("share", Origin::Sim, 0, vec![(1.0, 50.0), (2.0, 60.0), (3.0, 70.0)]);
    let svg = drawn(&plot);
    // Three columns of 100 units, starting at x = 44: their middles.
    for (x, name) in [("94.0", "first"), ("194.0", "second"), ("294.0", "third")] {
        assert!(svg.contains(&format!("M{x} 214v4")), "{name} has no tick at {x}");
        assert_eq!(svg.matches(&format!(">{name}<")).count(), 1);
    }
}

/// Between two cases, a line would show nothing: each case has a mark, including closed forms.
#[test]
fn no_line_joins_cases() {
    let names = ["first", "second"].map(str::to_owned).to_vec();
    let mut plot = Plot::new("", Axis::named("case", names), Axis::new("%").between(0.0, 100.0));
    for (group, origin) in [Origin::Sim, Origin::Theory].into_iter().enumerate() {
        plot.curve(format!("share {group}"), origin, group, vec![(1.0, 50.0), (2.0, 90.0)]);
    }
    let svg = drawn(&plot);
    assert!(!svg.contains(r#"class="line"#) && !svg.contains(r#"class="leader"#), "{svg}");
    for class in ["dot sim c0", "dot theory c1"] {
        // Two cases, and the sample in the legend for simulated ones; a legend shows colours in one style.
        assert!(svg.matches(class).count() >= 2, "{class}: {svg}");
    }
    assert_eq!(svg.matches(">share 1<").count(), 1);
}

#[test]
fn engines_differ_in_line_style_and_cases_in_colour() {
    let svg = drawn(&plot());
    assert!(svg.contains(r#"class="line sim c0""#) && svg.contains(r#"class="line theory c0""#));
    for words in [">sim<", ">theory<", ">published<", ">B = 5<"] {
        assert_eq!(svg.matches(words).count(), 1, "{words} in the legend");
    }
}

#[test]
fn a_million_points_give_a_small_file_that_keeps_the_peak() {
    let mut plot = plot();
    let peak = |i: u32| if i == 543_210 { 40.0 } else { 10.0 };
    let points = (0..1_000_000).map(|i| (f64::from(i) / 1e4, peak(i)));
    plot.curve("long", Origin::Sim, 1, points.collect());
    let svg = drawn(&plot);
    // 40 of 50 Mbit/s: 214 - 190 * 0.8 = 62.
    assert!(svg.contains(" 62.0"), "the peak is lost");
    assert!(svg.len() < 60_000, "{} bytes", svg.len());
}

#[test]
fn values_beyond_the_frame_are_labelled() {
    let mut plot = plot();
    plot.curve("far", Origin::Sim, 1, vec![(0.0, 1.0), (400.0, 93.0)]);
    let svg = drawn(&plot);
    assert!(svg.contains("▲ to 93") && svg.contains("▶ to 400 packets"));
}

#[test]
fn hostile_text_does_not_become_markup() {
    let mut plot = plot();
    plot.title = "<script>".to_owned();
    plot.curve("<img src=x>", Origin::Sim, 1, vec![(1.0, 1.0)]);
    plot.mark("\"><b>", 0, MarkPosition::Level(3.0));
    let svg = drawn(&plot);
    assert!(!svg.contains("<script>") && !svg.contains("<img") && !svg.contains("<b>"));
}

const ROWS: &str = concat!(
    "{\"t_s\":0.05,\"goodput_bps\":1e6,\"window_bytes\":65535,\"rtt_s\":0.1}\n",
    "{\"t_s\":0.07,\"event\":\"saturated\",\"window_bytes\":125000}\n",
    "{\"t_s\":0.10,\"goodput_bps\":9e6,\"window_bytes\":125000,\"rtt_s\":0.11}\n",
    "{\"t_s\":0.15,\"goodp",
);

#[test]
fn the_error_for_events_without_samples_names_the_command_to_draw_them() {
    let tuned = "{\"t_s\":1795955577.6,\"event\":\"taken\",\"why\":\"a bulk transfer\",\"pid\":63,\"goodput_bps\":1e6}\n";
    for log in [tuned.to_owned(), tuned.repeat(2)] {
        let error = read(&log, "1").unwrap_err().to_string();
        assert!(error.contains("no samples") && error.contains("ui --watch FILE"), "{error}");
    }
}

#[test]
fn a_truncated_time_series_is_drawn_up_to_its_last_complete_line() {
    let Ok(ResultFile::Series(series)) = read(ROWS, "1") else { panic!("it is a time series") };
    assert_eq!(series.rows.len(), 3);
    let sheets = sheets(&[("one.jsonl".to_owned(), ResultFile::Series(series))]);
    let page = report_page("one", &sheets, &[], "1", Theme::Screen);
    // The mean of 1 and 9 Mbit/s for 0.05 s each; the median of 0.1 and 0.11 s is the larger of the two.
    let title = "<h1>one.jsonl: mean 5.00\u{a0}Mbit/s, median RTT 110.0\u{a0}ms</h1>";
    assert!(page.contains(title), "{page}");
    assert!(page.contains("0.070\u{a0}s: saturated") && page.contains("share of samples"));
    for reference in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!page.contains(reference), "{reference} in the page");
    }
}

#[test]
fn the_page_heading_is_not_repeated() {
    let sheet = |title: &str| Sheet {
        name: title.to_owned(),
        title: title.to_owned(),
        about: String::new(),
        plots: Vec::new(),
        tables: Vec::new(),
    };
    let page = report_page("two", &[sheet("first"), sheet("other")], &[], "1", Theme::Screen);
    let count = |text: &str| page.matches(text).count();
    assert_eq!((count("<h1>first</h1>"), count("<h2>first</h2>")), (1, 0), "{page}");
    assert_eq!(count(">first</a>"), 0, "{page}");
    assert_eq!((count("<h2>other</h2>"), count(">other</a>")), (1, 1), "{page}");
}

#[test]
fn the_error_for_a_run_of_an_incompatible_version_names_it() {
    let text = r#"{"engine":"sim","transfers":[],"version":"0.0.3"}"#;
    let error = read(text, "1.0.0").expect_err("members are missing");
    assert!(matches!(error, ReadError::OtherVersion { .. }));
    assert!(error.to_string().contains("run of sweetspot 0.0.3"), "{error}");
}

#[test]
fn a_recording_has_no_origin_entry_in_the_legend() {
    let mut plot = Plot::new("", Axis::new("time, s"), Axis::new("goodput, Mbit/s"));
    plot.curve("kernel+cubic", Origin::Recorded, 0, vec![(0.0, 0.0), (1.0, 5.0)]);
    let svg = drawn(&plot);
    assert!(svg.contains(">kernel+cubic<"), "{svg}");
    assert!(!svg.contains(">sim<") && !svg.contains(">recorded<"), "{svg}");
}

/// Line styles need a legend only if there are several.
#[test]
fn a_single_engine_has_no_legend_entry() {
    let mut plot = plot();
    assert!(drawn(&plot).contains(">sim</text>"));
    plot.curves.retain(|curve| curve.origin == Origin::Sim);
    assert!(drawn(&plot).contains(">sim</text>"), "the published number is no simulation");
    plot.marks.clear();
    assert!(!drawn(&plot).contains(">sim</text>"));
}

#[test]
fn the_print_theme_is_white_even_in_dark_mode() {
    let plot = Plot::new("", Axis::new("x"), Axis::new("y"));
    let screen = svg_file("", std::slice::from_ref(&plot), Theme::Screen);
    let print = svg_file("", &[plot], Theme::Print);
    assert!(screen.contains("prefers-color-scheme") && !print.contains("prefers-color-scheme"));
    assert!(print.contains(".paper{fill:#ffffff}"), "{print}");
    let page = |theme| report_page("one", &[], &[], "1", theme);
    assert!(page(Theme::Screen).contains("prefers-color-scheme:dark"));
    assert!(!page(Theme::Print).contains("dark"));
}

#[test]
fn symbol_indices_are_drawn_as_subscripts() {
    let svg = drawn(&Plot::new("", Axis::new("C T_m, packets"), Axis::new("y")));
    assert!(svg.contains("C T<tspan dy=\"2.5\" font-size=\"80%\">m</tspan>"), "{svg}");
    assert!(!svg.contains("T_m</text>"), "{svg}");
}

/// Groups differ without colours: in the shape of their marks, or in their dashes if there are too many points for
/// marks.
#[test]
fn groups_are_distinguishable_without_colour() {
    for (points, attribute) in [(5, "<path class=\"dot"), (100, "<path class=\"line")] {
        let mut plot = Plot::new("", Axis::new("x"), Axis::new("y"));
        for group in 0..5 {
            let flat = (0..points).map(|x| (f64::from(x), 1.0)).collect();
            plot.curve(format!("group {group}"), Origin::Recorded, group, flat);
        }
        let svg = svg_file("", &[plot], Theme::Screen);
        // All curves are at the same place: their first elements differ only in style.
        let mut looks: Vec<String> = (0..5)
            .map(|c| {
                let class = format!(" c{c}\"");
                let first = svg
                    .match_indices(attribute)
                    .map(|(from, _)| svg[from..].split_once('>').unwrap().0)
                    .find(|element| element.contains(&class))
                    .unwrap();
                first.replace(&class, "\"")
            })
            .collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 5, "{looks:?}");
    }
}

/// Both controllers have the strongest colour.
#[test]
fn sobas_variants_are_distinguished_by_dashes() {
    let mut plot = Plot::new("", Axis::new("ratio").between(0.0, 100.0), Axis::new("share"));
    for (group, sizing) in ["null", "sobas", "sobas:live"].into_iter().enumerate() {
        let points = (0..100).map(|x| (f64::from(x), f64::from(x) / 100.0));
        plot.curve(sizing, Origin::Sim, group, points.collect());
    }
    let svg = drawn(&plot);
    // The line and its sample in the legend.
    let lines =
        |svg: &str, dash: &str| svg.matches(&format!(r#"class="line sim own"{dash} d="#)).count();
    assert_eq!([lines(&svg, ""), lines(&svg, r#" stroke-dasharray="6 3""#)], [2, 2]);
    // Dashes are also needed with few points: marks at one place hide each other.
    plot.curves.iter_mut().for_each(|curve| curve.points.truncate(5));
    let few = drawn(&plot);
    assert_eq!([lines(&few, ""), lines(&few, r#" stroke-dasharray="6 3""#)], [2, 2]);
}

/// With a congestion control before or after its name, in a heading, and as a file name.
#[test]
fn sobas_has_the_strongest_colour_under_every_label() {
    let drawn_as_own = |label: &str| {
        let mut plot = Plot::new("", Axis::new("x"), Axis::new("y"));
        plot.curve(label, Origin::Sim, 0, vec![(1.0, 1.0), (2.0, 2.0)]);
        drawn(&plot).contains(r#"class="line sim own""#)
    };
    for label in ["sobas", "sobas:live", "sobas+cubic", "cubic+sobas", "sobas, 1 %", "sobas.json"] {
        assert!(drawn_as_own(label), "{label}");
    }
    for label in ["sobas:paper", "cubic+rledbat", "kernel.json", "before.json"] {
        assert!(!drawn_as_own(label), "{label}");
    }
}

/// The curves end at 10, 20 and 30. Their names are at these ends, the highest on top, and not in a legend.
#[test]
fn few_curves_are_named_at_their_ends() {
    let mut plot = Plot::new("", Axis::new("x"), Axis::new("y"));
    for (group, name) in ["low", "middle", "high"].into_iter().enumerate() {
        let y = 10.0 * (group as f64 + 1.0);
        plot.curve(name, Origin::Recorded, group, vec![(0.0, 0.0), (100.0, y)]);
    }
    let svg = drawn(&plot);
    let height = |name: &str| -> f64 {
        let (before, _) = svg.split_once(&format!(">{name}</text>")).expect(name);
        let (_, y) = before.rsplit_once("y=\"").unwrap();
        y.trim_end_matches('"').parse().unwrap()
    };
    assert!(height("high") < height("middle") && height("middle") < height("low"), "{svg}");
    assert!(!svg.contains("<g transform=\"translate(6.0"), "there is a legend: {svg}");
    assert_eq!(svg.matches("class=\"leader").count(), 3);
}

/// All distributions end at one, where names could not identify them.
#[test]
fn curves_ending_at_one_point_are_named_in_a_legend() {
    let mut plot = Plot::new("", Axis::new("x"), Axis::new("y"));
    for group in 0..7 {
        let points = vec![(0.0, 0.0), (90.0 + group as f64, 1.0), (100.0, 1.0)];
        plot.curve(format!("group {group}"), Origin::Recorded, group, points);
    }
    let svg = drawn(&plot);
    assert!(!svg.contains("class=\"leader"), "{svg}");
    assert!(svg.contains(">group 6</text>"), "{svg}");
}

#[test]
fn intervals_fit_in_the_frame() {
    let mut plot = Plot::new("", Axis::new("x"), Axis::new("y"));
    plot.curve("a", Origin::Sim, 0, vec![(1.0, 10.0), (2.0, 20.0)]);
    plot.curves[0].half_widths = vec![1.0, 30.0];
    let tall = svg_file("", &[plot], Theme::Screen);
    // The axis extends at least to 20 + 30, so that 40 is labelled, but not down to 20 - 30, because no value is
    // negative.
    assert!(tall.contains(">40</text>") && !tall.contains(">-10</text>"), "{tall}");
    // From 20 - 100 on, so that -50 is labelled.
    let mut below = Plot::new("", Axis::new("x"), Axis::new("y"));
    below.curve("a", Origin::Sim, 0, vec![(1.0, -1.0), (2.0, 20.0)]);
    below.curves[0].half_widths = vec![1.0, 100.0];
    assert!(svg_file("", &[below], Theme::Screen).contains(">-50</text>"));
}

/// Two levels in the same style: each name is on its own line, and not in a legend.
#[test]
fn a_level_is_named_on_its_line_and_not_in_the_legend() {
    let mut plot = plot();
    plot.mark("path full", 6, MarkPosition::Level(20.0));
    plot.mark("buffer full", 6, MarkPosition::Level(40.0));
    let svg = drawn(&plot);
    // 0 to 50 is drawn from 214 up to 24: 20 is at 138 and 40 at 62. Names are five units above.
    assert!(svg.contains("y=\"133.0\">path full</text>"), "{svg}");
    assert!(svg.contains("y=\"57.0\">buffer full</text>"), "{svg}");
    assert_eq!(svg.matches(">path full</text>").count(), 1);
}

/// The curve follows the level on the left, and is far below it on the right, where the name hides nothing.
#[test]
fn a_levels_name_hides_no_curve() {
    let mut plot =
        Plot::new("", Axis::new("x").between(0.0, 100.0), Axis::new("y").between(0.0, 50.0));
    let near = [(0.0, 21.0), (10.0, 19.0), (20.0, 22.0), (30.0, 18.0), (45.0, 22.0), (46.0, 2.0)];
    plot.curve("near", Origin::Recorded, 0, near.into_iter().chain([(100.0, 2.0)]).collect());
    plot.mark("path full", 6, MarkPosition::Level(20.0));
    let svg = drawn(&plot);
    // 0 to 100 is drawn from 44 to 344: 46 is at 182.
    let (before, _) = svg.split_once("\" y=\"133.0\">path full</text>").expect("above the line");
    let x: f64 = before.rsplit_once("x=\"").unwrap().1.parse().unwrap();
    assert!(x > 182.0, "{x}");
}

/// Between two samples of a name's place, the curve rises through the name and falls again.
#[test]
fn a_levels_name_hides_no_steep_curve() {
    let mut plot =
        Plot::new("", Axis::new("x").between(0.0, 100.0), Axis::new("y").between(0.0, 50.0));
    plot.curve(
        "peak",
        Origin::Recorded,
        0,
        vec![(5.0, 0.0), (5.1, 40.0), (5.2, 0.0), (100.0, 0.0)],
    );
    plot.mark("path full", 6, MarkPosition::Level(20.0));
    let svg = drawn(&plot);
    let (before, _) = svg.split_once("\" y=\"133.0\">path full</text>").expect("above the line");
    let x: f64 = before.rsplit_once("x=\"").unwrap().1.parse().unwrap();
    // 0 to 100 is drawn from 44 to 344: the peak is at 59.
    assert!(x > 59.0, "{x}");
}

/// The curve lies on the level at both ends, and the first level's name takes the left of the gap between.
#[test]
fn a_levels_name_avoids_curves_and_other_names() {
    let mut plot =
        Plot::new("", Axis::new("x").between(0.0, 100.0), Axis::new("y").between(0.0, 50.0));
    let ends = |(x, y): (f64, f64)| [(x, y), (x + 1.0, y + 4.0), (x + 2.0, y - 4.0), (x + 3.0, y)];
    let near = [0.0, 4.0, 8.0, 12.0, 16.0, 20.0].map(|x| ends((x, 20.0))).concat();
    let far = [76.0, 80.0, 84.0, 88.0, 92.0, 96.0].map(|x| ends((x, 20.0))).concat();
    plot.curve("a", Origin::Recorded, 0, [near, vec![(24.0, 2.0), (75.0, 2.0)], far].concat());
    plot.mark("path", 6, MarkPosition::Level(20.0));
    plot.mark("full", 6, MarkPosition::Level(20.2));
    let svg = drawn(&plot);
    let begins = |name: &str| {
        let (before, _) = svg.split_once(&format!(">{name}</text>")).expect("it is named");
        let (_, place) = before.rsplit_once("x=\"").unwrap();
        let (x, y) = place.split_once("\" y=\"").unwrap();
        (x.parse::<f64>().unwrap(), y.trim_end_matches('"').parse::<f64>().unwrap())
    };
    // From 44 to 344 for 100: the gap from 23 to 76 is from 113 to 272.
    let (one, other) = (begins("path"), begins("full"));
    for (x, _) in [one, other] {
        assert!((113.0..272.0).contains(&x), "{x}");
    }
    assert!((one.1 - other.1).abs() >= 10.0 || (one.0 - other.0).abs() > 20.0, "{one:?} {other:?}");
}

#[test]
fn the_sobas_level_is_as_bold_as_its_curve() {
    let mut plot = plot();
    plot.mark("sobas", 6, MarkPosition::Level(20.0));
    plot.mark("drs", 5, MarkPosition::Level(30.0));
    let svg = drawn(&plot);
    assert!(svg.contains(r#"<path class="level line own" "#), "{svg}");
    assert!(svg.contains(r#"<path class="level c5" "#), "{svg}");
}

/// The frame is 300 units wide: more ticks than that would be drawn on each other.
#[test]
fn thousands_of_events_are_drawn_as_merged_ticks() {
    let mut plot = plot();
    for event in 0..5000 {
        let moment = MarkPosition::Moment(f64::from(event) / 50.0);
        plot.mark(format!("event {event}"), 0, moment);
    }
    let svg = drawn(&plot);
    let ticks = svg.matches(r#"<path class="moment "#).count();
    assert!((250..=301).contains(&ticks), "{ticks}");
    // The published number and its sample in the legend.
    assert_eq!(svg.matches(r#"<path class="mark "#).count(), 2);
    assert_eq!(svg.matches(r#"<path class="level "#).count(), 0);
    assert!(svg.contains("<title>event 0\nevent 1\nevent 2\nevent 3\nand 5 more</title>"), "{svg}");
}

#[test]
fn a_bands_name_stays_in_the_frame_and_avoids_points() {
    let mut plot = plot();
    plot.band = Some(("sweet spot".to_owned(), 95.0, 99.0));
    // The frame ends at 344.
    assert!(drawn(&plot).contains(r#"x="344.0" y="209.0" text-anchor="end"> sweet spot "#));
    plot.band = Some(("sweet spot".to_owned(), 10.0, 99.0));
    assert!(drawn(&plot).contains(r#"x="74.0" y="209.0" text-anchor="start"> sweet spot "#));
    // A point at (20, 1) would be below the words, so they move to the top, which begins at 24.
    plot.curve("low", Origin::Sim, 1, vec![(20.0, 1.0), (100.0, 2.0)]);
    assert!(drawn(&plot).contains(r#"y="35.0" text-anchor="start"> sweet spot "#));
}
