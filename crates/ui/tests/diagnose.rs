//! The page that diagnoses captures and pasted text, in a real browser.

use std::path::Path;

use serde_json::json;
use sweetspot_diagnose::{recorded, report};
use sweetspot_testing::browser::Browser;
use sweetspot_testing::capture::window_limited;
use sweetspot_ui::{PageServer, diagnosis_page};

type TestResult<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Limited by the receiver's window for 98 % of the time with unacknowledged data.
const PASTE: &str = "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n\
    ESTAB 0 0 192.0.2.1:https 198.51.100.7:50000\n\
    \t cubic wscale:7,7 rto:240 rtt:40/2 mss:1448 cwnd:10 bytes_acked:4000001 busy:9000ms rwnd_limited:8820ms(98.0%) minrtt:39\n";

/// A browser; `None` after printing why the page cannot be tested.
fn browser() -> TestResult<Option<Browser>> {
    let server = PageServer::start(0, Vec::new())?;
    if server.simulates() {
        sweetspot_testing::skipped("this build has no diagnosis for the page (make wasm)");
        return Ok(None);
    }
    let browser = Browser::start()?;
    if browser.is_none() {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
    }
    Ok(browser)
}

fn open(browser: &mut Browser) -> TestResult<PageServer> {
    let server = PageServer::start(0, Vec::new())?;
    browser.open(&format!("{}diagnose.html", server.address()))?;
    Ok(server)
}

fn text(browser: &mut Browser, selector: &str) -> TestResult<String> {
    let value = browser.value(&format!("document.querySelector('{selector}').textContent"))?;
    Ok(value.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" "))
}

fn paste(browser: &mut Browser, text: &str) -> TestResult {
    browser.value(&format!(
        "document.getElementById('paste').value = {}; document.querySelector('button').click()",
        json!(text)
    ))?;
    answered(browser)
}

/// Waits for a verdict or an error.
fn answered(browser: &mut Browser) -> TestResult {
    browser.until("['yes', 'error'].includes(document.body.dataset.settled)")
}

/// Chooses a file and waits for its answer, ignoring one already shown.
fn choose(browser: &mut Browser, file: &Path) -> TestResult {
    browser.value("delete document.body.dataset.settled")?;
    browser.choose_file("#file", file)?;
    answered(browser)
}

/// The program's own words about the same capture.
fn natively(capture: &[u8]) -> TestResult<[String; 2]> {
    let report = report::read(&mut &capture[..], 20)?;
    let flow = report.flows.first().ok_or("it has a flow")?;
    Ok([flow.verdict.words.clone(), flow.fix.clone()])
}

#[test]
fn a_chosen_capture_gets_the_native_verdict_and_a_graph() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let _server = open(&mut browser)?;
    // Larger than several pieces of 4 MiB.
    let capture = window_limited(6000);
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("slow.pcap");
    std::fs::write(&file, &capture)?;
    choose(&mut browser, &file)?;
    let shown = text(&mut browser, "#result")?;
    for words in natively(&capture)? {
        assert!(shown.contains(&words), "{words}: {shown}");
    }
    let title = text(&mut browser, "#title")?;
    assert!(title.starts_with("slow.pcap: ") && title.contains("receiver's window"), "{title}");
    assert!(text(&mut browser, "#remarks")?.contains("12003 packets, 12003 of them TCP"));
    let drawn = browser.value(
        "(() => { const canvas = document.querySelector('#result canvas'); \
         const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data; \
         return pixels.some(value => value > 0); })()",
    )?;
    assert_eq!(drawn, json!(true));
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_dropped_capture_may_be_compressed() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let _server = open(&mut browser)?;
    let capture = window_limited(200);
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("slow.pcap");
    std::fs::write(&file, &capture)?;
    choose(&mut browser, &file)?;
    browser.value(
        "(async () => { const gzip = new CompressionStream('gzip'); \
         const [file] = document.getElementById('file').files; \
         const small = await new Response(file.stream().pipeThrough(gzip)).blob(); \
         const transfer = new DataTransfer(); transfer.items.add(new File([small], 'small.pcap.gz')); \
         document.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer })); })()",
    )?;
    answered(&mut browser)?;
    assert!(text(&mut browser, "#title")?.starts_with("small.pcap.gz: "));
    let shown = text(&mut browser, "#result")?;
    assert!(natively(&capture)?.iter().all(|words| shown.contains(words)), "{shown}");
    let zstd = ruzstd::encoding::compress_to_vec(
        &capture[..],
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let file = directory.path().join("small.pcap.zst");
    std::fs::write(&file, zstd)?;
    choose(&mut browser, &file)?;
    assert!(text(&mut browser, "#title")?.starts_with("small.pcap.zst: "));
    assert_eq!(text(&mut browser, "#result")?, shown);
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn a_paste_gets_the_native_verdict_or_error() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let _server = open(&mut browser)?;
    paste(&mut browser, PASTE)?;
    let flow = &recorded::report(PASTE, 20)?.flows[0];
    let shown = text(&mut browser, "#result")?;
    assert!(shown.contains(&flow.verdict.words) && shown.contains(&flow.fix), "{shown}");
    assert!(shown.contains("Time: receiver's window 98 %"), "{shown}");
    let loose = browser
        .value(r"document.body.innerText.match(/\d (?:%|[kMG]?B|[kMG]?bit\/s|m?s)(?!\w)/g)")?;
    assert_eq!(loose, json!(null), "a line may end between a number and its unit");
    let wrong = "<script>alert(1)</script> is not the output of ss";
    paste(&mut browser, wrong)?;
    let due = recorded::report(wrong, 20).err().map(|error| format!("paste: {error}"));
    assert_eq!(Some(text(&mut browser, "#status")?), due);
    assert_eq!(text(&mut browser, "#result")?, "", "the verdict before is gone");
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}

#[test]
fn the_page_is_sandboxed_and_cannot_connect_to_its_server() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let server = open(&mut browser)?;
    assert_eq!(browser.value("self.origin")?, json!("null"));
    let address = json!(format!("{}about", server.address()));
    let fetched = browser.value(&format!(
        "fetch({address}).then(() => 'an answer', error => 'refused: ' + error.message)"
    ))?;
    assert!(fetched.as_str().is_some_and(|said| said.starts_with("refused")), "{fetched}");
    Ok(())
}

#[test]
fn the_page_works_from_disk_and_is_readable_on_a_phone() -> TestResult {
    let Some(mut browser) = browser()? else { return Ok(()) };
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("diagnose.html");
    std::fs::write(&page, diagnosis_page())?;
    assert_eq!(browser.faults(&page)?, Vec::<String>::new());
    let act = |browser: &mut Browser| paste(browser, PASTE);
    assert_eq!(browser.faults_after(Path::new(&page), act)?, Vec::<String>::new());
    assert!(text(&mut browser, "#title")?.ends_with("limited by the receiver's window"));
    assert_eq!(browser.errors, Vec::<String>::new());
    Ok(())
}
