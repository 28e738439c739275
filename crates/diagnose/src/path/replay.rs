//! Scenarios for a simulator: the same transfer on the same path, with and without its limit.

use sweetspot_units::{Bytes, Duration, Rate};

use super::{NoReplay, PathEstimate};
use crate::{Class, Evidence};

/// Maximum share of the time limited by applications. Above it, the transfer cannot be simulated as a single piece of data.
const MAX_APPLICATION_SHARE: f64 = 0.2;
/// Minimum share of the time in which the limit held the transfer.
const MIN_LIMITED_SHARE: f64 = 0.5;
/// Minimum number of segments: a shorter transfer did not meet its limit for long.
const MIN_SEGMENTS: u64 = 50;

/// How to simulate a transfer.
#[derive(Debug, Clone, PartialEq)]
pub struct Replay {
    /// The path as a scenario.
    pub scenario: String,
    /// Settings (`key=value`) for the transfer as captured.
    pub with_limit: Vec<String>,
    /// Settings for the same transfer without its limit.
    pub without_limit: Vec<String>,
    /// The removed limit, in words.
    pub lifted: String,
    /// Assumptions for values that the capture does not show.
    pub assumed: Vec<String>,
    /// Payload.
    pub size: Bytes,
    /// The duration in the capture.
    pub took: Duration,
    /// Segments of the transfer.
    pub segments: u64,
}

impl Replay {
    /// How to simulate the transfer with the evidence `e`, which `cause` held for `share` of the time and its programs for
    /// `programs`. The error is the reason if that is impossible.
    pub fn new(
        cause: Class,
        [share, programs]: [f64; 2],
        e: &Evidence,
        path: &PathEstimate,
    ) -> Result<Replay, NoReplay> {
        let limit_removal = limit_removal(cause, e, path)?;
        if share < MIN_LIMITED_SHARE {
            return Err(NoReplay::SeldomHeld(share));
        }
        if cause.family() != Class::Application && programs > MAX_APPLICATION_SHARE {
            return Err(NoReplay::NothingToSend(programs));
        }
        let segments = e.bytes.get() / path.segment_bytes.max(1);
        if segments < MIN_SEGMENTS || e.goodput == Rate::ZERO {
            return Err(NoReplay::TooShort);
        }
        let scenario = path.scenario("the path of the capture")?;
        let mut assumed = vec!["cubic and Linux's default buffers".to_owned()];
        if path.buffer_bytes.value().is_none() {
            assumed.push("a router's buffer of one bandwidth-delay product".to_owned());
        }
        assumed.push("no other traffic than the capture shows".to_owned());
        let took = e.bytes / e.goodput;
        let common = [
            "warmup=0s".to_owned(),
            format!("duration={}us", (took * 3 + Duration::from_secs(5)).as_micros()),
            format!("transfer.0.size={}B", e.bytes.get()),
        ];
        let with = |settings: Vec<String>| common.iter().cloned().chain(settings).collect();
        Ok(Replay {
            scenario,
            with_limit: with(limit_removal.with),
            without_limit: with(limit_removal.without),
            lifted: limit_removal.lifted,
            assumed,
            size: e.bytes,
            took,
            segments,
        })
    }
}

/// Settings with a limit and without it.
struct LimitRemoval {
    with: Vec<String>,
    without: Vec<String>,
    lifted: String,
}

fn limit_removal(
    cause: Class,
    e: &Evidence,
    path: &PathEstimate,
) -> Result<LimitRemoval, NoReplay> {
    let set = |key: &str, value: String| vec![format!("{key}={value}")];
    let lift =
        |with: Vec<String>, lifted: String| LimitRemoval { with, without: Vec::new(), lifted };
    let fixed = |bytes: Bytes| set("transfer.0.sizing", format!("fixed:{}B", bytes.get()));
    let paced = |key: &str| set(key, format!("rate={}bit/s", e.goodput.bits_per_second()));
    match cause {
        Class::ReceiverWindow => {
            let window = e.window.ok_or(NoReplay::NoWindow)?;
            Ok(lift(fixed(window), format!("a window that is not held at {window}")))
        }
        Class::SenderWindow => {
            let flight = e.flight.ok_or(NoReplay::NoFlight)?;
            // To the path, a send buffer that bounds the flight is the same as a window.
            Ok(lift(fixed(flight), format!("a send buffer that is not held at {flight}")))
        }
        Class::ReceiverApplication => Ok(lift(
            paced("transfer.0.reader"),
            "a receiving program that reads as fast as data comes".to_owned(),
        )),
        Class::Application => Ok(lift(
            paced("transfer.0.writer"),
            "a sending program that always has data".to_owned(),
        )),
        Class::Congestion => lossless(path),
        _ => Err(NoReplay::Class(cause)),
    }
}

/// Removes the link's random losses, or losses in a buffer too small for bursts.
fn lossless(path: &PathEstimate) -> Result<LimitRemoval, NoReplay> {
    let (rate, rtt) = path.known()?;
    let random = path.loss.value().is_some_and(|loss| loss.get() > 0.0);
    let product = rate * rtt;
    let shallow = path.buffer_bytes.value().is_some_and(|buffer| buffer < product);
    let mut without = Vec::new();
    let mut lifted = Vec::new();
    if random {
        without.push("path.loss=0".to_owned());
        lifted.push("no losses but those of a full queue".to_owned());
    }
    if shallow {
        without.push(format!("path.buffer={}B", product.get()));
        lifted.push(format!("a router's buffer of {product}"));
    }
    match lifted.is_empty() {
        true => Err(NoReplay::FullQueue),
        false => Ok(LimitRemoval { with: Vec::new(), without, lifted: lifted.join(" and ") }),
    }
}

#[cfg(test)]
mod tests {
    use sweetspot_measure::Finding;

    use super::*;
    use crate::path::Waits;

    #[test]
    fn the_replay_error_names_only_the_unknown_path_parameters() {
        let nothing = PathEstimate {
            carries: None,
            capacity_bps: Finding::unknown("there were pauses"),
            rtt_s: Finding::unknown("nothing was acknowledged"),
            buffer_bytes: Finding::unknown("it shows only where the capacity does"),
            next_step: "",
            waits: Waits::default(),
            loss: Finding::unknown("no full segment was sent"),
            segment_bytes: 1448,
            header_bytes: 52,
        };
        let why = |path: &PathEstimate| {
            let replay = Replay::new(Class::Congestion, [1.0, 0.0], &Evidence::default(), path);
            replay.unwrap_err().to_string()
        };
        let capacity = "the capacity is not known: there were pauses";
        let rtt = "the round trip is not known: nothing was acknowledged";
        assert_eq!(why(&nothing), format!("{capacity}, and {rtt}"));
        let ms = Duration::from_millis(43);
        let known = PathEstimate { rtt_s: Finding::known(ms, ms, ms, "the shortest"), ..nothing };
        assert_eq!(why(&known), capacity);
    }
}
