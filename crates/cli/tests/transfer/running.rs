//! Starts the programs and waits for them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Output, Stdio};
use std::time::Duration;

use sweetspot_linux::clock;
use sweetspot_protocol::Ticket;

pub const SWEETSPOT: &str = env!("CARGO_BIN_EXE_sweetspot");

/// A directory for received files, and a `sweetspot serve` that writes to it.
pub struct Serve {
    pub directory: PathBuf,
    pub child: Child,
    pub ticket: String,
    stdout: BufReader<ChildStdout>,
    _scratch: tempfile::TempDir,
}

/// A program's exit status and output.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Serve {
    /// Starts a server with a new directory.
    pub fn start(arguments: &[&str]) -> Serve {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().to_owned();
        Serve::start_in(scratch, &directory, arguments)
    }

    /// Starts a server with `directory`, which lives as long as `scratch`.
    pub fn start_in(scratch: tempfile::TempDir, directory: &Path, arguments: &[&str]) -> Serve {
        let mut command = Command::new(SWEETSPOT);
        command.arg("serve").arg("--dir").arg(directory).args(arguments);
        if !arguments.contains(&"--listen") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        Serve::spawn(scratch, directory, command)
    }

    /// Starts any command that finally serves into `directory`.
    pub fn spawn(scratch: tempfile::TempDir, directory: &Path, mut command: Command) -> Serve {
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starting");
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ticket = String::new();
        stdout.read_line(&mut ticket).unwrap();
        let ticket = match serde_json::from_str::<serde_json::Value>(&ticket) {
            Ok(greeting) => greeting["ticket"].as_str().expect("a ticket").to_owned(),
            Err(_) => ticket.trim().to_owned(),
        };
        Serve { directory: directory.to_owned(), child, ticket, stdout, _scratch: scratch }
    }

    /// The parsed ticket, for changes.
    pub fn ticket(&self) -> Ticket {
        self.ticket.parse().expect("the first line is a ticket")
    }

    /// Waits until it ends by itself.
    pub fn wait(mut self) -> Ended {
        let code = wait(&mut self.child);
        let mut ended = Ended { code, stdout: String::new(), stderr: String::new() };
        self.stdout.read_to_string(&mut ended.stdout).unwrap();
        self.child.stderr.take().unwrap().read_to_string(&mut ended.stderr).unwrap();
        ended
    }

    /// Waits for the next line on the server's standard output.
    pub fn printed_line(&mut self) -> String {
        let mut line = String::new();
        assert_ne!(self.stdout.read_line(&mut line).unwrap(), 0, "the server ended");
        line
    }

    /// Reads the server's standard error until a line contains `words`.
    pub fn read_until(&mut self, words: &str) {
        let mut stderr = String::new();
        let mut lines = BufReader::new(self.child.stderr.as_mut().unwrap());
        while !stderr.contains(words) {
            assert_ne!(lines.read_line(&mut stderr).unwrap(), 0, "{words:?} is not in {stderr:?}");
        }
    }

    /// Waits until the server ends by itself, or interrupts it while it waits for another try.
    pub fn wait_for_try(mut self) -> Ended {
        let mut stderr = String::new();
        let mut lines = BufReader::new(self.child.stderr.take().unwrap());
        let mut last = 0;
        while lines.read_line(&mut stderr).unwrap() > 0 {
            if stderr[last..].contains("waiting for another try") {
                signal(&self.child, "INT");
            }
            last = stderr.len();
        }
        let mut ended = Ended { code: wait(&mut self.child), stdout: String::new(), stderr };
        self.stdout.read_to_string(&mut ended.stdout).unwrap();
        ended
    }

    /// Ends the server with a signal, as a user would.
    pub fn interrupt(self) -> Ended {
        signal(&self.child, "INT");
        self.wait()
    }

    /// The names in the directory, including unfinished files.
    pub fn names(&self) -> Vec<String> {
        names(&self.directory)
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The names in a directory, sorted.
pub fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<_> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Sends a signal by name with the shell's built-in, because a minimal system has no program kill.
pub fn signal(child: &Child, name: &str) {
    let status =
        Command::new("sh").args(["-c", &format!("kill -s {name} {}", child.id())]).status();
    assert!(status.unwrap().success());
}

/// Runs `sweetspot send`.
pub fn send(file: &Path, ticket: &str, arguments: &[&str]) -> Ended {
    let mut command = Command::new(SWEETSPOT);
    command.arg("send").arg(file).arg(ticket).args(arguments);
    run(command)
}

/// Runs a command to its end.
pub fn run(mut command: Command) -> Ended {
    let Output { status, stdout, stderr } = command.output().expect("starting");
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Ended { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
}

/// Waits for a child, with a timeout.
pub fn wait(child: &mut Child) -> Option<i32> {
    let deadline = clock::now() + Duration::from_secs(60).into();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        assert!(clock::now() < deadline, "still running after a minute");
        clock::sleep_until(clock::now() + Duration::from_millis(10).into());
    }
}

/// Polls until `is` returns true, with a timeout.
pub fn eventually(what: &str, mut is: impl FnMut() -> bool) {
    let deadline = clock::now() + Duration::from_secs(20).into();
    while !is() {
        assert!(clock::now() < deadline, "in vain: {what}");
        clock::sleep_until(clock::now() + Duration::from_millis(5).into());
    }
}

/// A file of `length` bytes without short repetitions. Its name does not begin with a dot, because receivers
/// refuse such names.
pub fn file(length: usize) -> (tempfile::NamedTempFile, Vec<u8>) {
    let mut content = vec![0; length];
    blake3::Hasher::new().finalize_xof().fill(&mut content);
    let file = tempfile::Builder::new().prefix("sent-").tempfile().unwrap();
    fs::write(file.path(), &content).unwrap();
    (file, content)
}

impl Ended {
    /// Asserts that the program failed with one line that contains all `words`.
    pub fn failed_saying(&self, words: &[&str]) {
        assert!(self.code.is_some_and(|code| code != 0), "{self:?}");
        let lines: Vec<_> = self.stderr.lines().collect();
        let says = |line: &&str| words.iter().all(|word| line.contains(word));
        assert_eq!(lines.iter().copied().filter(says).count(), 1, "{words:?} in {self:?}");
        assert!(!self.stderr.contains("panicked"), "{self:?}");
    }
}
