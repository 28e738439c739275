//! The page that diagnoses a capture or pasted text: one file, which needs no server.

use data_encoding::BASE64;
use sweetspot_diagnose::page::{SCRIPT, STYLE};

use crate::assets::SIMULATOR;

/// The page's policy: it may run its own scripts and compile its own diagnosis, and may not connect to anything.
pub const POLICY: &str = "default-src 'none'; script-src 'unsafe-inline' 'wasm-unsafe-eval' blob:; \
     style-src 'unsafe-inline'; worker-src blob:; img-src data:; base-uri 'none'; form-action 'none'";

/// Leads from the page to the server's first one; a file has none.
const BACK: &str = r#" &middot; <a href="./">try out a path</a>"#;

/// The page as the server offers it.
pub fn served_page() -> String {
    page(BACK)
}

/// The page in one file, with the diagnosis compiled to WebAssembly; it also works when a browser opens it from disk. A
/// program built without WebAssembly has a page that says so.
pub fn diagnosis_page() -> String {
    page("")
}

fn page(back: &str) -> String {
    let style = format!("{STYLE}{}", include_str!("../page/diagnose.css"));
    let wasm = BASE64.encode(SIMULATOR);
    [
        ("{{policy}}", POLICY),
        ("{{style}}", &style),
        ("{{back}}", back),
        ("{{wasm}}", &wasm),
        ("{{worker}}", include_str!("../page/diagnose-worker.js")),
        ("{{graph}}", SCRIPT),
        ("{{script}}", include_str!("../page/diagnose.js")),
    ]
    .into_iter()
    .fold(include_str!("../page/diagnose.html").to_owned(), |page, (name, content)| {
        page.replacen(name, content, 1)
    })
}
