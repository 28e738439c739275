//! The programs at both ends, if they do more than write and read.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::Duration as StdDuration;

use sweetspot_linux::clock;
use sweetspot_units::{Bytes, Duration, Time};

/// A grant, like HTTP/2's WINDOW_UPDATE (RFC 9113 §6.9): a header of nine bytes, and the number of further bytes
/// that may be sent.
const GRANT_HEADER: usize = 9;
const GRANT_BYTES: usize = GRANT_HEADER + 4;

/// Writes pieces as `window` and the receiver's grants allow, until the time limit.
pub fn write_as_granted(to: &mut TcpStream, piece: &[u8], window: Bytes, until: Time) {
    let mut room = window.get();
    let mut grant = [0; GRANT_BYTES];
    while clock::now() < until {
        while room > 0 {
            let size = piece.len().min(room as usize);
            match to.write(&piece[..size]) {
                Ok(n) => room -= n as u64,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(_) => return,
            }
        }
        if to.read_exact(&mut grant).is_err() {
            return;
        }
        let more = grant.last_chunk().map_or(0, |more| u32::from_be_bytes(*more));
        room += u64::from(more);
    }
}

/// Reads to the end, granting the bytes read each time they reach `step`.
pub fn read_and_grant(mut from: TcpStream, step: Bytes, buffer: &mut [u8]) {
    let _ = from.set_nodelay(true);
    let _ = from.set_read_timeout(Some(StdDuration::from_secs(1)));
    let mut read = 0;
    while let Ok(n @ 1..) = from.read(buffer) {
        read += n as u64;
        if read >= step.get() {
            let mut grant = [0; GRANT_BYTES];
            grant[GRANT_HEADER..].copy_from_slice(&(read as u32).to_be_bytes());
            if from.write_all(&grant).is_err() {
                return;
            }
            read = 0;
        }
    }
}

/// Writes `messages` small messages, each followed by a pause.
pub fn write_small(to: &mut TcpStream, messages: u64, message: &[u8], pause: Duration) {
    for _ in 0..messages {
        if to.write_all(message).is_err() {
            return;
        }
        clock::sleep_until(clock::now() + pause);
    }
}
