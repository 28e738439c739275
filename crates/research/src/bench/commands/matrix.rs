use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_comparison::machine;
use sweetspot_program::usage_error::UsageError;
use sweetspot_report::{Theme, svg_file};
use sweetspot_research::matrix::{
    MATRIX, MatrixCase, MatrixInfo, MatrixResult, MatrixTest, MatrixVariant, VARIANTS,
    matrix_document, matrix_pictures,
};
use sweetspot_sim::Simulator;
use sweetspot_units::Duration;

use super::Ending;

#[derive(Debug, clap::Args)]
pub struct MatrixArguments {
    /// Measures no longer than this in each case
    #[arg(long, value_name = "TIME")]
    longest: Option<Duration>,
    /// Tests, separated by commas
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    test: Vec<String>,
    /// Journal of finished cases, a JSON object per line; new ones are added
    #[arg(long, value_name = "FILE", default_value = "target/matrix.journal")]
    journal: PathBuf,
    /// The document to write; its pictures go into a directory of the same name beside it
    #[arg(long, value_name = "FILE.md", default_value = "docs/results/matrix.md")]
    out: PathBuf,
}

/// Runs the published matrix in the simulator and writes its document.
pub fn run(arguments: MatrixArguments) -> Ending {
    let known = |name: &&String| MATRIX.iter().any(|test| test.name == **name);
    if let Some(unknown) = arguments.test.iter().find(|name| !known(name)) {
        let names: Vec<&str> = MATRIX.iter().map(|test| test.name).collect();
        let why = format!("--test {unknown}: unknown test; known are {}", names.join(", "));
        return Err(UsageError::new(why).into());
    }
    let mut results = read(&arguments.journal)?;
    for (test, case, variant) in cases(&arguments.test) {
        let finished = results.iter().any(|result| {
            result.test == test.name && result.case == case.name && result.variant == variant.name
        });
        if finished {
            continue;
        }
        let result = MatrixResult::run(&Simulator, (test, case), variant, arguments.longest)?;
        err!(
            "{}, {}, {}: {:.1} Mbit/s",
            test.name,
            case.name,
            variant.name,
            result.tested_bps() / 1e6
        );
        results.push(result);
        write(&arguments.journal, &lines(&results)?)?;
    }
    let directory = arguments.out.with_extension("");
    fs::create_dir_all(&directory).map_err(|error| blame(&directory, &error))?;
    let page = directory.join("pictures.svg");
    write(&page, &svg_file("The published matrix", &matrix_pictures(&results), Theme::Screen))?;
    let name = directory.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let longest = arguments.longest.map(|max| format!(" --longest {}s", max.as_secs_f64()));
    let info = MatrixInfo {
        command: format!("sweetspot-research bench matrix{}", longest.unwrap_or_default()),
        machine: machine::here(),
        page: format!("{name}/pictures.svg"),
    };
    write(&arguments.out, &matrix_document(&results, &info))?;
    out!("wrote {}", arguments.out.display());
    Ok(ExitCode::SUCCESS)
}

/// All cases of the named tests, or of all tests, with each variant.
fn cases(
    named: &[String],
) -> Vec<(&'static MatrixTest, &'static MatrixCase, &'static MatrixVariant)> {
    let tests =
        MATRIX.iter().filter(|test| named.is_empty() || named.iter().any(|n| n == test.name));
    tests
        .flat_map(|test| test.cases.iter().map(move |case| (test, case)))
        .flat_map(|(test, case)| VARIANTS.iter().map(move |variant| (test, case, variant)))
        .collect()
}

fn read(journal: &Path) -> Result<Vec<MatrixResult>, String> {
    let text = match fs::read_to_string(journal) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read.map_err(|error| blame(journal, &error))?,
    };
    let line = |line: &str| serde_json::from_str(line);
    text.lines().map(line).collect::<Result<_, _>>().map_err(|error| {
        format!("{}: {error}; remove it to run everything again", journal.display())
    })
}

fn lines(results: &[MatrixResult]) -> Result<String, serde_json::Error> {
    results.iter().map(|result| Ok(serde_json::to_string(result)? + "\n")).collect()
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| blame(path, &error))
}

fn blame(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}; name another place", path.display())
}
