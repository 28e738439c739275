//! The parts of a page on a capture: the limit of each connection, in words and as a time-sequence graph with a band below it
//! that names the limit at each moment.
//!
//! A capture is read twice: first for the verdicts, then for the graphs of the connections shown. A [`Drawing`] keeps as much
//! of each as a screen can show.

mod band;
mod drawing;
mod drawings;
mod story;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use sweetspot_units::{Bytes, Rate};

pub use drawing::Drawing;
pub use drawings::Drawings;

use self::story::story;
use crate::path::Simulation;
use crate::{Class, Flow, in_rate, percent};

/// The style of a page, as CSS.
pub const STYLE: &str = concat!(include_str!("style.css"), include_str!("stacks.css"));
/// The part of it that shows tables of the class `stacks` on a phone.
pub const STACKS: &str = include_str!("stacks.css");
/// The script of a page. `drawGraphs(DATA)` draws the graphs of [`Parts::data`].
pub const SCRIPT: &str = include_str!("graph.js");

/// The parts of a page.
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
        let graphs = flows.iter().enumerate().filter_map(|(n, (flow, drawing))| {
            let drawing = drawing.as_ref()?;
            Some(Graph { n, simulated: simulated(flow, drawing), drawing: drawing.finished() })
        });
        let data = Data { classes: classes(), graphs: graphs.collect() };
        Parts {
            title: message(name, flows),
            body: body(flows).into_string(),
            data: serde_json::to_string(&data).unwrap_or_default(),
        }
    }
}

/// A one-line summary of the capture.
fn message(name: &str, flows: &[(Flow, Option<Drawing>)]) -> String {
    let causes: Vec<Class> = flows.iter().map(|(flow, _)| flow.verdict.cause).collect();
    let times = |cause: &Class| causes.iter().filter(|other| *other == cause).count();
    let Some(commonest) = causes.iter().max_by_key(|cause| times(cause)) else {
        return format!("{name} has no connection with data");
    };
    match flows {
        [(flow, _)] => format!(
            "{name}: {}, {:.0} % of the time {}",
            in_rate(Rate::from_f64(flow.goodput_bps)),
            percent(flow.verdict.share_of_time),
            state(*commonest),
        ),
        _ => format!(
            "{name}: {} of {} connections most of the time {}",
            times(commonest),
            flows.len(),
            state(*commonest)
        ),
    }
}

/// The state of a connection held by `cause`, as the end of a sentence.
fn state(cause: Class) -> String {
    match cause {
        Class::Bandwidth => "at the path's capacity".to_owned(),
        Class::Unknown => "limited by something unknown".to_owned(),
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
fn simulated(flow: &Flow, drawing: &Drawing) -> Vec<(u64, u64)> {
    let (Some(Simulation::Done(simulated)), Some(begun)) = (&flow.simulated, drawing.began())
    else {
        return Vec::new();
    };
    simulated.curve.iter().map(|(at, bytes)| (begun + at.as_micros(), bytes.get())).collect()
}

fn classes() -> Vec<&'static str> {
    Class::ALL.into_iter().map(Class::words).collect()
}

const HEADS: [&str; 5] = ["connection", "limited by", "share", "Mbit/s", "payload"];

fn body(flows: &[(Flow, Option<Drawing>)]) -> Markup {
    html! {
        div.scroll {
            table.stacks {
                thead { tr { @for head in HEADS { th { (head) } } } }
                tbody { @for (n, (flow, _)) in flows.iter().enumerate() { (row(n, flow)) } }
            }
        }
        @for (n, (flow, drawing)) in flows.iter().enumerate() { (section(n, flow, drawing.is_some())) }
    }
}

fn row(n: usize, flow: &Flow) -> Markup {
    let verdict = &flow.verdict;
    let cells = [
        html! { a href={ "#f" (n) } { (ends(flow)) } },
        html! { (verdict.cause) },
        html! { (format_args!("{:.0} %", percent(verdict.share_of_time))) },
        html! { (format_args!("{:.2}", flow.goodput_bps / 1e6)) },
        html! { (Bytes::new(flow.bytes)) },
    ];
    html! { tr { @for (head, cell) in HEADS.iter().zip(cells) { td data-label=(head) { (cell) } } } }
}

fn section(n: usize, flow: &Flow, drawn: bool) -> Markup {
    html! {
        section id={ "f" (n) } data-n=(n) {
            h2 { (ends(flow)) }
            p.story { (story(flow).join(" ")) }
            @if drawn {
                figure {
                    canvas tabindex="0" role="img" aria-label="sequence numbers over time" {}
                    p.evidence aria-live="polite" {}
                    p.keys {}
                }
            }
            p { (flow.verdict.words) }
            p { (flow.fix) }
            p.shares { "Time: " (flow.limits.words()) "." }
            @match &flow.simulated {
                Some(Simulation::Done(simulated)) => { p { (simulated.words()) } }
                Some(Simulation::Unknown { unknown }) => {
                    p.evidence { "Not simulated without the limit: " (unknown) "." }
                }
                None => {}
            }
            ul { @for remark in &flow.remarks { li { (remark) } } }
        }
    }
}

fn ends(flow: &Flow) -> Markup {
    html! { (flow.source) (PreEscaped(" &rarr; ")) (flow.destination) }
}
