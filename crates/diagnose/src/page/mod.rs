//! A self-contained page on a capture: the limit of each connection, in words and as a time-sequence graph with a band below it
//! that names the limit at each moment.
//!
//! A capture is read twice: first for the verdicts, then for the graphs of the connections shown. A [`Drawing`] keeps as much
//! of each as a screen can show.

mod drawing;
mod drawings;
mod story;

use std::fmt::Write;

use serde::Serialize;

pub use drawing::Drawing;
pub use drawings::Drawings;

use self::story::story;
use crate::path::Simulation;
use crate::{Class, Flow};

/// The style of a page, as CSS.
pub const STYLE: &str = include_str!("style.css");
/// The script of a page. `drawGraphs(DATA)` draws the graphs of [`Parts::data`].
pub const SCRIPT: &str = include_str!("graph.js");

/// The parts of a page, for pages that have more than a diagnosis.
#[derive(Debug, Clone, Serialize)]
pub struct Parts {
    /// A one-line summary, as text.
    pub title: String,
    /// A table of the connections and a section on each, as HTML.
    pub body: String,
    /// The data of the graphs, as JSON.
    pub data: String,
}

impl Parts {
    /// The parts of the page on `flows` of the capture or recording called `name`, each with its drawing if there is one.
    pub fn new(name: &str, flows: &[(Flow, Option<Drawing>)]) -> Parts {
        let mut sections = String::new();
        let mut overview = String::new();
        let mut graphs = Vec::new();
        for (n, (flow, drawing)) in flows.iter().enumerate() {
            let _ = write!(overview, "{}", row(n, flow));
            let _ = write!(sections, "{}", section(n, flow, drawing.is_some()));
            let simulated = simulated(flow, drawing.as_ref());
            graphs.extend(drawing.iter().map(|drawing| Graph {
                n,
                simulated: simulated.clone(),
                drawing: drawing.finished(),
            }));
        }
        Parts {
            title: message(name, flows),
            body: format!(
                r#"<div class="scroll"><table>
<thead><tr><th>connection</th><th>limited by</th><th>share</th><th>Mbit/s</th><th>payload</th></tr></thead>
<tbody>{overview}</tbody></table></div>
{sections}"#
            ),
            data: serde_json::to_string(&Data { classes: classes(), graphs }).unwrap_or_default(),
        }
    }
}

/// The page on `flows` of the capture called `name`, each with its drawing if there is one.
pub fn page(name: &str, flows: &[(Flow, Option<Drawing>)]) -> String {
    let Parts { title, body, data } = Parts::new(name, flows);
    format!(
        r#"<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Sweetspot: {title}</title>
<style>{STYLE}</style>
</head>
<body>
<main>
<header>
<p class="brand">sweetspot diagnose</p>
<h1>{title}</h1>
</header>
{body}
</main>
<script type="application/json" id="data">{json}</script>
<script>{SCRIPT}
drawGraphs(JSON.parse(document.getElementById("data").textContent));</script>
</body>
</html>
"#,
        title = escape(&title),
        // A closing script tag in the data would end the script.
        json = data.replace('<', "\\u003c"),
    )
}

/// A one-line summary of the capture.
fn message(name: &str, flows: &[(Flow, Option<Drawing>)]) -> String {
    let causes: Vec<Class> = flows.iter().map(|(flow, _)| flow.verdict.cause).collect();
    let times = |cause: &Class| causes.iter().filter(|other| *other == cause).count();
    let Some(most) = causes.iter().max_by_key(|cause| times(cause)) else {
        return format!("{name} has no connection with data");
    };
    match flows {
        [(flow, _)] => format!(
            "{name}: {:.2} Mbit/s, {:.0} % of the time {}",
            flow.goodput_bps / 1e6,
            flow.verdict.share_of_time * 100.0,
            state(*most),
        ),
        _ => format!(
            "{name}: {} of {} connections most of the time {}",
            times(most),
            flows.len(),
            state(*most)
        ),
    }
}

/// The state of a connection held by `cause`, as the end of a sentence.
fn state(cause: Class) -> String {
    match cause {
        Class::Bandwidth => "at the path's capacity".to_owned(),
        Class::Unknown => "held by what cannot be told".to_owned(),
        Class::Stalled | Class::WaitingForPeer | Class::Idle | Class::NeverEstablished => {
            cause.to_string()
        }
        Class::Opportunity | Class::Pacing => format!("limited by {cause}"),
        _ => format!("limited by the {cause}"),
    }
}

/// Data for the page's script.
#[derive(Serialize)]
struct Data<'a> {
    classes: Vec<&'static str>,
    graphs: Vec<Graph<'a>>,
}

#[derive(Serialize)]
struct Graph<'a> {
    n: usize,
    /// The simulated acknowledgements without the limit: microseconds, bytes.
    simulated: Vec<(u64, u64)>,
    #[serde(flatten)]
    drawing: drawing::Finished<'a>,
}

/// The simulated transfer, from when the real one began.
fn simulated(flow: &Flow, drawing: Option<&Drawing>) -> Vec<(u64, u64)> {
    let (Some(Simulation::Played(simulated)), Some(begun)) =
        (&flow.simulated, drawing.and_then(Drawing::began))
    else {
        return Vec::new();
    };
    simulated.curve.iter().map(|(at, bytes)| (begun + at.as_micros(), bytes.get())).collect()
}

fn classes() -> Vec<&'static str> {
    Class::ALL.into_iter().map(Class::words).collect()
}

fn row(n: usize, flow: &Flow) -> String {
    let verdict = &flow.verdict;
    format!(
        "<tr><td><a href=\"#f{n}\">{} &rarr; {}</a></td><td>{}</td><td>{:.0} %</td><td>{:.2}</td>\
         <td>{}</td></tr>\n",
        flow.source,
        flow.destination,
        verdict.cause,
        verdict.share_of_time * 100.0,
        flow.goodput_bps / 1e6,
        sweetspot_units::Bytes::new(flow.bytes),
    )
}

fn section(n: usize, flow: &Flow, drawn: bool) -> String {
    let [first, second, third] = story(flow);
    let graph = if drawn {
        "<figure><canvas tabindex=\"0\" role=\"img\" aria-label=\"sequence numbers over time\">\
         </canvas><p class=\"evidence\" aria-live=\"polite\"></p><p class=\"keys\"></p></figure>"
    } else {
        ""
    };
    let simulated = match &flow.simulated {
        Some(Simulation::Played(simulated)) => format!("<p>{}</p>", escape(&simulated.words())),
        Some(Simulation::Unknown { unknown }) => {
            format!(
                "<p class=\"evidence\">Not simulated without the limit: {}.</p>",
                escape(unknown)
            )
        }
        None => String::new(),
    };
    let remarks: String =
        flow.remarks.iter().map(|remark| format!("<li>{}</li>", escape(remark))).collect();
    format!(
        "<section id=\"f{n}\" data-n=\"{n}\">\n<h2>{} &rarr; {}</h2>\n\
         <p class=\"story\">{} {} {}</p>\n{graph}\n<p>{}</p>\n<p>{}</p>\n<p class=\"shares\">Time: {}.</p>\n{simulated}\n<ul>{remarks}</ul>\n</section>\n",
        flow.source,
        flow.destination,
        escape(&first),
        escape(&second),
        escape(&third),
        escape(&flow.verdict.words),
        escape(&flow.fix),
        escape(&flow.limits.words()),
    )
}

/// Text as HTML.
fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
