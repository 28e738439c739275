use std::panic;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use sweetspot_experiment::plot::Plot;
use sweetspot_report::{ResultFile, Sheet, Theme, read_file, report_page, sheets, svg_file};

use super::{Ending, Fallible};
use crate::picture::Converter;
use sweetspot_program::print::{Shown, is_quiet, system};
use sweetspot_program::text_file;
use sweetspot_program::usage_error::UsageError;
use sweetspot_program::values::ThemeName;
use sweetspot_program::whole_file;

#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  sweetspot report sweep.json
  sweetspot report run.json
  sweetspot report before.json after.json --out both.html
  sweetspot report run-series.parquet other-series.parquet
  sweetspot report demo-out/outcome.json --svg pictures
  sweetspot report sweep.json --theme print --svg pictures

Exit codes: 0 the page is written; 1 a file could not be read or written; 2 the
command line is wrong, or names a file that does not exist; 128+N signal N ended
it.

Members of --json:
  written            the files written, the page first
  parts              the parts of the page, each with:
    name, title
    pictures           their number
    tables             each with:
      title, heads, rows")]
pub struct ReportArguments {
    /// Files of run --out or --series (curves only, without the path's rate, buffer and title), sweep --out (JSON, CSV or
    /// Parquet; also with --find-best), demo (outcome.json), send or serve --series, and the output of run or sweep --json
    /// (numbers only); `-` reads JSON from standard input; two files of runs or sweeps are compared, pair by pair; series are
    /// drawn together
    #[arg(value_name = "RESULTS", required = true)]
    results: Vec<PathBuf>,
    /// HTML page to write
    #[arg(long, value_name = "FILE", default_value = "report.html")]
    out: PathBuf,
    /// Also write every picture to this directory, as SVG files
    #[arg(long, value_name = "DIR")]
    svg: Option<PathBuf>,
    /// Also write every picture to this directory, as PNG files
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
    /// Print the files written, and the summary of each part, as one JSON object
    #[arg(long)]
    json: bool,
    /// Colours: for a screen or for paper
    #[arg(long, value_enum, default_value_t = ThemeName::Screen)]
    theme: ThemeName,
}

const VERSION: &str = env!("CARGO_PKG_VERSION");

pub fn run(arguments: ReportArguments) -> Ending {
    whole_file::check_not_input("--out", Some(&arguments.out), &arguments.results)?;
    refuse_other_suffix(&arguments.out)?;
    let (findings, notes) = read_all(&arguments.results)?;
    let sheets = sheets(&findings);
    let names: Vec<&str> = findings.iter().map(|(name, _)| name.as_str()).collect();
    let page = report_page(&names.join(", "), &sheets, &notes, VERSION, arguments.theme.into());
    let pictures = arguments.pictures(&sheets)?;
    for picture in &pictures {
        whole_file::check_not_input(picture.option, Some(&picture.path), &arguments.results)?;
    }
    if let Some(parent) = arguments.out.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        whole_file::make_directory("--out", parent)?;
    }
    let page = page.into_bytes();
    let mut written = vec![Written { path: arguments.out, option: "--out", content: page }];
    written.extend(pictures);
    for file in &written {
        write(file, arguments.json || is_quiet())?;
    }
    if arguments.json {
        out!("{}", serde_json::to_string_pretty(&in_json(&written, &sheets))?);
    }
    Ok(ExitCode::SUCCESS)
}

/// Rejects a file name with another format's extension: the page is HTML.
fn refuse_other_suffix(out: &Path) -> Result<(), UsageError> {
    if out == Path::new("-") {
        return Err(UsageError::new(
            "--out -: the page goes to a file; name one, such as report.html",
        ));
    }
    let expected = "FILE.html; for pictures, give --svg DIR or --png DIR";
    whole_file::check_extension("--out", Some(out), &["html", "htm"], expected)
}

/// The content of every file, with its name, and notes about versions.
type Read = (Vec<(String, ResultFile)>, Vec<String>);

fn read_all(paths: &[PathBuf]) -> Fallible<Read> {
    let mut findings = Vec::new();
    let mut notes = Vec::new();
    for path in paths {
        let finding = open(path)?;
        for version in finding.versions().into_iter().filter(|version| *version != VERSION) {
            let note = format!(
                "{} was written by sweetspot {version}, and this is {VERSION}: its numbers are \
                 shown unchanged.",
                path.shown()
            );
            note!("{note}");
            notes.push(note);
        }
        findings.push((name(path, paths), finding));
    }
    Ok((findings, notes))
}

struct Written {
    path: PathBuf,
    /// The option that sets its location.
    option: &'static str,
    content: Vec<u8>,
}

impl ReportArguments {
    /// Draws every picture in every requested format.
    fn pictures(&self, sheets: &[Sheet]) -> Result<Vec<Written>, String> {
        let wants_pictures = self.svg.is_some() || self.png.is_some();
        if wants_pictures && sheets.iter().all(|sheet| sheet.plots.is_empty()) {
            return Err(
                "these results have only tables, so there is no picture to write; run --out, run \
                 --series and sweeps have pictures"
                    .into(),
            );
        }
        let mut all = Vec::new();
        if let Some(directory) = &self.svg {
            let theme = self.theme.into();
            all.extend(drawn(directory, "--svg", sheets, |title, plot| {
                Ok(svg_file(title, std::slice::from_ref(plot), theme).into_bytes())
            })?);
        }
        if let Some(directory) = &self.png {
            let converter = Converter::new()?;
            let draw = |title: &str, plot: &Plot| {
                converter.png(&svg_file(title, std::slice::from_ref(plot), Theme::Print))
            };
            all.extend(drawn(directory, "--png", sheets, draw)?);
        }
        Ok(all)
    }
}

/// The paths of `written`, the page first, and the summary of each part, as JSON.
fn in_json(written: &[Written], sheets: &[Sheet]) -> serde_json::Value {
    let paths = written.iter().map(|file| file.path.shown().to_string());
    let parts = sheets.iter().map(|sheet| {
        let tables = sheet.tables.iter().map(|table| {
            serde_json::json!({ "title": table.title, "heads": table.heads, "rows": table.rows })
        });
        serde_json::json!({
            "name": sheet.name,
            "title": sheet.title,
            "pictures": sheet.plots.len(),
            "tables": tables.collect::<Vec<_>>(),
        })
    });
    serde_json::json!({
        "written": paths.collect::<Vec<_>>(),
        "parts": parts.collect::<Vec<_>>(),
    })
}

fn open(path: &Path) -> Fallible<ResultFile> {
    let bytes = text_file::read_any_size(path)
        .map_err(|error| text_file::unreadable(path, &error, "a file of results"))?;
    let name = text_file::named(path);
    let file = quietly(|| read_file(&name, bytes, VERSION));
    Ok(file.map_err(|error| format!("{name}: {error}"))?)
}

/// Runs `work`, which catches its own panics, without printing a panic message.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    let loud = panic::take_hook();
    panic::set_hook(Box::new(|_| {}));
    let result = work();
    panic::set_hook(loud);
    result
}

/// The file's name as a label for its curves; with its directories if another file in `all` has the same name.
fn name(path: &Path, all: &[PathBuf]) -> String {
    let alone = all.iter().filter(|other| other.file_name() == path.file_name()).count() == 1;
    let short = path.file_name().filter(|_| alone);
    short.map_or_else(|| path.shown().to_string(), |name| name.to_string_lossy().into())
}

/// Every plot in its own file, drawn by `draw` from the sheet's title and the plot. `option` gives the file type.
fn drawn(
    directory: &Path,
    option: &'static str,
    sheets: &[Sheet],
    draw: impl Fn(&str, &Plot) -> Result<Vec<u8>, String>,
) -> Result<Vec<Written>, String> {
    whole_file::make_directory(option, directory)?;
    let mut all = Vec::new();
    for sheet in sheets {
        for (i, plot) in sheet.plots.iter().enumerate() {
            let path = directory.join(format!("{}-{}.{}", sheet.name, i + 1, &option[2..]));
            all.push(Written { path, option, content: draw(&sheet.title, plot)? });
        }
    }
    Ok(all)
}

fn write(file: &Written, quiet: bool) -> Result<(), String> {
    let path = file.path.shown();
    std::fs::write(&file.path, &file.content).map_err(|e| {
        format!("{path}: {}; choose another place with {}", system(&e), file.option)
    })?;
    if !quiet {
        out!("wrote {path}");
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use clap::Args;
    use sweetspot_experiment::plot::Table;

    use super::*;
    use crate::verbs::members::{listed, written};

    #[test]
    fn the_help_lists_exactly_the_json_members() {
        let sheet = Sheet {
            name: String::new(),
            title: String::new(),
            about: String::new(),
            plots: Vec::new(),
            tables: vec![Table::new("", &["x"])],
        };
        let command = ReportArguments::augment_args(clap::Command::new("report"));
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let (_, list) = help.split_once("Members of --json:").unwrap();
        assert_eq!(listed(list), written(&in_json(&[], &[sheet])));
    }
}
