//! Connections and waiting for the tests.

#![allow(dead_code)] // each test program uses a part

use std::net::{TcpListener, TcpStream};

use socket2::SockRef;
use sweetspot_linux::clock;
use sweetspot_units::Duration;

/// A connection over loopback, local end first.
pub fn pair() -> (TcpStream, TcpStream) {
    accepted(&TcpListener::bind("127.0.0.1:0").unwrap())
}

/// As [`pair`], with segments of at most `mss` bytes, as on a network.
pub fn pair_with_segments(mss: u32) -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    SockRef::from(&listener).set_tcp_mss(mss).unwrap();
    accepted(&listener)
}

fn accepted(listener: &TcpListener) -> (TcpStream, TcpStream) {
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Polls `is_done` every few milliseconds until it returns true.
///
/// # Panics
/// After 20 seconds.
pub fn wait_until(what: &str, mut is_done: impl FnMut() -> bool) {
    let until = clock::now() + Duration::from_secs(20);
    while !is_done() {
        assert!(clock::now() < until, "never: {what}");
        clock::sleep_until(clock::now() + Duration::from_millis(2));
    }
}
