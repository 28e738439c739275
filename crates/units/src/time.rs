use core::fmt;
use core::ops::{Add, AddAssign, Div, Mul, Sub};
use core::str::FromStr;

use crate::UnitError;
use crate::notation::{self, Notation};

/// A span of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A point in time: nanoseconds since an origin that the caller chooses. Times with different origins must not be
/// mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

const NOTATION: Notation = Notation {
    quantity: "duration",
    examples: "250us, 37ms, 1.5s, 2min",
    units: &[
        ("ns", 1.0),
        ("us", 1e3),
        ("µs", 1e3),
        ("usec", 1e3),
        ("ms", 1e6),
        ("msec", 1e6),
        ("s", 1e9),
        ("sec", 1e9),
        ("min", 60e9),
        ("h", 3600e9),
        ("d", 86_400e9),
    ],
};

impl Duration {
    /// Zero seconds.
    pub const ZERO: Duration = Duration(0);
    /// The longest span, about 584 years.
    pub const MAX: Duration = Duration(u64::MAX);

    /// `n` nanoseconds.
    pub const fn from_nanos(n: u64) -> Duration {
        Duration(n)
    }

    /// `n` microseconds, at most [`Duration::MAX`].
    pub const fn from_micros(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000))
    }

    /// `n` milliseconds, at most [`Duration::MAX`].
    pub const fn from_millis(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000))
    }

    /// `n` seconds, at most [`Duration::MAX`].
    pub const fn from_secs(n: u64) -> Duration {
        Duration(n.saturating_mul(1_000_000_000))
    }

    /// `s` seconds, rounded to a nanosecond; negative values and NaN become zero.
    pub fn from_secs_f64(s: f64) -> Duration {
        Duration((s * 1e9).round() as u64)
    }

    /// Nanoseconds.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Microseconds, rounded down.
    pub const fn as_micros(self) -> u64 {
        self.0 / 1_000
    }

    /// Seconds as a float, for formulas.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// `None` for zero, by which kernels report an unknown time.
    pub fn nonzero(self) -> Option<Duration> {
        (self > Duration::ZERO).then_some(self)
    }

    /// This span times a factor, rounded.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Duration {
        Duration((self.0 as f64 * factor).round() as u64)
    }

    /// The difference; zero if `other` is longer.
    #[must_use]
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
}

impl Time {
    /// The origin.
    pub const ZERO: Time = Time(0);
    /// The latest time.
    pub const MAX: Time = Time(u64::MAX);

    /// `n` nanoseconds after the origin.
    pub const fn from_nanos(n: u64) -> Time {
        Time(n)
    }

    /// Nanoseconds since the origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Seconds since the origin.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// The span since `earlier`; zero if `earlier` is later.
    #[must_use]
    pub const fn since(self, earlier: Time) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for core::time::Duration {
    fn from(d: Duration) -> core::time::Duration {
        core::time::Duration::from_nanos(d.0)
    }
}

impl From<core::time::Duration> for Duration {
    fn from(d: core::time::Duration) -> Duration {
        Duration(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Duration;
    fn mul(self, n: u64) -> Duration {
        Duration(self.0.saturating_mul(n))
    }
}

impl Div<u64> for Duration {
    type Output = Duration;
    fn div(self, n: u64) -> Duration {
        Duration(self.0 / n)
    }
}

impl Add<Duration> for Time {
    type Output = Time;
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(d.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, d: Duration) {
        *self = *self + d;
    }
}

impl Sub<Duration> for Time {
    type Output = Time;
    fn sub(self, d: Duration) -> Time {
        Time(self.0.saturating_sub(d.0))
    }
}

impl FromStr for Duration {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Duration, UnitError> {
        NOTATION.read_whole(text).map(Duration)
    }
}

impl fmt::Display for Duration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Zero is printed as 0 s, not in nanoseconds.
        let units = [("s", 1e9), ("ms", 1e6), ("us", 1e3), ("ns", 1.0)];
        let units = if self.0 == 0 { &units[..1] } else { &units[..] };
        notation::print(f, self.0 as f64, units)
    }
}
