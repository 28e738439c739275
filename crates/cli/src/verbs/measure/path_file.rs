//! Writes a measured path as a scenario.

use std::fmt::Write;

use sweetspot_measure::{Bound, Direction, DirectionReport, Discipline, Finding};
use sweetspot_scenario::Scenario;
use sweetspot_transfer::Measured;
use sweetspot_units::{Bytes, Duration, Probability, Rate};

use super::watch::Series;
use super::words::short;

/// The number of sources that represent cross traffic.
const CROSS_SOURCES: u64 = 10;
/// The duration of a path that does not change.
const DURATION: Duration = Duration::from_secs(20);
/// The lowest access rate assumed between hosts and their routers.
const MIN_ACCESS: Rate = Rate::from_mbit_per_second(1000);

/// A scenario with the measured path. Data goes in the direction that was measured first, ACKs in the other.
#[derive(Debug, Clone)]
pub struct PathFile {
    /// The file's text; comments give the source of each value.
    pub text: String,
    pub scenario: Scenario,
    pub rate: Rate,
    /// The base RTT.
    pub rtt: Duration,
    /// The 95 % interval of the random loss in the direction of the data; `None` if not measured.
    pub loss: Option<[Probability; 2]>,
    /// Properties of the data's direction that were not measured, in words, with the assumed values.
    pub assumed: Vec<String>,
}

impl PathFile {
    /// Builds a scenario from the path; the error names the missing values.
    pub fn new(measured: &Measured) -> Result<PathFile, String> {
        PathFile::of(measured, None)
    }

    /// Builds a scenario in which the path changes as in `series`, with a measurement at each `interval`; `measured`
    /// is the last.
    pub fn over_time(
        measured: &Measured,
        series: &Series,
        interval: Duration,
    ) -> Result<PathFile, String> {
        PathFile::of(measured, Some((series, interval)))
    }

    fn of(measured: &Measured, over_time: Option<(&Series, Duration)>) -> Result<PathFile, String> {
        let report = &measured.report;
        let forward = report.directions.first().ok_or("no direction was measured")?;
        let rate = forward
            .capacity
            .result()
            .map_err(|why| format!("it needs the capacity, which is unknown ({why})"))?;
        let rtt = report
            .round_trip
            .base
            .result()
            .map_err(|why| format!("it needs the base RTT, which is unknown ({why})"))?;
        let text = written(measured, forward, (rate, rtt), over_time);
        let scenario = Scenario::parse(&text).map_err(|error| error.to_string())?;
        let loss = match &forward.loss.rate {
            Finding::Known { estimate, .. } => Some([estimate.low, estimate.high]),
            Finding::Bounded { bound: Bound::AtMost(most), .. } => Some([Probability::ZERO, *most]),
            Finding::Bounded { .. } | Finding::Unknown(_) => None,
        };
        let assumed = assumed(forward, rate, rtt);
        Ok(PathFile { text, scenario, rate, rtt, loss, assumed })
    }
}

fn written(
    measured: &Measured,
    forward: &DirectionReport,
    (capacity, base): (Rate, Duration),
    over_time: Option<(&Series, Duration)>,
) -> String {
    let samples = over_time.map_or(&[][..], |(series, _)| series.samples.as_slice());
    let (rate, rtt) = samples.first().map_or((capacity, base), |first| (first.rate, first.rtt));
    let duration = match (samples.last(), over_time) {
        (Some(last), Some((_, interval))) => last.at + interval,
        _ => DURATION,
    };
    let packet = measured.tcp.path_mtu.get().clamp(576, 9000);
    let round_trip = &measured.report.round_trip.base;
    let mut text = String::new();
    // Writing to a String cannot fail.
    let mut line = |words: std::fmt::Arguments<'_>| {
        let _ = writeln!(text, "{words}");
    };
    line(format_args!("title = \"path to {}, {}\"", measured.peer, forward.direction.name()));
    line(format_args!("warmup = \"5s\"\nduration = \"{}s\"\n\n[path]", duration.as_secs_f64()));
    line(format_args!("# {}\nrtt = \"{}us\"", how(round_trip), rtt.as_micros()));
    if over_time.is_some() {
        // All of the RTT is this hop's, so that the changes below can set it.
        line(format_args!("delay = \"{}us\"", rtt.as_micros() / 2));
    }
    line(format_args!("packet = \"{packet}B\""));
    let access = rate.scaled(10.0).max(MIN_ACCESS);
    line(format_args!("access_rate = \"{}\"", access.to_string().replace(' ', "")));
    line(format_args!("reverse = \"clean\""));
    if forward.direction == Direction::Down {
        line(format_args!("# In an emulation, this host is the near end.\nforward = \"down\""));
    }
    line(format_args!("{}", direction(forward, (rate, rtt, packet), samples.len())));
    let reverse = measured.report.directions.get(1);
    let reverse_rate = reverse.and_then(|reverse| {
        samples.first().map_or(reverse.capacity.value(), |first| first.reverse)
    });
    if let Some((reverse, rate)) = reverse.zip(reverse_rate) {
        line(format_args!("\n[path.backward]"));
        line(format_args!("{}", direction(reverse, (rate, rtt, packet), samples.len())));
    }
    for sample in samples.iter().skip(1) {
        let (at, delay) = (sample.at.as_secs_f64(), sample.rtt.as_micros() / 2);
        let rate = sample.rate.bits_per_second();
        line(format_args!("\n[[path.change]]\nat = \"{at}s\"\ndelay = \"{delay}us\""));
        line(format_args!("rate = \"{rate}bit/s\""));
        if let (Some(rate), true) = (sample.reverse, reverse_rate.is_some()) {
            line(format_args!("[[path.change]]\nat = \"{at}s\"\nway = \"backward\""));
            line(format_args!("rate = \"{}bit/s\"", rate.bits_per_second()));
        }
    }
    line(format_args!("\n[tcp]\nflavour = \"linux\""));
    let competing =
        forward.cross_traffic().filter(|competing| competing.matters() && samples.is_empty());
    match competing {
        Some(competing) if competing.is_certain() => {
            let each = rate.scaled(competing.share.value).bits_per_second() / CROSS_SOURCES;
            line(format_args!("\n# {}", how(&forward.available)));
            line(format_args!("[[cross]]\nkind = \"poisson\"\ncount = {CROSS_SOURCES}"));
            line(format_args!("rate = \"{each}bit/s\""));
        }
        Some(competing) => {
            line(format_args!("\n# cross traffic is left out: {}", competing.words()))
        }
        None => {}
    }
    line(format_args!("\n[[transfer]]\ncongestion = \"cubic\""));
    line(format_args!("sizing = \"kernel\""));
    text
}

/// The keys of one direction. `samples` is the number of measurements behind its rate, or `None` if the rate is
/// constant.
fn direction(
    found: &DirectionReport,
    (rate, rtt, packet): (Rate, Duration, u64),
    samples: usize,
) -> String {
    let (buffer, buffer_how) = buffer(found, rate, rtt);
    let (queue, queue_how) = queue(found);
    let loss = found.loss.rate.value().map_or(0.0, |loss| loss.get());
    let rate_how = match samples {
        0 => how(&found.capacity),
        1 => "available bandwidth, measured once".to_owned(),
        samples => format!("available bandwidth, at each of {samples} measurements"),
    };
    let jitter = match found.jitter.value() {
        Some(jitter) => {
            format!("# {}\njitter = \"{}us\"", how(&found.jitter), jitter.as_micros())
        }
        None => format!("# jitter: {}", how(&found.jitter)),
    };
    let burst =
        found.burst.map_or(String::new(), |burst| format!("\nburst = \"{}B\"", burst.get()));
    [
        format!("# {rate_how}\nrate = \"{}bit/s\"{burst}", rate.bits_per_second()),
        format!("# {buffer_how}\nbuffer = \"{}B\"", buffer.get().max(packet)),
        format!("# {queue_how}\nqueue = \"{queue}\""),
        format!("# {}\nloss = \"{}%\"", how(&found.loss.rate), loss * 100.0),
        jitter,
    ]
    .join("\n")
}

/// The method that measured a value, or the reason for its absence.
fn how<T: Copy>(finding: &Finding<T>) -> String {
    let is = if finding.result().is_ok() { "measured" } else { "not measured" };
    format!("{is}: {}", finding.how())
}

/// The properties of `forward` that were not measured, with the assumed values.
fn assumed(forward: &DirectionReport, rate: Rate, rtt: Duration) -> Vec<String> {
    let mut assumed = Vec::new();
    if forward.loss.rate.value().is_none() {
        assumed.push("no random loss".to_owned());
    }
    let queue = in_words(queue(forward).0);
    if forward.buffer.bytes.value().is_none() {
        let (size, why) = assumed_buffer(forward, rate, rtt);
        assumed.push(format!("{queue} buffer of {}, {why}", short(size)));
    } else if forward.discipline.is_err() {
        assumed.push(format!("{queue} queue"));
    }
    assumed
}

fn buffer(forward: &DirectionReport, rate: Rate, rtt: Duration) -> (Bytes, String) {
    let bytes = &forward.buffer.bytes;
    match bytes.value() {
        Some(found) => (found, how(bytes)),
        None => {
            let (size, why) = assumed_buffer(forward, rate, rtt);
            (size, format!("assumed to be {why}; {}", how(bytes)))
        }
    }
}

/// The size assumed for a buffer without a measured one, and its source: not below the queue that was observed in it.
fn assumed_buffer(forward: &DirectionReport, rate: Rate, rtt: Duration) -> (Bytes, &'static str) {
    match forward.buffer.bytes {
        Finding::Bounded { bound: Bound::AtLeast(observed), .. } if observed > rate * rtt => {
            (observed, "as large as the longest observed queue")
        }
        _ => (rate * rtt, "one bandwidth-delay product"),
    }
}

/// The queue in the file in words, with an article.
fn in_words(queue: &str) -> &str {
    match queue {
        "codel" => "a CoDel",
        "fq-codel" => "an FQ-CoDel",
        _ => "a drop-tail",
    }
}

fn queue(forward: &DirectionReport) -> (&'static str, String) {
    match &forward.discipline {
        Ok(Discipline::DropTail) => {
            ("drop-tail", "measured: it drops only packets that find it full".into())
        }
        Ok(Discipline::ActiveQueueManagement) => (
            "codel",
            "measured: it drops before it is full; CoDel represents every such discipline".into(),
        ),
        Ok(Discipline::PerFlow) => ("fq-codel", "measured: another flow bypassed the queue".into()),
        Ok(Discipline::Policer { burst }) => (
            "drop-tail",
            format!("a policer with a burst of {burst} is modelled as a buffer of that depth"),
        ),
        Err(why) => ("drop-tail", format!("assumed; not measured: {why}")),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_measure::{Measurement, Plan};

    use super::*;

    /// The assumptions printed beside a forecast describe the path in the file, because that path was simulated.
    #[test]
    fn an_assumed_buffer_has_the_queue_discipline_in_the_path_file() {
        let (rate, rtt) = (Rate::from_mbit_per_second(20), Duration::from_millis(40));
        let mut direction = Measurement::new(Plan::full()).report().directions.remove(0);
        for (discipline, key, words) in [
            (Discipline::DropTail, "drop-tail", "a drop-tail buffer of 100 kB"),
            (Discipline::ActiveQueueManagement, "codel", "a CoDel buffer of 100 kB"),
            (Discipline::PerFlow, "fq-codel", "an FQ-CoDel buffer of 100 kB"),
        ] {
            direction.discipline = Ok(discipline);
            let assumed = assumed(&direction, rate, rtt);
            // 20 Mbit/s times 40 ms is 100 kB.
            assert!(assumed.iter().any(|a| a.starts_with(words)), "{assumed:?}");
            assert_eq!(queue(&direction).0, key);
            // A queue of 150 kB was in that buffer; one of 50 kB says nothing about 100 kB.
            for (observed, size) in [(150_000, 150_000), (50_000, 100_000)] {
                let bound = Bound::AtLeast(Bytes::new(observed));
                let bytes = Finding::bounded(bound, "drops come from the AQM");
                let bounded = DirectionReport {
                    buffer: sweetspot_measure::BufferDepth { bytes, ..direction.buffer.clone() },
                    ..direction.clone()
                };
                assert_eq!(buffer(&bounded, rate, rtt).0, Bytes::new(size));
                let words = short(Bytes::new(size));
                assert!(super::assumed(&bounded, rate, rtt)[1].contains(&words), "{words}");
            }
            let known = Finding::known(Bytes::new(1), Bytes::new(1), Bytes::new(1), "");
            let measured = DirectionReport {
                buffer: sweetspot_measure::BufferDepth { bytes: known, ..direction.buffer.clone() },
                ..direction.clone()
            };
            assert_eq!(super::assumed(&measured, rate, rtt), ["no random loss"]);
        }
    }
}
