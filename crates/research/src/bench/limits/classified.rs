use serde::{Deserialize, Serialize};
use sweetspot_diagnose::live::Live;
use sweetspot_diagnose::recorded::Recording;
use sweetspot_diagnose::{Class, capture};
use sweetspot_trace::file::Decoder;
use sweetspot_trace::flow::Table;
use sweetspot_trace::packet::Dissector;

use super::cause::{Cause, ExpectedWords, FlowPlan};
use super::run::FinishedFlow;

/// The classification of a flow from each vantage point.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClassifiedFlow {
    pub cause: Cause,
    /// The correct class.
    pub right: Class,
    pub trusted: bool,
    pub capture_at_sender: ClassShares,
    pub capture_at_receiver: ClassShares,
    pub live_at_sender: ClassShares,
    pub live_at_receiver: ClassShares,
}

/// The class assigned, its share of the time, and the shares of all classes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ClassShares {
    pub class: Class,
    pub shares: Vec<(Class, f64)>,
    /// Required words that are missing from the report.
    #[serde(default)]
    pub unsaid: Option<String>,
}

impl ClassShares {
    /// Whether the class is `right` and no required words are missing.
    pub fn is_right(&self, right: Class) -> bool {
        self.class == right && self.unsaid.is_none()
    }
}

/// Classifies a flow from each vantage point.
pub fn classify(plan: &FlowPlan, finished: &FinishedFlow) -> Result<ClassifiedFlow, String> {
    Ok(ClassifiedFlow {
        cause: plan.cause,
        right: plan.right,
        trusted: finished.trusted,
        capture_at_sender: by_capture(&finished.at_sender, plan.expected_words)?,
        capture_at_receiver: by_capture(
            &finished.at_receiver,
            plan.expected_words.filter(|expected_words| expected_words.at_receiver),
        )?,
        live_at_sender: by_kernel(&finished.live_at_sender),
        live_at_receiver: by_kernel(&finished.live_at_receiver),
    })
}

fn by_capture(
    mut capture: &[u8],
    expected_words: Option<ExpectedWords>,
) -> Result<ClassShares, String> {
    let (mut decoder, mut dissector, mut table) =
        (Decoder::default(), Dissector::default(), Table::default());
    while let Some(record) = decoder.next(&mut capture).map_err(|e| e.to_string())? {
        if let Ok(segment) = dissector.dissect(&record) {
            table.take(&segment);
        }
    }
    let connection = table.drain().ok_or("the capture has no connection")?;
    let flow = capture::flows(&connection).into_iter().next().ok_or("the capture has no data")?;
    let says = |words: &str| {
        flow.verdict.words.contains(words) || flow.remarks.iter().any(|r| r.contains(words))
    };
    let unsaid = expected_words
        .map(|expected_words| expected_words.words)
        .filter(|words| !says(words))
        .map(str::to_owned);
    Ok(ClassShares { class: flow.verdict.class, shares: flow.limits.shares(), unsaid })
}

fn by_kernel(recording: &Recording) -> ClassShares {
    let [local, remote] = recording.ends;
    let mut live = Live::between(local.ip(), remote.ip());
    recording.samples.iter().for_each(|sample| live.handle(*sample));
    ClassShares { class: live.limits().dominant(), shares: live.limits().shares(), unsaid: None }
}
