//! The shell that runs a document's blocks.

use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command as Process, Output, Stdio};

use snapbox::Data;
use snapbox::filter::NormalizeToExpected;
use tempfile::TempDir;

use crate::block::{Block, Command};

/// Marks the end of a command's output, followed by its exit code.
const END: char = '\u{1e}';
/// Timeout for a block, in seconds.
const MAX_SECONDS: &str = "900";

/// The initial directory of a document, with the files of a clone that examples need.
pub struct Shell {
    directory: TempDir,
}

impl Shell {
    /// Creates a new directory, with the clone's scenarios and README.
    pub fn in_clean_directory(root: &Path) -> std::io::Result<Shell> {
        let directory = tempfile::tempdir()?;
        for name in ["scenarios", "packaging", "README.md"] {
            symlink(root.join(name).canonicalize()?, directory.path().join(name))?;
        }
        Ok(Shell { directory })
    }

    /// Runs a block's commands; the error describes the first difference from the document.
    pub fn run(&self, block: &Block) -> Result<(), String> {
        let output = self.output(block).map_err(|error| error.to_string())?;
        let seen = String::from_utf8_lossy(&output.stdout);
        let mut parts = seen.split(END);
        for command in &block.commands {
            let (actual, code) = match (parts.next(), parts.next()) {
                (Some(actual), Some(code)) => (actual, code.trim().parse::<i32>()),
                (actual, _) => {
                    let actual = actual.unwrap_or_default();
                    return Err(format!("`{}` did not end\n{actual}", command.typed));
                }
            };
            if code != Ok(command.code) {
                return Err(format!("`{}` ended with {code:?}\n{actual}", command.typed));
            }
            command.compare(actual)?;
        }
        Ok(())
    }

    /// Runs one shell for the whole block, and ends its remaining processes.
    fn output(&self, block: &Block) -> std::io::Result<Output> {
        let script: String = block
            .commands
            .iter()
            .map(|command| format!("{{ {}\n}} 2>&1\nprintf '{END}%s{END}' $?\n", command.typed))
            .collect();
        let programs = Path::new(env!("CARGO_BIN_EXE_sweetspot")).parent();
        let programs = programs.unwrap_or(Path::new("/")).display();
        let path = std::env::var("PATH").unwrap_or_default();
        let script = format!("{script}trap '' TERM\nkill -s TERM 0\n");
        Process::new("timeout")
            .args(["--kill-after=5", MAX_SECONDS, "sh", "-c", &script])
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", format!("{programs}:{path}"))
            .env("HOME", self.directory.path())
            .stdin(Stdio::null())
            .process_group(0)
            .output()
    }
}

impl Command {
    /// Compares the output with the document's, if the document shows any.
    fn compare(&self, actual: &str) -> Result<(), String> {
        if self.shown.trim().is_empty() {
            return Ok(());
        }
        let shown = Data::text(pattern(&self.shown));
        let actual =
            NormalizeToExpected::new().redact().normalize(Data::text(shape(actual)), &shown);
        if actual == shown {
            return Ok(());
        }
        Err(format!("`{}` printed\n{actual}\nbut the document shows\n{shown}", self.typed))
    }
}

/// The form of a text that readers recognise: every number is replaced by `0`, and the spacing
/// between words is ignored.
fn shape(text: &str) -> String {
    let lines = text.trim().lines().map(|line| {
        let mut words: Vec<String> = line.split_whitespace().map(without_numbers).collect();
        for at in 1..words.len() {
            // The machine's timing decides between these units.
            if words[at - 1].ends_with('0') && matches!(&*words[at], "ns" | "us") {
                words[at] = "ms".to_owned();
            }
        }
        words.join(" ")
    });
    let lines = lines.filter(|line| !PROGRESS.contains(&line.as_str()));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// Progress lines without a terminal, which only a slow machine prints.
const PROGRESS: [&str; 4] = [
    "0/0 runs, 0 s to go",
    "0 runs, 0 s elapsed",
    "0 runs, best window so far 0 packets, between 0 and 0 0 s elapsed",
    "simulating 0 s, 0 s elapsed",
];

fn pattern(shown: &str) -> String {
    let lines = shape(shown);
    let lines = lines.lines().map(|line| match line {
        "..." => "...\n".to_owned(),
        _ => format!("{}\n", line.replace("...", "[..]")),
    });
    lines.collect()
}

/// Replaces `26.83` and `-3` by `0`, also within a word, and shortens a bar of `#` to one.
fn without_numbers(word: &str) -> String {
    let mut out = String::new();
    let mut letters = word.chars().peekable();
    while let Some(letter) = letters.next() {
        let number = letter.is_ascii_digit();
        out.push(if number { '0' } else { letter });
        if number {
            while letters.next_if(|c| c.is_ascii_digit() || matches!(c, '.' | ',')).is_some() {}
        } else if letter == '#' {
            while letters.next_if_eq(&'#').is_some() {}
        }
    }
    out
}

#[test]
fn output_may_differ_in_numbers_but_not_in_words() {
    let command = |shown: &str| Command { typed: "x".to_owned(), code: 0, shown: shown.to_owned() };
    let shown = command("window   1.312 MB, 5 ms\n...\nlast\n");
    assert!(shown.compare("window  27 MB, 11.5 ms\nmore\nand more\nlast\n").is_ok());
    assert!(shown.compare("window  27 MB, 11.5 us\nlast\n").is_ok());
    for progress in [
        "27/120 runs, 31 s to go",
        "12 runs, best window so far 492 packets, between 355 and 680, 10 s elapsed",
        "simulating 230 s, 10 s elapsed",
    ] {
        let actual = format!("{progress}\nwindow  27 MB, 11.5 ms\nlast\n");
        assert!(shown.compare(&actual).is_ok(), "{actual}");
    }
    assert!(shown.compare("window  27 kB, 11.5 ms\nlast\n").is_err());
    assert!(shown.compare("window  27 MB, 11.5 ms\nlast\nafter it\n").is_err());
    assert!(command("ticket:...\n").compare("ticket:abcdef\n").is_ok());
    assert!(command("ticket:...\n").compare("no ticket\n").is_err());
}
