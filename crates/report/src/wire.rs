//! Quantities in JSON: plain numbers in the base unit at the end of the member's name
//! (`goodput_bps`, `rtt_median_s`, `window_bytes`), so that any language can read them directly.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sweetspot_units::{Bytes, Duration, Rate};

/// A quantity in a JSON member.
pub trait Quantity: Sized {
    /// The quantity as JSON.
    fn to_value(&self) -> Value;
    /// Parses the quantity; `None` if the JSON has another form.
    fn from_value(value: &Value) -> Option<Self>;
}

/// A whole number of bits per second.
impl Quantity for Rate {
    fn to_value(&self) -> Value {
        self.bits_per_second().into()
    }
    fn from_value(value: &Value) -> Option<Rate> {
        value.as_u64().map(Rate::from_bits_per_second)
    }
}

/// A whole number of bytes.
impl Quantity for Bytes {
    fn to_value(&self) -> Value {
        self.get().into()
    }
    fn from_value(value: &Value) -> Option<Bytes> {
        value.as_u64().map(Bytes::new)
    }
}

/// Seconds, to the nanosecond.
impl Quantity for Duration {
    fn to_value(&self) -> Value {
        self.as_secs_f64().into()
    }
    fn from_value(value: &Value) -> Option<Duration> {
        value.as_f64().map(Duration::from_secs_f64)
    }
}

/// `null` if unknown.
impl<Q: Quantity> Quantity for Option<Q> {
    fn to_value(&self) -> Value {
        self.as_ref().map_or(Value::Null, Q::to_value)
    }
    fn from_value(value: &Value) -> Option<Option<Q>> {
        if value.is_null() { Some(None) } else { Q::from_value(value).map(Some) }
    }
}

/// A column of a time series.
impl<Q: Quantity> Quantity for Vec<Q> {
    fn to_value(&self) -> Value {
        self.iter().map(Q::to_value).collect()
    }
    fn from_value(value: &Value) -> Option<Vec<Q>> {
        value.as_array()?.iter().map(Q::from_value).collect()
    }
}

/// For `#[serde(with = "wire")]`.
pub fn serialize<Q: Quantity, S: Serializer>(quantity: &Q, to: S) -> Result<S::Ok, S::Error> {
    quantity.to_value().serialize(to)
}

/// For `#[serde(with = "wire")]`.
pub fn deserialize<'de, Q: Quantity, D: Deserializer<'de>>(from: D) -> Result<Q, D::Error> {
    let value = Value::deserialize(from)?;
    Q::from_value(&value).ok_or_else(|| D::Error::custom(format!("{value} is not a quantity")))
}
