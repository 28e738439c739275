//! Users that download, think, and download again: router-buffer §III-A.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::Result;
use crate::error::require;
use crate::packets::Packets;
use sweetspot_statistics::roots;

// Router-buffer §III-A: U S / (T_h + T_t).
/// The load of `users`. Each transfers `size` in the time `transfer` and then thinks for `think`. Congestion lengthens the
/// transfers and thereby lowers the load, which never exceeds the link.
///
/// # Errors
/// If a round takes no time.
pub fn offered_load(users: u64, size: Bytes, think: Duration, transfer: Duration) -> Result<Rate> {
    let round = think + transfer;
    require(round > Duration::ZERO, "think and transfer time", round, "above zero together")?;
    Ok(Rate::from_f64(users as f64 * size.as_f64() * 8.0 / round.as_secs_f64()))
}

// The same equation solved for U, with the fastest possible transfer.
/// The number of users that fill `link` if each transfer takes `transfer`.
///
/// # Errors
/// If `size` is zero.
pub fn users_to_fill(link: Rate, size: Bytes, think: Duration, transfer: Duration) -> Result<u64> {
    require(size > Bytes::ZERO, "transfer size", size, "it must be 1 B or more")?;
    let seconds = (think + transfer).as_secs_f64();
    Ok((link.as_f64() * seconds / (size.as_f64() * 8.0)).ceil() as u64)
}

// Little's law: C / s transfers begin per second, and each lasts twice its slow start, 2 D T_o. With eq. (1) without rounding
// up, D = 1 + log2(M/2) = log2 M, so n = 2 C T_o log2(M) / M.
/// The mean transfer size in packets with which `flows` simultaneous flows use `load` of a link of `bdp` packets. At least
/// `min`, which is 3 or more: with more flows than fill the link at that size, the flows are slower instead.
pub fn size_to_fill(flows: f64, load: f64, bdp: Packets, min: f64) -> f64 {
    let share = 2.0 * load * bdp.get() / flows;
    // M / log2(M) increases for M >= e.
    if !share.is_finite() || min / libm::log2(min) >= share {
        return min;
    }
    roots::beyond(min, f64::MAX, |m| m / libm::log2(m) < share).unwrap_or(min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_flows_fill_a_link_only_with_long_transfers() {
        let size = |flows| size_to_fill(flows, 1.0, Packets::new(5000.0).unwrap(), 54.0);
        // 2 x 5000 x log2(1024) / 1024 = 97.66 flows; half of the load takes half of them.
        assert!((size(97.656_25) / 1024.0 - 1.0).abs() < 1e-9);
        let half = size_to_fill(48.828_125, 0.5, Packets::new(5000.0).unwrap(), 54.0);
        assert!((half / 1024.0 - 1.0).abs() < 1e-9);
        // 1066 flows fill it with 54 packets each.
        assert_eq!((size(1066.0), size(1e6)), (54.0, 54.0));
        assert!(size(1065.0) > 54.0 && size(1065.0) < 54.1);
    }

    const SIZE: Bytes = Bytes::new(80_000);
    const THINK: Duration = Duration::from_secs(1);

    #[test]
    fn the_load_of_a_thousand_users_matches_a_hand_calculation() {
        // 1000 * 640,000 bit / 1.25 s = 512 Mbit/s.
        let load = offered_load(1000, SIZE, THINK, Duration::from_millis(250));
        assert_eq!(load, Ok(Rate::from_mbit_per_second(512)));
    }

    #[test]
    fn slower_transfers_lower_the_load() {
        let at = |ms| offered_load(1000, SIZE, THINK, Duration::from_millis(ms)).unwrap();
        assert!(at(100) > at(1000) && at(1000) > at(10_000));
    }

    #[test]
    fn users_to_fill_is_the_smallest_number_that_fills_the_link() {
        let (link, took) = (Rate::from_mbit_per_second(50), Duration::from_millis(250));
        // 50e6 * 1.25 / 640,000 = 97.7.
        assert_eq!(users_to_fill(link, SIZE, THINK, took), Ok(98));
        assert!(offered_load(98, SIZE, THINK, took).unwrap() >= link);
        assert!(offered_load(97, SIZE, THINK, took).unwrap() < link);
    }

    #[test]
    fn rounds_without_time_or_data_are_rejected() {
        assert!(offered_load(1, SIZE, Duration::ZERO, Duration::ZERO).is_err());
        assert!(users_to_fill(Rate::ZERO, Bytes::ZERO, THINK, THINK).is_err());
    }
}
