//! Activity on resting sockets is noticed at once, even if many rest, and whatever happens to their descriptors.

use std::io::{Read, Write};
use std::net::TcpStream;

use sweetspot_linux::clock;
use sweetspot_socket::{Activity, Duration, Options, Pool, SizedSocket, now};

#[path = "common/mod.rs"]
mod common;
use common::{pair, wait_until};

/// Sixty polls of five sockets each.
const SOCKETS: usize = 300;
/// More than a poll's own turn of sockets, so they are noticed only through the kernel's reports.
const ACTIVE: usize = 20;

fn attach(pool: &Pool, socket: &TcpStream) -> SizedSocket {
    pool.attach(socket, Options::default()).unwrap()
}

/// Polls until the sockets are no longer young, and have been sampled once.
fn grow_old(pool: &Pool) {
    let until = now() + Duration::from_secs(3);
    while now() < until {
        pool.poll(now());
        clock::sleep_until(pool.next_timeout().unwrap());
    }
}

fn pause() {
    clock::sleep_until(now() + Duration::from_millis(60));
}

fn is_active(sized: &SizedSocket) -> bool {
    sized.report().is_ok_and(|report| report.activity == Activity::Active)
}

#[test]
fn one_poll_detects_new_data_on_every_active_socket_among_hundreds() {
    let pool = Pool::new().unwrap();
    let mut pairs: Vec<_> = (0..SOCKETS).map(|_| pair()).collect();
    let sized: Vec<_> = pairs.iter().map(|(_, client)| attach(&pool, client)).collect();
    grow_old(&pool);
    assert!(!sized.iter().any(is_active));
    let active = || (0..SOCKETS).step_by(SOCKETS / ACTIVE);
    active().for_each(|n| pairs[n].0.write_all(&[1; 1000]).unwrap());
    pause();
    pool.poll(now());
    let seen: Vec<usize> = (0..SOCKETS).filter(|n| is_active(&sized[*n])).collect();
    assert_eq!(seen, active().collect::<Vec<_>>());
    // A socket with unread data does not rest.
    active().for_each(|n| pairs[n].1.read_exact(&mut [0; 1000]).unwrap());
    // Once they rest, activity is noticed again.
    wait_until("rest", || {
        pool.poll(now());
        !sized.iter().any(is_active)
    });
    active().for_each(|n| pairs[n].0.write_all(&[1; 1000]).unwrap());
    pause();
    pool.poll(now());
    assert!(active().all(|n| is_active(&sized[n])));
}

#[test]
fn an_upload_that_fills_its_buffer_is_detected() {
    let pool = Pool::new().unwrap();
    let pairs: Vec<_> = (0..SOCKETS).map(|_| pair()).collect();
    let sized: Vec<_> = pairs.iter().map(|(client, _)| attach(&pool, client)).collect();
    grow_old(&pool);
    let (mut client, mut server) =
        (pairs[SOCKETS - 1].0.try_clone().unwrap(), &pairs[SOCKETS - 1].1);
    let upload = std::thread::spawn(move || client.write_all(&vec![1; 30_000_000]).unwrap());
    server.read_exact(&mut vec![0; 30_000_000]).unwrap();
    upload.join().unwrap();
    pause();
    pool.poll(now());
    assert!(is_active(&sized[SOCKETS - 1]));
}

#[test]
fn a_closed_socket_with_a_duplicate_is_gone_and_hides_no_other() {
    let pool = Pool::new().unwrap();
    let (mut peer, first) = pair();
    let closed = attach(&pool, &first);
    // As if a child of fork(2) had it open after its parent closed it: the kernel keeps reporting it.
    let copy = first.try_clone().unwrap();
    drop(first);
    let (mut other_peer, second) = pair();
    let sized = attach(&pool, &second);
    grow_old(&pool);
    for _ in 0..10 {
        peer.write_all(&[1; 1000]).unwrap();
        pool.poll(now());
        pause();
    }
    assert!(closed.report().is_err());
    other_peer.write_all(&[1; 1000]).unwrap();
    pause();
    pool.poll(now());
    assert!(is_active(&sized));
    drop(copy);
}
