use core::fmt::{self, Display, Formatter};
use core::str::FromStr;

use sweetspot_units::{Duration, Rate, UnitError};
use thiserror::Error;

/// The rate and pauses with which an application reads or writes a transfer's data. Without a rate and pauses, it is as
/// fast as TCP.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Application {
    /// Its rate; `None`: as fast as TCP delivers or accepts data.
    pub pace: Option<Pace>,
    /// The pauses in which it neither reads nor writes, in chronological order, without overlaps.
    pub pauses: Vec<Pause>,
}

/// The pacing of an application.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// Bytes at equal intervals: constant bit rate.
    Constant(Rate),
    /// Packets with exponential gaps; the mean rate of payload.
    Poisson(Rate),
    /// Packets with Pareto gaps of shape 1.5; the mean rate of payload.
    Pareto(Rate),
}

/// A period in which an application neither reads nor writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pause {
    /// Start of the pause, relative to the start of the transfer.
    pub from: Duration,
    /// Duration of the pause.
    pub length: Duration,
}

impl Pause {
    /// End of the pause, relative to the start of the transfer.
    pub fn until(self) -> Duration {
        self.from + self.length
    }
}

impl Pace {
    /// The mean rate of payload.
    pub fn rate(self) -> Rate {
        match self {
            Pace::Constant(rate) | Pace::Poisson(rate) | Pace::Pareto(rate) => rate,
        }
    }

    /// Whether packets have random times drawn from the seed.
    pub fn is_random(self) -> bool {
        !matches!(self, Pace::Constant(_))
    }
}

impl Application {
    /// Whether only TCP determines when data are read or written.
    pub fn is_greedy(&self) -> bool {
        self.pace.is_none() && self.pauses.is_empty()
    }

    /// The end of the pause that contains `at`; `None` outside of pauses. Times are relative to the start of the transfer.
    pub fn paused_until(&self, at: Duration) -> Option<Duration> {
        let holds = |pause: &&Pause| pause.from <= at && at < pause.until();
        self.pauses.iter().find(holds).map(|pause| pause.until())
    }
}

/// A fault in an application's description.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ApplicationError {
    /// A part is neither a rate nor a pause.
    #[error(
        "expected \"rate=20Mbit/s\", \"pause=5s+1s\" (at 5 s, for 1 s) or both, separated by a comma"
    )]
    Form,
    /// A rate or a time is invalid.
    #[error("{0}")]
    Quantity(#[from] UnitError),
    /// The rate is too low.
    #[error("its rate must be 1kbit/s or more")]
    TooSlow,
    /// There is more than one rate.
    #[error("it has two rates; one is allowed")]
    TwoRates,
    /// A pause begins before the previous one ends.
    #[error("its pauses overlap")]
    Overlap,
}

/// `rate=RATE`, `poisson=RATE` or `pareto=RATE`, and any number of `pause=START+LENGTH`, separated by commas.
impl FromStr for Application {
    type Err = ApplicationError;

    fn from_str(text: &str) -> Result<Application, ApplicationError> {
        let mut application = Application::default();
        for part in text.split(',').map(str::trim) {
            let (key, value) = part.split_once('=').ok_or(ApplicationError::Form)?;
            let pace = match key {
                "pause" => {
                    application.pauses.push(pause(value)?);
                    continue;
                }
                "rate" => Pace::Constant(rate(value)?),
                "poisson" => Pace::Poisson(rate(value)?),
                "pareto" => Pace::Pareto(rate(value)?),
                _ => return Err(ApplicationError::Form),
            };
            if application.pace.replace(pace).is_some() {
                return Err(ApplicationError::TwoRates);
            }
        }
        application.pauses.sort_by_key(|pause| pause.from);
        if application.pauses.windows(2).any(|pair| pair[0].until() > pair[1].from) {
            return Err(ApplicationError::Overlap);
        }
        Ok(application)
    }
}

fn rate(value: &str) -> Result<Rate, ApplicationError> {
    let rate: Rate = value.parse()?;
    if rate < Rate::from_bits_per_second(1000) {
        return Err(ApplicationError::TooSlow);
    }
    Ok(rate)
}

fn pause(value: &str) -> Result<Pause, ApplicationError> {
    let (from, length) = value.split_once('+').ok_or(ApplicationError::Form)?;
    Ok(Pause { from: from.trim().parse()?, length: length.trim().parse()? })
}

impl Display for Application {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let pace = self.pace.map(|pace| {
            let bits = pace.rate().bits_per_second();
            match pace {
                Pace::Constant(_) => format!("rate={bits}bit/s"),
                Pace::Poisson(_) => format!("poisson={bits}bit/s"),
                Pace::Pareto(_) => format!("pareto={bits}bit/s"),
            }
        });
        let pauses = self.pauses.iter().map(|pause| {
            format!("pause={}ns+{}ns", pause.from.as_nanos(), pause.length.as_nanos())
        });
        f.write_str(&pace.into_iter().chain(pauses).collect::<Vec<_>>().join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Application, ApplicationError> {
        text.parse()
    }

    #[test]
    fn an_application_is_active_before_and_after_its_pauses() {
        let reader = read("pause=2s+1s, rate=20Mbit/s,pause=500ms+1ms").expect("it is one");
        assert_eq!(reader.pace, Some(Pace::Constant(Rate::from_mbit_per_second(20))));
        let at = Duration::from_millis;
        assert_eq!(reader.paused_until(at(1_999)), None);
        assert_eq!(reader.paused_until(at(2_000)), Some(at(3_000)));
        assert_eq!(reader.paused_until(at(500)), Some(at(501)));
        assert_eq!(reader.paused_until(at(3_000)), None);
        assert_eq!(reader.to_string().parse(), Ok(reader));
    }

    #[test]
    fn an_invalid_application_is_rejected_with_the_reason() {
        for (text, reason) in [
            ("", "expected"),
            ("rate", "expected"),
            ("speed=3", "expected"),
            ("rate=1Mbit/s,poisson=1Mbit/s", "two rates"),
            ("pause=1s", "expected"),
            ("pause=1s+2s,pause=2s+1s", "overlap"),
            ("rate=0bit/s", "1kbit/s"),
            ("rate=ten", "ten"),
        ] {
            let error = read(text).expect_err("it is refused").to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
