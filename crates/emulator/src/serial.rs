//! Serialises quantities as seconds, bit/s and bytes.

use serde::{Serialize, Serializer};
use sweetspot_units::{Bytes, Duration, Rate, Volume};

pub(crate) fn seconds<S: Serializer>(d: &Duration, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_f64(d.as_secs_f64())
}

pub(crate) fn maybe_seconds<S: Serializer>(d: &Option<Duration>, s: S) -> Result<S::Ok, S::Error> {
    d.map(Duration::as_secs_f64).serialize(s)
}

pub(crate) fn bytes<S: Serializer>(b: &Bytes, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(b.get())
}

pub(crate) fn bits_per_second<S: Serializer>(r: &Rate, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_u64(r.bits_per_second())
}

pub(crate) fn maybe_bits_per_second<S: Serializer>(
    r: &Option<Rate>,
    s: S,
) -> Result<S::Ok, S::Error> {
    r.map(Rate::bits_per_second).serialize(s)
}

pub(crate) fn shown<S: Serializer>(v: &Volume, s: S) -> Result<S::Ok, S::Error> {
    s.collect_str(v)
}
