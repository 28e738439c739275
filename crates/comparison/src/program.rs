//! A program on one side of the path. Its output is read while it runs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread::{self, JoinHandle};

use sweetspot_emulator::{EmulatorError, Side};
use sweetspot_linux::clock;
use sweetspot_linux::signals::Signal;
use sweetspot_units::Duration;

use crate::ComparisonError;

/// Time for a program to stop its own children before it is killed.
const END_PATIENCE: Duration = Duration::from_secs(1);
/// Interval between checks whether it has ended.
const END_POLL: Duration = Duration::from_millis(5);

/// A running program, ended when this value is dropped.
pub struct Program {
    child: Child,
    lines: Receiver<String>,
    printed: Vec<String>,
    stderr_reader: Option<JoinHandle<String>>,
}

impl Program {
    /// Starts `command` on `side` and captures its output.
    pub fn start(side: &Side, command: &mut Command) -> Result<Program, EmulatorError> {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = side.spawn(command)?;
        let (send, lines) = mpsc::channel();
        if let Some(output) = child.stdout.take() {
            thread::spawn(move || {
                let lines = BufReader::new(output).lines().map_while(Result::ok);
                // The receiver is gone: the program is being killed.
                lines.take_while(|line| send.send(line.clone()).is_ok()).for_each(drop);
            });
        }
        let stderr_reader = child.stderr.take().map(|mut errors| {
            thread::spawn(move || {
                let mut bytes = Vec::new();
                let _ = errors.read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            })
        });
        Ok(Program { child, lines, printed: Vec::new(), stderr_reader })
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its exit status, if it has ended.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        // An error here means that the child no longer exists.
        self.child.try_wait().unwrap_or_else(|_| Some(ExitStatus::default()))
    }

    /// The lines printed so far.
    pub fn printed(&mut self) -> &[String] {
        self.printed.extend(self.lines.try_iter());
        &self.printed
    }

    /// Waits for the end of the program. Returns its lines or, if it failed, its last line of
    /// standard error.
    pub fn finish(mut self) -> Result<Vec<String>, ComparisonError> {
        let status = self.child.wait()?;
        self.printed.extend(self.lines.iter());
        if status.success() {
            return Ok(std::mem::take(&mut self.printed));
        }
        Err(self.last_error().map_or(ComparisonError::Ended(status), ComparisonError::Program))
    }

    /// Ends the program if it is still running. Returns its last line of standard error.
    pub fn stop(mut self) -> Option<String> {
        self.end();
        self.last_error()
    }

    /// Asks the program to end, so that it can stop its own children, and kills it if it does not.
    fn end(&mut self) {
        let patience = clock::now() + END_PATIENCE;
        if self.ended().is_none() {
            Signal::TERMINATE.send(self.id());
        }
        while self.ended().is_none() && clock::now() < patience {
            clock::sleep_until(clock::now() + END_POLL);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn last_error(&mut self) -> Option<String> {
        let text = self.stderr_reader.take()?.join().ok()?;
        let last = text.lines().rfind(|line| !line.trim().is_empty())?;
        Some(last.trim().trim_start_matches("sweetspot: ").to_owned())
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.end();
    }
}
