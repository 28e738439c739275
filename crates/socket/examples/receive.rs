//! A receiver on a plain socket: connects, reads to the end, and prints what limited the transfer.
//!
//! cargo run --example receive -- HOST:PORT [SIZING]        (sizing: sobas:live unless given; kernel: only watched)

use std::error::Error;
use std::io::Read;
use std::net::TcpStream;

use sweetspot_socket::{Options, SizedSocket, now};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let to = arguments.next().ok_or("expected HOST:PORT")?;
    let sizing = arguments.next().unwrap_or("sobas:live".to_owned()).parse()?;

    let mut stream = TcpStream::connect(to)?;
    let sized = SizedSocket::attach(&stream, Options { sizing, ..Options::default() })?;
    let (begun, mut bytes, mut block) = (now(), 0, vec![0; 256 * 1024]);
    let mut report = sized.report()?;
    loop {
        let n = stream.read(&mut block)?;
        if n == 0 {
            break;
        }
        bytes += n;
        report = sized.report()?;
    }
    let seconds = now().since(begun).as_secs_f64();
    println!("{bytes} bytes at {:.2} Mbit/s", bytes as f64 * 8e-6 / seconds);
    println!("phase {}, limited by {}", report.phase, report.limiting_factor);
    if let (Some(window), Some(rtt)) = (report.window, report.rtt) {
        println!("a window of {window} and a round trip of {rtt}");
    }
    Ok(())
}
