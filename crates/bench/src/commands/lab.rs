use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use sweetspot_emulator::isolate;
use sweetspot_report::{
    Cell, DemoOutcome, FileFacts, LabBench, PathFacts, Reference, Series, markdown, notes,
};

use super::Ending;
use crate::lab::{Plan, demo, iperf3, matrix};
use crate::store::Store;
use sweetspot_comparison::build::build;
use sweetspot_comparison::{Arena, Content, Ticker, Variant, machine, scratch, usual};

#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// Measure only what contains one of these, e.g. "demo", "400Mbit", "demo/sobas+cubic",
    /// "iperf3", "self-test"; the rest of the document comes from earlier results
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only what has no result yet
    #[arg(long)]
    resume: bool,
    /// The document
    #[arg(long, value_name = "FILE", default_value = "docs/results/lab.md")]
    out: PathBuf,
    /// Where results are kept until all are there
    #[arg(long, value_name = "DIR", default_value = "target/bench-lab")]
    results: PathBuf,
}

impl Arguments {
    fn wants(&self, name: &str) -> bool {
        self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()))
    }
}

const SELF_TEST: &str = "self-test";

/// Measures what is asked for, run by run, then writes the document from all there is.
pub fn run(arguments: Arguments) -> Ending {
    let program = super::sweetspot()?;
    let build = build(&program)?;
    // Results of another build are not mixed in: they would be of another program.
    let store = Store::open(&arguments.results.join(&build))?;
    if arguments.wants(SELF_TEST) && !(arguments.resume && store.get::<String>(SELF_TEST).is_some())
    {
        store.put(SELF_TEST, &self_test(&program)?)?;
    }
    let scratch = scratch::make()?;
    let bench = Bench { arguments: &arguments, store: &store, program: &program, build };
    let code = isolate(|| match bench.measure(scratch.path()) {
        Ok(()) => 0,
        Err(why) => {
            eprintln!("sweetspot-bench: {why}");
            1
        }
    })?;
    if code == 0 {
        bench.write_document()?;
    }
    Ok(ExitCode::from(code))
}

fn self_test(program: &Path) -> Result<String, Box<dyn std::error::Error>> {
    eprintln!("{SELF_TEST} ...");
    let output = Command::new(program).args(["emulate", "--self-test"]).output()?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(format!("the emulator's self-test failed: {why}").into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

struct Bench<'a> {
    arguments: &'a Arguments,
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
                eprintln!("{name} ...");
                match iperf3(&plan) {
                    Ok(reference) => self.store.put(&name, &reference)?,
                    Err(why) => eprintln!("{name}: left out: {why}"),
                }
            }
        }
        Ok(())
    }

    fn is_due(&self, name: &str) -> bool {
        let kept = || self.store.get::<serde_json::Value>(name).is_some();
        self.arguments.wants(name) && !(self.arguments.resume && kept())
    }

    fn measure_cell(&self, plan: &Plan, due: &[Variant], scratch: &Path) -> Result<(), String> {
        let content = Content::random(scratch, plan.size, plan.path.seed)?;
        let arena = Arena { path: &plan.path, content: &content, scratch, program: self.program };
        for variant in due {
            let name = run_name(plan, variant);
            let ticker = Ticker::new(&name, &arena);
            let mut row = arena.play(variant, &mut |now| ticker.show(now));
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

    /// The results of one path, as far as there are any.
    fn cell(&self, plan: &Plan) -> Option<Cell> {
        let kept = |c: &Variant| self.store.get::<DemoOutcome>(&run_name(plan, c));
        let (runs, not_measured): (Vec<_>, Vec<_>) = usual()
            .into_iter()
            .map(|c| (kept(&c), c.to_string()))
            .partition(|(run, _)| run.is_some());
        let mut runs = runs.into_iter().filter_map(|(run, _)| run);
        let mut outcome = runs.next()?;
        outcome.variants.extend(runs.flat_map(|run| run.variants));
        let not_measured = not_measured.into_iter().map(|(_, name)| name).collect();
        let reference: Option<Reference> = self.store.get(&reference_name(plan));
        Some(Cell { name: plan.name.clone(), outcome, not_measured, reference })
    }

    fn write_document(&self) -> Result<(), Box<dyn std::error::Error>> {
        let out = &self.arguments.out;
        let plans = matrix();
        let earlier = fs::read_to_string(out).unwrap_or_default();
        let bench = LabBench {
            command: "make bench-lab".to_owned(),
            build: format!("sweetspot {}, build {}", env!("CARGO_PKG_VERSION"), self.build),
            demo: self.cell(&demo()),
            matrix: plans.iter().filter_map(|plan| self.cell(plan)).collect(),
            matrix_size: plans.len(),
            self_test: self.store.get(SELF_TEST),
            notes: notes(&earlier).to_owned(),
        };
        if let Some(dir) = out.parent() {
            fs::create_dir_all(dir)?;
        }
        fs::write(out, markdown(&bench))
            .map_err(|e| format!("cannot write {}: {e}", out.display()))?;
        println!("{}", out.display());
        Ok(())
    }
}

fn run_name(plan: &Plan, variant: &Variant) -> String {
    format!("{}/{variant}", plan.name)
}

fn reference_name(plan: &Plan) -> String {
    format!("{}/iperf3", plan.name)
}
