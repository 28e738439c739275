use std::fs;
use std::path::Path;
use std::process::{Command, ExitCode};

use sweetspot_emulator::isolate;
use sweetspot_report::{DemoOutcome, FileFacts, PathFacts, Series};
use sweetspot_research::lab::{Cell, LabBench, ReferenceTransfer, markdown};

use super::Ending;
use super::selection::Selection;
use crate::bench::lab::{CellPlan, demo, iperf3, matrix};
use crate::bench::store::Store;
use sweetspot_comparison::{Content, Ticker, Variant, VariantRunner, machine, scratch, usual};
use sweetspot_program::build::build;

#[derive(Debug, clap::Args)]
pub struct LabArguments {
    #[command(flatten)]
    selection: Selection,
}

const NAME: &str = "lab";
const SELF_TEST: &str = "self-test";

/// Measures the selected runs, then writes the document from all stored results.
pub fn run(arguments: LabArguments) -> Ending {
    let program = super::sweetspot()?;
    let build = build(&program)?;
    arguments.selection.check(run_names())?;
    let store = arguments.selection.store(NAME, Some(&build))?;
    if arguments.selection.is_due::<String>(&store, SELF_TEST) {
        store.put(SELF_TEST, &self_test(&program)?)?;
    }
    let scratch = scratch::make()?;
    let bench = Bench { selection: &arguments.selection, store: &store, program: &program, build };
    let code = isolate(|| match bench.measure(scratch.path()) {
        Ok(()) => 0,
        Err(why) => {
            err!("sweetspot-research: {why}");
            1
        }
    })?;
    if code == 0 {
        bench.write_document()?;
    }
    Ok(ExitCode::from(code))
}

fn self_test(program: &Path) -> Result<String, Box<dyn std::error::Error>> {
    err!("{SELF_TEST} ...");
    let output = Command::new(program).args(["emulate", "--self-test"]).output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("the emulator's self-test failed: {why}").into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

struct Bench<'a> {
    selection: &'a Selection,
    store: &'a Store,
    program: &'a Path,
    build: String,
}

impl Bench<'_> {
    fn measure(&self, scratch: &Path) -> Result<(), String> {
        for plan in [demo()].into_iter().chain(matrix()) {
            let due: Vec<Variant> =
                usual().into_iter().filter(|c| self.is_due(&run_name(&plan, c))).collect();
            if !due.is_empty() {
                self.measure_cell(&plan, &due, scratch)?;
            }
            let name = reference_name(&plan);
            if plan.reference && self.is_due(&name) {
                err!("{name} ...");
                match iperf3(&plan) {
                    Ok(reference) => self.store.put(&name, &reference)?,
                    Err(why) => err!("{name}: left out: {why}"),
                }
            }
        }
        Ok(())
    }

    fn is_due(&self, name: &str) -> bool {
        self.selection.is_due::<serde_json::Value>(self.store, name)
    }

    fn measure_cell(&self, plan: &CellPlan, due: &[Variant], scratch: &Path) -> Result<(), String> {
        let content =
            Content::random(scratch, plan.size, plan.path.seed).map_err(|e| e.to_string())?;
        let runner =
            VariantRunner { path: &plan.path, content: &content, scratch, program: self.program };
        for variant in due {
            let name = run_name(plan, variant);
            let ticker = Ticker::new(&name, &runner);
            let mut row = runner.run(variant, &mut |now| ticker.show(now));
            ticker.finish(&row);
            row.series = Series::default();
            let outcome = DemoOutcome {
                version: env!("CARGO_PKG_VERSION").to_owned(),
                command: format!(
                    "sweetspot demo --path \"{}\" --size {}B",
                    plan.path,
                    plan.size.get()
                ),
                date: machine::date(),
                machine: machine::machine(),
                kernel: machine::kernel(),
                path: PathFacts::of(&plan.path),
                file: FileFacts { size: plan.size, seed: Some(plan.path.seed) },
                variants: vec![row],
            };
            self.store.put(&name, &outcome)?;
        }
        fs::remove_file(&content.path).map_err(|e| e.to_string())
    }

    /// The available results of one path.
    fn cell(&self, plan: &CellPlan) -> Option<Cell> {
        let kept = |c: &Variant| self.store.get::<DemoOutcome>(&run_name(plan, c));
        let (runs, not_measured): (Vec<_>, Vec<_>) = usual()
            .into_iter()
            .map(|c| (kept(&c), c.to_string()))
            .partition(|(run, _)| run.is_some());
        let mut runs = runs.into_iter().filter_map(|(run, _)| run);
        let mut outcome = runs.next()?;
        outcome.variants.extend(runs.flat_map(|run| run.variants));
        let not_measured = not_measured.into_iter().map(|(_, name)| name).collect();
        let reference: Option<ReferenceTransfer> = self.store.get(&reference_name(plan));
        Some(Cell { name: plan.name.clone(), outcome, not_measured, reference })
    }

    fn write_document(&self) -> Result<(), String> {
        let plans = matrix();
        self.selection.write_document(NAME, |notes| {
            markdown(&LabBench {
                command: "make bench-lab".to_owned(),
                build: format!("sweetspot {}, build {}", env!("CARGO_PKG_VERSION"), self.build),
                demo: self.cell(&demo()),
                matrix: plans.iter().filter_map(|plan| self.cell(plan)).collect(),
                matrix_size: plans.len(),
                self_test: self.store.get(SELF_TEST),
                notes: notes.to_owned(),
            })
        })
    }
}

/// The names of all runs.
fn run_names() -> Vec<String> {
    let of_plan = |plan: CellPlan| {
        let variants = usual();
        let runs = variants.iter().map(|variant| run_name(&plan, variant)).collect::<Vec<_>>();
        let reference = plan.reference.then(|| reference_name(&plan));
        runs.into_iter().chain(reference)
    };
    let plans = [demo()].into_iter().chain(matrix());
    [SELF_TEST.to_owned()].into_iter().chain(plans.flat_map(of_plan)).collect()
}

fn run_name(plan: &CellPlan, variant: &Variant) -> String {
    format!("{}/{variant}", plan.name)
}

fn reference_name(plan: &CellPlan) -> String {
    format!("{}/iperf3", plan.name)
}
