//! Captures as users have them, in files, directories and pipes, and the page on a capture.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Command, Stdio};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;
use sweetspot_trace::file::{file_header, record_header};
use sweetspot_units::{Duration, Time};

use super::{TestResult, stderr, stdout, sweetspot};

/// An Ethernet frame with a TCP segment over IPv4, from the first port to the second.
fn packet(ports: [u16; 2], seq: u32, ack: u32, payload: usize) -> Vec<u8> {
    let mut frame = vec![2; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend((40 + payload as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0, 192, 0, 2, (ports[0] % 251) as u8]);
    frame.extend([192, 0, 2, (ports[1] % 251) as u8]);
    frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    frame.extend([seq, ack].iter().flat_map(|number| number.to_be_bytes()));
    frame.extend([0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(vec![0; payload]);
    frame
}

/// Ten segments, each acknowledged after 20 ms.
fn capture() -> Vec<u8> {
    let mut bytes = file_header(2000).to_vec();
    let mut add = |ms: u64, frame: Vec<u8>| {
        let time = Time::ZERO + Duration::from_millis(ms);
        bytes.extend(record_header(time, frame.len(), frame.len()));
        bytes.extend(frame);
    };
    for n in 0..10 {
        add(u64::from(n) * 100, packet([40_000, 80], 1 + n * 1000, 1, 1000));
        add(u64::from(n) * 100 + 20, packet([80, 40_000], 1, 1 + (n + 1) * 1000, 0));
    }
    bytes
}

fn flows(json: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str::<Value>(json).map(|report| report["flows"].clone())
}

#[test]
fn a_compressed_or_piped_capture_gives_the_same_flows() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("plain"), capture())?;
    let mut gzip = GzEncoder::new(fs::File::create(at("gzip"))?, Compression::default());
    gzip.write_all(&capture())?;
    gzip.finish()?;
    let whole = capture();
    let (first, second) = whole.split_at(whole.len() / 2);
    // Two frames, as appended by the zstd program.
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let frames = [first, second].map(|part| ruzstd::encoding::compress_to_vec(part, level));
    fs::write(at("zstd"), frames.concat())?;
    let plain = flows(&stdout(&sweetspot(&["diagnose", "--json", &at("plain")])?))?;
    assert_eq!(plain[0]["bytes"], 10_000);
    for name in ["gzip", "zstd"] {
        let output = sweetspot(&["diagnose", "--json", &at(name)])?;
        assert_eq!(flows(&stdout(&output))?, plain, "{name}: {}", stderr(&output));
    }
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let output =
        command.args(["diagnose", "--json", "-"]).stdin(fs::File::open(at("plain"))?).output()?;
    assert_eq!(flows(&stdout(&output))?, plain);
    Ok(())
}

#[test]
fn a_truncated_compressed_capture_is_read_up_to_the_cut() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    // Stored, not deflated: each byte of the file is a byte of the capture.
    let mut gzip = GzEncoder::new(Vec::new(), Compression::none());
    gzip.write_all(&capture())?;
    let compressed = gzip.finish()?;
    fs::write(at("half.gz"), &compressed[..compressed.len() / 2])?;
    // gzip's 15 bytes, and 5,708 of 11,424 bytes: a header of 24, four pairs of 1,140, and the fifth segment of 1,070.
    fs::write(at("head.gz"), &compressed[..30])?;
    // Two frames of 5,712 bytes. The second one is cut in the middle, after five complete segments.
    let capture = capture();
    let (first, second) = capture.split_at(capture.len() / 2);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let [first, second] =
        [first, second].map(|part| ruzstd::encoding::compress_to_vec(part, level));
    fs::write(at("half.zst"), [&first[..], &second[..second.len() / 2]].concat())?;
    // One frame of two blocks, because a block holds 128 KiB. The first has all ten segments, the second is cut.
    let packet = noise(200_000);
    let header = [[0; 4], [0; 4], 200_000_u32.to_le_bytes(), 200_000_u32.to_le_bytes()].concat();
    let long =
        ruzstd::encoding::compress_to_vec(&[&capture[..], &header, &packet].concat()[..], level);
    fs::write(at("long.zst"), &long[..long.len() - 1000])?;
    for (name, bytes) in [("half.gz", 5000), ("half.zst", 5000), ("long.zst", 10_000)] {
        let output = sweetspot(&["diagnose", "--json", &at(name)])?;
        assert!(output.status.success(), "{name}: {}", stderr(&output));
        let report: Value = serde_json::from_slice(&output.stdout)?;
        assert_eq!(report["flows"][0]["bytes"], bytes, "{name}: {report}");
        assert_eq!(
            report["remarks"][0],
            "its compressed content was cut off; everything before the cut was read"
        );
    }
    fs::write(at("head.zst"), &first[..first.len() / 2])?;
    for name in ["head.gz", "head.zst"] {
        let output = sweetspot(&["diagnose", &at(name)])?;
        let cut = "its compressed content was cut off; compress or copy it again";
        assert!(!output.status.success() && stderr(&output).contains(cut), "{}", stderr(&output));
    }
    Ok(())
}

/// Bytes that do not compress.
fn noise(length: u64) -> Vec<u8> {
    (0..length).map(|n| (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
}

#[test]
fn a_single_omitted_flow_is_singular() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("a.pcap").display().to_string();
    fs::write(&file, capture())?;
    let printed = stdout(&sweetspot(&["diagnose", &file, "--flows", "0"])?);
    assert!(printed.contains("1 flow is left out; --flows 1 shows all"), "{printed}");
    Ok(())
}

#[test]
fn a_directory_stands_for_its_captures_sorted_by_name() -> TestResult {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("b.pcap"), capture())?;
    fs::write(dir.path().join("a.pcap"), &capture()[..500])?;
    fs::write(dir.path().join("notes.txt"), "no capture")?;
    let name = dir.path().display().to_string();
    let json: Value = serde_json::from_str(&stdout(&sweetspot(&["diagnose", "--json", &name])?))?;
    let captures = json["captures"].as_array().ok_or("no captures")?;
    let files: Vec<_> = captures.iter().filter_map(|entry| entry["file"].as_str()).collect();
    assert_eq!(files.len(), 2);
    assert!(files[0].ends_with("a.pcap") && files[1].ends_with("b.pcap"), "{files:?}");
    assert_eq!(captures[1]["flows"][0]["bytes"], 10_000);
    assert!(stdout(&sweetspot(&["diagnose", &name])?).contains("b.pcap"));
    Ok(())
}

/// Files with a capture's name are listed with an error. Other files that are not captures are skipped.
#[test]
fn unreadable_captures_in_a_directory_are_listed_with_their_error() -> TestResult {
    let dir = tempfile::tempdir()?;
    fs::write(dir.path().join("a.pcap"), capture())?;
    fs::write(dir.path().join("empty.pcap"), "")?;
    fs::write(dir.path().join("damaged.pcap.gz"), [0x1f, 0x8b, 8, 0, 0])?;
    fs::write(dir.path().join("readme"), "not a capture")?;
    let name = dir.path().display().to_string();
    let json: Value = serde_json::from_str(&stdout(&sweetspot(&["diagnose", "--json", &name])?))?;
    let captures = json["captures"].as_array().ok_or("no captures")?;
    let named = captures.iter().map(|entry| {
        let file = entry["file"].as_str().unwrap_or_default().rsplit('/').next();
        (file.unwrap_or_default(), entry["error"].is_string())
    });
    let expected = [("a.pcap", false), ("damaged.pcap.gz", true), ("empty.pcap", true)];
    assert_eq!(named.collect::<Vec<_>>(), expected);
    let text = stdout(&sweetspot(&["diagnose", &name])?);
    assert!(text.contains("== ") && text.contains("empty.pcap\nnote: "), "{text}");
    Ok(())
}

#[test]
fn an_html_page_is_self_contained() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("slow.pcap"), capture())?;
    let output = sweetspot(&["diagnose", &at("slow.pcap"), "--html", &at("page.html")])?;
    let wrote = format!("wrote {}", at("page.html"));
    assert!(stderr(&output).contains(&wrote), "{}", stderr(&output));
    let quiet = sweetspot(&["diagnose", "-q", &at("slow.pcap"), "--html", &at("page.html")])?;
    assert!(!stderr(&quiet).contains(&wrote), "{}", stderr(&quiet));
    assert!(output.status.success(), "{}", stderr(&output));
    let page = fs::read_to_string(at("page.html"))?;
    for foreign in ["src=", "http:", "https:", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    let data = page.split("id=\"data\">").nth(1).and_then(|rest| rest.split("</script>").next());
    let data: Value = serde_json::from_str(data.ok_or("no data")?)?;
    // Every segment and every acknowledgement is drawn.
    assert_eq!(data["graphs"][0]["data"].as_array().map(Vec::len), Some(10));
    assert_eq!(data["graphs"][0]["acks"].as_array().map(Vec::len), Some(10));
    Ok(())
}

#[test]
fn recorded_ss_output_is_diagnosed_like_a_live_connection() -> TestResult {
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("ss.log");
    let reading = |n: u64| {
        format!(
            "{n}.0\nESTAB 0 0 192.0.2.1:443 192.0.2.2:5000\n\t cubic wscale:7,7 rtt:80/2 mss:1448 \
             cwnd:100 bytes_acked:{} busy:{}ms rwnd_limited:{}ms minrtt:80 snd_wnd:65535\n",
            n * 800_000,
            n * 1000,
            n * 1000
        )
    };
    fs::write(&file, (1..5).map(reading).collect::<String>())?;
    command.args(["diagnose", "--json", "--tcpinfo"]).arg(&file).stdin(Stdio::null());
    let flows = flows(&stdout(&command.output()?))?;
    assert_eq!(flows[0]["verdict"]["class"], "receiver_window", "{flows}");
    Ok(())
}

/// Bursts of twenty segments every 80 ms, spaced by a bottleneck at 0.2 ms. For each packet: its time in microseconds,
/// whether it is data, and its frame.
fn bursts() -> Vec<(u64, bool, Vec<u8>)> {
    let mut packets = Vec::new();
    for n in 0..1000u32 {
        let (burst, place) = (u64::from(n / 20), u64::from(n % 20));
        let sent = burst * 84_000 + place;
        packets.push((sent, true, packet([40_000, 80], 1 + n * 1000, 1, 1000)));
        let acked = burst * 84_000 + 80_000 + place * 200;
        packets.push((acked, false, packet([80, 40_000], 1, 1 + (n + 1) * 1000, 0)));
    }
    packets
}

/// The packets as a capture, in the order of their times.
fn written(mut packets: Vec<(u64, bool, Vec<u8>)>) -> Vec<u8> {
    packets.sort_by_key(|(at, ..)| *at);
    let mut bytes = file_header(2000).to_vec();
    for (at, _, frame) in packets {
        let time = Time::ZERO + Duration::from_micros(at);
        bytes.extend(record_header(time, frame.len(), frame.len()));
        bytes.extend(frame);
    }
    bytes
}

#[test]
fn a_scenario_derived_from_a_capture_runs() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("bursts.pcap"), written(bursts()))?;
    let output = sweetspot(&["diagnose", &at("bursts.pcap"), "--scenario", &at("path.toml")])?;
    assert!(output.status.success(), "{}", stderr(&output));
    let text = fs::read_to_string(at("path.toml"))?;
    // 1,040 bytes per 0.2 ms is 41.6 Mbit/s; rates are kept to 3 %.
    let rate =
        text.lines().find_map(|line| line.strip_prefix("rate = \"")?.strip_suffix("bit/s\""));
    let rate: f64 = rate.ok_or("no rate")?.parse()?;
    assert!((40e6..43.5e6).contains(&rate), "{text}");
    assert!(text.contains("rtt = \"80000us\""), "{text}");
    // The file may have been edited since it was written.
    fs::write(at("path.toml"), "edited")?;
    let again = ["diagnose", &at("bursts.pcap"), "--scenario", &at("path.toml")];
    let refused = sweetspot(&again)?;
    assert_eq!(refused.status.code(), Some(1));
    assert!(stderr(&refused).contains("overwrite it with --force"), "{}", stderr(&refused));
    assert_eq!(fs::read_to_string(at("path.toml"))?, "edited");
    assert!(sweetspot(&[&again[..], &["--force"]].concat())?.status.success());
    assert_eq!(fs::read_to_string(at("path.toml"))?, text);
    let settings = ["--set", "duration=2s", "--set", "warmup=1s"];
    let output = sweetspot(&[&["run", &at("path.toml")][..], &settings].concat())?;
    assert!(output.status.success(), "{}", stderr(&output));
    // Ten segments are too few to show a path.
    fs::write(at("short.pcap"), capture())?;
    let page = ["--html", &at("page.html")];
    let scenario = ["diagnose", &at("short.pcap"), "--scenario", &at("none.toml")];
    let output = sweetspot(&[&scenario[..], &page].concat())?;
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("capacity is not known"), "{}", stderr(&output));
    // The report and the page are written nevertheless.
    assert!(stdout(&output).contains("192.0.2."), "{}", stdout(&output));
    assert!(fs::read_to_string(at("page.html"))?.contains("short.pcap"));
    assert!(!fs::exists(at("none.toml"))?);
    Ok(())
}

#[test]
fn captures_at_both_ends_show_the_loss_between_them() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("sender.pcap"), written(bursts()))?;
    // The second capture is 10 ms away, and its clock is 5 s ahead. The eighth segment does not arrive.
    let moved = bursts().into_iter().enumerate().filter(|(n, _)| *n != 14).map(|(_, packet)| {
        let (at, data, frame) = packet;
        (if data { at + 5_010_000 } else { at + 4_990_000 }, data, frame)
    });
    fs::write(at("receiver.pcap"), written(moved.collect()))?;
    let files = ["--file", &at("sender.pcap"), "--file", &at("receiver.pcap")];
    let output = sweetspot(&[&["diagnose", "--json"][..], &files].concat())?;
    let joined = &flows(&stdout(&output))?[0]["joined"];
    assert!((joined["rtt_s"].as_f64().unwrap_or(0.0) - 0.02).abs() < 1e-4, "{joined}");
    assert!((joined["clock_offset_s"].as_f64().unwrap_or(0.0) - 5.0).abs() < 1e-4, "{joined}");
    assert_eq!((&joined["data"]["lost"], &joined["acks"]["lost"]), (&1.into(), &0.into()));
    let printed = stdout(&sweetspot(&[&["diagnose"][..], &files].concat())?);
    let printed = printed.replace("\n    ", " ");
    assert!(printed.contains("1 of 1000 lost") || printed.contains("1 of 999 lost"), "{printed}");
    Ok(())
}

#[test]
fn follow_reads_a_growing_capture_to_its_end() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("growing.pcap");
    let whole = capture();
    let (first, second) = whole.split_at(whole.len() / 2);
    fs::write(&file, first)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
    let command = command.args(["diagnose", "--json", "--for", "3s", "--follow"]).arg(&file);
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
    let mut output = BufReader::new(child.stdout.take().ok_or("no standard output")?);
    let mut printed = String::new();
    // The second half is written after the first has been reported.
    output.read_line(&mut printed)?;
    fs::OpenOptions::new().append(true).open(&file)?.write_all(second)?;
    output.read_to_string(&mut printed)?;
    child.wait()?;
    let lines: Vec<Value> = printed.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let (report, tables) = lines.split_last().ok_or("nothing was said")?;
    assert!(tables.len() >= 2, "{printed}");
    assert!(tables[0]["connections"][0]["bytes"].as_u64() < Some(10_000), "{printed}");
    assert_eq!(report["flows"][0]["bytes"], 10_000, "{printed}");
    Ok(())
}

#[test]
fn follow_rejects_a_name_that_is_neither_a_device_nor_a_file() -> TestResult {
    let output = sweetspot(&["diagnose", "--follow", "no-such-device"])?;
    let words = stderr(&output);
    assert!(!output.status.success() && words.contains("ip link"), "{words}");
    assert!(words.contains("start its tcpdump first"), "{words}");
    Ok(())
}

#[test]
fn follow_says_why_it_has_no_packets() -> TestResult {
    let empty = tempfile::tempdir()?;
    let directory = empty.path().display().to_string();
    let output = sweetspot(&["diagnose", "--follow", &directory, "--for", "1s"])?;
    let words = stdout(&output).replace("\n  ", " ");
    assert!(words.contains("no capture came into"), "{words}");
    let output = sweetspot(&["diagnose", "--follow", "-"])?;
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("standard input cannot be followed"), "{}", stderr(&output));
    Ok(())
}

#[test]
fn text_and_pipes_are_pointed_to_the_option_that_reads_them() -> TestResult {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(&file, PASTED)?;
    let path = file.path().display().to_string();
    let words = stderr(&sweetspot(&["diagnose", "--file", &path])?);
    assert!(words.contains(&format!("sweetspot diagnose --tcpinfo {path}")), "{words}");
    assert!(stderr(&sweetspot(&["diagnose"])?).contains("- reads standard input"));
    let (one, _) = PASTED.rsplit_once("ESTAB").ok_or("one connection")?;
    std::fs::write(&file, one)?;
    let words = stdout(&sweetspot(&["diagnose", "--flows", "0", &path])?);
    assert!(words.starts_with("1 flow is left out"), "{words}");
    Ok(())
}

/// A typical paste: one reading of `ss -ti`, without a time. The peer's window was the limit for 8.9 of 9 s with data in
/// flight.
const PASTED: &str = "\
State Recv-Q Send-Q  Local Address:Port   Peer Address:Port
ESTAB 0      565160      192.0.2.1:40001     192.0.2.2:https
\t cubic wscale:8,7 rto:242 rtt:41.5/1.2 mss:1448 cwnd:100 bytes_sent:13500001 bytes_acked:13500001 data_segs_out:9360 \
busy:9000ms rwnd_limited:8900ms(98.9%) unacked:45 notsent:500000 minrtt:40.9 snd_wnd:65535
ESTAB 0      0           gateway.example:ssh laptop.example:50000
";

#[test]
fn pasted_ss_output_is_recognised_on_stdin_and_in_a_file() -> TestResult {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(&file, PASTED)?;
    let path = file.path().display().to_string();
    for target in [&["-"][..], &["--tcpinfo", "-"], &[&path]] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_sweetspot"));
        let output = command.arg("diagnose").args(target).stdin(file.reopen()?).output()?;
        let words = stdout(&output);
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(words.contains("99 % of the time limited by the receiver's window"), "{words}");
        assert!(words.contains("gateway.example:ssh"), "the line that was not understood: {words}");
    }
    Ok(())
}

/// Connections from these ports, with as many segments as the port exceeds 40,000, one every 100 ms, acknowledged after
/// 20 ms.
fn parallel(ports: std::ops::RangeInclusive<u16>) -> Vec<u8> {
    let mut packets = Vec::new();
    for port in ports {
        for n in 0..u32::from(port - 40_000) {
            let at = u64::from(n) * 100_000 + u64::from(port);
            packets.push((at, true, packet([port, 80], 1 + n * 1000, 1, 1000)));
            packets.push((at + 20_000, false, packet([80, port], 1, 1 + (n + 1) * 1000, 0)));
        }
    }
    written(packets)
}

#[test]
fn a_table_of_all_flows_precedes_the_details_of_the_largest() -> TestResult {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("five.pcap").display().to_string();
    fs::write(&file, parallel(40_010..=40_014))?;
    let text = stdout(&sweetspot(&["diagnose", &file])?);
    let rows: Vec<&str> = text.lines().filter(|line| line.contains(":80   ")).collect();
    let bytes = rows.iter().map(|row| row.split_whitespace().nth(2)).collect::<Option<Vec<_>>>();
    assert_eq!(bytes.as_deref(), Some(&["14", "13", "12", "11", "10"][..]), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    let details = |text: &str| text.lines().filter(|line| line.contains(" -> ")).count();
    assert_eq!(details(&text), 3, "{text}");
    assert!(text.contains("--flows 5 shows those of all"), "{text}");
    // All have the same remark on the missing handshake.
    assert_eq!(text.matches("the handshake is not in the capture").count(), 1, "{text}");
    let all = stdout(&sweetspot(&["diagnose", &file, "--flows", "5"])?);
    assert_eq!(details(&all), 5, "{all}");
    let json = sweetspot(&["diagnose", &file, "--json"])?;
    assert_eq!(flows(&stdout(&json))?.as_array().map(Vec::len), Some(5));
    Ok(())
}

#[test]
fn the_report_says_whether_two_captures_share_a_connection() -> TestResult {
    let dir = tempfile::tempdir()?;
    let at = |name: &str| dir.path().join(name).display().to_string();
    fs::write(at("one"), parallel(40_010..=40_011))?;
    fs::write(at("two"), parallel(40_011..=40_012))?;
    fs::write(at("other"), parallel(40_013..=40_013))?;
    // Only three packets of the connection: too few to compare clocks.
    let mut short = parallel(40_011..=40_011);
    short.truncate(24 + 3 * (16 + 54) + 2 * 1000);
    fs::write(at("short"), short)?;
    let joined = |second: &str| {
        let output = sweetspot(&["diagnose", "--file", &at("one"), "--file", &at(second)])?;
        Ok::<_, std::io::Error>(stdout(&output).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (none, one) = ("no connection is in both", "1 flow is only in ");
    let two = joined("two")?;
    assert!(two.contains(one) && !two.contains(none), "{two}");
    let other = joined("other")?;
    assert!(other.contains(none) && !other.contains("cannot be joined"), "{other}");
    let short = joined("short")?;
    assert!(short.contains("cannot be joined") && !short.contains(none), "{short}");
    Ok(())
}
