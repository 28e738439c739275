//! Tests the demonstration's page in a real browser.

mod synthetic;

use sweetspot_testing::browser::Browser;

#[test]
fn the_page_fits_a_phone_and_every_word_and_curve_of_it_can_be_read()
-> Result<(), Box<dyn std::error::Error>> {
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
