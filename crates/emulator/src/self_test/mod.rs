//! Measures this machine's limits for emulation: the highest trusted rate, and the error of the delay.

mod delay;
mod load;

use serde::Serialize;
use sweetspot_path::{DirectionSpec, PathSpec};
use sweetspot_units::{Bytes, Duration, Rate, Volume};

use crate::certificate::Certificate;
use crate::error::Result;
use crate::serial::{bits_per_second, maybe_bits_per_second, seconds};

pub use delay::DelayError;

/// The discard port (RFC 863).
const DISCARD_PORT: u16 = 9;
/// The first rate of the search for the highest rate; it doubles from there.
const FIRST_RATE: Rate = Rate::from_mbit_per_second(125);
/// The last rate of the search.
const LAST_RATE: Rate = Rate::from_mbit_per_second(16_000);
/// Bisections of the last doubling: the result is accurate to an eighth.
const BISECTIONS: usize = 3;
/// Number of failures before a rate counts as too high, because another program may have interfered.
const TRIALS_PER_RATE: usize = 2;
/// Duration of each trial.
const TRIAL_TIME: Duration = Duration::from_millis(1500);
/// Minimum share of a trial in which the bottleneck must be backlogged; otherwise the trial proves nothing.
const MIN_BACKLOGGED_SHARE: f64 = 0.8;
/// The trials' paths: an RTT of 20 ms and one BDP of buffer.
const TRIAL_RTT: Duration = Duration::from_millis(20);

/// The result of [`self_test`]. Serialised, times are in seconds and rates in bit/s.
#[derive(Debug, Clone, Serialize)]
pub struct SelfTest {
    /// The highest rate with a trusted certificate, if any, on a path of 20 ms with one BDP of buffer. The load is full-size
    /// packets from near to far, and half as many packets of 52 bytes back, like TCP's ACKs.
    #[serde(rename = "highest_rate_bps", serialize_with = "maybe_bits_per_second")]
    pub highest: Option<Rate>,
    /// The rates tried, in order.
    pub trials: Vec<RateTrial>,
    /// The delay of packets on an otherwise empty path, measured by the kernel's timestamps.
    pub delay_error: DelayError,
    /// The duration of the test.
    #[serde(rename = "duration_s", serialize_with = "seconds")]
    pub duration: Duration,
}

impl SelfTest {
    /// The last trial of the lowest rate above the highest trusted one; `None` if every rate was trusted.
    pub fn limit(&self) -> Option<&RateTrial> {
        let too_high = |trial: &&RateTrial| self.highest.is_none_or(|highest| trial.rate > highest);
        self.trials.iter().rev().filter(too_high).min_by_key(|trial| trial.rate)
    }
}

/// The trial of one rate.
#[derive(Debug, Clone, Serialize)]
pub struct RateTrial {
    /// The rate.
    #[serde(rename = "rate_bps", serialize_with = "bits_per_second")]
    pub rate: Rate,
    /// Whether the emulation was fully loaded and is trusted.
    pub truthful: bool,
    /// The reasons against that; empty if there are none.
    pub reasons: Vec<String>,
    /// Whether the load was too low to test the rate, which is one of the reasons.
    pub underloaded: bool,
    /// The 99th percentile of the lateness of releases.
    #[serde(rename = "p99_lateness_s", serialize_with = "seconds")]
    pub p99_lateness: Duration,
}

impl RateTrial {
    /// Whether the load was the only failure: the emulation itself was accurate.
    pub fn is_only_underloaded(&self) -> bool {
        self.underloaded && self.reasons.len() == 1
    }
}

/// Tests the machine, which should be idle, in about half a minute. Calls `progress` after each trial. It must run inside
/// [`isolate`](crate::isolate).
pub fn self_test(progress: &mut dyn FnMut(&RateTrial)) -> Result<SelfTest> {
    let started = sweetspot_linux::clock::now();
    let delay_error = delay::measure()?;
    let mut trials = Vec::new();
    let mut truthful_at = |rate| {
        let mut truthful = false;
        for _ in 0..TRIALS_PER_RATE {
            let trial = try_rate(rate)?;
            progress(&trial);
            truthful = trial.truthful;
            trials.push(trial);
            if truthful {
                break;
            }
        }
        Ok(truthful)
    };
    let highest = search(&mut truthful_at)?;
    let duration = sweetspot_linux::clock::now().since(started);
    Ok(SelfTest { highest, trials, delay_error, duration })
}

/// Doubles the rate until two in a row are too high, then bisects. Another program can make any rate fail for a few seconds. A
/// rate therefore fails only if its double fails, too, and if it fails again after that.
fn search(truthful_at: &mut dyn FnMut(Rate) -> Result<bool>) -> Result<Option<Rate>> {
    let (mut good, mut failed, mut rate) = (None, None, FIRST_RATE);
    while rate <= LAST_RATE {
        if truthful_at(rate)? {
            (good, failed) = (Some(rate), None);
        } else if let Some(half) = failed {
            if truthful_at(half)? {
                (good, failed) = (Some(half), Some(rate));
            }
            break;
        } else {
            failed = Some(rate);
        }
        rate = rate.scaled(2.0);
    }
    let Some(mut good) = good else { return Ok(None) };
    let mut bad = failed.unwrap_or(rate);
    for _ in 0..BISECTIONS {
        if bad > LAST_RATE {
            break;
        }
        let middle = (good + bad).scaled(0.5);
        if truthful_at(middle)? { good = middle } else { bad = middle }
    }
    Ok(Some(good))
}

fn try_rate(rate: Rate) -> Result<RateTrial> {
    rehearse(&path(rate))
}

/// Loads `path` up to its rate for 1.5 s. The result shows whether this machine emulated it accurately.
pub fn rehearse(path: &PathSpec) -> Result<RateTrial> {
    let certificate = load::carry(path, TRIAL_TIME)?;
    let mut reasons = certificate.verdict.reasons.clone();
    let underload = underload(&certificate);
    let underloaded = underload.is_some();
    reasons.extend(underload);
    Ok(RateTrial {
        rate: path.up.rate,
        truthful: reasons.is_empty(),
        reasons,
        underloaded,
        p99_lateness: certificate.p99_lateness(),
    })
}

/// The reason why the load was too low to prove anything, if it was.
fn underload(certificate: &Certificate) -> Option<String> {
    let backlogged = certificate.up.backlogged.as_secs_f64() / TRIAL_TIME.as_secs_f64();
    (backlogged < MIN_BACKLOGGED_SHARE).then(|| {
        let offered = certificate.up.bytes_in / certificate.duration;
        format!(
            "this machine's load of {offered} kept the bottleneck backlogged for {:.0} % of the time, and a test needs {:.0} %",
            backlogged * 100.0,
            MIN_BACKLOGGED_SHARE * 100.0
        )
    })
}

fn path(rate: Rate) -> PathSpec {
    let buffer = Volume::Bytes(rate * TRIAL_RTT);
    let direction = DirectionSpec::new(rate, TRIAL_RTT / 2, buffer);
    PathSpec { up: direction, down: direction, mtu: Bytes::new(1500), seed: 1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result of a search on a machine that is accurate up to `limit`.
    fn found(limit: Rate) -> Option<Rate> {
        search(&mut |rate| Ok(rate <= limit)).unwrap()
    }

    #[test]
    fn the_limit_names_why_the_next_rate_failed() {
        let trial = |mbit, reasons: &[&str]| RateTrial {
            rate: Rate::from_mbit_per_second(mbit),
            truthful: reasons.is_empty(),
            reasons: reasons.iter().map(|reason| (*reason).to_string()).collect(),
            underloaded: false,
            p99_lateness: Duration::ZERO,
        };
        let no_error = DelayError {
            median: Duration::ZERO,
            p99: Duration::ZERO,
            max: Duration::ZERO,
            probes: 0,
            early: 0,
        };
        let mut test = SelfTest {
            highest: Some(Rate::from_mbit_per_second(1500)),
            // At 1500 Mbit/s, another program interfered the first time.
            trials: vec![
                trial(1000, &[]),
                trial(2000, &["late"]),
                trial(1500, &["disturbed"]),
                trial(1500, &[]),
                trial(1750, &["lost"]),
            ],
            delay_error: no_error,
            duration: Duration::ZERO,
        };
        let limit = test.limit().unwrap();
        assert_eq!((limit.rate.bits_per_second(), &*limit.reasons[0]), (1_750_000_000, "lost"));
        test.trials.truncate(1);
        assert!(test.limit().is_none());
    }

    #[test]
    fn the_search_ends_within_an_eighth_below_the_limit() {
        for mbit in [125, 126, 249, 1000, 1234, 7999] {
            let limit = Rate::from_mbit_per_second(mbit);
            let found = found(limit).unwrap();
            assert!(found <= limit && found.as_f64() * 1.126 > limit.as_f64(), "{limit}: {found}");
        }
    }

    #[test]
    fn a_single_disturbed_rate_does_not_end_the_search() {
        let limit = Rate::from_mbit_per_second(7000);
        for disturbed in (0..6).map(|n| FIRST_RATE.scaled(f64::from(1 << n))) {
            let mut disturbances = 1;
            let found = search(&mut |rate| {
                let is_disturbed = rate == disturbed && disturbances > 0;
                disturbances -= u32::from(is_disturbed);
                Ok(rate <= limit && !is_disturbed)
            });
            assert!(found.unwrap().unwrap().as_f64() * 1.126 > limit.as_f64(), "{disturbed}");
        }
    }

    #[test]
    fn the_search_ends_if_no_rate_or_every_rate_passes() {
        assert_eq!(found(Rate::ZERO), None);
        assert_eq!(found(Rate::MAX), Some(LAST_RATE));
    }
}
