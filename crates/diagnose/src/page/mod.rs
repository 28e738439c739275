//! The parts of a page on a capture: the limit of each connection, in words and as a time-sequence graph above a band
//! that shows the limit at each moment.
//!
//! The program reads a capture twice: first for the verdicts, then for the graphs of the connections on the page. A
//! [`Drawing`] keeps as much of each connection as a screen can show.

mod band;
mod drawing;
mod drawings;
mod story;

use maud::{Markup, PreEscaped, html};
use serde::Serialize;
use sweetspot_units::Bytes;

pub use drawing::Drawing;
pub use drawings::Drawings;

use self::story::story;
use crate::path::Simulation;
use crate::{Class, Flow, percent};

/// The style of a page, as CSS.
pub const STYLE: &str = concat!(include_str!("style.css"), include_str!("stacks.css"));
/// The part of [`STYLE`] that shows tables of the class `stacks` on a phone.
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
    /// The parts of the page on `flows` from the capture or recording `name`. Each flow has its drawing, if there is one.
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
    let classes: Vec<Class> = flows.iter().map(|(flow, _)| flow.verdict.class).collect();
    let times = |class: &Class| classes.iter().filter(|other| *other == class).count();
    let Some(commonest) = classes.iter().max_by_key(|class| times(class)) else {
        return format!("{name} has no connection with data");
    };
    match flows {
        [(flow, _)] => format!(
            "{name}: {}, {:.0} % of {} time {}",
            flow.rate(),
            percent(flow.verdict.share_of_time),
            if flow.goodput_is_while_sending { "that" } else { "the" },
            state(flow.verdict.cause, &flow.verdict.limited_by()),
        ),
        _ if times(commonest) == 1 => {
            format!("{name}: {} connections with different limits", flows.len())
        }
        _ => format!(
            "{name}: {} of {} connections are {} most of the time",
            times(commonest),
            flows.len(),
            match commonest {
                Class::Application => state(Class::Application, "applications"),
                class => state(*class, class.words()),
            }
        ),
    }
}

/// The state of a connection limited by `cause`, named `limit`, as the end of a sentence.
fn state(cause: Class, limit: &str) -> String {
    match cause {
        Class::Bandwidth => "at the path's capacity".to_owned(),
        Class::Unknown => "limited by something unknown".to_owned(),
        Class::Stalled | Class::WaitingForPeer | Class::Idle | Class::NeverEstablished
            if limit == cause.words() =>
        {
            limit.to_owned()
        }
        Class::Opportunity | Class::Pacing => format!("limited by {limit}"),
        _ => format!("limited by the {limit}"),
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

/// The simulated transfer, shifted to the beginning of the real one.
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
        html! { (verdict.limited_by()) },
        html! { (format_args!("{:.0} %", percent(verdict.share_of_time))) },
        html! { (mbit(flow)) },
        html! { (Bytes::new(flow.bytes)) },
    ];
    html! { tr { @for (head, cell) in HEADS.iter().zip(cells) { td data-label=(head) { (cell) } } } }
}

fn mbit(flow: &Flow) -> String {
    let meanwhile = if flow.goodput_is_while_sending { " while sending" } else { "" };
    format!("{:.2}{meanwhile}", flow.goodput_bps / 1e6)
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
                // Without its limit, a path at capacity would be another path.
                Some(Simulation::Unknown { unknown }) if flow.verdict.cause != Class::Bandwidth => {
                    p.evidence { "Not simulated without the limit: " (unknown) "." }
                }
                _ => {}
            }
            ul { @for remark in &flow.remarks { li { (remark) } } }
        }
    }
}

fn ends(flow: &Flow) -> Markup {
    html! { (flow.source) (PreEscaped(" &rarr; ")) (flow.destination) }
}

#[cfg(test)]
mod tests {
    use sweetspot_units::{Duration, Rate};

    use super::*;
    use crate::{Evidence, Limits};

    /// The page on one flow with these times per class, in seconds.
    fn page(times: &[(Class, u64)], evidence: Evidence) -> Parts {
        let mut limits = Limits::default();
        times.iter().for_each(|(class, s)| limits.add(*class, Duration::from_secs(*s)));
        let ends = ["192.0.2.1:1000", "192.0.2.2:80"].map(|end| end.parse().expect("an address"));
        Parts::new("x", &[(Flow::new(ends[0], ends[1], limits, &evidence), None)])
    }

    fn title(classes: &[Class]) -> String {
        let ends = ["192.0.2.1:1000", "192.0.2.2:80"].map(|end| end.parse().expect("an address"));
        let flow = |class: &Class| {
            let limits = Limits::only(*class, Duration::from_secs(1));
            (Flow::new(ends[0], ends[1], limits, &evidence()), None)
        };
        Parts::new("x", &classes.iter().map(flow).collect::<Vec<_>>()).title
    }

    #[test]
    fn the_title_names_the_limit_that_connections_share() {
        let [stalled, pacing, idle] = [Class::Stalled, Class::Pacing, Class::Idle];
        let shared = title(&[stalled, pacing, stalled]);
        assert_eq!(shared, "x: 2 of 3 connections are stalled most of the time");
        let applications = title(&[idle, Class::Application]);
        let limit = "are limited by the applications most of the time";
        assert_eq!(applications, format!("x: 2 of 2 connections {limit}"));
        let different = title(&[stalled, pacing, idle]);
        assert_eq!(different, "x: 3 connections with different limits");
    }

    fn evidence() -> Evidence {
        let goodput = Rate::from_mbit_per_second(2);
        Evidence { bytes: Bytes::new(20_000), goodput, ..Evidence::default() }
    }

    #[test]
    fn a_family_total_does_not_take_the_name_of_its_largest_cause() {
        let times = [
            (Class::Idle, 66),
            (Class::WaitingForPeer, 12),
            (Class::Application, 4),
            (Class::Opportunity, 18),
        ];
        let Parts { title, body, .. } = page(&times, evidence());
        let limit = "limited by the applications, mostly idle";
        assert_eq!(title, format!("x: 2.0 Mbit/s, 82 % of the time {limit}"));
        assert!(body.contains(">applications, mostly idle</td>"), "{body}");
        assert!(body.contains("For 66 % of the time neither program"), "{body}");
        assert!(body.contains(&format!("82 % of the time {limit} (66 %): ")), "{body}");
        assert!(body.contains("Time: idle 66 %, "), "{body}");
    }

    #[test]
    fn a_cause_that_makes_up_its_whole_family_is_named_alone() {
        let Parts { title, body, .. } = page(&[(Class::Idle, 10)], evidence());
        assert_eq!(title, "x: 2.0 Mbit/s, 100 % of the time idle");
        assert!(body.contains(">idle</td>"), "{body}");
    }

    #[test]
    fn the_page_marks_a_rate_while_sending_as_such() {
        let evidence = Evidence { is_one_reading: true, ..evidence() };
        let Parts { title, body, .. } = page(&[(Class::ReceiverWindow, 10)], evidence);
        let limit = "100 % of that time limited by the receiver's window";
        assert_eq!(title, format!("x: 2.0 Mbit/s while it was sending, {limit}"));
        let sentence = "192.0.2.1 sent 20 kB to 192.0.2.2, 2.0 Mbit/s while it was sending.";
        assert!(body.contains(sentence), "{body}");
        assert!(body.contains(">2.00 while sending</td>"), "{body}");
    }
}
