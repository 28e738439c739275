//! The files of the page, which loads nothing from elsewhere.

/// A file of the page.
pub struct Asset {
    /// Its name, which follows the token in the address.
    pub name: &'static str,
    pub media_type: &'static str,
    pub content: &'static [u8],
    /// Whether `content` is compressed with gzip, which every browser decompresses.
    pub is_gzip: bool,
}

/// The page's simulator, compressed with gzip; empty if this program was built without it.
pub const SIMULATOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/sweetspot.wasm.gz"));

const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

macro_rules! page {
    ($name:literal, $served:expr, $media_type:expr) => {
        Asset {
            name: $served,
            media_type: $media_type,
            content: include_bytes!(concat!("../page/", $name)),
            is_gzip: false,
        }
    };
}

pub const ASSETS: [Asset; 9] = [
    page!("index.html", "", "text/html; charset=utf-8"),
    page!("style.css", "style.css", "text/css; charset=utf-8"),
    page!("main.js", "main.js", JAVASCRIPT),
    page!("scenario.js", "scenario.js", JAVASCRIPT),
    page!("chart.js", "chart.js", JAVASCRIPT),
    page!("words.js", "words.js", JAVASCRIPT),
    page!("live.js", "live.js", JAVASCRIPT),
    page!("engine.js", "engine.js", JAVASCRIPT),
    Asset {
        name: "sweetspot.wasm",
        media_type: "application/wasm",
        content: SIMULATOR,
        is_gzip: true,
    },
];
