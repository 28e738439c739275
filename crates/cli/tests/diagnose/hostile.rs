//! Malicious captures: a small file must not make `diagnose` allocate much, whatever sizes it declares.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output};

use flate2::Compression;
use flate2::write::GzEncoder;
use sweetspot_trace::file::file_header;

use super::{TestResult, stderr};

/// Runs `diagnose` with these options on `file`, with at most 1 GB of address space. A larger allocation aborts the program.
fn within_a_gigabyte(options: &str, file: &Path) -> std::io::Result<Output> {
    let script = format!("ulimit -v 1000000; exec \"$0\" diagnose {options} \"$1\"");
    let program = env!("CARGO_BIN_EXE_sweetspot");
    Command::new("sh").args(["-c", &script, program]).arg(file).output()
}

/// The header of a zstd frame without checksum, dictionary and content size (RFC 8878, section 3.1.1.1): a window of 2^(10 +
/// exponent) bytes.
fn frame(exponent: u8) -> Vec<u8> {
    vec![0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3]
}

/// The header of a block (section 3.1.1.2): whether it is the last, its type (1: one byte, repeated) and its size.
fn block(is_last: bool, kind: u32, size: u32) -> [u8; 3] {
    let [a, b, c, _] = (u32::from(is_last) | kind << 1 | size << 3).to_le_bytes();
    [a, b, c]
}

/// 20,000 blocks of 4 bytes each declare 128 KiB: 80 kB become 2.6 GB, and a window of 2^32 bytes keeps all of it.
fn large_window() -> Vec<u8> {
    let mut file = frame(22);
    for n in 0..20_000 {
        file.extend(block(n == 19_999, 1, 128 << 10));
        file.push(0);
    }
    file
}

/// One block of 40,000 matches in a window of 1 KiB: 80 kB become 5.2 GB. A decoder that ignores the block limit of 128 KiB
/// keeps all of it until the block's end.
fn large_block() -> Vec<u8> {
    // The block has no literals (section 3.1.1.3.1.1).
    let mut content = vec![0];
    // 40,000 = 0x7f00 + 7488 sequences; each of the three codes is the same in all of them (0b01_01_01_00).
    content.push(0xff);
    content.extend((40_000_u16 - 0x7f00).to_le_bytes());
    content.push(0b0101_0100);
    // No literals; offset code 0, which then means the second most recent offset; and match code 52: 65,539 bytes plus the
    // value of its 16 extra bits.
    content.extend([0, 0, 52]);
    content.extend(vec![0xff; 2 * 40_000]);
    // The bit stream is read from its end, marked by a 1.
    content.push(1);
    let mut file = frame(0);
    // Eight raw bytes precede the block, because the first match is at distance 4.
    file.extend(block(false, 0, 8));
    file.extend([0; 8]);
    file.extend(block(true, 2, content.len() as u32));
    file.extend(content);
    file
}

/// A gzip file of `count` MiB of empty lines.
fn empty_lines(count: usize) -> std::io::Result<Vec<u8>> {
    let mut file = GzEncoder::new(Vec::new(), Compression::fast());
    let block = vec![b'\n'; 1 << 20];
    (0..count).try_for_each(|_| file.write_all(&block))?;
    file.finish()
}

#[test]
fn a_small_hostile_capture_cannot_exhaust_memory() -> TestResult {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("capture");
    // A pcapng block and a pcap record that declare 2 GB.
    let mut section = vec![0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 0x80, 0x4d, 0x3c, 0x2b, 0x1a];
    section.extend([0; 64]);
    let mut packet = file_header(u32::MAX).to_vec();
    packet.extend([[0; 8], [0, 0, 0, 0x80, 0, 0, 0, 0x80]].concat());
    for (content, reason) in [
        (large_window(), "unzstd --long=31"),
        (large_block(), "TooManyBytesGenerated"),
        (section, "a block larger than any packet"),
        (packet, "a packet longer than any"),
    ] {
        assert!(content.len() < 100_000, "{reason}: {} bytes", content.len());
        fs::write(&file, content)?;
        let output = within_a_gigabyte("", &file)?;
        let message = stderr(&output);
        assert_eq!(output.status.code(), Some(1), "{reason}: {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(message.contains("/capture") && message.contains(reason), "{message}");
    }
    Ok(())
}

#[test]
fn a_small_hostile_recording_cannot_exhaust_memory() -> TestResult {
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("ss.log");
    fs::write(&file, empty_lines(257)?)?;
    let output = within_a_gigabyte("--tcpinfo", &file)?;
    let message = stderr(&output);
    assert_eq!((output.status.code(), message.lines().count()), (Some(1), 1), "{message}");
    assert!(message.contains("more than 256 MiB"), "{message}");
    Ok(())
}
