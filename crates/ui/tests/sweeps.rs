//! The journal of a sweep, on the page in a real browser.

use serde_json::{Value, json};
use sweetspot_testing::browser::Browser;
use sweetspot_ui::{PageServer, WatchedFile};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// The line of a combination, as `Journal::plan` writes it.
fn planned(scenario: &str, (place, places): (usize, usize), values: &[(&str, &str)]) -> String {
    let planned = json!({ "place": place, "places": places, "seeds": 2, "values": values });
    let line = json!({ "engine": "sim", "scenario": scenario, "seed": 1, "planned": planned });
    format!("{line}\n")
}

/// The line of a finished run.
fn finished(scenario: &str, seed: u64, goodput_bps: f64) -> String {
    let transfer = json!({ "sizing": "x", "goodput_bps": goodput_bps, "loss_rate": 0.01 });
    let outcome = json!({ "seed": seed, "transfers": [transfer] });
    let line = json!({ "engine": "sim", "scenario": scenario, "seed": seed, "outcome": outcome });
    format!("{line}\n")
}

fn list(browser: &mut Browser, of: &str) -> TestResult<Vec<String>> {
    let value = browser
        .value(&format!("[...document.querySelectorAll('{of}')].map((e) => e.textContent)"))?;
    let texts = value.as_array().ok_or("no list")?.iter().filter_map(Value::as_str);
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    Ok(texts.map(words).collect())
}

/// Whether each key shows the shape and colour of its marks, none the same as another, and no mark touches the frame.
const SHAPES: &str = "(() => {
  const shape = (e) => e.getAttribute('d').replace(/^M\\S+ \\S+?(?=[ahl])/, '') + getComputedStyle(e).stroke;
  const marks = [...document.querySelectorAll('#watched figure:first-child div .shaped')];
  const keys = [...document.querySelectorAll('#watched figure:first-child .key .shaped')].map(shape);
  const frame = document.querySelector('#watched figure:first-child .frame').getBBox();
  const inside = ({ x, y, width, height }) => x > frame.x && x + width < frame.x + frame.width && y + height < frame.y + frame.height;
  const kinds = [...new Set(marks.map(shape))];
  return [kinds.join() === keys.join() && kinds.length === 2, marks.every((mark) => inside(mark.getBBox()))];
})()";

/// The journal has three runs of a sweep and then three of the eight of another, which also uses one of the first's.
#[test]
fn only_runs_of_the_last_sweep_are_shown_with_their_values() -> TestResult {
    let Some(mut browser) = Browser::start()? else {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("sweep.json.journal");
    let server = PageServer::start(0, vec![WatchedFile::new(&path)])?;
    let head = "{\"sweetspot_journal\":1,\"version\":\"1\"}\n".to_owned();
    let before = [
        planned("a", (0, 2), &[("path.buffer", "100pkt")]),
        planned("b", (1, 2), &[("path.buffer", "900pkt")]),
        finished("a", 1, 20e6),
        finished("b", 1, 77e6),
        finished("b", 2, 78e6),
    ];
    let values = |buffer, sizing| [("path.buffer", buffer), ("transfer.sizing", sizing)];
    let now = [
        planned("a", (0, 4), &values("100pkt", "sobas")),
        planned("c", (1, 4), &values("100pkt", "drs")),
        planned("d", (2, 4), &values("200pkt", "sobas")),
        planned("e", (3, 4), &values("200pkt", "drs")),
        finished("e", 2, 30e6),
        finished("c", 1, 40e6),
    ];
    std::fs::write(&path, head + &before.concat() + &now.concat())?;
    browser.open(server.address())?;
    browser.until("document.querySelector('#watched .state').textContent.includes(' of 8 ')")?;
    let state = list(&mut browser, "#watched .state")?.concat();
    assert!(state.starts_with("3 of 8 runs are finished"), "{state}");
    let last = "The last: path.buffer=100pkt transfer.sizing=drs, seed 1: 40 Mbit/s, loss 1 %.";
    assert!(state.ends_with(last), "{state}");
    let goodput = "#watched figure:first-child";
    let names = list(&mut browser, &format!("{goodput} title"))?;
    let name = |buffer: &str, sizing: &str, rest: &str| {
        format!("path.buffer={buffer} transfer.sizing={sizing}, seed {rest} Mbit/s, loss 1 %")
    };
    let due = [
        name("100pkt", "sobas", "1: 20"),
        name("100pkt", "drs", "1: 40"),
        name("200pkt", "drs", "2: 30"),
    ];
    assert_eq!(names, due);
    assert_eq!(
        list(&mut browser, &format!("{goodput} .key"))?,
        ["transfer.sizing=sobas", "transfer.sizing=drs"]
    );
    assert_eq!(
        list(&mut browser, "#watched figcaption")?,
        ["Goodput of each run, Mbit/s", "Loss of each run, %"]
    );
    assert_eq!(browser.value(SHAPES)?, json!([true, true]));
    assert!(
        list(&mut browser, &format!("{goodput} text"))?.contains(&"path.buffer, pkt".to_owned())
    );
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

/// Only a build with WebAssembly can diagnose: others neither link to that page nor ask for a capture on it.
#[test]
fn the_diagnosis_is_offered_only_if_it_works_and_links_back() -> TestResult {
    let Some(mut browser) = Browser::start()? else {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
        return Ok(());
    };
    let server = PageServer::start(0, Vec::new())?;
    browser.open(server.address())?;
    let is_hidden = "document.getElementById('diagnosis').hidden";
    browser.until(&format!("{is_hidden} === {}", server.simulates()))?;
    browser.open(&format!("{}diagnose.html", server.address()))?;
    let asks =
        browser.value("document.querySelector('main').innerText.includes('Drop a capture')")?;
    assert_eq!(asks, json!(!server.simulates()));
    let back = browser.value("document.querySelector('.brand a').href")?;
    assert_eq!(back, json!(server.address()));
    Ok(())
}
