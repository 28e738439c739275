//! Push and pull on random paths, with all programs in turn.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use sweetspot_path::Random;
use sweetspot_testing::ssh::{FAR_ADDRESS, SSHD, Ssh};

use super::content::Content;

/// A randomly drawn path.
#[derive(Debug, Clone)]
pub struct DrawnCase {
    pub name: String,
    /// The path, in the syntax of `emulate --path`.
    path: String,
    rate_mbit: f64,
}

/// The times of each program for each content, in seconds, including the start of ssh.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawnResult {
    pub path: String,
    pub runs: Vec<DrawnRun>,
}

/// One run of a program.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DrawnRun {
    pub program: String,
    pub content: String,
    pub seconds: f64,
}

/// A program that moves files to or from the far end.
struct Mover {
    name: &'static str,
    /// A command that the far end runs first; its first output line is the ticket.
    far: Option<&'static str>,
    /// A shell command; `$FROM`, `$TO`, `$NAME`, `$TICKET`, `$SIZING`, `$SSH`, `$SWEETSPOT` and `$FAR` are set.
    near: &'static str,
    /// Suffixes of the name, each with its value of `$SIZING`.
    sizings: &'static [(&'static str, &'static str)],
    moves_trees: bool,
}

const SEND: &str = "\"$SWEETSPOT\" send --offer \"$FROM\"";
const SERVE: &str = "\"$SWEETSPOT\" serve --once --listen $FAR:0 --dir \"$TO\"";

const MOVERS: [Mover; 7] = [
    sized("receive", Some(SEND), "\"$SWEETSPOT\" receive -q $SIZING $TICKET \"$TO\""),
    sized("send", Some(SERVE), "\"$SWEETSPOT\" send -q $SIZING \"$FROM\" $TICKET"),
    sized(
        "copy from",
        None,
        "\"$SWEETSPOT\" copy -q $SIZING --ssh \"$SSH\" --remote-program \"$SWEETSPOT\" far:\"$FROM\" \"$TO\"",
    ),
    sized(
        "copy to",
        None,
        "\"$SWEETSPOT\" copy -q $SIZING --ssh \"$SSH\" --remote-program \"$SWEETSPOT\" \"$FROM\" far:\"$TO\"",
    ),
    Mover {
        moves_trees: false,
        ..peer("curl", "curl -sSfk -o \"$TO/$NAME\" \"https://$FAR:8443/$NAME\"")
    },
    peer("rsync from", "rsync -a -e \"$SSH\" far:\"$FROM\" \"$TO\""),
    peer("rsync to", "rsync -a -e \"$SSH\" \"$FROM\" far:\"$TO\""),
];

/// Sweetspot's programs run with their own sizing and twice with the kernel's, which shows the random variation between runs.
const SIZINGS: [(&str, &str); 3] =
    [("", ""), (", kernel", "--sizing kernel"), (", kernel again", "--sizing kernel")];

const fn sized(name: &'static str, far: Option<&'static str>, near: &'static str) -> Mover {
    Mover { name, far, near, sizings: &SIZINGS, moves_trees: true }
}

const fn peer(name: &'static str, near: &'static str) -> Mover {
    Mover { name, far: None, near, sizings: &[("", "")], moves_trees: true }
}

/// Each program with each of its sizings: the run's name, the value of `$SIZING`, and the program.
fn runs() -> Vec<(String, &'static str, &'static Mover)> {
    let of = |mover: &'static Mover| {
        let named = move |(suffix, sizing): &(&str, &'static str)| {
            (format!("{}{suffix}", mover.name), *sizing, mover)
        };
        mover.sizings.iter().map(named)
    };
    MOVERS.iter().flat_map(of).collect()
}

/// A program, its reference, and the targets for the ratio of their times, if any: median and 95 % quantile.
type Comparison = (&'static str, &'static str, Option<(f64, f64)>);

pub const COMPARISONS: [Comparison; 13] = [
    ("receive", "receive, kernel", Some((1.02, 1.05))),
    ("receive, kernel again", "receive, kernel", None),
    ("send", "send, kernel", Some((1.02, 1.05))),
    ("send, kernel again", "send, kernel", None),
    ("copy from", "copy from, kernel", Some((1.02, 1.05))),
    ("copy from, kernel again", "copy from, kernel", None),
    ("copy to", "copy to, kernel", Some((1.02, 1.05))),
    ("copy to, kernel again", "copy to, kernel", None),
    ("receive", "curl", Some((1.05, f64::INFINITY))),
    ("receive, kernel", "curl", None),
    ("copy from", "rsync from", None),
    ("copy to", "rsync to", None),
    ("send", "curl", None),
];

/// `count` paths: 20 to 300 Mbit/s, 5 to 150 ms, buffers of 0.25 to 2 BDP and at least 20 packets, log-uniform.
pub fn drawn_cases(count: u64, seed: u64) -> Vec<DrawnCase> {
    let draw = |index| {
        let mut random = Random::new(seed * 1_000_003 + index);
        let mut between = |low: f64, high: f64| low * (high / low).powf(random.unit());
        let (rate_mbit, rtt_ms, bdps) =
            (between(20.0, 300.0), between(5.0, 150.0), between(0.25, 2.0));
        let buffer = (rate_mbit * rtt_ms * 125.0 * bdps).max(30_000.0);
        let path = format!("rate={rate_mbit:.1}Mbit/s rtt={rtt_ms:.1}ms buffer={buffer:.0}B");
        DrawnCase { name: format!("drawn-{seed}-{index}"), path, rate_mbit }
    };
    (0..count).map(draw).collect()
}

impl DrawnCase {
    /// The contents to transfer. Only faster paths get the larger ones, so that no run takes longer than about 40 seconds.
    fn contents(&self) -> Vec<Content> {
        let mut contents = vec![
            Content::OneFile(100_000),
            Content::OneFile(1_000_000),
            Content::OneFile(10_000_000),
            Content::SmallFiles(200),
        ];
        if self.rate_mbit > 100.0 {
            contents.push(Content::OneFile(100_000_000));
        }
        if self.rate_mbit > 200.0 {
            contents.push(Content::OneFile(1_000_000_000));
        }
        contents
    }

    /// Runs the case with `program` in `scratch`.
    pub fn run(&self, scratch: &Path, program: &Path, ssh: &Ssh) -> Result<DrawnResult, String> {
        let work = scratch.join("drawn");
        let _ = fs::remove_dir_all(&work);
        let failed = |error: std::io::Error| format!("{}: {error}", self.name);
        fs::create_dir(&work).map_err(failed)?;
        let from = scratch.join("drawn-from");
        fs::create_dir_all(&from).map_err(failed)?;
        let certificate = rcgen::generate_simple_self_signed(["far".to_owned()])
            .map_err(|error| format!("{}: {error}", self.name))?;
        let pem = certificate.cert.pem() + &certificate.signing_key.serialize_pem();
        fs::write(work.join("tls.pem"), pem).map_err(failed)?;
        fs::write(work.join("https.py"), include_str!("https.py")).map_err(failed)?;
        let fifo = work.join("orders");
        let made = Command::new("mkfifo").arg(&fifo).status().map_err(failed)?;
        if !made.success() {
            return Err(format!("{}: mkfifo: {made}", self.name));
        }
        let near = self.near(&from)?;
        let mut command = Command::new("timeout");
        command.args(["--signal=TERM", "1800"]).arg(program).args(["emulate", "--quiet"]);
        command.args(["--path", &self.path, "--far", &far(&from, ssh)]);
        command.args(["--", "sh", "-c", &near]);
        command.env("WORK", &work).env("TO", work.join("to")).env("SWEETSPOT", program);
        command.env("FAR", FAR_ADDRESS);
        command.env("SSH", format!("{} -o HostName={FAR_ADDRESS}", ssh.client()));
        let output = command.output().map_err(failed)?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let runs: Vec<DrawnRun> = text.lines().filter_map(read_run).collect();
        let _ = fs::remove_dir_all(&work);
        if runs.is_empty() || !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(format!("{}: {}: {text}{said}", self.name, output.status));
        }
        Ok(DrawnResult { path: self.path.clone(), runs })
    }

    /// The script for the near end: every program transfers every content, and each content starts with a different program.
    fn near(&self, from: &Path) -> Result<String, String> {
        let mut script = String::from(
            "measure() {
                 rm -rf \"$TO\" && mkdir \"$TO\" || exit 1
                 if [ -n \"$3\" ]; then
                     rm -f \"$WORK/ticket\"; echo \"$3\" >\"$WORK/orders\"
                     until [ -s \"$WORK/ticket\" ]; do sleep 0.01; done
                     export TICKET=$(head -n 1 \"$WORK/ticket\")
                 fi
                 begin=$(date +%s.%N); sh -c \"$4\"; code=$?; end=$(date +%s.%N)
                 diff -rq \"$FROM\" \"$TO/$NAME\" >&2 && [ $code = 0 ] || { echo \"$1 failed: $code\" >&2; exit 1; }
                 echo \"run;$1;$2;$begin;$end\"; sleep 0.2
             }
             until [ -e \"$WORK/ready\" ]; do sleep 0.1; done\n",
        );
        for (place, content) in self.contents().into_iter().enumerate() {
            let (source, _): (PathBuf, u64) = content.make(from).map_err(|e| e.to_string())?;
            let name = source.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let is_tree = matches!(content, Content::SmallFiles(_));
            let _ = writeln!(script, "export FROM='{}' NAME='{name}'", source.display());
            let runs = runs();
            let runs = runs.iter().cycle().skip(place * 4).take(runs.len());
            for (run, sizing, mover) in runs.filter(|(_, _, mover)| mover.moves_trees || !is_tree) {
                let far = mover.far.map(|far| format!("FROM='{}'; {far}", source.display()));
                let _ = writeln!(
                    script,
                    "export SIZING='{sizing}'; measure '{run}' '{}' {} {}",
                    content.in_words(),
                    quoted(&far.unwrap_or_default()),
                    quoted(mover.near)
                );
            }
        }
        Ok(script)
    }
}

/// The script for the far end: it starts the servers and executes the commands of the near end.
fn far(from: &Path, ssh: &Ssh) -> String {
    format!(
        "mkdir -p /run/sshd && {SSHD} -f {} -o ListenAddress={FAR_ADDRESS} || exit 1
         python3 \"$WORK/https.py\" {FAR_ADDRESS} 8443 '{}' \"$WORK/tls.pem\" &
         sleep 0.5; touch \"$WORK/ready\"
         while read -r order; do sh -c \"$order\" >\"$WORK/ticket\" 2>/dev/null & done <>\"$WORK/orders\"",
        ssh.server_configuration(),
        from.display()
    )
}

/// Quotes `words` as a single shell word.
fn quoted(words: &str) -> String {
    format!("'{}'", words.replace('\'', "'\\''"))
}

fn read_run(line: &str) -> Option<DrawnRun> {
    let mut fields = line.strip_prefix("run;")?.split(';');
    let (program, content) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    let mut moment = || fields.next()?.parse::<f64>().ok();
    let (begin, end) = (moment()?, moment()?);
    Some(DrawnRun { program, content, seconds: end - begin })
}

/// Times of `program` relative to `reference` on the same paths: for each content, in run order.
pub fn ratios(results: &[DrawnResult], program: &str, reference: &str) -> Vec<(String, Vec<f64>)> {
    let mut all: Vec<(String, Vec<f64>)> = Vec::new();
    for result in results {
        for run in result.runs.iter().filter(|run| run.program == program) {
            let other =
                |other: &&DrawnRun| other.program == reference && other.content == run.content;
            let Some(other) = result.runs.iter().find(other) else { continue };
            let ratio = run.seconds / other.seconds;
            match all.iter_mut().find(|(content, _)| *content == run.content) {
                Some((_, ratios)) => ratios.push(ratio),
                None => all.push((run.content.clone(), vec![ratio])),
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_line_is_parsed() {
        let run = read_run("run;copy from, kernel;one file of 10 MB;10.25;12.5").unwrap();
        assert_eq!((run.program.as_str(), run.seconds), ("copy from, kernel", 2.25));
        assert_eq!(read_run("run;copy from"), None);
        assert_eq!(read_run("ready"), None);
    }

    #[test]
    fn programs_are_compared_only_on_the_same_path_and_content() {
        let run = |program: &str, content: &str, seconds| DrawnRun {
            program: program.into(),
            content: content.into(),
            seconds,
        };
        let result = |runs| DrawnResult { path: String::new(), runs };
        let results = [
            result(vec![run("a", "x", 3.0), run("b", "x", 2.0), run("a", "y", 1.0)]),
            result(vec![run("b", "x", 4.0), run("a", "x", 2.0), run("b", "y", 9.0)]),
        ];
        assert_eq!(ratios(&results, "a", "b"), [("x".to_owned(), vec![1.5, 0.5])]);
    }

    #[test]
    fn every_comparison_names_programs_that_run() {
        for (program, reference, _) in COMPARISONS {
            for name in [program, reference] {
                assert!(runs().iter().any(|(run, _, _)| run == name), "{name}");
            }
        }
    }

    #[test]
    fn equal_seeds_draw_equal_paths_within_bounds() {
        let cases = drawn_cases(50, 7);
        for (case, again) in cases.iter().zip(drawn_cases(50, 7)) {
            assert_eq!(case.path, again.path);
            assert!((20.0..=300.0).contains(&case.rate_mbit));
            assert!(case.path.parse::<sweetspot_path::PathSpec>().is_ok(), "{}", case.path);
        }
    }
}
