//! Measures the cost of many sockets: attaches both ends of N connections over loopback, keeps some of them busy, and
//! prints the library's CPU time and memory.
//!
//! cargo run --release --example many -- SOCKETS BUSY SECONDS

use std::error::Error;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};

use sweetspot_socket::{Options, Pool, now};
use sweetspot_units::{Duration, Time};

fn main() -> Result<(), Box<dyn Error>> {
    let numbers: Vec<u64> =
        std::env::args().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    let [sockets, busy, seconds] = numbers[..] else {
        return Err("expected SOCKETS BUSY SECONDS".into());
    };
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let mut pairs = Vec::new();
    for _ in 0..sockets / 2 {
        let client = TcpStream::connect(listener.local_addr()?)?;
        pairs.push((client, listener.accept()?.0));
    }
    let before = resident()?;
    let pool = Pool::new()?;
    let attach = |stream: &TcpStream| pool.attach(stream, Options::default());
    let ends = pairs.iter().flat_map(|(client, server)| [attach(client), attach(server)]);
    let sized = ends.collect::<Result<Vec<_>, _>>()?;
    let still = pairs.split_off(busy as usize / 2);
    for (mut client, mut server) in pairs {
        std::thread::spawn(move || {
            let block = [0; 4096];
            while client.write_all(&block).is_ok() {
                sweetspot_linux::clock::sleep_until(now() + Duration::from_millis(1));
            }
        });
        std::thread::spawn(move || while server.read(&mut [0; 65_536]).is_ok_and(|n| n > 0) {});
    }
    let (mut used, begun, mut polls) = (Duration::ZERO, now(), 0);
    while now().since(begun) < Duration::from_secs(seconds) {
        let until = pool.next_timeout().unwrap_or(Time::ZERO);
        sweetspot_linux::clock::sleep_until(until);
        let before = sweetspot_linux::clock::used();
        pool.poll(now());
        used += sweetspot_linux::clock::used().since(before);
        polls += 1;
    }
    let share = 100.0 * used.as_secs_f64() / seconds as f64;
    let each = resident()?.saturating_sub(before) / sockets.max(1);
    drop(still);
    println!("{} sockets, {polls} polls: {share:.2} % of a core, {each} B per socket", sized.len());
    Ok(())
}

fn resident() -> Result<u64, Box<dyn Error>> {
    let statm = std::fs::read_to_string("/proc/self/statm")?;
    Ok(statm.split(' ').nth(1).ok_or("no statm")?.parse::<u64>()? * 4096)
}
