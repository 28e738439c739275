use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_diagnose::recorded;
use sweetspot_emulator::isolate;

use super::Ending;
use super::selection::Selection;
use crate::bench::limits::{ClassifiedFlow, FlowPlan, classify, markdown, plans, run_plan};
use crate::bench::store::Store;

#[derive(Debug, clap::Args)]
pub struct LimitsArguments {
    #[command(flatten)]
    selection: Selection,
    /// Keep the captures of both ends in DIR, and their kernels' counters (for diagnose --tcpinfo)
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The seed from which paths and strengths are drawn
    #[arg(long, default_value_t = 606)]
    seed: u64,
    /// Flows of each cause
    #[arg(long, default_value_t = FLOWS)]
    flows: u64,
}

/// Default number of flows per cause.
const FLOWS: u64 = 20;
const NAME: &str = "limits";

/// Runs the selected flows, then writes the document from all stored results.
pub fn run(arguments: LimitsArguments) -> Ending {
    let selection = &arguments.selection;
    let (seed, flows) = (arguments.seed, arguments.flows);
    selection.check(plans(seed, flows).into_iter().map(|plan| plan.name))?;
    // Flows with different seeds are stored separately.
    let store = selection.store(NAME, Some(&seed.to_string()))?;
    let code = isolate(|| {
        let is_due = |plan: &FlowPlan| selection.is_due::<ClassifiedFlow>(&store, &plan.name);
        for plan in plans(seed, flows).into_iter().filter(is_due) {
            if let Err(why) = measure(&plan, &store, arguments.keep.as_deref()) {
                err!("sweetspot-research: {}: {why}", plan.name);
                return 1;
            }
        }
        0
    })?;
    if code == 0 {
        selection.write_document(NAME, |notes| document(&store, seed, flows, notes))?;
    }
    Ok(ExitCode::from(code))
}

fn measure(plan: &FlowPlan, store: &Store, keep: Option<&Path>) -> Result<(), String> {
    let finished = run_plan(plan)?;
    if let Some(dir) = keep {
        let ends = [
            ("sender", &finished.at_sender, &finished.live_at_sender),
            ("receiver", &finished.at_receiver, &finished.live_at_receiver),
        ];
        for (end, capture, recording) in ends {
            let keep = |kind: &str, content: &[u8]| {
                let file = dir.join(format!("{}.{end}.{kind}", plan.name));
                fs::write(&file, content)
                    .map_err(|e| format!("cannot write {}: {e}", file.display()))
            };
            keep("pcap", capture)?;
            let lines =
                recording.samples.iter().map(|s| recorded::written(recording.ends, s) + "\n");
            keep("json", lines.collect::<String>().as_bytes())?;
        }
    }
    let classified = classify(plan, &finished)?;
    let views = [
        &classified.capture_at_sender,
        &classified.capture_at_receiver,
        &classified.live_at_sender,
        &classified.live_at_receiver,
    ];
    let classes = views.iter().map(|view| match &view.unsaid {
        Some(words) => format!("{} (not \"{words}\")", view.class),
        None => view.class.to_string(),
    });
    let classes: Vec<String> = classes.collect();
    err!(
        "{}: {}{}",
        plan.name,
        classes.join(" | "),
        if classified.trusted { "" } else { " (not trusted)" }
    );
    store.put(&plan.name, &classified)
}

fn document(store: &Store, seed: u64, flows: u64, notes: &str) -> String {
    let kept: Vec<(String, ClassifiedFlow)> = plans(seed, flows)
        .into_iter()
        .filter_map(|p| Some((p.name.clone(), store.get(&p.name)?)))
        .collect();
    let fewer = if flows == FLOWS { String::new() } else { format!(" --flows {flows}") };
    markdown(&kept, &format!("make bench-limits ARGS=\"--seed {seed}{fewer}\""), notes)
}
