use std::fs;

use super::{TestResult, stderr, stdout, sweetspot};

/// Runs `diagnose` with bad input. It must print one line that contains `words`, and exit with `code`.
fn refused(arguments: &[&str], code: i32, words: &str) -> TestResult {
    let output = sweetspot(&[&["diagnose"], arguments].concat())?;
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(code), "{arguments:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    Ok(())
}

#[test]
fn an_invalid_target_is_rejected_in_one_line() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("empty"), [])?;
    fs::write(at("text"), "not a capture at all")?;
    refused(&["--file", &at("none")], 1, "cannot open")?;
    refused(&["--file", &at("empty")], 1, "it is empty")?;
    refused(&["--file", &at("text")], 1, "neither pcap nor pcapng")?;
    refused(&["--file", &dir.path().display().to_string()], 1, "cannot read")?;
    refused(&["nobody"], 2, "neither a process number such as 4711 nor a file or a directory")?;
    refused(&[&at("text")], 1, "expected a capture, the output of ss -ti")?;
    fs::write(at("no-connection"), "State Recv-Q Send-Q Local Address:Port Peer Address:Port\n")?;
    refused(&[&at("no-connection")], 1, "ss lists no connection in it; run ss while")?;
    fs::write(at("capture"), sweetspot_trace::file::file_header(2000))?;
    refused(
        &["--tcpinfo", &at("capture")],
        1,
        "it is a capture and not text; leave out --tcpinfo",
    )?;
    fs::write(at("latin"), b"ESTAB \xe4\n")?;
    refused(&["--tcpinfo", &at("latin")], 1, "it is not text (UTF-8) 6 bytes from its start")?;
    refused(
        &[&at("text"), &at("empty")],
        2,
        "name the directory for all its captures, or --file twice",
    )?;
    for missing in ["nosuch.pcap", "/no/such", "./none"] {
        refused(&[missing], 2, &format!("there is no file {missing};"))?;
    }
    refused(&["192.0.2.7:99999"], 2, "expected a port from 1 to 65535, not 99999")?;
    refused(&["192.0.2.7"], 2, "nor a file or a directory; expected HOST:PORT; write it")?;
    refused(&[], 2, "a capture or a paste of ss (FILE), --file or --follow")?;
    // No PID exceeds the kernel's limit of 2^22.
    refused(&["8388608"], 1, "there is no process 8388608")?;
    // A number alone is a PID. The lowest ones belong to kernel threads, which have no connections.
    if !std::path::Path::new("/proc/65535").exists() {
        refused(&["65535"], 1, "for port 65535, name the host, too: 192.0.2.7:65535")?;
    }
    refused(&["192.0.2.1:9"], 1, "no TCP connection here begins or ends at 192.0.2.1:9")?;
    refused(&["192.0.2.1:9", "--for", "1ms"], 2, "too short")?;
    for target in [&["192.0.2.1:9"][..], &["--follow", "lo"]] {
        refused(&[target, &["--for", "0s"]].concat(), 2, "--for 0 s is too short")?;
    }
    refused(&["192.0.2.1:9", "--for", "-1s"], 2, "must be a finite number, zero or more")?;
    refused(
        &["192.0.2.1:9", "--html", "x", "--for", "1s"],
        2,
        "--html and --scenario need a capture",
    )?;
    refused(&["Cargo.toml", "--for", "30s"], 2, "a recording is read whole")?;
    refused(
        &["Cargo.toml", "--netns", "blue"],
        2,
        "--for and --netns need a live connection or --follow",
    )?;
    refused(&["Cargo.toml", "--html", "x"], 2, "--html and --scenario need a capture")?;
    refused(&["192.0.2.1:9", "--netns", "no/such"], 1, "cannot open the network namespace")?;
    Ok(())
}

/// `--help` gives the time over which each verb judges.
#[test]
fn the_help_of_top_and_diagnose_states_the_observation_time() -> TestResult {
    let top =
        stdout(&sweetspot(&["top", "--help"])?).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(top.contains("over the last 10 seconds"), "{top}");
    let diagnose = stdout(&sweetspot(&["diagnose", "--help"])?);
    assert!(diagnose.contains("watched from outside"), "{diagnose}");
    assert!(diagnose.contains("[default: 10s"), "{diagnose}");
    Ok(())
}

#[test]
fn errors_call_standard_input_by_name() -> TestResult {
    // A complete pcap file header, and half of one.
    let header = sweetspot_trace::file::file_header(2000);
    for (input, words) in [
        (&b"not a capture at all"[..], "expected a capture"),
        (b"", "it is empty"),
        (&header[..10], "it was cut off within its header, before any packet"),
    ] {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_sweetspot"))
            .args(["diagnose", "-"])
            .stdin(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()?;
        let mut pipe = child.stdin.take().ok_or("a pipe")?;
        std::io::Write::write_all(&mut pipe, input)?;
        drop(pipe);
        let stderr = stderr(&child.wait_with_output()?);
        assert!(stderr.starts_with(&format!("sweetspot: standard input: {words}")), "{stderr}");
    }
    Ok(())
}

#[test]
fn diagnose_rejects_a_repeated_capture_and_top_shows_its_interval() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("one.pcap");
    std::fs::write(&file, sweetspot_trace::file::file_header(2000))?;
    let file = file.to_str().ok_or("a path")?;
    refused(&["--file", file, "--file", file], 1, "was given twice")?;
    let table = stdout(&sweetspot(&["top", "--once", "--interval", "300ms"])?);
    assert!(table.contains("limited by (300 ms)"), "{table}");
    Ok(())
}

#[test]
fn diagnose_says_that_a_process_has_no_connections() -> TestResult {
    let mut idle = std::process::Command::new("sleep").arg("60").spawn()?;
    let result = refused(&[&idle.id().to_string()], 1, "have no TCP connection");
    idle.kill()?;
    idle.wait()?;
    result
}

#[test]
fn a_truncated_capture_and_one_without_tcp_are_read_and_noted() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("cut.pcap");
    // A header, an ARP packet of 14 + 28 bytes over Ethernet, and half a record.
    let mut capture = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0];
    capture.extend([0; 8]);
    capture.extend([0xff, 0xff, 0, 0, 1, 0, 0, 0]);
    fs::write(&file, &capture)?;
    let name = file.display().to_string();
    refused(&[&name], 1, "it holds no whole packet")?;
    capture.extend([0; 8]);
    capture.extend([42, 0, 0, 0, 42, 0, 0, 0]);
    capture.extend([2; 12]);
    capture.extend([8, 6]);
    capture.extend([0; 28]);
    fs::write(&file, &capture)?;
    let whole = stdout(&sweetspot(&["diagnose", "--file", &name])?);
    assert!(whole.contains("it has no TCP packets"), "{whole}");
    assert!(whole.contains("1 packet, 0 of them TCP"), "{whole}");
    let quiet = stdout(&sweetspot(&["diagnose", "-q", &name])?);
    assert!(quiet.starts_with("note: it has no TCP packets"), "{quiet}");
    capture.extend([0; 9]);
    fs::write(&file, &capture)?;
    let output = sweetspot(&["diagnose", "--file", &name, "--json"])?;
    assert!(output.status.success());
    let json: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    assert_eq!(json["packets"], 1);
    assert!(json["remarks"][0].as_str().is_some_and(|words| words.contains("cut off")), "{json}");
    Ok(())
}

/// Two readings of a kernel that does not report the minimum RTT.
const OLD_KERNEL: &str = "1700000000.0
ESTAB 0 40544 192.0.2.10:22 192.0.2.97:60022
\t cubic wscale:8,7 rto:242 rtt:41.5/1.2 mss:1448 cwnd:28 ssthresh:20 bytes_acked:1 unacked:28 retrans:0/30
1700000001.0
ESTAB 0 40544 192.0.2.10:22 192.0.2.97:60022
\t cubic wscale:8,7 rto:242 rtt:41.5/1.2 mss:1448 cwnd:28 ssthresh:20 bytes_acked:960001 unacked:28 retrans:0/31
";

#[test]
fn a_piped_diagnosis_is_wrapped_and_shows_the_known_rtt() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("ss.log").display().to_string();
    fs::write(&file, OLD_KERNEL)?;
    let text = stdout(&sweetspot(&["diagnose", &file])?);
    assert!(text.contains("; median RTT 41.5 ms; "), "{text}");
    assert!(text.contains("Find where packets are lost."), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    Ok(())
}
