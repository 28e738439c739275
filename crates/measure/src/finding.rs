//! A measured quantity.

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use sweetspot_units::{Bytes, Duration, Probability, Rate};

/// A quantity that is a number in JSON.
pub trait Quantity: Copy {
    /// The number: in bits per second, bytes or seconds, or a share from 0 to 1.
    fn number(self) -> f64;
}

impl Quantity for Rate {
    fn number(self) -> f64 {
        self.as_f64()
    }
}

impl Quantity for Bytes {
    fn number(self) -> f64 {
        self.as_f64()
    }
}

impl Quantity for Duration {
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

impl Quantity for Probability {
    fn number(self) -> f64 {
        self.get()
    }
}

impl Quantity for f64 {
    fn number(self) -> f64 {
        self
    }
}

/// A value between two bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate<T> {
    /// The value.
    pub value: T,
    /// The lower end of its interval.
    pub low: T,
    /// The upper end of its interval.
    pub high: T,
}

/// A quantity, or the reason why it is unknown.
///
/// In JSON `{"value", "low", "high", "how"}` (`low` and `high` are null without an interval), or `{"unknown"}` with the reason and `low` or `high` if that is known. Numbers are in bits per second, bytes
/// or seconds, or shares from 0 to 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Finding<T> {
    /// The quantity is known.
    Known {
        /// The value and its interval.
        estimate: Estimate<T>,
        /// The method.
        how: String,
    },
    /// Only a bound is known.
    Bounded {
        /// The bound.
        bound: Bound<T>,
        /// The reason for the missing value.
        why: String,
    },
    /// The quantity is unknown. Holds the reason.
    Unknown(String),
}

/// A bound of a quantity.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Bound<T> {
    /// The quantity is this or more.
    AtLeast(T),
    /// The quantity is this or less.
    AtMost(T),
}

impl<T: Copy> Finding<T> {
    /// A value with its interval from `low` to `high`, found by the method `how`.
    pub fn known(value: T, low: T, high: T, how: impl Into<String>) -> Finding<T> {
        Finding::Known { estimate: Estimate { value, low, high }, how: how.into() }
    }

    /// An unknown quantity, because of `why`.
    pub fn unknown(why: impl Into<String>) -> Finding<T> {
        Finding::Unknown(why.into())
    }

    /// A quantity with only a `bound`; `why` is the reason.
    pub fn bounded(bound: Bound<T>, why: impl Into<String>) -> Finding<T> {
        Finding::Bounded { bound, why: why.into() }
    }

    /// The same finding; if it is unknown or only bounded, because of `why`, if there is such a reason.
    pub(crate) fn because(self, why: Option<impl Into<String>>) -> Finding<T> {
        match (self, why) {
            (Finding::Bounded { bound, .. }, Some(why)) => Finding::bounded(bound, why),
            (Finding::Unknown(_), Some(why)) => Finding::unknown(why),
            (finding, _) => finding,
        }
    }

    /// The value, or the reason why it is unknown.
    pub fn result(&self) -> Result<T, &String> {
        match self {
            Finding::Known { estimate, .. } => Ok(estimate.value),
            Finding::Bounded { why, .. } | Finding::Unknown(why) => Err(why),
        }
    }

    /// The reason why the value is unknown.
    pub fn why(&self) -> Option<&String> {
        self.result().err()
    }

    /// The method that found the value, or the reason why it is unknown.
    pub fn how(&self) -> &str {
        match self {
            Finding::Known { how: words, .. }
            | Finding::Bounded { why: words, .. }
            | Finding::Unknown(words) => words,
        }
    }

    /// The value, if it is known.
    pub fn value(&self) -> Option<T> {
        self.estimate().map(|estimate| estimate.value)
    }

    /// The value and its interval, if they are known.
    pub fn estimate(&self) -> Option<Estimate<T>> {
        match self {
            Finding::Known { estimate, .. } => Some(*estimate),
            Finding::Bounded { .. } | Finding::Unknown(_) => None,
        }
    }
}

impl<T: Quantity> Estimate<T> {
    /// The ends of the interval; `None` if the value has none.
    pub fn interval(&self) -> Option<(T, T)> {
        let is_point = self.low.number() == self.high.number();
        (!is_point).then_some((self.low, self.high))
    }
}

impl<T: Quantity> Serialize for Finding<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self {
            Finding::Known { estimate, how } => {
                map.serialize_entry("value", &estimate.value.number())?;
                let ends = estimate.interval();
                map.serialize_entry("low", &ends.map(|(low, _)| low.number()))?;
                map.serialize_entry("high", &ends.map(|(_, high)| high.number()))?;
                map.serialize_entry("how", how)?;
            }
            Finding::Bounded { bound, why } => {
                map.serialize_entry("unknown", why)?;
                match bound {
                    Bound::AtLeast(low) => map.serialize_entry("low", &low.number())?,
                    Bound::AtMost(high) => map.serialize_entry("high", &high.number())?,
                }
            }
            Finding::Unknown(why) => map.serialize_entry("unknown", why)?,
        }
        map.end()
    }
}
