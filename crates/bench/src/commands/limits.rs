use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use super::selection::Selection;
use crate::limits::{ClassifiedFlow, FlowPlan, classify, markdown, plans, play};
use crate::store::Store;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    selection: Selection,
    /// Keep the captures of both ends in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
}

const NAME: &str = "limits";

/// Plays the selected flows, then writes the document from all stored results.
pub fn run(arguments: Arguments) -> Ending {
    let selection = &arguments.selection;
    let store = selection.store(NAME, None)?;
    let code = isolate(|| {
        let is_due = |plan: &FlowPlan| selection.is_due::<ClassifiedFlow>(&store, &plan.name);
        for plan in plans().into_iter().filter(is_due) {
            if let Err(why) = measure(&plan, &store, arguments.keep.as_deref()) {
                eprintln!("sweetspot-bench: {}: {why}", plan.name);
                return 1;
            }
        }
        0
    })?;
    if code == 0 {
        selection.write_document(NAME, |_| document(&store))?;
    }
    Ok(ExitCode::from(code))
}

fn measure(plan: &FlowPlan, store: &Store, keep: Option<&Path>) -> Result<(), String> {
    let played = play(plan)?;
    if let Some(dir) = keep {
        for (end, capture) in [("sender", &played.at_sender), ("receiver", &played.at_receiver)] {
            let file = dir.join(format!("{}.{end}.pcap", plan.name));
            fs::write(&file, capture)
                .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        }
    }
    let classified = classify(plan, &played)?;
    let views = [
        &classified.capture_at_sender,
        &classified.capture_at_receiver,
        &classified.live_at_sender,
        &classified.live_at_receiver,
    ];
    let classes: Vec<String> = views.iter().map(|view| view.class.to_string()).collect();
    eprintln!(
        "{}: {}{}",
        plan.name,
        classes.join(" | "),
        if classified.trusted { "" } else { " (not trusted)" }
    );
    store.put(&plan.name, &classified)
}

fn document(store: &Store) -> String {
    let kept: Vec<(String, ClassifiedFlow)> =
        plans().into_iter().filter_map(|p| Some((p.name.clone(), store.get(&p.name)?))).collect();
    markdown(&kept, "make bench-limits")
}
