use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_report::{
    ResultFile, Sheet, Theme, from_csv, from_parquet, read, read_columns, report_page, sheets,
    svg_file,
};
use sweetspot_study::plot::Plot;

use super::Ending;
use crate::raster::Rasterizer;
use crate::values::ThemeName;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot report sweep.json
  sweetspot report sim.json lab.json --out both.html
  sweetspot report run.parquet other-run.parquet
  sweetspot report demo-out/outcome.json --svg pictures
  sweetspot report sweep.json --theme print --svg pictures")]
pub struct Arguments {
    /// Files of run --json or --series, sweep --out (JSON, CSV or Parquet), demo (outcome.json), send or
    /// serve --series
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,
    /// The HTML page
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Write every picture as an SVG file into this directory, too
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Write every picture as a PNG file into this directory, too
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
    /// Colours: as the reader's screen is set, or for paper
    #[arg(long, value_enum, default_value_t = ThemeName::Screen)]
    theme: ThemeName,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(arguments: Arguments) -> Ending {
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    for path in &arguments.results {
        let finding = open(path)?;
        for version in finding.versions().into_iter().filter(|version| *version != VERSION) {
            let note = format!(
                "{} was made by sweetspot {version}, this is {VERSION}: its numbers are shown as \
                 they are.",
                path.display()
            );
            note!("{note}");
            notes.push(note);
        }
        findings.push((name(path), finding));
    }
    let sheets = sheets(&findings);
    let names: Vec<&str> = findings.iter().map(|(name, _)| name.as_str()).collect();
    let theme = arguments.theme.into();
    let page = report_page(&names.join(", "), &sheets, &notes, VERSION, theme);
    write(&arguments.out, page.as_bytes())?;
    let wanted = arguments.svg.is_some() || arguments.png.is_some();
    if wanted && sheets.iter().all(|sheet| sheet.plots.is_empty()) {
        return Err(
            "these results have tables and nothing to draw, so that there is no picture to \
                    write; pictures come of run --series and of sweeps over numbers"
                .into(),
        );
    }
    if let Some(directory) = &arguments.svg {
        pictures(directory, "svg", &sheets, |title, plot| {
            Ok(svg_file(title, std::slice::from_ref(plot), theme).into_bytes())
        })?;
    }
    if let Some(directory) = &arguments.png {
        let rasterizer = Rasterizer::new()?;
        pictures(directory, "png", &sheets, |title, plot| {
            rasterizer.png(&svg_file(title, std::slice::from_ref(plot), Theme::Print))
        })?;
    }
    Ok(ExitCode::SUCCESS)
}

fn open(path: &Path) -> Result<ResultFile, String> {
    let blame = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let bytes =
        std::fs::read(path).map_err(|error| blame(&format!("{error}; name a file of results")))?;
    if bytes.starts_with(PARQUET) {
        let columns = quietly(|| from_parquet(bytes)).map_err(|error| blame(&in_words(&error)))?;
        return read_columns(&columns, VERSION).map_err(|error| blame(&error));
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| blame(&"it is no text; name a file of results, in JSON, CSV or Parquet"))?;
    if path.extension().is_some_and(|extension| extension == "csv") {
        let columns = from_csv(&text).map_err(|error| blame(&error))?;
        return read_columns(&columns, VERSION).map_err(|error| blame(&error));
    }
    read(&text, VERSION).map_err(|error| blame(&error))
}

/// The magic number of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// Does `work`, which catches its own panics, without the message that a panic prints.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(loud);
    result
}

fn in_words(error: &impl std::fmt::Display) -> String {
    format!("it begins like a Parquet file and cannot be read ({error}); make it again")
}

/// The file's name, which labels its curves.
fn name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into())
}

/// Every plot as a file of its own, drawn by `draw` from the sheet's title and the plot.
fn pictures(
    directory: &Path,
    extension: &str,
    sheets: &[Sheet],
    draw: impl Fn(&str, &Plot) -> Result<Vec<u8>, String>,
) -> Result<(), String> {
    std::fs::create_dir_all(directory)
        .map_err(|error| format!("{}: {error}; choose another directory", directory.display()))?;
    for sheet in sheets {
        for (i, plot) in sheet.plots.iter().enumerate() {
            let path = directory.join(format!("{}-{}.{extension}", sheet.name, i + 1));
            write(&path, &draw(&sheet.title, plot)?)?;
        }
    }
    Ok(())
}

fn write(path: &Path, content: &[u8]) -> Result<(), String> {
    std::fs::write(path, content)
        .map_err(|error| format!("{}: {error}; choose another place", path.display()))?;
    out!("wrote {}", path.display());
    Ok(())
}
