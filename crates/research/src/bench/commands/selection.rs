use std::fs;
use std::path::PathBuf;

use serde::Serialize;
use serde::de::DeserializeOwned;

use sweetspot_program::usage_error::UsageError;
use sweetspot_research::notes;

use crate::bench::store::Store;

/// Which runs of a benchmark are measured, and where its results and its document go.
#[derive(Debug, clap::Args)]
pub struct Selection {
    /// Measure only runs with one of these in their name; the rest of the document comes from
    /// earlier results
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    only: Vec<String>,
    /// Measure only runs without a result
    #[arg(long)]
    resume: bool,
    /// The document [default: docs/results/BENCHMARK.md]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Directory for the results of single runs [default: target/bench-BENCHMARK]
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
}

impl Selection {
    /// Opens the store of `benchmark`'s results; if `build` is given, only that build's results, because different builds
    /// are different programs.
    ///
    /// # Errors
    /// If its directory cannot be created.
    pub fn store(&self, benchmark: &str, build: Option<&str>) -> Result<Store, String> {
        let default = || format!("target/bench-{benchmark}").into();
        let directory = self.results.clone().unwrap_or_else(default);
        Store::open(&build.map_or_else(|| directory.clone(), |build| directory.join(build)))
    }

    /// Rejects an `--only` part that no run in `names` contains.
    ///
    /// # Errors
    /// If there is such a part.
    pub fn check(&self, names: impl IntoIterator<Item = String>) -> Result<(), UsageError> {
        let names: Vec<String> = names.into_iter().collect();
        let is_unknown = |part: &&String| !names.iter().any(|name| name.contains(part.as_str()));
        match self.only.iter().find(is_unknown) {
            Some(part) => Err(UsageError::new(format!(
                "--only {part}: no run has it in its name; the first run is {}",
                names.first().map_or("missing", String::as_str)
            ))),
            None => Ok(()),
        }
    }

    /// Whether to measure the run `name`; an existing result has type `T`.
    pub fn is_due<T: DeserializeOwned>(&self, store: &Store, name: &str) -> bool {
        let named =
            self.only.is_empty() || self.only.iter().any(|part| name.contains(part.as_str()));
        named && !(self.resume && store.get::<T>(name).is_some())
    }

    /// Runs each of `plans` and stores its outcome under its name. Stops at the first failure, with exit code 1.
    pub fn run_each<'a, P: 'a, T: Serialize>(
        &self,
        store: &Store,
        plans: impl Iterator<Item = &'a P>,
        name: impl Fn(&P) -> &str,
        run: impl Fn(&P) -> Result<T, String>,
    ) -> u8 {
        for plan in plans.filter(|plan| self.is_due::<serde_json::Value>(store, name(plan))) {
            err!("{} ...", name(plan));
            if let Err(why) = run(plan).and_then(|outcome| store.put(name(plan), &outcome)) {
                err!("sweetspot-research: {}: {why}", name(plan));
                return 1;
            }
        }
        0
    }

    /// Writes the document of `benchmark`, which `text` generates around the hand-written section of the previous version,
    /// and prints its path.
    ///
    /// # Errors
    /// If the document cannot be written.
    pub fn write_document(
        &self,
        benchmark: &str,
        text: impl FnOnce(&str) -> String,
    ) -> Result<(), String> {
        let default = || format!("docs/results/{benchmark}.md").into();
        let out = self.out.clone().unwrap_or_else(default);
        let unwritable = |e: std::io::Error| format!("cannot write {}: {e}", out.display());
        let earlier = fs::read_to_string(&out).unwrap_or_default();
        if let Some(directory) = out.parent() {
            fs::create_dir_all(directory).map_err(unwritable)?;
        }
        fs::write(&out, text(&notes::kept(&earlier))).map_err(unwritable)?;
        out!("wrote {}", out.display());
        Ok(())
    }
}
