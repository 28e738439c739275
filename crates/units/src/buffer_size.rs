use core::str::FromStr;

use crate::bytes;
use crate::{Duration, Rate, UnitError, Volume};

/// A buffer size in text form: an amount, or a multiple of the path's bandwidth-delay product.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum BufferSize {
    /// An absolute amount: `125kB`, `100pkt`.
    Volume(Volume),
    /// A multiple of rate x RTT: `1bdp`, `0.5BDP`.
    Products(f64),
}

impl BufferSize {
    /// The amount for a link of `rate` in a path with the RTT `rtt`.
    pub fn on(self, rate: Rate, rtt: Duration) -> Volume {
        match self {
            BufferSize::Volume(volume) => volume,
            BufferSize::Products(factor) => Volume::Bytes((rate * rtt).scaled(factor)),
        }
    }
}

impl FromStr for BufferSize {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<BufferSize, UnitError> {
        match bytes::NOTATION.split(text) {
            Ok((factor, unit)) if unit.eq_ignore_ascii_case("bdp") => {
                Ok(BufferSize::Products(factor))
            }
            _ => text.parse().map(BufferSize::Volume).map_err(|mut error: UnitError| {
                error.examples = "625pkt, 125kB, 64KiB, 1bdp";
                error
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bytes;

    #[test]
    fn a_buffer_in_bdps_depends_on_its_path() {
        let on = |text: &str| -> Volume {
            let size: BufferSize = text.parse().unwrap();
            size.on(Rate::from_mbit_per_second(100), Duration::from_millis(40))
        };
        // 100 Mbit/s x 40 ms = 500 kB.
        assert_eq!(on("1bdp"), Volume::Bytes(Bytes::new(500_000)));
        assert_eq!(on("0.25 BDP"), Volume::Bytes(Bytes::new(125_000)));
        assert_eq!(on("100pkt"), Volume::Packets(100));
        assert_eq!(on("64KiB"), Volume::Bytes(Bytes::new(65_536)));
    }

    #[test]
    fn the_error_for_an_invalid_buffer_shows_examples() {
        let error = "1bpd".parse::<BufferSize>().expect_err("it is no unit").to_string();
        assert!(error.contains("1bdp"), "{error}");
    }
}
