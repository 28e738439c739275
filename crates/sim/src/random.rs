//! Random numbers. Every flow has its own stream, so its draws do not depend on other flows' events. Two runs that
//! differ only in a window therefore have the same cross traffic (common random numbers).

use sweetspot_path::Random;

pub(crate) fn stream(seed: u64, kind: u64, index: u64, round: u64) -> Random {
    let mut mixed = seed;
    for part in [kind, index, round] {
        // SplitMix64's finalizer (Steele, Lea, Flood 2014) over each part in turn.
        mixed = mixed.wrapping_add(part.wrapping_mul(0x9e37_79b9_7f4a_7c15)) ^ 0x5bf0_3635;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^= mixed >> 31;
    }
    Random::new(mixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_streams_differ() {
        assert_ne!(stream(1, 0, 0, 0).bits(), stream(1, 0, 1, 0).bits());
        assert_ne!(stream(1, 0, 0, 0).bits(), stream(1, 0, 0, 1).bits());
        assert_ne!(stream(1, 0, 0, 0).bits(), stream(2, 0, 0, 0).bits());
    }
}
