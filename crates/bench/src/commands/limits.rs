use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_emulator::isolate;

use super::Ending;
use crate::limits::{Judged, Plan, judge, markdown, plans, play};
use crate::store::Store;

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Play only flows whose name contains one of these; the rest of the document comes from
    /// earlier results
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Play only what has no result yet
    #[arg(long)]
    resume: bool,
    /// Keep the captures of both ends in DIR
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    /// The document
    #[arg(long, value_name = "FILE", default_value = "docs/results/limits.md")]
    out: PathBuf,
    /// Where results are kept until all are there
    #[arg(long, value_name = "DIR", default_value = "target/bench-limits")]
    results: PathBuf,
}

impl Arguments {
    fn wants(&self, plan: &Plan, store: &Store) -> bool {
        let named =
            self.only.is_empty() || self.only.iter().any(|part| plan.name.contains(part.as_str()));
        named && !(self.resume && store.get::<Judged>(&plan.name).is_some())
    }
}

/// Plays what is asked for, flow by flow, then writes the document from all there is.
pub fn run(arguments: Arguments) -> Ending {
    let store = Store::open(&arguments.results)?;
    let code = isolate(|| {
        let due: Vec<Plan> =
            plans().into_iter().filter(|plan| arguments.wants(plan, &store)).collect();
        for plan in due {
            if let Err(why) = measure(&plan, &store, arguments.keep.as_deref()) {
                eprintln!("sweetspot-bench: {}: {why}", plan.name);
                return 1;
            }
        }
        0
    })?;
    if code == 0 {
        write_document(&store, &arguments.out)?;
    }
    Ok(ExitCode::from(code))
}

fn measure(plan: &Plan, store: &Store, keep: Option<&Path>) -> Result<(), String> {
    let played = play(plan)?;
    if let Some(dir) = keep {
        for (end, capture) in [("sender", &played.at_sender), ("receiver", &played.at_receiver)] {
            let file = dir.join(format!("{}.{end}.pcap", plan.name));
            fs::write(&file, capture)
                .map_err(|e| format!("cannot write {}: {e}", file.display()))?;
        }
    }
    let judged = judge(plan, &played)?;
    let views = [
        &judged.capture_at_sender,
        &judged.capture_at_receiver,
        &judged.live_at_sender,
        &judged.live_at_receiver,
    ];
    let said: Vec<String> = views.iter().map(|view| view.class.to_string()).collect();
    eprintln!(
        "{}: {}{}",
        plan.name,
        said.join(" | "),
        if judged.trusted { "" } else { " (not trusted)" }
    );
    store.put(&plan.name, &judged)
}

fn write_document(store: &Store, out: &Path) -> Result<(), Box<dyn std::error::Error>> {
    let kept: Vec<(String, Judged)> =
        plans().into_iter().filter_map(|p| Some((p.name.clone(), store.get(&p.name)?))).collect();
    if let Some(dir) = out.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(out, markdown(&kept, "make bench-limits"))
        .map_err(|e| format!("cannot write {}: {e}", out.display()))?;
    println!("{}", out.display());
    Ok(())
}
