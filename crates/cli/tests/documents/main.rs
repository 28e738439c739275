//! Checks that the documents are true. Each `console` block of README and docs runs as a reader would paste it, in a clean
//! directory per document. Its output is compared with the document's.
//!
//! A block that does not run gives a reason after a comma, in the words of [`block::Reason`]. The comparison ignores numbers.
//! A line `...` matches any lines, and `...` within a line matches the rest of a word.

mod block;
mod shell;
mod unrun;

use std::path::{Path, PathBuf};

use block::Block;
use shell::Shell;

/// The minimum number of blocks that run. To mark an example as not to be run, this number must be lowered.
const MIN_RUN: usize = 30;
/// How often an example is repeated if its emulator's certificate says "do not trust".
const MAX_RUNS: usize = 10;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README, the documents next to it, and everything below docs.
fn documents() -> std::io::Result<Vec<PathBuf>> {
    let mut found: Vec<PathBuf> = ["README.md", "TESTING.md", "CONTRIBUTING.md", "SECURITY.md"]
        .iter()
        .map(|name| root().join(name))
        .chain([root().join("python/README.md")])
        .collect();
    for directory in ["docs", "docs/results"] {
        for entry in std::fs::read_dir(root().join(directory))? {
            found.push(entry?.path());
        }
    }
    found.retain(|path| path.extension().is_some_and(|extension| extension == "md"));
    found.sort();
    Ok(found)
}

/// A document's path from the root, and its console blocks.
type Document = (PathBuf, Vec<Block>);

fn blocks() -> Result<Vec<Document>, Box<dyn std::error::Error>> {
    let mut all = Vec::new();
    for path in documents()? {
        let name = path.strip_prefix(root())?.to_owned();
        let blocks = block::read(&std::fs::read_to_string(&path)?)
            .map_err(|error| format!("{}:{error}", name.display()))?;
        all.push((name, blocks));
    }
    Ok(all)
}

/// Runs the examples of the document `name`.
fn run_examples(name: &str) -> Result<(), Box<dyn std::error::Error>> {
    let blocks = block::read(&std::fs::read_to_string(root().join(name))?)?;
    let shell = Shell::in_clean_directory(&root())?;
    let mut wrong = Vec::new();
    for block in blocks.iter().filter(|block| !block.is_marked()) {
        if let Some(missing) = block.missing() {
            sweetspot_testing::skipped(format!("{name}:{}: {missing}", block.line));
            continue;
        }
        // If a run's certificate says "do not trust", the result shows the machine, not the program.
        let mut ran = shell.run(block);
        for _ in 1..MAX_RUNS {
            if !ran.as_ref().is_err_and(|message| message.contains("DO NOT TRUST")) {
                break;
            }
            ran = shell.run(block);
        }
        if let Err(difference) = ran {
            wrong.push(format!("{name}:{}: {difference}", block.line));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// Defines a test for each document with examples to run, and a list of these documents.
macro_rules! documents_work_by_copy_and_paste {
    ($($test:ident: $name:literal,)*) => {
        $(#[test]
        fn $test() {
            if let Err(wrong) = run_examples($name) {
                panic!("{wrong}");
            }
        })*
        const TESTED: &[&str] = &[$($name),*];
    };
}

documents_work_by_copy_and_paste! {
    the_readme_works: "README.md",
    advise_works: "docs/advise.md",
    configuration_works: "docs/configuration.md",
    emulate_works: "docs/emulate.md",
    measure_a_path_works: "docs/measure-a-path.md",
    move_a_file_works: "docs/move-a-file.md",
    reproduce_works: "docs/reproduce.md",
    scenario_works: "docs/scenario.md",
    simulate_works: "docs/simulate.md",
    slow_connection_works: "docs/slow-connection.md",
    studies_works: "docs/studies.md",
    the_tutorial_works: "docs/tutorial.md",
}

#[test]
fn every_document_with_a_runnable_example_is_tested() -> Result<(), Box<dyn std::error::Error>> {
    for (name, blocks) in blocks()? {
        let to_run = blocks.iter().any(|block| !block.is_marked());
        let tested = TESTED.iter().any(|tested| Path::new(tested) == name);
        assert_eq!(to_run, tested, "{}", name.display());
    }
    Ok(())
}

#[test]
fn most_examples_are_run() -> Result<(), Box<dyn std::error::Error>> {
    let run: usize = blocks()?
        .iter()
        .map(|(_, blocks)| blocks.iter().filter(|block| !block.is_marked()).count())
        .sum();
    assert!(run >= MIN_RUN, "{run} blocks are run, {MIN_RUN} must be");
    Ok(())
}

/// Examples that are not run must still use existing verbs, options and make targets.
#[test]
fn examples_that_are_not_run_use_existing_commands() -> Result<(), Box<dyn std::error::Error>> {
    let mut wrong = Vec::new();
    for (name, blocks) in blocks()? {
        for block in blocks.iter().filter(|block| block.is_marked()) {
            if let Err(missing) = unrun::check(block, &root()) {
                wrong.push(format!("{}:{}: {missing}", name.display(), block.line));
            }
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
    Ok(())
}

/// Each row says yes, or gives a reason.
#[test]
fn each_feature_of_a_comparable_tool_is_offered_or_has_a_reason()
-> Result<(), Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(root().join("docs/conveniences.md"))?;
    let rows = text.lines().filter(|line| line.starts_with("| ")).skip(1);
    let mut count = 0;
    for row in rows {
        count += 1;
        let answer =
            row.replace("\\|", "").trim_end_matches(" |").rsplit("| ").next().map(str::to_owned);
        let answer = answer.unwrap_or_default();
        let not_offered = answer.strip_prefix("not offered: ").is_some_and(|why| why.len() > 20);
        assert!(answer.starts_with("yes") || not_offered, "{row}");
    }
    assert!(count >= 40, "{count} rows");
    Ok(())
}

#[test]
fn every_block_with_a_sweetspot_command_has_a_language() -> Result<(), Box<dyn std::error::Error>> {
    for path in documents()? {
        let text = std::fs::read_to_string(&path)?;
        let mut fence: Option<&str> = None;
        for (i, line) in text.lines().enumerate() {
            match (line.strip_prefix("```"), fence) {
                (Some(info), None) => fence = Some(info),
                (Some(_), Some(_)) => fence = None,
                (None, Some("")) => assert!(
                    !line.starts_with("sweetspot "),
                    "{}:{}: make it a console block",
                    path.display(),
                    i + 1
                ),
                (None, _) => {}
            }
        }
    }
    Ok(())
}
