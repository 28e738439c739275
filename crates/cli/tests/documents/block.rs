//! The console blocks of a document.

use std::path::Path;
use std::process::{Command as Process, Stdio};

/// A command, and the output that the document shows below it.
#[derive(Debug, PartialEq, Eq)]
pub struct Command {
    /// The command as typed, including continuation lines.
    pub typed: String,
    /// The exit code from a line `? CODE`, otherwise 0.
    pub code: i32,
    /// The output lines below the command; empty if the document shows none.
    pub shown: String,
}

/// A block of a document.
#[derive(Debug, PartialEq, Eq)]
pub struct Block {
    /// The line at which it begins, counted from 1.
    pub line: usize,
    /// The reasons after `console` in its fence.
    pub reasons: Vec<Reason>,
    /// Its commands, in order.
    pub commands: Vec<Command>,
}

/// The reason why a block does not run, or the condition under which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// `needs-root`, `needs-network`, `two-hosts`, `builds`, `takes-minutes`, `until-ctrl-c`: never
    /// runs.
    Never,
    /// `needs-namespaces`: runs if this kernel allows them.
    Namespaces,
    /// `needs-PROGRAM`: runs if this program exists.
    Program(String),
}

impl Reason {
    fn parse(word: &str) -> Result<Reason, String> {
        match word {
            "needs-root" | "needs-network" | "two-hosts" | "builds" | "takes-minutes"
            | "until-ctrl-c" => Ok(Reason::Never),
            "needs-namespaces" => Ok(Reason::Namespaces),
            _ => match word.strip_prefix("needs-") {
                Some(program) if !program.is_empty() => Ok(Reason::Program(program.to_owned())),
                _ => Err(format!("{word:?} is no reason not to run a block")),
            },
        }
    }

    fn missing(&self) -> Option<String> {
        match self {
            Reason::Never => None,
            Reason::Namespaces => (!namespaces()).then(|| {
                "no permission for namespaces (root, or a kernel that allows user namespaces)"
                    .to_owned()
            }),
            Reason::Program(name) => {
                // Programs of this workspace are in the same directory as the one under test.
                let sibling = Path::new(env!("CARGO_BIN_EXE_sweetspot")).with_file_name(name);
                let found = sibling.exists() || quiet("sh", &["-c", &format!("command -v {name}")]);
                (!found).then(|| format!("no {name} (install {name}, or cargo build -p {name})"))
            }
        }
    }
}

fn namespaces() -> bool {
    quiet("unshare", &["--user", "--net", "--map-root-user", "true"])
        || quiet("unshare", &["--net", "true"])
}

fn quiet(program: &str, arguments: &[&str]) -> bool {
    Process::new(program)
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

impl Block {
    /// Whether it is marked as not to be run.
    pub fn is_marked(&self) -> bool {
        self.reasons.contains(&Reason::Never)
    }

    /// The requirements of the block that this machine lacks.
    pub fn missing(&self) -> Option<String> {
        self.reasons.iter().find_map(Reason::missing)
    }
}

/// Parses the console blocks of a document; an error begins with the line number.
pub fn read(text: &str) -> Result<Vec<Block>, String> {
    let mut blocks = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((i, line)) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let body: Vec<&str> =
            lines.by_ref().map(|(_, line)| line).take_while(|line| *line != "```").collect();
        let mut words = info.split(',');
        if words.next() != Some("console") {
            continue;
        }
        let at = |error: String| format!("{}: {error}", i + 1);
        let reasons = words.map(Reason::parse).collect::<Result<_, _>>().map_err(at)?;
        blocks.push(Block { line: i + 1, reasons, commands: commands(&body).map_err(at)? });
    }
    Ok(blocks)
}

fn commands(body: &[&str]) -> Result<Vec<Command>, String> {
    let mut commands: Vec<Command> = Vec::new();
    let mut lines = body.iter();
    while let Some(line) = lines.next() {
        if let Some(first) = line.strip_prefix("$ ") {
            let mut typed = first.to_owned();
            while typed.ends_with('\\') {
                typed.push('\n');
                typed.push_str(lines.next().ok_or("a command goes on after the block's end")?);
            }
            commands.push(Command { typed, code: 0, shown: String::new() });
            continue;
        }
        let last = commands.last_mut().ok_or("a block begins with `$ COMMAND`")?;
        match line.strip_prefix("? ") {
            Some(code) => last.code = code.parse().map_err(|_| format!("{line:?}: no code"))?,
            None => {
                last.shown.push_str(line);
                last.shown.push('\n');
            }
        }
    }
    Ok(commands)
}

#[test]
fn a_block_parses_into_reasons_commands_exit_codes_and_output() {
    let text =
        "# T\n```console,needs-namespaces,needs-ping\n$ a \\\n    b\none\n...\n$ c\n? 3\n```\n";
    let command = |typed: &str, code, shown: &str| Command {
        typed: typed.to_owned(),
        code,
        shown: shown.to_owned(),
    };
    let block = Block {
        line: 2,
        reasons: vec![Reason::Namespaces, Reason::Program("ping".to_owned())],
        commands: vec![command("a \\\n    b", 0, "one\n...\n"), command("c", 3, "")],
    };
    assert_eq!(read(text), Ok(vec![block]));
    assert!(read("```console,because\n$ a\n```\n").is_err());
    assert!(read("```console\nno prompt\n```\n").is_err());
}
