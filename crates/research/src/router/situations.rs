//! Random links, each simulated with several buffers: the input of the regression for a, b and f.

use core::fmt::Write;

use sweetspot_path::Random;
use sweetspot_units::{Bytes, Duration, Rate};

use sweetspot_experiment::StudyError;
use sweetspot_experiment::router::ladder;
use sweetspot_experiment::router::link::SimulatedLink;
use sweetspot_experiment::router::measure::{BufferMeasured, Runner, measure};
use sweetspot_experiment::router::run::{Class, Run};

/// A randomly drawn link, and its measurements with each buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct Situation {
    /// The link.
    pub link: SimulatedLink,
    /// Measurements, sorted by buffer.
    pub measured: Vec<BufferMeasured>,
}

/// Buffers per situation, from two packets to four times C T_o.
const BUFFERS: usize = 9;
/// Seeds per buffer.
const SEEDS: u64 = 2;
/// Number of packets that the link could forward in a run ...
const PACKETS: f64 = 400e3;
/// ... within these limits of its duration, seconds.
const SECONDS: (f64, f64) = (40.0, 240.0);
const WARMUP: u64 = 15;
/// Number of inputs for a Gamma above one, enough to exceed the output capacity many times together.
const INPUTS: u64 = 100;

/// Draws a link: 2 to 150 Mbit/s, 20 to 200 ms, 16 to 1200 packets of C T_o; Gamma between 1/20 and 20; a tail index between
/// 1.15 and 2.2; transfers of 30 to 300 kB on average; users with an offered load of 0.7 to 4 times the link's rate. All
/// except the tail index are log-uniform.
pub fn drawn(random: &mut Random) -> Result<SimulatedLink, StudyError> {
    loop {
        let mut between = |low: f64, high: f64| low * libm::pow(high / low, random.unit());
        let rate = Rate::from_f64(between(2e6, 150e6));
        let rtt = Duration::from_secs_f64(between(0.02, 0.2));
        let gamma = between(0.05, 20.0);
        let size_mean = Bytes::from_f64(between(30e3, 300e3));
        let load = between(0.7, 4.0);
        let tail_index = 1.15 + 1.05 * random.unit();
        let inputs = INPUTS.max((20.0 * gamma) as u64);
        let input_rate = rate.scaled(1.0 / gamma);
        let packet = PACKET;
        let link = SimulatedLink {
            rate,
            rtt,
            input_rate,
            inputs,
            packet,
            size_mean,
            tail_index,
            users: 1,
        };
        let link = SimulatedLink { users: link.users_for(load)?.max(4), ..link };
        if (16.0..=1200.0).contains(&link.bdp()) {
            return Ok(link);
        }
    }
}

impl Situation {
    /// Simulates `link` with each buffer.
    ///
    /// # Errors
    /// If the engine cannot run the link.
    pub fn run(runner: &Runner<'_>, link: SimulatedLink) -> Result<Situation, StudyError> {
        let per_second = link.rate.as_f64() / (link.packet.as_f64() * 8.0);
        let seconds = (PACKETS / per_second).clamp(SECONDS.0, SECONDS.1) as u64;
        let scenario = link.scenario(WARMUP, seconds)?;
        let buffers = ladder((4.0 * link.bdp()).max(50.0) as u64, BUFFERS);
        Ok(Situation { link, measured: measure(runner, &scenario, &buffers, SEEDS)? })
    }

    /// Its rows of the table.
    pub fn csv(&self, number: usize) -> String {
        let link = &self.link;
        let mut text = String::new();
        for m in &self.measured {
            let _ = writeln!(
                text,
                "{number},{},{},{},{},{},{:.3},{},{},{:.4e},{:.4},{:.4},{:.2},{:.0},{},{:.0},{}",
                link.rate.bits_per_second(),
                link.rtt.as_nanos() / 1000,
                link.input_rate.bits_per_second(),
                link.inputs,
                link.size_mean.get(),
                link.tail_index,
                link.users,
                m.buffer,
                m.loss,
                m.delay_s * 1e3,
                m.utilisation,
                m.active_flows(),
                m.median_size.median_bps,
                m.median_size.flows,
                m.bulk.median_bps,
                m.bulk.flows,
            );
        }
        text
    }
}

/// Parses the situations of a table with [`COLUMNS`].
///
/// # Errors
/// If a line has the wrong number of fields, or a field is not a number.
pub fn parse(text: &str) -> Result<Vec<Situation>, StudyError> {
    let mut found: Vec<(u64, Situation)> = Vec::new();
    for (index, line) in text.lines().enumerate().skip(1) {
        let wrong = |reason: String| StudyError::Reference {
            table: "router_situations.csv",
            line: index + 1,
            reason,
        };
        let fields = line.split(',').map(|field| {
            field.parse::<f64>().map_err(|_| wrong(format!("\"{field}\" is not a number")))
        });
        let fields = fields.collect::<Result<Vec<f64>, StudyError>>()?;
        let fields: [f64; 17] = fields
            .try_into()
            .map_err(|fields: Vec<f64>| wrong(format!("{} fields, 17 columns", fields.len())))?;
        let (number, link, measured) = read(&fields);
        match found.last_mut().filter(|(last, _)| *last == number) {
            Some((_, situation)) => situation.measured.push(measured),
            None => found.push((number, Situation { link, measured: vec![measured] })),
        }
    }
    Ok(found.into_iter().map(|(_, situation)| situation).collect())
}

fn read(fields: &[f64; 17]) -> (u64, SimulatedLink, BufferMeasured) {
    let [number, rate, rtt, input, inputs, size, tail_index, users, buffer, ..] = *fields;
    let [.., loss, delay, utilisation, active_flows, short, short_flows, large, large_flows] =
        *fields;
    let link = SimulatedLink {
        rate: Rate::from_f64(rate),
        rtt: Duration::from_micros(rtt as u64),
        input_rate: Rate::from_f64(input),
        inputs: inputs as u64,
        packet: PACKET,
        size_mean: Bytes::from_f64(size),
        tail_index,
        users: users as u64,
    };
    let class =
        |median_bps: f64, flows: f64| Class { median_bps, flows: flows as u64, ..Class::default() };
    let run = Run {
        loss,
        delay_s: delay / 1e3,
        utilisation,
        active_flows,
        median_size: class(short, short_flows),
        bulk: class(large, large_flows),
        ..Run::default()
    };
    (number as u64, link, BufferMeasured::of(buffer as u64, vec![run]))
}

const PACKET: Bytes = Bytes::new(1500);

/// The table's first line.
pub const COLUMNS: &str = "situation,rate_bps,rtt_us,input_bps,inputs,size_bytes,tail_index,users,\
    buffer,loss,delay_ms,utilisation,active_flows,median_size_bps,median_size_flows,bulk_bps,\
    bulk_flows\n";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_situation_round_trips_through_csv() {
        let mut random = Random::new(7);
        let link = drawn(&mut random).unwrap();
        // The table contains whole microseconds, and three decimals of the tail index.
        let rtt = Duration::from_micros(link.rtt.as_nanos() / 1000);
        let tail_index = libm::round(link.tail_index * 1e3) / 1e3;
        let link = SimulatedLink { rtt, tail_index, ..link };
        let run = Run { loss: 0.0125, delay_s: 0.0105, utilisation: 0.75, ..Run::default() };
        let measured = [2, 4].map(|buffer| BufferMeasured::of(buffer, vec![run.clone()])).to_vec();
        let situation = Situation { link, measured };
        let text = [COLUMNS.to_owned(), situation.csv(1), situation.csv(2)].concat();
        assert_eq!(parse(&text).unwrap(), vec![situation.clone(), situation]);
    }

    #[test]
    fn the_error_for_an_invalid_line_names_its_number() {
        let told = parse(&format!("{COLUMNS}1,2,3\n")).unwrap_err().to_string();
        assert!(told.contains("line 2") && told.contains("3 fields"), "{told}");
    }
}
