use core::fmt;
use core::ops::{Add, Div, Mul, Sub};
use core::str::FromStr;

use crate::notation::{self, Notation};
use crate::ratio::times_over;
use crate::{Bytes, Duration, UnitError};

/// Bits per byte times nanoseconds per second.
const BIT_NANOSECONDS: u64 = 8_000_000_000;

/// A data rate in bits per second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Rate(u64);

const NOTATION: Notation = Notation {
    quantity: "rate",
    examples: "20Mbit/s, 1.5Gbit/s, 12.5MB/s",
    units: &[
        ("bit/s", 1.0),
        ("kbit/s", 1e3),
        ("Mbit/s", 1e6),
        ("Gbit/s", 1e9),
        ("Tbit/s", 1e12),
        ("B/s", 8.0),
        ("kB/s", 8e3),
        ("MB/s", 8e6),
        ("GB/s", 8e9),
        ("KiB/s", 8.0 * 1024.0),
        ("MiB/s", 8.0 * 1_048_576.0),
        ("GiB/s", 8.0 * 1_073_741_824.0),
        // Other spellings of bits per second.
        ("b/s", 1.0),
        ("kb/s", 1e3),
        ("Mb/s", 1e6),
        ("Gb/s", 1e9),
        ("Tb/s", 1e12),
        ("bps", 1.0),
        ("kbps", 1e3),
        ("Kbps", 1e3),
        ("Mbps", 1e6),
        ("mbps", 1e6),
        ("Gbps", 1e9),
        ("gbps", 1e9),
        ("Tbps", 1e12),
        ("bit", 1.0),
        ("kbit", 1e3),
        ("Kbit", 1e3),
        ("Mbit", 1e6),
        ("mbit", 1e6),
        ("Gbit", 1e9),
        ("gbit", 1e9),
        ("Tbit", 1e12),
        ("mbit/s", 1e6),
        ("gbit/s", 1e9),
        ("k", 1e3),
        ("K", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
    ],
};

impl Rate {
    /// Zero bits per second.
    pub const ZERO: Rate = Rate(0);
    /// The largest rate.
    pub const MAX: Rate = Rate(u64::MAX);

    /// `n` bits per second.
    pub const fn from_bits_per_second(n: u64) -> Rate {
        Rate(n)
    }

    /// `n` million bits per second.
    pub const fn from_mbit_per_second(n: u64) -> Rate {
        Rate(n * 1_000_000)
    }

    /// `n` bits per second, rounded; negative values and NaN become zero.
    pub fn from_f64(n: f64) -> Rate {
        Rate(n.round() as u64)
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }

    /// Bytes per second, rounded down: the unit of the kernel's pacing options.
    pub const fn bytes_per_second(self) -> u64 {
        self.0 / 8
    }

    /// Bits per second as a float, for formulas.
    pub fn as_f64(self) -> f64 {
        self.0 as f64
    }

    /// This rate times a factor, rounded.
    #[must_use]
    pub fn scaled(self, factor: f64) -> Rate {
        Rate::from_f64(self.as_f64() * factor)
    }

    /// The difference; zero if `other` is larger.
    #[must_use]
    pub const fn saturating_sub(self, other: Rate) -> Rate {
        Rate(self.0.saturating_sub(other.0))
    }
}

impl Add for Rate {
    type Output = Rate;
    fn add(self, other: Rate) -> Rate {
        Rate(self.0 + other.0)
    }
}

impl Sub for Rate {
    type Output = Rate;
    fn sub(self, other: Rate) -> Rate {
        Rate(self.0 - other.0)
    }
}

/// The amount of data that the rate carries in `duration`, rounded down.
impl Mul<Duration> for Rate {
    type Output = Bytes;
    fn mul(self, duration: Duration) -> Bytes {
        Bytes::new(times_over(self.0, duration.as_nanos(), BIT_NANOSECONDS))
    }
}

/// The time in which `rate` carries this many bytes; [`Duration::MAX`] at rate zero.
impl Div<Rate> for Bytes {
    type Output = Duration;
    fn div(self, rate: Rate) -> Duration {
        if rate == Rate::ZERO {
            return Duration::MAX;
        }
        Duration::from_nanos(times_over(self.get(), BIT_NANOSECONDS, rate.bits_per_second()))
    }
}

/// The rate that carries this many bytes in `duration`; [`Rate::MAX`] if `duration` is zero.
impl Div<Duration> for Bytes {
    type Output = Rate;
    fn div(self, duration: Duration) -> Rate {
        if duration == Duration::ZERO {
            return Rate::MAX;
        }
        Rate::from_bits_per_second(times_over(self.get(), BIT_NANOSECONDS, duration.as_nanos()))
    }
}

impl FromStr for Rate {
    type Err = UnitError;
    fn from_str(text: &str) -> Result<Rate, UnitError> {
        NOTATION.read_whole(text).map(Rate)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units =
            [("Tbit/s", 1e12), ("Gbit/s", 1e9), ("Mbit/s", 1e6), ("kbit/s", 1e3), ("bit/s", 1.0)];
        notation::print(f, self.as_f64(), &units)
    }
}
