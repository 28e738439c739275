//! Quantities in JSON: a plain number in the base unit that the field's name ends with
//! (`goodput_bps`, `rtt_median_s`, `window_bytes`), which any language can read directly.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use sweetspot_units::{Bytes, Duration, Rate};

/// A quantity of a JSON field.
pub trait Quantity: Sized {
    /// As JSON.
    fn to_value(&self) -> Value;
    /// From JSON; `None` where it is something else.
    fn from_value(value: &Value) -> Option<Self>;
}

/// Bits per second, a whole number.
impl Quantity for Rate {
    fn to_value(&self) -> Value {
        self.bits_per_second().into()
    }
    fn from_value(value: &Value) -> Option<Rate> {
        value.as_u64().map(Rate::from_bits_per_second)
    }
}

/// Bytes, a whole number.
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
