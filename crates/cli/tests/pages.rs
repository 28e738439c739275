//! Tests the program's pages in a real browser: they fit on a phone and are readable.

use std::path::{Path, PathBuf};
use std::process::Command;

use sweetspot_testing::browser::Browser;
use sweetspot_testing::capture::window_limited;
use tempfile::TempDir;

type TestResult = Result<(), Box<dyn std::error::Error>>;

/// Runs `sweetspot` in `directory`.
fn sweetspot(directory: &Path, words: &str) -> TestResult {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let output = command.args(words.split(' ')).current_dir(directory).output()?;
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    if output.status.success() { Ok(()) } else { Err(format!("{words}: {message}").into()) }
}

/// A page of each kind.
fn pages(directory: &Path) -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    let scenarios = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios");
    let sweet_spot = format!("{scenarios}/standing/sweet-spot.toml");
    let over = "--over transfer.sizing=fixed:100pkt,fixed:200pkt,sobas --seeds 2";
    sweetspot(directory, &format!("run {sweet_spot} --series run.parquet"))?;
    sweetspot(directory, "report run.parquet --out run.html")?;
    sweetspot(directory, &format!("sweep {sweet_spot} {over} --out sweep.json"))?;
    sweetspot(directory, "report sweep.json --out sweep.html")?;
    sweetspot(directory, "report sweep.json run.parquet --out both.html")?;
    sweetspot(directory, &format!("run {sweet_spot} --out run.json"))?;
    // Missing directories are created, as for pictures.
    sweetspot(directory, "report run.json --out new/one.html")?;
    std::fs::rename(directory.join("new/one.html"), directory.join("one.html"))?;
    sweetspot(directory, "report sweep.json sweep.json --out compared.html")?;
    std::fs::write(directory.join("slow.pcap"), window_limited(1200))?;
    sweetspot(directory, "diagnose slow.pcap --html slow.html")?;
    let names = ["slow.html", "run.html", "sweep.html", "both.html", "one.html", "compared.html"];
    Ok(names.into_iter().map(|name| directory.join(name)).collect())
}

/// A browser, and the pages in their temporary directory.
type Shown = (Browser, TempDir, Vec<PathBuf>);

fn browser_and_pages() -> Result<Option<Shown>, Box<dyn std::error::Error>> {
    let Some(browser) = Browser::start()? else {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
        return Ok(None);
    };
    let directory = tempfile::tempdir()?;
    let pages = pages(directory.path())?;
    Ok(Some((browser, directory, pages)))
}

#[test]
fn every_page_fits_a_phone_and_is_readable() -> TestResult {
    let Some((mut browser, _directory, pages)) = browser_and_pages()? else { return Ok(()) };
    for page in pages {
        assert_eq!(browser.faults(&page)?, Vec::<String>::new());
    }
    Ok(())
}

#[test]
fn no_table_scrolls_sideways_on_a_phone() -> TestResult {
    let Some((mut browser, _directory, pages)) = browser_and_pages()? else { return Ok(()) };
    browser.screen(390, false)?;
    for page in pages {
        browser.open_file(&page)?;
        let wider = "[...document.querySelectorAll('.wide, .scroll')].filter(e => e.scrollWidth > e.clientWidth).length";
        assert_eq!(browser.value(wider)?, 0, "{}", page.display());
    }
    Ok(())
}

/// A capture without the packets that the server sent from port 80.
fn without_answers(capture: &[u8]) -> Vec<u8> {
    // A file header of 24 bytes, then records with 16-byte headers; the source port follows Ethernet and IPv4.
    const PORT: usize = 16 + 14 + 20;
    let (header, mut rest) = capture.split_at(24);
    let mut kept = header.to_vec();
    while let Some(length) = rest.get(8..12).and_then(|bytes| bytes.try_into().ok()) {
        let (record, next) = rest.split_at(16 + u32::from_le_bytes(length) as usize);
        if record[PORT..PORT + 2] != [0, 80] {
            kept.extend(record);
        }
        rest = next;
    }
    kept
}

/// A sender that got no answer has no window, no RTT, and no rate.
#[test]
fn a_plot_without_data_has_no_scale() -> TestResult {
    let Some(mut browser) = Browser::start()? else {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    std::fs::write(directory.path().join("silent.pcap"), without_answers(&window_limited(100)))?;
    sweetspot(directory.path(), "diagnose silent.pcap --html silent.html")?;
    browser.open_file(&directory.path().join("silent.html"))?;
    browser.value(
        "window.drawn = []; const fill = CanvasRenderingContext2D.prototype.fillText;
         CanvasRenderingContext2D.prototype.fillText = function (t, ...at) { drawn.push(t); fill.call(this, t, ...at); };
         dispatchEvent(new Event('resize'))",
    )?;
    browser.until("window.drawn.length > 0")?;
    let drawn = browser.value("window.drawn.join('|')")?;
    let drawn: Vec<&str> = drawn.as_str().ok_or("no text")?.split('|').collect();
    for scale in ["1 B", "1 us", "0 kbit/s"] {
        assert!(!drawn.contains(&scale), "{drawn:?}");
    }
    assert!(
        drawn.contains(&"window: no data") && drawn.contains(&"round trip: no data"),
        "{drawn:?}"
    );
    // The data is drawn to scale.
    assert!(drawn.iter().any(|word| word.ends_with("kB")), "{drawn:?}");
    Ok(())
}

/// On a phone, a row is a block of names and values; a value with its interval has at most 17 characters.
#[test]
fn no_table_value_wraps_on_a_phone() -> TestResult {
    let Some((mut browser, _directory, pages)) = browser_and_pages()? else { return Ok(()) };
    browser.screen(390, false)?;
    for page in pages {
        browser.open_file(&page)?;
        let broken = "[...document.querySelectorAll('.stacks td:not(.prose)')]
            .filter(e => e.textContent.length < 18)
            .filter(e => e.offsetHeight > 2 * parseFloat(getComputedStyle(e).fontSize))
            .map(e => e.dataset.label + ' ' + e.textContent).join()";
        assert_eq!(browser.value(broken)?, "", "{}", page.display());
    }
    Ok(())
}

#[test]
fn report_writes_every_picture_or_says_why_there_is_none() -> TestResult {
    let directory = tempfile::tempdir()?;
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/standing/sweet-spot.toml");
    // With one variant and two seeds, there is no line to draw.
    let sweep = "--over transfer.sizing=sobas --seeds 2 --out one.json";
    sweetspot(directory.path(), &format!("sweep {path} {sweep}"))?;
    let nothing = sweetspot(directory.path(), "report one.json --svg pictures");
    let message = nothing.expect_err("it has no picture").to_string();
    assert!(message.contains("only tables") && message.contains("run --out"), "{message}");
    sweetspot(directory.path(), &format!("run {path} --series run.csv"))?;
    sweetspot(directory.path(), "report run.csv --theme print --svg pictures")?;
    let drawn = std::fs::read_dir(directory.path().join("pictures"))?.count();
    assert!(drawn >= 4, "{drawn}");
    // The same number of pictures in each format, and none that is not listed.
    let all = "report run.csv --svg all --png all --json --out page.html";
    let output = Command::new(env!("CARGO_BIN_EXE_sweetspot"))
        .args(all.split(' '))
        .current_dir(directory.path())
        .output()?;
    let summary: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let written: Vec<&str> = summary["written"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|path| path.as_str())
        .collect();
    assert_eq!(written[0], "page.html");
    for extension in [".svg", ".png"] {
        let found = written.iter().filter(|path| path.ends_with(extension));
        assert_eq!(found.count(), drawn, "{extension} in {written:?}");
    }
    assert!(written.iter().all(|path| directory.path().join(path).exists()));
    Ok(())
}
