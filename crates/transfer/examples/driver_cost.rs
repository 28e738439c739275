//! CPU time of the driver for ten minutes of transfer at 1 Gbit/s, as a share of one core. The application reads 64 KiB at
//! a time, every probe is answered, and the RTT is 20 ms.
//!
//! `cargo run --release -p sweetspot-transfer --example driver_cost`

use sweetspot_linux::clock;
use sweetspot_sizing::{
    ControllerConfig, Driver, Effect, InputSource, KernelView, ProbeAnswer, SenderReport, Sizing,
    TrainPacket,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

const RATE: Rate = Rate::from_mbit_per_second(1000);
const READ: Bytes = Bytes::new(65_536);
const RTT: Duration = Duration::from_millis(20);
const LENGTH: Duration = Duration::from_secs(600);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    for name in ["kernel", "sobas", "sobas:live", "rledbat", "drs"] {
        let sizing: Sizing = name.parse()?;
        let (cost, registrations) = run(sizing)?;
        let share = cost.as_secs_f64() / LENGTH.as_secs_f64();
        println!("{name:12} {:8.4} % of a core, {registrations} calls", share * 100.0);
    }
    Ok(())
}

/// The driver's CPU time, and the number of calls.
fn run(sizing: Sizing) -> Result<(Duration, u64), Box<dyn std::error::Error>> {
    let setting = ControllerConfig {
        mss: Bytes::new(1448),
        packet: Bytes::new(1500),
        max_window: Bytes::new(6 << 20),
        size: None,
        path: None,
    };
    let mut now = Time::ZERO;
    let mut driver = Driver::new(sizing.controller(&setting)?, now, InputSource::OutOfBand);
    driver.handle_reachable(now);
    let kernel = KernelView { rtt: Some(RTT), minimum_rtt: Some(RTT), ..KernelView::default() };
    let (mut answers, mut registrations) = (0, 0);
    let mut next_read = now;
    let began = clock::used();
    while now < Time::ZERO + LENGTH {
        let timeout = driver.poll_timeout();
        if timeout < next_read {
            now = timeout.max(now);
            driver.handle_timeout(now, &kernel);
        } else {
            now = next_read;
            next_read = now + READ / RATE;
            driver.handle_data(now, READ, Bytes::ZERO);
        }
        registrations += 1;
        while let Some(effect) = driver.poll_effect() {
            match effect {
                Effect::Probe { sequence } => {
                    let report = SenderReport { cwnd: RATE * RTT, ..SenderReport::default() };
                    let (probe, held) = (sequence, Duration::ZERO);
                    let answer = ProbeAnswer { probe, sequence: answers, held, report };
                    answers += 1;
                    driver.handle_answer(now, now, &answer);
                }
                Effect::Train { id, request } => {
                    for index in 0..request.packets {
                        let arrived = now + request.size * u64::from(index) / RATE;
                        let packet = TrainPacket { train: id, index };
                        driver.handle_train_packet(now, arrived, request.size, packet);
                    }
                }
                _ => {}
            }
        }
    }
    Ok((clock::used().since(began), registrations))
}
