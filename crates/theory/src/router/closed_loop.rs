//! Users that download, think, and download again: router-buffer §III-A.

use sweetspot_units::{Bytes, Duration, Rate};

use crate::TheoryError;
use crate::error::require;

// Router-buffer §III-A: U S / (T_h + T_t).
/// The load of `users`; each transfers `size` in `transfer` time and then thinks for `think`. Congestion lengthens the
/// transfers and so lowers the load: it never exceeds the link.
///
/// # Errors
/// If a round takes no time.
pub fn offered_load(
    users: u64,
    size: Bytes,
    think: Duration,
    transfer: Duration,
) -> Result<Rate, TheoryError> {
    let round = think + transfer;
    require(round > Duration::ZERO, "think and transfer time", round, "above zero together")?;
    Ok(Rate::from_f64(users as f64 * size.as_f64() * 8.0 / round.as_secs_f64()))
}

// The same solved for U, with the fastest transfer there can be.
/// The users it takes to fill `link` if each transfer takes `transfer`.
///
/// # Errors
/// If `size` is zero.
pub fn users_to_fill(
    link: Rate,
    size: Bytes,
    think: Duration,
    transfer: Duration,
) -> Result<u64, TheoryError> {
    require(size > Bytes::ZERO, "transfer size", size, "it must be 1 B or more")?;
    let seconds = (think + transfer).as_secs_f64();
    Ok((link.as_f64() * seconds / (size.as_f64() * 8.0)).ceil() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZE: Bytes = Bytes::new(80_000);
    const THINK: Duration = Duration::from_secs(1);

    #[test]
    fn a_thousand_users_by_hand() {
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
    fn the_users_that_fill_a_link_fill_it() {
        let (link, took) = (Rate::from_mbit_per_second(50), Duration::from_millis(250));
        // 50e6 * 1.25 / 640,000 = 97.7.
        assert_eq!(users_to_fill(link, SIZE, THINK, took), Ok(98));
        assert!(offered_load(98, SIZE, THINK, took).unwrap() >= link);
        assert!(offered_load(97, SIZE, THINK, took).unwrap() < link);
    }

    #[test]
    fn rounds_without_time_or_data_are_refused() {
        assert!(offered_load(1, SIZE, Duration::ZERO, Duration::ZERO).is_err());
        assert!(users_to_fill(Rate::ZERO, Bytes::ZERO, THINK, THINK).is_err());
    }
}
