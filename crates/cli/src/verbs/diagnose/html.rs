//! The page on a capture. A second pass over the capture draws the graphs of its largest
//! connections.

use std::fs;
use std::path::Path;

use maud::{PreEscaped, html};
use sweetspot_diagnose::Flow;
use sweetspot_diagnose::page::{Drawing, Drawings, Parts, SCRIPT, STYLE};
use sweetspot_diagnose::report::{DiagnosisReport, segments};
use sweetspot_report::html_file;
use sweetspot_trace::packet::{Dissector, Segment};

use super::input::Input;
use sweetspot_program::print::Shown;

/// Writes the page on `report`, the diagnosis of `capture`, to `out`.
pub fn write(capture: &Input, report: &DiagnosisReport, out: &Path) -> Result<(), String> {
    let drawings = draw(capture, &report.flows)?;
    let flows: Vec<_> = report.flows.iter().cloned().zip(drawings).collect();
    fs::write(out, page(Parts::new(capture.title(), &flows))).map_err(|error| {
        format!("cannot write {}: {error}; give --html a file that you may write to", out.shown())
    })?;
    note!("wrote {}", out.shown());
    Ok(())
}

fn page(Parts { title, body, data }: Parts) -> String {
    // A closing script tag in the data would end the script.
    let json = data.replace('<', "\\u003c");
    let body = html! {
        main {
            header { p.brand { "sweetspot diagnose" } h1 { (title) } }
            (PreEscaped(body))
        }
        script type="application/json" id="data" { (PreEscaped(json)) }
        script {
            (PreEscaped(SCRIPT))
            (PreEscaped(r#"drawGraphs(JSON.parse(document.getElementById("data").textContent));"#))
        }
    };
    html_file(&format!("Sweetspot: {title}"), "light dark", STYLE.to_owned(), &body)
}

/// The drawings of `flows`, in their order.
fn draw(capture: &Input, flows: &[Flow]) -> Result<Vec<Option<Drawing>>, String> {
    let mut drawings = Drawings::new(flows);
    let mut file = capture.open()?;
    // Errors were reported in the first pass.
    let take = &mut |segment: &Segment| drawings.take(segment);
    let _ = segments(&mut *file, &mut Dissector::default(), take);
    Ok(drawings.end())
}
