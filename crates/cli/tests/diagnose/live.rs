use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::{TestResult, stdout, sweetspot};

/// Serialises the tests: they must not see each other's connections.
static ALONE: Mutex<()> = Mutex::new(());

/// Stops the writer when dropped, even if a test fails. Otherwise it would run forever.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// Runs `look` while this process writes a little data every 20 ms.
fn while_writing_slowly(look: impl FnOnce(&TcpStream) -> TestResult) -> TestResult {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    let ours = client.try_clone()?;
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| while matches!(server.read(&mut [0; 65_536]), Ok(n) if n > 0) {});
        scope.spawn(|| {
            while !over.load(Ordering::Acquire) && client.write_all(&[0; 1000]).is_ok() {
                thread::park_timeout(Duration::from_millis(20));
            }
            let _ = client.shutdown(std::net::Shutdown::Write);
        });
        let _over = Over(&over);
        look(&ours)
    })
}

#[test]
fn a_slow_writer_is_application_limited_by_pid_parent_pid_and_address() -> TestResult {
    while_writing_slowly(|socket| {
        let end = socket.local_addr()?.to_string();
        // cargo is the parent: the connections of its children count as its own.
        let (own, parent) = (std::process::id(), std::os::unix::process::parent_id());
        for target in [end.clone(), own.to_string(), parent.to_string()] {
            let shown = ["--for", "1s", "--json", "--flows", "10000"];
            let output = sweetspot(&[&["diagnose", target.as_str()], &shown[..]].concat())?;
            let json: Value = serde_json::from_slice(&output.stdout)?;
            let flows = json["flows"].as_array().ok_or("no flows")?;
            let flow = flows.iter().find(|f| f["source"] == end.as_str()).ok_or("not ours")?;
            assert_eq!(flow["verdict"]["class"], "application", "{flow}");
            assert!(flow["goodput_bps"].as_f64() > Some(1e5), "{flow}");
        }
        Ok(())
    })
}

/// Both programs write until nothing more fits, and neither reads.
#[test]
fn programs_that_wait_for_each_other_are_told_so() -> TestResult {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    let (mut server, _) = listener.accept()?;
    for end in [&mut server, &mut client] {
        end.set_nonblocking(true)?;
        while end.write(&[0; 65_536]).is_ok_and(|n| n > 0) {}
    }
    // The client writes last, and more.
    thread::park_timeout(Duration::from_millis(300));
    while client.write(&[0; 65_536]).is_ok_and(|n| n > 0) {}
    let end = client.local_addr()?.to_string();
    let output = sweetspot(&["diagnose", &end, "--for", "1s"])?;
    let text = stdout(&output).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("each program may be waiting until the other one reads"), "{text}");
    Ok(())
}

#[test]
fn top_lists_a_connection_with_its_process_and_limit() -> TestResult {
    while_writing_slowly(|socket| {
        let end = socket.local_addr()?.to_string();
        let arguments = ["top", "--once", "--interval", "500ms", "--filter", &end];
        let output = sweetspot(&[&arguments[..], &["--json"]].concat())?;
        let json: Value = serde_json::from_slice(&output.stdout)?;
        let all = json["connections"].as_array().ok_or("no connections")?;
        let ours = all.iter().find(|c| c["local"] == end.as_str()).ok_or("not ours")?;
        assert_eq!(ours["pid"].as_u64(), Some(std::process::id().into()));
        assert_eq!(ours["limited_by"], "application", "{ours}");
        let mut narrow = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let text = stdout(&narrow.args(arguments).env_remove("COLUMNS").output()?);
        assert!(text.contains("limited by") && text.contains("application"), "{text}");
        let longest = |text: &str| text.lines().map(|line| line.chars().count()).max();
        assert!(longest(&text) <= Some(80), "{text}");
        let wide = stdout(&narrow.env("COLUMNS", "160").output()?);
        assert!(wide.contains("sweet spot") && longest(&wide) <= Some(160), "{wide}");
        Ok(())
    })
}

/// Both ends have the limit that the sender's counters show: `diagnose` reports one connection, from the sender, which knows
/// more.
#[test]
fn top_and_diagnose_name_the_same_limit() -> TestResult {
    while_writing_slowly(|socket| {
        let (client, server) = (socket.local_addr()?.to_string(), socket.peer_addr()?.to_string());
        let diagnosed = stdout(&sweetspot(&["diagnose", &client, "--for", "1s", "--json"])?);
        let diagnosed: Value = serde_json::from_str(&diagnosed)?;
        let top = stdout(&sweetspot(&["top", "--once", "--json", "--filter", &client])?);
        let top: Value = serde_json::from_str(&top)?;
        let rows = top["connections"].as_array().ok_or("no connections")?;
        for end in [client, server] {
            let row = rows.iter().find(|row| row["local"] == end.as_str()).ok_or("not there")?;
            assert_eq!(row["limited_by"], diagnosed["flows"][0]["verdict"]["class"], "{row}");
        }
        Ok(())
    })
}

/// The table says "receiving app", and JSON "receiver's application".
#[test]
fn a_filter_matches_table_words_and_json_words() -> TestResult {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut client = TcpStream::connect(listener.local_addr()?)?;
    // No program reads the data.
    let (_far, _) = listener.accept()?;
    client.set_nonblocking(true)?;
    while client.write(&[0; 65_536]).is_ok() {}
    let end = format!("\"local\":\"{}\"", client.local_addr()?);
    for (words, is_there) in [("receiving app", true), ("receiver's appl", true), ("idle", false)] {
        let top = stdout(&sweetspot(&["top", "--once", "--json", "--filter", words])?);
        assert_eq!(top.contains(&end), is_there, "{words}: {top}");
    }
    Ok(())
}

#[test]
fn a_recording_gets_the_verdict_of_the_live_connection() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("top.log").display().to_string();
    while_writing_slowly(|ours| {
        let end = ours.local_addr()?.to_string();
        let top = ["top", "--once", "--interval", "1s", "--record", &file];
        let result = sweetspot(&top)?;
        assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
        let report =
            stdout(&sweetspot(&["diagnose", "--json", "--flows", "10000", "--tcpinfo", &file])?);
        let report: Value = serde_json::from_str(&report)?;
        let flows = report["flows"].as_array().ok_or("no flows")?;
        let flow = flows.iter().find(|flow| flow["source"] == end.as_str()).ok_or("not there")?;
        assert_eq!(flow["verdict"]["class"], "application", "{flow}");
        let twice = flow["remarks"].as_array().is_some_and(|remarks| {
            remarks.iter().any(|remark| remark.as_str().is_some_and(|r| r.contains("twice")))
        });
        assert!(!twice, "{flow}");
        Ok(())
    })
}

/// An existing file is not overwritten.
#[test]
fn record_does_not_overwrite_an_existing_file() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("kept.log");
    std::fs::write(&file, "precious")?;
    let name = file.display().to_string();
    for how in [&["top", "--record", &name][..], &["top", "--once", "--record", &name]] {
        let result = sweetspot(how)?;
        assert!(!result.status.success(), "{how:?}");
        assert_eq!(std::fs::read_to_string(&file)?, "precious", "{how:?}");
    }
    Ok(())
}

#[test]
fn a_tap_on_a_device_diagnoses_its_traffic() -> TestResult {
    tap_says_what_limits("lo")
}

/// A packet on loopback leaves and arrives on the same device, but must be counted once.
#[test]
fn a_tap_on_all_devices_diagnoses_loopback_traffic() -> TestResult {
    tap_says_what_limits("any")
}

fn tap_says_what_limits(device: &str) -> TestResult {
    while_writing_slowly(|ours| {
        let end = ours.local_addr()?.to_string();
        let words = ["diagnose", "--follow", device, "--for", "3s", "--json", "--flows", "10000"];
        let output = sweetspot(&words)?;
        if String::from_utf8_lossy(&output.stderr).contains("CAP_NET_RAW") {
            sweetspot_testing::skipped("no permission to tap a device (root)");
            return Ok(());
        }
        let result = stdout(&output);
        let lines: Vec<Value> =
            result.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let (report, tables) = lines.split_last().ok_or("nothing was said")?;
        assert!(tables.len() >= 2, "{result}");
        let ours = |list: &Value| {
            let list = list.as_array().cloned().unwrap_or_default();
            list.into_iter().find(|flow| flow["source"] == end.as_str())
        };
        let recent = tables.last().and_then(|table| ours(&table["connections"]));
        // A kilobyte every 20 ms is 0.4 Mbit/s.
        let rate = recent.and_then(|flow| flow["goodput_bps"].as_f64()).unwrap_or(0.0);
        assert!((1e5..1e6).contains(&rate), "{rate}");
        let flow = ours(&report["flows"]).ok_or("not in the report")?;
        assert_eq!(flow["verdict"]["class"], "application", "{flow}");
        Ok(())
    })
}
