//! `top` on a terminal, which `script(1)` makes.

use std::fs;
use std::process::{Child, Command, Stdio};

use sweetspot_linux::clock;
use sweetspot_linux::processes::{Process, family};
use sweetspot_linux::signals::Signal;
use sweetspot_units::Duration;

use super::Tested;

/// The escape sequence that a terminal gets at the end: back to the previous screen.
const BACK: &str = "\x1b[?1049l";

/// Ends with the test, whatever comes of it.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        // One that has ended needs nothing.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Waits for something that comes sooner or later.
fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T, String> {
    let patience = clock::now() + Duration::from_secs(60);
    while clock::now() < patience {
        if let Some(found) = look() {
            return Ok(found);
        }
        clock::sleep_until(clock::now() + Duration::from_millis(20));
    }
    Err(format!("{what} never came"))
}

/// The process `top` below `terminal`.
fn top(terminal: &Child) -> Option<u32> {
    let named = |pid: &u32| Process::read(*pid).is_ok_and(|p| p.name == "sweetspot");
    family(terminal.id()).into_iter().find(named)
}

#[test]
fn who_is_told_to_end_leaves_the_terminal_in_order() -> Tested {
    let dir = tempfile::tempdir()?;
    let seen = dir.path().join("seen");
    // It has no size where there is no terminal around it.
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let command = format!("stty rows 20 cols 120; exec {program} top");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &command]).arg(&seen);
    script.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::null());
    let mut terminal = match script.spawn() {
        Ok(terminal) => Terminal(terminal),
        Err(error) => {
            sweetspot_testing::skipped(format!("no script(1): {error} (apt-get install bsdutils)"));
            return Ok(());
        }
    };
    let text = || String::from_utf8_lossy(&fs::read(&seen).unwrap_or_default()).into_owned();
    wait_for("the table", || text().contains("limited by").then_some(()))?;
    Signal::TERMINATE.send(wait_for("top", || top(&terminal.0))?);
    // 128 + 15.
    assert_eq!(terminal.0.wait()?.code(), Some(143));
    assert!(text().contains(BACK), "{:?}", text());
    Ok(())
}
