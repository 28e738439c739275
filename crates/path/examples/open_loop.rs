//! Poisson packets of 1000 bytes through one queue in front of a link of 10 Mbit/s, for comparison with
//! bench/ns3/aqm.cc.
//!
//!     open_loop DISCIPLINE LOAD SEED [FLOWS]
//!
//! prints the share of packets that were lost, and the waiting time of the others. A packet dropped at the head of the
//! queue has waited in it, too, but counts only as lost. The mean queue divided by the departure rate would count its
//! wait as one of other packets.

use sweetspot_path::{DirectionSpec, Discipline, Link, Packet, QueueDiscipline, Random};
use sweetspot_units::{Bytes, Duration, Rate, Time, Volume};

const RATE: Rate = Rate::from_mbit_per_second(10);
const SIZE: Bytes = Bytes::new(1000);
const ROOM: Volume = Volume::Packets(100);
/// From the warm-up's end to the last arrival.
const MEASURED: std::ops::Range<f64> = 5.0..65.0;

struct Datagram {
    flow: u64,
    arrived: Time,
}

impl Packet for Datagram {
    fn wire_size(&self) -> Bytes {
        SIZE
    }

    fn flow(&self) -> u64 {
        self.flow
    }
}

/// Packets sent within the measured time, and the waits of those that got through.
#[derive(Default)]
struct Seen {
    sent: u64,
    waits: Vec<f64>,
}

impl Seen {
    fn work_off(&mut self, until: Time, link: &mut Link<Datagram, Discipline<Datagram>>) {
        while let Some((left, packet)) = link.poll_departure(until, &mut |_| {}) {
            if MEASURED.contains(&packet.arrived.as_secs_f64()) {
                let wait = left.since(packet.arrived).as_secs_f64() - (SIZE / RATE).as_secs_f64();
                self.waits.push(wait);
            }
        }
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [name, load, seed, more @ ..] = &words[..] else {
        return Err("give a discipline, a load and a seed".into());
    };
    let choice = QueueDiscipline::CHOICES.into_iter().find(|(known, _)| known == name);
    let (_, queue) = choice.ok_or_else(|| format!("{name}: no such discipline"))?;
    let (load, seed): (f64, u64) = (load.parse()?, seed.parse()?);
    let flows: u64 = more.first().map_or(Ok(1), |flows| flows.parse())?;
    let spec = DirectionSpec { queue, ..DirectionSpec::new(RATE, Duration::ZERO, ROOM) };
    let mut link = spec.link_behind(spec.discipline(SIZE, seed));
    let mut random = Random::new(seed);
    let mean_gap = (SIZE / RATE).as_secs_f64() / load;
    let (mut at, mut seen) = (0.0, Seen::default());
    loop {
        at -= mean_gap * (1.0 - random.unit()).ln();
        if at >= MEASURED.end {
            break;
        }
        let now = Time::ZERO + Duration::from_secs_f64(at);
        seen.work_off(now, &mut link);
        seen.sent += u64::from(MEASURED.contains(&now.as_secs_f64()));
        let flow = (random.unit() * flows as f64) as u64;
        let _ = link.handle_arrival(now, Datagram { flow, arrived: now });
    }
    seen.work_off(Time::MAX, &mut link);
    let through = seen.waits.len() as f64;
    let lost = 1.0 - through / seen.sent as f64;
    let mean_ms = seen.waits.iter().sum::<f64>() / through * 1e3;
    println!(
        "{name} load {load:.2} seed {seed} flows {flows}: lost {lost:.4} mean {mean_ms:.3} ms"
    );
    Ok(())
}
