//! Line charts as SVG text, so that the page needs no script to show them.

mod axis;
mod panel;
mod scale;
mod thin;

pub use axis::{number, time_axis};
pub use panel::{Band, LineRun, Panel, ReferenceLine};
pub use scale::LinearScale;
pub use thin::thin_by;

/// Text that can stand in SVG and HTML.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
