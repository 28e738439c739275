//! The verdict, the notes and the keys agree with the pictures, in a real browser.

use serde_json::{Value, json};
use sweetspot_testing::browser::Browser;
use sweetspot_ui::PageServer;

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// A browser on the page with these settings, once it is settled.
struct TriedPath {
    browser: Browser,
    server: PageServer,
}

impl TriedPath {
    fn open(settings: &str) -> TestResult<Option<TriedPath>> {
        let Some(mut browser) = Browser::start()? else {
            sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
            return Ok(None);
        };
        let server = PageServer::start(0, Vec::new())?;
        browser.screen(1200, false)?;
        browser.open(&format!("{}#{settings}", server.address()))?;
        Ok(Some(TriedPath { browser, server }))
    }

    fn again(&mut self, settings: &str) -> TestResult {
        self.browser.call("Page.navigate", json!({ "url": "about:blank" }))?;
        self.browser.open(&format!("{}#{settings}", self.server.address()))
    }

    /// The texts of the visible elements that match.
    fn texts(&mut self, selector: &str) -> TestResult<Vec<String>> {
        let shown = format!(
            "[...document.querySelectorAll('{selector}')].filter((e) => e.checkVisibility()).map((e) => e.textContent)"
        );
        let shown = self.browser.value(&shown)?;
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = shown.as_array().ok_or("no list")?.iter().filter_map(Value::as_str);
        Ok(texts.map(words).collect())
    }

    fn verdict(&mut self) -> TestResult<String> {
        Ok(self.texts("#verdict")?.concat())
    }

    /// The page's own answer to a question about its scenario.
    fn ask(&mut self, question: Value) -> TestResult<Value> {
        let scenario = self.browser.value("document.getElementById('file').textContent")?;
        let mut question = question;
        question["scenario"] = scenario;
        Ok(serde_json::from_str(&sweetspot_wasm::answer(&question.to_string()))?)
    }

    fn end(self) {
        assert_eq!(self.browser.errors, Vec::<String>::new());
    }
}

const SMALL: &str = "rate=10000000&rtt=0.04&buffer=50";

/// A scenario limits windows to a million packets, of 1000 B here. 10 Mbit/s x 40 ms and the buffer of 50 are 100 packets, so the
/// picture ends at 160.
#[test]
fn a_window_beyond_the_axis_is_an_arrow_with_its_size() -> TestResult {
    let Some(mut page) = TriedPath::open(&format!("{SMALL}&sizing=max"))? else { return Ok(()) };
    assert_eq!(page.texts("#curve .beyond")?, ["1 GB"]);
    assert!(page.texts("#windows .beyond")?.contains(&"▲ advertised up to 1 GB".to_owned()));
    let is_clipped = page.browser.value(
        "(() => { const line = document.querySelector('#windows .adv'); \
         const id = line.getAttribute('clip-path').slice(5, -1); const top = document.getElementById(id).firstChild; \
         return line.getBBox().y < +top.getAttribute('y'); })()",
    )?;
    assert_eq!(is_clipped, json!(true), "the line leaves the picture at the top");
    page.again(&format!("{SMALL}&window=75"))?;
    assert_eq!(page.texts("#curve .beyond")?, [""; 0]);
    page.end();
    Ok(())
}

/// No closed form covers short TCP transfers; without cross traffic, one covers all windows.
#[test]
fn keys_and_notes_are_shown_only_with_their_marks() -> TestResult {
    let Some(mut page) = TriedPath::open(&format!("{SMALL}&cross=arrivals&window=75"))? else {
        return Ok(());
    };
    let key = ".explained .key";
    assert_eq!(page.texts(key)?, ["simulated", "this window", "rate of the path"]);
    assert_eq!(page.texts("#windows ~ .legend .key")?, ["advertised", "congestion window"]);
    let notes = page.texts(".explained .note")?.concat();
    let due = "No closed form covers this traffic, so only simulations are drawn: transfers of";
    assert!(notes.starts_with(due), "{notes}");
    page.again(&format!("{SMALL}&window=20"))?;
    let keys = page.texts(key)?;
    assert!(keys.contains(&"closed form".to_owned()), "{keys:?}");
    assert!(keys.contains(&"sweet spot".to_owned()), "{keys:?}");
    let notes = page.texts(".explained .note")?;
    let curve = page.ask(json!({ "ask": "curve", "windows_bytes": [] }))?;
    let kilo = |key: &str| curve[key].as_u64().map_or(0, |bytes| bytes / 1000);
    let due = format!(
        "The sweet spot, {} kB to {} kB,",
        kilo("sweet_from_bytes"),
        kilo("sweet_to_bytes")
    );
    assert!(notes[0].starts_with(&due), "{due} {notes:?}");
    page.end();
    Ok(())
}

/// Slow start overflows the buffer within the first seconds, and Reno does not do so again in the run of 48 s: the measured half
/// has no loss, and is short of the steady state.
#[test]
fn the_verdict_names_drops_before_the_measured_time() -> TestResult {
    let Some(mut page) = TriedPath::open("cross=elephants&window=1200")? else { return Ok(()) };
    let series = page.ask(json!({ "ask": "series", "interval_s": 0.12 }))?;
    let samples = &series["samples"];
    let dropped = samples["dropped_packets"].as_array().ok_or("no drops")?;
    let last = (1..dropped.len()).rfind(|i| dropped[*i] != dropped[i - 1]).ok_or("no drop")?;
    let last = samples["at_s"][last].as_f64().ok_or("no time")?;
    let verdict = page.verdict()?;
    let due = format!("the buffer last dropped packets at {last:.2} s, and none from 24 s on");
    assert!(verdict.contains(&due), "{due}: {verdict}");
    assert!(verdict.contains("too short for its steady state: slow start"), "{verdict}");
    assert_eq!(page.texts("#period")?, ["In numbers, from 24 s on"]);
    // The simulated windows from the sweet spot on: each is larger than the mean flight of its run.
    let curve = page.ask(json!({ "ask": "curve", "windows_bytes": [] }))?;
    let from = curve["sweet_from_bytes"].as_f64().ok_or("no sweet spot")?;
    let windows = (1..=16).filter(|i| f64::from(*i) / 16.0 * 1.6 * 938.0 > from / 1000.0).count();
    let late = page.browser.value("document.querySelectorAll('#curve .dot.late').length")?;
    assert_eq!(late, json!(windows));
    page.end();
    Ok(())
}

/// 10 Mbit/s x 40 ms and the buffer of 50 are 100 packets; the page offers 1.6 times as many.
#[test]
fn a_refused_value_is_explained_below_its_field_until_it_is_replaced() -> TestResult {
    let Some(mut page) = TriedPath::open(&format!("{SMALL}&window=75"))? else { return Ok(()) };
    for (key, typed, due) in [
        ("window", "2 GB", "At most 160 kB here; still showing 75 kB."),
        ("rtt", "0.1 ms", "At least 1 ms here; still showing 40 ms."),
        (
            "rate",
            "fast",
            "Write a number and its unit, such as 50 Mbit/s; still showing 10 Mbit/s.",
        ),
    ] {
        page.browser.value(&format!(
            "(() => {{ const typed = document.querySelector('.typed[data-for={key}]'); typed.value = '{typed}'; \
             typed.dispatchEvent(new Event('change', {{ bubbles: true }})); }})()"
        ))?;
        assert_eq!(page.texts(&format!("#{key}-refused"))?, [due]);
    }
    assert_eq!(page.texts(".refused")?.len(), 3, "a later refusal hides none before it");
    page.browser.value(
        "(() => { const slider = document.getElementById('buffer'); slider.value = 110; \
         slider.dispatchEvent(new Event('input', { bubbles: true })); })()",
    )?;
    assert_eq!(page.texts(".refused")?, [""; 0]);
    let typed = page.browser.value("document.querySelector('.typed[data-for=window]').value")?;
    assert_eq!(typed, json!("75\u{a0}kB"));
    page.end();
    Ok(())
}

/// The texts in which a line may end between a number and its unit.
const LOOSE: &str = r"(document.body.innerText.match(/.{9}\d (?:[kMG]?B|[kMG]?bit\/s|[mµ]?s|%|packets?)(?!\w)/gs) ?? [])";

#[test]
fn numbers_stay_on_the_line_of_their_units() -> TestResult {
    let Some(mut page) = TriedPath::open(&format!("{SMALL}&window=150"))? else { return Ok(()) };
    assert_eq!(page.browser.value(LOOSE)?, json!([]));
    let words = page.browser.value(
        "import(new URL('words.js', location.href)).then((words) => [words.counted(1, 'packet'), words.counted(2000, 'packet')])",
    )?;
    assert_eq!(words, json!(["1\u{a0}packet", "2,000\u{a0}packets"]));
    page.end();
    Ok(())
}
