//! Tests the demonstration's page in a real browser.

mod synthetic;

use sweetspot_testing::browser::Browser;

#[test]
fn the_page_fits_a_phone_with_readable_text_and_curves() -> Result<(), Box<dyn std::error::Error>> {
    let Some(mut browser) = Browser::start()? else {
        sweetspot_testing::skipped("there is no chromium here (apt-get install chromium)");
        return Ok(());
    };
    let directory = tempfile::tempdir()?;
    let page = directory.path().join("report.html");
    std::fs::write(&page, sweetspot_report::page(&synthetic::outcome()))?;
    assert_eq!(browser.faults(&page)?, Vec::<String>::new());
    Ok(())
}
