//! The page in a real browser.

use serde_json::{Value, json};
use sweetspot_testing::browser::Browser;
use sweetspot_ui::{PageServer, WatchedFile};

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// A browser; `None` after printing why there is none.
fn browser() -> Result<Option<Browser>, Box<dyn std::error::Error>> {
    let browser = Browser::start()?;
    if browser.is_none() {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
    }
    Ok(browser)
}

fn text(browser: &mut Browser, id: &str) -> Result<String, Box<dyn std::error::Error>> {
    let value = browser.value(&format!("document.getElementById('{id}').textContent"))?;
    Ok(value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "))
}

#[test]
fn dragging_moves_the_window_into_and_out_of_the_sweet_spot() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    browser.screen(1200, false)?;
    // 10 Mbit/s x 40 ms = 50 packets, plus a buffer of 50: the picture ends at 160.
    let path = "#rate=10000000&rtt=0.04&buffer=50&window=20";
    browser.open(&format!("{}{path}", server.address()))?;
    assert!(text(&mut browser, "verdict")?.contains("too small: 20 kB in flight fill 40 %"));
    let frame = browser.value(
        "(() => { const r = document.querySelector('#curve .frame').getBoundingClientRect(); \
         return [r.left, r.right, r.top, r.bottom]; })()",
    )?;
    let edge = |i: usize| frame[i].as_f64().unwrap_or_default();
    let at =
        |packets: f64| (edge(0) + packets / 160.0 * (edge(1) - edge(0)), (edge(2) + edge(3)) / 2.0);
    browser.drag(at(20.0), at(75.0))?;
    browser.settle()?;
    assert!(text(&mut browser, "verdict")?.contains("inside the sweet spot"));
    assert_eq!(browser.value("document.getElementById('window').value")?, json!("75"));
    browser.drag(at(75.0), at(150.0))?;
    browser.settle()?;
    assert!(text(&mut browser, "verdict")?.contains("too large: above 100 kB"));
    // Sixteen simulated windows and the transfer's own.
    let dots = browser.value("document.querySelectorAll('#curve .dot, #curve .now-dot').length")?;
    assert_eq!(dots, json!(17));
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// 1 Gbit/s x 100 ms are 12,500 packets; slow start overflows the buffer of 313, and Reno needs thousands of RTTs to recover. The
/// page shows intermediate values and says that they are not a result.
#[test]
fn a_run_short_of_steady_state_is_not_shown_as_the_result() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    let path = "#rate=1000000000&rtt=0.1&buffer=313&window=12600";
    browser.open(&format!("{}{path}", server.address()))?;
    let verdict = text(&mut browser, "verdict")?;
    assert!(verdict.contains("too short for its steady state"), "{verdict}");
    assert!(verdict.contains("steady state, of 1 Gbit/s"), "{verdict}");
    // The simulated windows are not in steady state either: each is a hollow dot.
    let late = browser.value("document.querySelectorAll('#curve .dot.late').length")?;
    assert_eq!(late, json!(16));
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// 50 Mbit/s x 100 ms are 625 packets, with a buffer of 313. Slow start overflows it, and within the run of 48 s Reno regains
/// about 480 packets of the lost window. A window of 1220 packets loses nothing in the second half and gets 31 Mbit/s. Its steady
/// state, with periods of several hundred RTTs, gets 48 Mbit/s. A run with a loss has passed through part of such a period.
#[test]
fn an_overflowing_window_reaches_steady_state_only_after_a_loss() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    browser.open(&format!("{}#rate=50000000&rtt=0.1&buffer=313&window=1220", server.address()))?;
    let verdict = text(&mut browser, "verdict")?;
    assert!(verdict.contains("too large") && verdict.contains("gets 31"), "{verdict}");
    assert!(verdict.contains("too short for its steady state, of 48"), "{verdict}");
    let low = browser.value(
        "(() => { const at = dot => +dot.getAttribute('cy'); const all = document.querySelectorAll('#curve .dot'); \
         const full = Math.min(...[...all].map(at)); const foot = document.querySelector('#curve .frame').getBBox(); \
         const half = (full + foot.y + foot.height) / 2; const right = foot.x + foot.width / 2; \
         return [...all].filter(dot => at(dot) > full + 0.2 * (half - full) && +dot.getAttribute('cx') > right \
             && !dot.classList.contains('late')).length; })()",
    )?;
    assert_eq!(low, json!(0), "filled dots well below the curve");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// 100 Gbit/s x 50 ms are 625,000 packets, and sixty RTTs 37.5 million. A window of C T_m gets the whole rate, half of it half
/// the rate (plus a few millionths for the packet being sent). At 100 ms C T_m is 1.25 GB, and no TCP window is larger than
/// 65,535 x 2^14 = 1.07 GB.
#[test]
fn the_page_uses_closed_forms_for_paths_too_large_to_simulate() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    for (rtt, window, millions, due) in [
        ("0.05", 700_000, 38, "100 Gbit/s of 100 Gbit/s"),
        ("0.05", 312_500, 38, "50 Gbit/s of 100"),
        ("0.1", 1_300_000, 75, "exceeds the largest TCP window, 1.07 GB"),
    ] {
        let path = format!("#rate=100000000000&rtt={rtt}&buffer=100000&window={window}");
        browser.call("Page.navigate", json!({ "url": "about:blank" }))?;
        browser.open(&format!("{}{path}", server.address()))?;
        let verdict = text(&mut browser, "verdict")?;
        let paper = format!("On paper alone: a run would be {millions} million packets");
        assert!(verdict.contains(&paper), "{verdict}");
        assert!(verdict.contains(due), "{verdict}");
        assert!(!verdict.contains("dropped"), "{verdict}");
        // No window is simulated, and the transfer's own lies on the line.
        let dots =
            browser.value("document.querySelectorAll('#curve .dot, #curve .now-dot').length")?;
        assert_eq!(dots, json!(1));
        assert!(text(&mut browser, "queue")?.contains("Not simulated"));
    }
    let path = "#rate=100000000000&rtt=0.1&buffer=100000&sizing=sobas";
    browser.call("Page.navigate", json!({ "url": "about:blank" }))?;
    browser.open(&format!("{}{path}", server.address()))?;
    let verdict = text(&mut browser, "verdict")?;
    assert!(verdict.contains("No closed form predicts how SOBAS fares"), "{verdict}");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn the_native_simulator_gives_the_same_bytes_as_the_page() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    browser.open(&format!("{}#cross=arrivals&sizing=sobas&rate=20000000", server.address()))?;
    let scenario = browser.value("document.getElementById('file').textContent")?;
    let question = json!({ "ask": "run", "scenario": scenario });
    let answered = browser.value(&format!(
        "(async () => {{ const wasm = await fetch('sweetspot.wasm'); if (!wasm.ok) return null; \
         const {{instance: {{exports: w}}}} = await WebAssembly.instantiate(await wasm.arrayBuffer()); \
         const q = new TextEncoder().encode({}); \
         const at = w.question(q.length); new Uint8Array(w.memory.buffer, at, q.length).set(q); \
         const n = w.answer(); \
         return new TextDecoder().decode(new Uint8Array(w.memory.buffer, w.text(), n)); }})()",
        json!(question.to_string())
    ))?;
    if answered == Value::Null {
        sweetspot_testing::skipped("this build has no simulator for the page (make wasm)");
        assert!(text(&mut browser, "engine")?.contains("simulated with Reno by the server"));
        return Ok(());
    }
    assert!(text(&mut browser, "engine")?.contains("simulated with Reno in this page"));
    let natively = sweetspot_wasm::answer(&question.to_string());
    assert_eq!(answered, json!(natively), "make wasm compiles the simulator of this tree");
    Ok(())
}

#[test]
fn the_page_follows_a_running_program() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("send.jsonl");
    let server = PageServer::start(0, vec![WatchedFile::new(&path)])?;
    browser.open(server.address())?;
    assert!(text(&mut browser, "watched")?.contains("Nothing has been written yet"));
    let row = |t: f64, bytes: u64| {
        let row = json!({ "transfer": 1, "t_s": t, "bytes": bytes, "goodput_bps": 1e8,
            "window_bytes": 1_250_000, "rtt_s": 0.1, "phase": "holding", "retransmitted": 0 });
        format!("{row}\n")
    };
    let event = "{\"transfer\":1,\"t_s\":0.06,\"event\":\"limited\",\"window_bytes\":1250000}\n";
    std::fs::write(&path, row(0.05, 625_000) + event + &row(0.1, 1_250_000))?;
    browser.until("document.querySelector('.events li')")?;
    let shown = text(&mut browser, "watched")?;
    assert!(
        shown.contains("1.25 MB in 100 ms; mean 100 Mbit/s, last window 1.25 MB; the window is held at the sweet spot"),
        "{shown}"
    );
    assert!(shown.contains("transfer 1: limited, window 1.25 MB"), "{shown}");
    browser.screen(390, false)?;
    let gap = "(() => { const [a, b] = document.querySelectorAll('#watched .card');
        return b.getBoundingClientRect().top - a.getBoundingClientRect().bottom > 8; })()";
    assert_eq!(browser.value(gap)?, true, "the pictures touch on a phone");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// A limit holds until the next event. The last event reports only goodput, yet all charts end at the same time.
#[test]
fn tuner_limits_are_steps_on_a_time_axis_shared_by_all_charts() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("tune.jsonl");
    let server = PageServer::start(0, vec![WatchedFile::new(&path)])?;
    let event = |t: f64, event: &str, limit: Option<u64>, rtt: f64| {
        let mut row = json!({ "cookie": 7, "t_s": t, "event": event, "why": "w", "pid": 1, "program": "curl",
            "remote": "192.0.2.7:443", "goodput_bps": 1e8, "rtt_s": rtt });
        if let Some(limit) = limit {
            row["to_bytes"] = limit.into();
        }
        format!("{row}\n")
    };
    let lines = [
        event(100.0, "taken", Some(1_313_000), 0.1),
        event(110.0, "tightened", Some(154_500), 0.1),
        event(120.0, "switched", None, 0.0),
    ];
    std::fs::write(&path, lines.concat())?;
    browser.open(server.address())?;
    browser.until("document.querySelectorAll('#watched .line').length === 3")?;
    let points = corners(&mut browser, 0)?;
    // Across at the first limit, down to the second, and across to the end.
    let turns: Vec<(bool, bool)> =
        points.windows(2).map(|p| (p[0].0 != p[1].0, p[0].1 != p[1].1)).collect();
    assert_eq!(turns, [(true, false), (false, true), (true, false)], "{points:?}");
    let axes = browser.value(
        "[...document.querySelectorAll('#watched .card')].map((card) => \
         [...card.querySelectorAll('text.middle, text.end')].filter((t) => t.getAttribute('x') > 50 - 1) \
         .map((t) => t.textContent).join(' '))",
    )?;
    let axes: Vec<&str> =
        axes.as_array().ok_or("no axes")?.iter().filter_map(Value::as_str).collect();
    // The axis starts at the first event: 0 to 20 s.
    assert!(axes[0].starts_with("0 10 20 "), "{axes:?}");
    assert!(axes.iter().all(|axis| *axis == axes[0]) && axes.len() == 3, "{axes:?}");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// The corners of line `n` of the watched files.
fn corners(browser: &mut Browser, n: usize) -> Result<Vec<(f64, f64)>, Box<dyn std::error::Error>> {
    let path = format!("document.querySelectorAll('#watched .line')[{n}].getAttribute('d')");
    let path = browser.value(&path)?;
    let points = path.as_str().ok_or("no path")?.split(['M', 'L']);
    let points = points.filter_map(|point| point.split_once(' '));
    Ok(points.filter_map(|(x, y)| Some((x.parse().ok()?, y.parse().ok()?))).collect())
}

/// An event of a tuner, as `tune --events` writes it.
fn tuned(t: f64, event: &str, (from, to): (Option<u64>, Option<u64>), dry_run: bool) -> String {
    let mut row = json!({ "cookie": 7, "t_s": t, "event": event, "why": "w", "pid": 1, "program": "curl",
        "remote": "192.0.2.7:443", "goodput_bps": 1e8, "rtt_s": 0.1, "from_bytes": from, "to_bytes": to });
    if dry_run {
        row["dry_run"] = true.into();
    }
    format!("{row}\n")
}

/// The limit grew from 110 kB to 1313 kB without an event and was then reduced to 154.5 kB (printed as 155): across, up, down,
/// and across a little beyond the last event.
#[test]
fn unreported_growth_of_a_limit_is_drawn_before_its_reduction() -> TestResult {
    let lines = [
        tuned(100.0, "taken", (None, Some(110_000)), false),
        tuned(110.0, "tightened", (Some(1_313_000), Some(154_500)), false),
    ];
    let Some(mut page) = WatchedPage::open(&lines)? else { return Ok(()) };
    let points = corners(&mut page.browser, 0)?;
    let [start, held, grown, reduced, end] = points[..] else {
        return Err(format!("{points:?}").into());
    };
    assert!(start.0 < held.0 && start.1 == held.1, "across: {points:?}");
    assert!(held.0 == grown.0 && held.1 > grown.1, "up: {points:?}");
    assert!(grown.0 == reduced.0 && grown.1 < reduced.1, "down: {points:?}");
    assert!(reduced.0 + 5.0 < end.0 && reduced.1 == end.1, "across: {points:?}");
    // 1313 kB is 1313 / 110 times as high above the axis as 110 kB.
    let foot = foot(&mut page.browser)?;
    let times = (foot - grown.1) / (foot - start.1);
    assert!((times / (1313.0 / 110.0) - 1.0).abs() < 0.02, "{times}");
    let shown = text(&mut page.browser, "watched")?;
    assert!(shown.contains("reduced, window 155 kB: w"), "{shown}");
    assert!(!shown.contains("dry run"), "{shown}");
    assert_eq!(page.browser.errors, Vec::<String>::new());
    Ok(())
}

/// The last limit holds until the connection ends. The path then carries nothing, but that is not the connection's goodput.
#[test]
fn a_limit_lasts_until_its_connection_ends_and_goodput_does_not_drop() -> TestResult {
    let ended = tuned(120.0, "gone", (None, None), false).replace("100000000.0", "0.0");
    assert!(ended.contains("\"goodput_bps\":0.0"), "{ended}");
    let lines = [
        tuned(100.0, "taken", (None, Some(110_000)), false),
        tuned(110.0, "held", (Some(110_000), Some(154_500)), false),
        ended,
    ];
    let Some(mut page) = WatchedPage::open(&lines)? else { return Ok(()) };
    let limit = corners(&mut page.browser, 0)?;
    let [taken, before, held, over] = limit[..] else { return Err(format!("{limit:?}").into()) };
    assert!(taken.1 == before.1 && before.0 == held.0 && held.1 == over.1, "{limit:?}");
    // Twice as far right as the second event.
    assert!((over.0 - taken.0 - 2.0 * (held.0 - taken.0)).abs() < 0.2, "{limit:?}");
    let goodput = corners(&mut page.browser, 1)?;
    assert_eq!(goodput.len(), 2, "{goodput:?}");
    assert!(goodput[0].1 == goodput[1].1 && goodput[1].1 < foot(&mut page.browser)?, "{goodput:?}");
    assert_eq!(page.browser.errors, Vec::<String>::new());
    Ok(())
}

/// A browser showing the page that follows a tuner's events.
struct WatchedPage {
    browser: Browser,
    _server: PageServer,
    _directory: tempfile::TempDir,
}

impl WatchedPage {
    /// The page, once it shows the three charts for `lines`.
    fn open(lines: &[String]) -> Result<Option<WatchedPage>, Box<dyn std::error::Error>> {
        let Some(mut browser) = browser()? else { return Ok(None) };
        let directory = tempfile::tempdir()?;
        let path = directory.path().join("tune.jsonl");
        let server = PageServer::start(0, vec![WatchedFile::new(&path)])?;
        std::fs::write(&path, lines.concat())?;
        browser.open(server.address())?;
        browser.until("document.querySelectorAll('#watched .line').length === 3")?;
        Ok(Some(WatchedPage { browser, _server: server, _directory: directory }))
    }
}

/// The vertical position of the charts' horizontal axis.
fn foot(browser: &mut Browser) -> Result<f64, Box<dyn std::error::Error>> {
    let frame = browser.value(
        "(() => { const d = document.querySelector('#watched .frame').getAttribute('d'); \
         return +d.match(/V([0-9.]+)H/)[1]; })()",
    )?;
    Ok(frame.as_f64().ok_or("no frame")?)
}

/// Neither line is of a tuned connection, and the last one of none at all.
#[test]
fn the_page_explains_why_a_tuner_limited_nothing() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("tune.jsonl");
    let server = PageServer::start(0, vec![WatchedFile::new(&path)])?;
    let ended =
        json!({ "t_s": 110.0, "event": "ended", "why": "none", "tuned": 0, "not_limited": [] });
    let lines = [tuned(100.0, "not_limited", (None, None), false), format!("{ended}\n")];
    std::fs::write(&path, lines.concat())?;
    browser.open(server.address())?;
    browser.until("document.querySelectorAll('#watched li').length === 2")?;
    let shown = text(&mut browser, "watched")?;
    for words in [
        "curl[1] 192.0.2.7:443: not limited: w",
        "tuning has ended: none",
        "Connections tuned so far: 0; now: 0.",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn dry_run_limits_are_drawn_as_proposals() -> TestResult {
    let lines = [
        tuned(100.0, "taken", (None, Some(1_313_000)), true),
        tuned(110.0, "tightened", (None, Some(154_500)), true),
    ];
    let Some(mut page) = WatchedPage::open(&lines)? else { return Ok(()) };
    let browser = &mut page.browser;
    let shown = text(browser, "watched")?;
    for words in [
        "A dry run: no connection is changed, and the limits are those that it proposes.",
        "curl 192.0.2.7:443, proposed by a dry run",
        "dry run: curl[1] 192.0.2.7:443: would limit its window to 1.31 MB: w",
        "dry run: curl[1] 192.0.2.7:443: would reduce its window to 155 kB: w",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    // The limit is a proposal; goodput and RTT are measured.
    let lines = "[...document.querySelectorAll('#watched .line')].map((line) => line.classList.contains('proposed'))";
    assert_eq!(browser.value(lines)?, json!([true, false, false]));
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_phone_needs_no_horizontal_scrolling() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    for (width, dark) in [(375, false), (390, false), (390, true)] {
        browser.screen(width, dark)?;
        browser.open(server.address())?;
        assert_eq!(browser.value("document.documentElement.scrollWidth")?, json!(width));
    }
    Ok(())
}

/// 71.5 ms is between two steps of the slider, 200 Gbit/s beyond its end.
#[test]
fn numbers_can_be_typed_with_common_units() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    browser.open(server.address())?;
    let mut type_in = |key: &str, words: &str| -> Result<Value, Box<dyn std::error::Error>> {
        browser.value(&format!(
            "(async () => {{ const typed = document.querySelector('.typed[data-for={key}]'); \
             typed.value = '{words}'; typed.dispatchEvent(new Event('change', {{ bubbles: true }})); \
             while (!document.body.dataset.settled) await new Promise(next => setTimeout(next, 10)); \
             return [typed.validity.valid, document.getElementById('file').textContent]; }})()"
        ))
    };
    for (key, words, line) in [
        ("rate", "123 Mbit/s", "rate = \"123000kbit/s\""),
        ("rate", "20M", "rate = \"20000kbit/s\""),
        ("rtt", "71.5 ms", "rtt = \"71.5ms\""),
        ("rtt", "0.08s", "rtt = \"80ms\""),
        ("buffer", "77 kB", "buffer = \"77pkt\""),
        ("window", "123kB", "123pkt"),
    ] {
        let told = type_in(key, words)?;
        assert_eq!(told[0], json!(true), "{key} {words}");
        assert!(told[1].as_str().is_some_and(|file| file.contains(line)), "{key} {words}: {told}");
    }
    for (key, words) in [("rate", "fast"), ("rate", "200 Gbit/s"), ("rtt", "10 kB"), ("rtt", "1e9")]
    {
        assert_eq!(type_in(key, words)?[0], json!(false), "{key} {words}");
    }
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn the_chart_and_the_dragged_slider_fit_one_phone_screen() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    browser.screen(390, false)?;
    browser.open(server.address())?;
    for slider in ["rate", "rtt", "buffer", "load", "window"] {
        // In the lower half of the screen, where scrolling by thumb leaves it.
        let seen = browser.value(&format!(
            "(() => {{ const slider = document.getElementById('{slider}'); \
             scrollTo(0, slider.getBoundingClientRect().top + scrollY - 0.7 * innerHeight); \
             const [s, c] = [slider, document.querySelector('.explained .card')].map(e => e.getBoundingClientRect()); \
             return [c.top >= 0, s.top >= c.bottom, s.bottom <= innerHeight]; }})()"
        ))?;
        assert_eq!(seen, json!([true, true, true]), "{slider}");
    }
    Ok(())
}

/// #777 on white has 4.48, #767676 has 4.54; large text needs only 3, which #949494 reaches (3.03).
#[test]
fn low_contrast_is_detected_as_wcag_defines_it() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("page.html");
    std::fs::write(
        &page,
        "<!doctype html><body style='background:#fff'><p style='color:#777'>just too pale</p>\
         <p style='color:#767676'>just dark enough</p><p style='color:#949494;font-size:24px'>large</p>\
         <div style='background:#000'><svg><text fill='#555' y='20'>dark on dark</text></svg></div>",
    )?;
    browser.open_file(&page)?;
    let found = browser.low_contrast()?;
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("4.48 of 4.5: just too pale"), "{found:?}");
    assert!(found[1].contains("dark on dark"), "{found:?}");
    Ok(())
}

/// WCAG 2.2, success criterion 1.4.3, level AA.
#[test]
fn page_text_and_graphics_meet_wcag_contrast() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    for dark in [false, true] {
        browser.screen(1200, dark)?;
        browser.open(server.address())?;
        assert_eq!(browser.low_contrast()?, Vec::<String>::new(), "dark: {dark}");
        assert_eq!(browser.low_graphics()?, Vec::<String>::new(), "dark: {dark}");
        assert_eq!(browser.collisions()?, Vec::<String>::new(), "dark: {dark}");
    }
    Ok(())
}

/// Every kind of cross traffic and sizing, then both ends of every slider.
const SETTINGS: &str = "(async () => {
  const wrong = [];
  const set = async (id, value) => {
    document.getElementById(id).value = value;
    document.getElementById(id).dispatchEvent(new Event('input', { bubbles: true }));
    while (!document.body.dataset.settled) await new Promise(next => setTimeout(next, 10));
    const verdict = document.getElementById('verdict').textContent;
    if (document.body.dataset.settled !== 'yes' || !verdict.includes('The transfer gets')) wrong.push([id, value, verdict]);
  };
  await set('rate', 40);
  await set('rtt', 100);
  for (const cross of document.getElementById('cross').options)
    for (const sizing of document.getElementById('sizing').options) {
      await set('cross', cross.value);
      await set('sizing', sizing.value);
    }
  await set('cross', 'none');
  await set('sizing', 'fixed');
  await set('rate', 0);
  for (const id of ['rtt', 'buffer', 'window'])
    for (const end of ['min', 'max', 'min']) await set(id, document.getElementById(id)[end]);
  return wrong;
})()";

#[test]
fn every_setting_can_be_run() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = PageServer::start(0, Vec::new())?;
    browser.open(&format!("{}#rate=2500000&rtt=0.01&buffer=10", server.address()))?;
    assert_eq!(browser.value(SETTINGS)?, json!([]));
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}
