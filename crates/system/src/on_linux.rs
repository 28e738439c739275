use std::io;
use std::path::Path;

use sweetspot_linux::file;
use sweetspot_linux::signals::{self, ProcessEvent, Supervisor};
use sweetspot_units::Time;

/// The mode of a new file before the umask, as in the standard library.
const USUAL_MODE: u32 = 0o666;

/// Replaces or creates the file at `path`. Whatever happens, it has either the old or the new content.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    file::replace(path, content, USUAL_MODE)
}

/// Blocks the signals that end this program, for work that must clean up: on this thread, and on threads started afterwards.
#[derive(Debug)]
pub struct Interruption(Supervisor);

impl Interruption {
    /// Blocks the signals from now on.
    pub fn hold() -> io::Result<Interruption> {
        Supervisor::new().map(Interruption)
    }

    /// Waits for a signal until `due` or shorter. `Some` is the shell's exit code for the signal; from then on the program has
    /// [`signals::CLEANING_TIME`] to clean up and end.
    pub fn wait_until(&mut self, due: Time) -> io::Result<Option<u8>> {
        let code = self.code_by(due)?;
        if let Some(code) = code {
            signals::end_within(signals::CLEANING_TIME, code);
        }
        Ok(code)
    }

    /// As [`Interruption::wait_until`], but after the interrupt key (SIGINT) the work may take as long as it needs, and the
    /// caller ends the program.
    pub fn wait_patiently_until(&mut self, due: Time) -> io::Result<Option<u8>> {
        let code = self.code_by(due)?;
        match code {
            Some(code) if code != signals::Signal::INTERRUPT.exit_code() => {
                signals::end_within(signals::CLEANING_TIME, code);
            }
            _ => {}
        }
        Ok(code)
    }

    fn code_by(&mut self, due: Time) -> io::Result<Option<u8>> {
        Ok(match self.0.next_event_by(due)? {
            Some(ProcessEvent::Signal(signal) | ProcessEvent::TerminalSignal(signal)) => {
                Some(signal.exit_code())
            }
            _ => None,
        })
    }
}
