//! Random numbers. Every source has its own stream, so its numbers do not depend on the order in
//! which the kernel runs sources.

use sweetspot_path::Random;

/// The stream of source `index` of one side under `seed`.
pub(super) fn stream(seed: u64, side: u64, index: u64) -> Random {
    // 2^64 over the golden ratio, as in SplitMix64: neighbouring indices get unrelated streams.
    Random::new(seed ^ (2 * index + side + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
