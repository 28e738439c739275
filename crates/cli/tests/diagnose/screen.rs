//! `top` on a terminal created by `script(1)`.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use sweetspot_linux::clock;
use sweetspot_linux::processes::{Process, family};
use sweetspot_linux::signals::Signal;
use sweetspot_units::Duration;

use super::TestResult;

/// The escape sequence that returns a terminal to the previous screen at the end.
const BACK: &str = "\x1b[?1049l";

/// Killed when the test ends, even if it fails.
struct Terminal(Child);

impl Drop for Terminal {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.0.kill().and_then(|()| self.0.wait());
    }
}

/// Waits until `look` finds something, for at most a minute.
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

/// The PID of `top`, a descendant of `terminal`.
fn top(terminal: &Child) -> Option<u32> {
    let named = |pid: &u32| Process::read(*pid).is_ok_and(|p| p.name == "sweetspot");
    family(terminal.id()).into_iter().find(named)
}

/// Runs `top` with these arguments on a terminal with `columns` columns. Its output goes to `seen`.
fn on_terminal(columns: u16, arguments: &str, seen: &Path) -> Option<Terminal> {
    // script(1) takes the size from its own terminal, which the test may lack.
    let program = env!("CARGO_BIN_EXE_sweetspot");
    let command = format!("stty rows 24 cols {columns}; exec {program} top {arguments}");
    let mut script = Command::new("script");
    script.args(["--quiet", "--return", "--flush", "--command", &command]).arg(seen);
    script.env("TERM", "xterm").stdin(Stdio::piped()).stdout(Stdio::null());
    match script.spawn() {
        Ok(terminal) => Some(Terminal(terminal)),
        Err(error) => {
            sweetspot_testing::skipped(format!("no script(1): {error} (apt-get install bsdutils)"));
            None
        }
    }
}

/// A download by another process until the value is dropped, and the server's port.
fn download() -> std::io::Result<(Terminal, u16)> {
    const CLIENT: &str = "import socket, sys\n\
        s = socket.create_connection(('127.0.0.1', int(sys.argv[1])))\n\
        while s.recv(65536): pass";
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let client = Command::new("python3").args(["-c", CLIENT, &port.to_string()]).spawn()?;
    let (mut stream, _) = listener.accept()?;
    thread::spawn(move || {
        // About 40 MB/s, until the client is gone.
        while stream.write_all(&[7; 65536]).is_ok() {
            clock::sleep_until(clock::now() + Duration::from_micros(1600));
        }
    });
    Ok((Terminal(client), port))
}

#[test]
fn single_keys_explain_tune_and_release_a_connection() -> TestResult {
    let dir = tempfile::tempdir()?;
    let seen = dir.path().join("seen");
    let (client, port) = download()?;
    let pid = client.0.id();
    let filter = format!("--interval 200ms --filter '{pid} '");
    let Some(mut terminal) = on_terminal(80, &filter, &seen) else { return Ok(()) };
    let text = || String::from_utf8_lossy(&fs::read(&seen).unwrap_or_default()).into_owned();
    let mut keys = terminal.0.stdin.take().ok_or("no keyboard")?;
    let mut press = |key: &str| keys.write_all(key.as_bytes()).and_then(|()| keys.flush());
    wait_for("the row", || text().contains(&port.to_string()).then_some(()))?;
    press("d")?;
    wait_for("the explanation", || text().contains("do:").then_some(()))?;
    // The terminal receives only changed cells. The words below replace the table, so they arrive
    // completely.
    press("d")?;
    press("t")?;
    let on = || ["Tuning,", "removes", "permission"].iter().any(|word| text().contains(word));
    wait_for("tuning", || on().then_some(()))?;
    if text().contains("permission") {
        sweetspot_testing::skipped("no permission to tune another process (root)");
        return Ok(());
    }
    let tuner = || family(terminal.0.id()).len() > 2;
    wait_for("the tuner", || tuner().then_some(()))?;
    wait_for("before and after", || text().contains("before").then_some(()))?;
    press("u")?;
    wait_for("the end of tuning", || (!tuner() && text().contains("has ended")).then_some(()))?;
    press("q")?;
    assert!(terminal.0.wait()?.success());
    assert!(text().contains(BACK));
    Ok(())
}

#[test]
fn top_restores_the_terminal_on_sigterm() -> TestResult {
    let dir = tempfile::tempdir()?;
    let seen = dir.path().join("seen");
    let Some(mut terminal) = on_terminal(120, "", &seen) else { return Ok(()) };
    let text = || String::from_utf8_lossy(&fs::read(&seen).unwrap_or_default()).into_owned();
    wait_for("the table", || text().contains("limited by").then_some(()))?;
    Signal::TERMINATE.send(wait_for("top", || top(&terminal.0))?);
    // 128 + SIGTERM (15).
    assert_eq!(terminal.0.wait()?.code(), Some(143));
    assert!(text().contains(BACK), "{:?}", text());
    Ok(())
}

#[test]
fn top_without_a_terminal_records_until_sigterm() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("monday.log");
    let (_client, port) = download()?;
    let mut top = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    top.args(["top", "--interval", "100ms", "--record"]).arg(&file);
    top.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut top = Terminal(top.spawn()?);
    let end = format!("127.0.0.1:{port}");
    let recorded = || fs::read_to_string(&file).unwrap_or_default().matches(&end).count();
    // Each of the connection's ends has a line, with both addresses.
    wait_for("two readings", || (recorded() > 4).then_some(()))?;
    Signal::TERMINATE.send(top.0.id());
    assert!(!top.0.wait()?.success());
    let mut printed = String::new();
    top.0.stderr.take().expect("a pipe").read_to_string(&mut printed)?;
    let name = file.display();
    assert!(printed.starts_with(&format!("recording to {name}; Ctrl-C ends\n")), "{printed}");
    let end = format!("readings in {name}; read them with: sweetspot diagnose --tcpinfo {name}\n");
    assert!(printed.ends_with(&end), "{printed}");
    Ok(())
}
