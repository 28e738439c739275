//! Builds the documents in `docs/` as a site with mdBook's library, and checks its links.
//! This crate is not shipped. `make book` writes the site to `target/book`; the tests build it in a temporary
//! directory.
//!
//! ```
//! let site = tempfile::tempdir().unwrap();
//! std::fs::write(site.path().join("a.html"), r##"<h1 id="top"></h1><a href="#bottom">down</a>"##).unwrap();
//! assert_eq!(
//!     sweetspot_book::broken_links(site.path()).unwrap(),
//!     ["a.html: #bottom: there is no such anchor"],
//! );
//! ```

mod html;
mod links;

pub use links::broken_links;

use std::error::Error;
use std::path::Path;

use mdbook_driver::MDBook;

/// The site's path to the page that diagnoses captures, which `docs/diagnose-in-browser.md` shows.
const DIAGNOSIS: &str = "diagnose/page.html";

/// Builds the book in `docs` (with its `book.toml`) and the page that diagnoses captures into the directory `site`. An error is
/// mdBook's, with all its causes: a chapter without a file, or a file that cannot be written.
pub fn build(docs: &Path, site: &Path) -> Result<(), Box<dyn Error + Send + Sync>> {
    let mut book = MDBook::load(docs)?;
    book.config.build.build_dir = std::path::absolute(site)?;
    book.build()?;
    let page = site.join(DIAGNOSIS);
    page.parent().map_or(Ok(()), std::fs::create_dir_all)?;
    Ok(std::fs::write(page, sweetspot_ui::diagnosis_page())?)
}
