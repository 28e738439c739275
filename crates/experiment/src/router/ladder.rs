/// Buffers from two packets to `max`, in nearly geometric steps.
pub fn ladder(max: u64, count: usize) -> Vec<u64> {
    let steps = count.max(2) - 1;
    let doublings = libm::log2(max.max(4) as f64 / 2.0);
    let rung = |i: usize| libm::round(2.0 * libm::exp2(doublings * i as f64 / steps as f64)) as u64;
    let mut rungs: Vec<u64> = (0..=steps).map(rung).collect();
    rungs.dedup();
    rungs
}
