//! Distinguishes clamps set by programs from clamps set by the kernel.
//!
//! The kernel does not report a clamp's origin. Without a tuner a connection has the clamp that its program or the
//! kernel set last. The tuner therefore keeps the last clamp that it found, never sets a looser one, and restores
//! exactly that clamp. This also works if the kernel set it: each time the kernel wants a larger clamp, it overwrites
//! the previous one (tcp_rcv_space_adjust, tcp_measure_rcv_mss), and the tuner sees the new one.
//!
//! If only a program can have set a clamp, the tuner keeps it for good, even after the kernel has overwritten it.

use sweetspot_units::Bytes;

/// The largest value of the option: a clamp without effect.
pub const UNCLAMPED: Bytes = Bytes::new(i32::MAX as u64);

/// The kernel stores the payload share of a buffer in units of 1/256 (`scaling_ratio` in net/ipv4/tcp.c, since kernel commit
/// dfa2f0483360, Linux 6.6). Older kernels use powers of two.
const BUFFER_PARTS: u64 = 256;

/// The kernel may have set a clamp earlier, for a smaller buffer. A clamp below 1/4 of the buffer, half of the kernel's initial
/// ratio (TCP_DEFAULT_SCALING_RATIO), counts as the program's.
const KERNEL_CLAMP_DIVISOR: u64 = 4;

/// The initial receive buffer of a connection (`tcp_rmem`, since Linux 4.20). Its clamp stays in force if a program sets
/// another buffer before the first data arrive.
const DEFAULT_BUFFER: Bytes = Bytes::new(131_072);

/// The state that changes whenever the kernel sets a clamp: it grows the buffer, or it has received a larger segment and
/// recalculates the payload share of the buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferState {
    /// The size of the receive buffer.
    pub size: Bytes,
    /// The largest segment that arrived (`tcpi_rcv_mss`).
    pub largest_segment: Bytes,
}

/// Recognizes a clamp that the program itself set (TCP_WINDOW_CLAMP), so that the tuner can restore it and never loosens it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnClamp {
    /// The program's clamp; the kernel cannot have set it.
    noticed: Option<Bytes>,
    /// The last clamp that the tuner did not set, but the program or the kernel.
    found: Option<Bytes>,
    set: Option<Bytes>,
    /// The state of the buffer before the clamp was last read or set.
    seen: Option<BufferState>,
    /// The initial size of the receive buffer, if it was seen before the kernel could grow it.
    first_size: Option<Bytes>,
    mss: Bytes,
}

impl OwnClamp {
    /// The state for a connection that advertised `mss`, with no clamp known yet. If the connection is young, the kernel has
    /// not grown its receive buffer yet; `size` is the buffer's size.
    pub fn new(is_young: bool, size: Bytes, mss: Bytes) -> OwnClamp {
        OwnClamp { first_size: is_young.then_some(size), mss, ..OwnClamp::default() }
    }

    /// Handles the connection's current `clamp`, with the state of its buffer before and after the clamp was read.
    pub fn handle_clamp(&mut self, clamp: Bytes, before: BufferState, after: BufferState) {
        // Whether the kernel has set no clamp since the last sample.
        let is_quiet = self.seen == Some(after);
        self.seen = Some(before);
        if self.set.or(self.found) == Some(clamp) {
            return;
        }
        self.found = Some(clamp);
        // The kernel may have grown the buffer, and the clamp with it, between the two reads.
        let is_steady = before.size == after.size;
        let may_tell = is_steady && self.first_size == Some(before.size)
            || clamp < before.size / KERNEL_CLAMP_DIVISOR;
        let is_of_kernel = [before.size, after.size, DEFAULT_BUFFER]
            .into_iter()
            .any(|buffer| is_of_kernel(clamp, buffer, self.mss));
        let is_above = clamp >= before.size.max(after.size);
        if is_quiet || is_above || may_tell && !is_of_kernel {
            self.noticed = Some(clamp);
        }
    }

    /// Handles the state of the buffer after the planned clamp was set. Returns whether the kernel may have set an unseen clamp
    /// since the last read. If so, the clamp found earlier is void, and the limit must be planned again.
    pub fn handle_set(&mut self, now: BufferState) -> bool {
        let overwritten = self.seen.replace(now).is_some_and(|seen| seen != now);
        if overwritten {
            self.found = None;
        }
        overwritten
    }

    /// Whether the tuner set `clamp` last.
    pub fn is_set(&self, clamp: Bytes) -> bool {
        self.set == Some(clamp)
    }

    /// The clamp to set for `limit`, never above the connection's clamp without the tuner; without a limit, exactly that clamp.
    pub fn plan(&mut self, limit: Option<Bytes>) -> Bytes {
        let clamp = limit.into_iter().chain(self.without_tuner()).min();
        let clamp = clamp.unwrap_or(UNCLAMPED);
        self.set = Some(clamp);
        clamp
    }

    /// The clamp set last; [`UNCLAMPED`] before the first plan.
    pub fn planned(&self) -> Bytes {
        self.set.unwrap_or(UNCLAMPED)
    }

    /// The limit in force: the tuner's clamp, if it is below the connection's clamp without the tuner.
    pub fn limit(&self) -> Option<Bytes> {
        self.set.filter(|set| *set < self.without_tuner().unwrap_or(UNCLAMPED))
    }

    /// The clamp that the connection would have without the tuner.
    fn without_tuner(&self) -> Option<Bytes> {
        self.noticed.into_iter().chain(self.found).min()
    }

    /// The program's own clamp; `None` if the kernel may have set it.
    pub fn of_program(&self) -> Option<Bytes> {
        self.noticed
    }

    /// The state in words for the guardian; [`OwnClamp::from_words`] reads them.
    pub fn words(&self) -> String {
        let word = |value: Option<Bytes>| value.map_or("-".to_owned(), |n| n.get().to_string());
        let (size, segment) = self.seen.map(|seen| (seen.size, seen.largest_segment)).unzip();
        [self.set, self.noticed, self.found, size, segment].map(word).join(":")
    }

    /// Reads the words of [`OwnClamp::words`].
    pub fn from_words(words: &str) -> Option<OwnClamp> {
        let read = |word: &str| match word {
            "-" => Some(None),
            word => word.parse().ok().map(|n| Some(Bytes::new(n))),
        };
        let values = words.split(':').map(read).collect::<Option<Vec<_>>>()?;
        let [set, noticed, found, size, segment] = values[..] else { return None };
        let seen =
            size.zip(segment).map(|(size, largest_segment)| BufferState { size, largest_segment });
        Some(OwnClamp { set, noticed, found, seen, ..OwnClamp::default() })
    }
}

/// Whether the kernel sets this clamp for a buffer of this size: the payload share of the buffer, at first less one segment
/// (tcp_init_buffer_space).
fn is_of_kernel(clamp: Bytes, buffer: Bytes, mss: Bytes) -> bool {
    let is_part = |space: u64| {
        let parts = (space * BUFFER_PARTS).div_ceil(buffer.get().max(1));
        (1..=BUFFER_PARTS).contains(&parts) && buffer.get() * parts / BUFFER_PARTS == space
    };
    // Before Linux 6.6 the kernel rounded the overhead down, and so the payload up.
    [clamp, clamp + mss]
        .into_iter()
        .any(|space| is_part(space.get()) || is_part(space.get().saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BUFFER: Bytes = Bytes::new(131_072);
    const MSS: Bytes = Bytes::new(1448);
    const LIMIT: Bytes = Bytes::new(8688);

    /// A buffer of this size that has received full-sized segments.
    fn state(size: Bytes) -> BufferState {
        BufferState { size, largest_segment: MSS }
    }

    fn handle(own: &mut OwnClamp, clamp: Bytes, size: Bytes) {
        own.handle_clamp(clamp, state(size), state(size));
    }

    fn noticed(is_young: bool, first: Bytes, now: Bytes, clamp: Bytes) -> Option<Bytes> {
        let mut own = OwnClamp::new(is_young, first, MSS);
        handle(&mut own, clamp, now);
        own.noticed
    }

    #[test]
    fn a_program_clamp_bounds_every_limit() {
        let mut own = OwnClamp::new(true, BUFFER, MSS);
        let (clamp, more) = (Bytes::new(50_003), Bytes::new(70_000));
        assert_eq!(own.plan(Some(more)), more);
        handle(&mut own, clamp, BUFFER);
        assert_eq!((own.plan(Some(more)), own.plan(Some(MSS))), (clamp, MSS));
        // The kernel overwrites the clamp when it grows the buffer, but the program's clamp remains known.
        handle(&mut own, BUFFER, BUFFER * 2);
        assert_eq!(own.plan(None), clamp);
    }

    /// 50,003 can only be the program's clamp; the kernel might set half of the buffer.
    #[test]
    fn a_limit_counts_as_active_only_below_the_untuned_clamp() {
        for without in [Bytes::new(50_003), BUFFER / 2] {
            let mut own = OwnClamp::new(true, BUFFER, MSS);
            assert_eq!(own.limit(), None);
            handle(&mut own, without, BUFFER);
            own.plan(Some(LIMIT));
            assert_eq!(own.limit(), Some(LIMIT));
            own.plan(Some(BUFFER));
            assert_eq!(own.limit(), None);
        }
        let mut own = OwnClamp::default();
        own.plan(Some(LIMIT));
        assert_eq!(own.limit(), Some(LIMIT));
        own.plan(None);
        assert_eq!(own.limit(), None);
    }

    /// 65,536 is half of the buffer, like the kernel's own clamp, and 32,768 a quarter. The limits are below, at and above each
    /// clamp: 6 * 1448 = 8,688, the clamp itself, and 100,000.
    #[test]
    fn an_ambiguous_clamp_is_never_loosened_and_is_restored() {
        for clamp in [65_536, 32_768, 16_384, 50_003].map(Bytes::new) {
            for (is_young, limit) in [true, false]
                .into_iter()
                .flat_map(|young| [LIMIT, clamp, Bytes::new(100_000)].map(|limit| (young, limit)))
            {
                let mut own = OwnClamp::new(is_young, BUFFER, MSS);
                handle(&mut own, clamp, BUFFER);
                let set = own.plan(Some(limit));
                assert_eq!(set, limit.min(clamp));
                assert!(!own.handle_set(state(BUFFER)));
                handle(&mut own, set, BUFFER);
                // A program sets the buffer (SO_RCVBUF), and the clamp stays as it is.
                handle(&mut own, set, BUFFER * 4);
                assert_eq!(own.plan(None), clamp, "{is_young} {limit}");
            }
        }
    }

    /// The kernel sets 160/256 of the buffer, and then triples the buffer.
    #[test]
    fn the_kernel_clamp_is_followed_as_it_grows() {
        let natural = |size: Bytes| size * 160 / 256;
        let mut own = OwnClamp::new(true, BUFFER, MSS);
        handle(&mut own, natural(BUFFER), BUFFER);
        own.plan(Some(LIMIT));
        handle(&mut own, natural(BUFFER * 3), BUFFER * 3);
        assert_eq!(own.plan(Some(BUFFER * 9)), natural(BUFFER * 3));
        assert_eq!(own.plan(None), natural(BUFFER * 3));
    }

    #[test]
    fn an_unseen_kernel_clamp_change_leaves_no_limit_behind() {
        for now in [state(BUFFER * 2), BufferState { largest_segment: MSS * 2, ..state(BUFFER) }] {
            let mut own = OwnClamp::new(true, BUFFER, MSS);
            handle(&mut own, BUFFER / 2, BUFFER);
            assert_eq!(own.plan(Some(BUFFER)), BUFFER / 2);
            assert!(own.handle_set(now));
            assert_eq!((own.plan(Some(BUFFER)), own.plan(None)), (BUFFER, UNCLAMPED));
        }
    }

    #[test]
    fn a_clamp_is_attributed_to_the_program_while_the_kernel_sets_none() {
        let mut own = OwnClamp::new(false, BUFFER, MSS);
        handle(&mut own, BUFFER * 160 / 256, BUFFER);
        let set = own.plan(Some(LIMIT));
        handle(&mut own, set, BUFFER);
        // A quarter of the buffer, half of it, and more than it holds.
        for clamp in [BUFFER / 4, BUFFER / 2, BUFFER * 2] {
            handle(&mut own, clamp, BUFFER);
            assert_eq!((own.noticed, own.plan(Some(LIMIT))), (Some(clamp), LIMIT));
        }
        handle(&mut own, BUFFER * 4, BUFFER * 8);
        assert_eq!(own.plan(None), BUFFER * 2);
        // A segment larger than all earlier ones may have made the kernel set the clamp, before or after the clamp was read.
        let larger = BufferState { largest_segment: MSS * 2, ..state(BUFFER) };
        for (before, after) in [(state(BUFFER), larger), (larger, larger)] {
            let mut own = OwnClamp::new(false, BUFFER, MSS);
            handle(&mut own, BUFFER / 4, BUFFER);
            own.plan(Some(LIMIT));
            own.handle_clamp(BUFFER / 2, before, after);
            assert_eq!(own.noticed, None);
        }
    }

    #[test]
    fn a_clamp_that_a_program_lifts_is_not_kept() {
        for is_limited in [true, false] {
            let mut own = OwnClamp::new(true, BUFFER, MSS);
            handle(&mut own, Bytes::new(50_003), BUFFER);
            if is_limited {
                own.plan(Some(LIMIT));
            }
            handle(&mut own, UNCLAMPED, BUFFER);
            assert_eq!(own.plan(Some(BUFFER)), BUFFER);
            assert_eq!(own.plan(None), UNCLAMPED);
        }
    }

    /// The kernel's first clamp is half of the buffer, less one segment.
    #[test]
    fn setting_a_buffer_before_the_first_data_is_not_a_program_clamp() {
        let first = BUFFER / 2 - MSS;
        for size in [BUFFER * 2, BUFFER * 16] {
            assert_eq!(noticed(true, size, size, first), None);
        }
    }

    #[test]
    fn clamp_state_round_trips_through_the_guardian_format() {
        let mut own = OwnClamp::default();
        assert_eq!(OwnClamp::from_words(&own.words()), Some(own));
        handle(&mut own, BUFFER / 2, BUFFER);
        own.plan(Some(MSS));
        assert_eq!(OwnClamp::from_words(&own.words()), Some(own));
        for wrong in ["", "-", "1:2:3:4", "1:2:3:4:x", "1:2:3:4:5:6"] {
            assert_eq!(OwnClamp::from_words(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn only_a_low_clamp_is_attributed_to_the_program_after_buffer_growth() {
        let (small, half) = (Bytes::new(30_003), Bytes::new(65_483));
        assert_eq!(noticed(true, BUFFER, BUFFER, small), Some(small));
        assert_eq!(noticed(false, BUFFER, BUFFER, small), Some(small));
        // Half of the first buffer, less one segment: the kernel set it, and the buffer has grown since.
        assert_eq!(noticed(true, BUFFER, BUFFER + MSS, half), None);
        assert_eq!(noticed(false, BUFFER, BUFFER + MSS, half), None);
    }

    proptest! {
        #[test]
        fn a_kernel_clamp_is_never_attributed_to_a_program(
            buffer in 4096_u64..1 << 31,
            parts in 1..BUFFER_PARTS,
            less in prop::sample::select(vec![0, MSS.get()]),
            young: bool,
        ) {
            let clamp = Bytes::new((buffer * parts / BUFFER_PARTS).saturating_sub(less));
            let buffer = Bytes::new(buffer);
            prop_assert_eq!(noticed(young, buffer, buffer, clamp), None);
        }

        #[test]
        fn a_clamp_after_buffer_growth_is_never_attributed_to_a_program(
            buffer in 4096_u64..1 << 29,
            growth in 1..8_u64 << 8,
            parts in 1..BUFFER_PARTS,
            young: bool,
        ) {
            let grown = buffer + buffer * growth / BUFFER_PARTS;
            let clamp = Bytes::new(grown * parts / BUFFER_PARTS);
            let [before, after] = [buffer, grown].map(|size| state(Bytes::new(size)));
            let mut own = OwnClamp::new(young, before.size, MSS);
            own.handle_clamp(clamp, before, after);
            prop_assert_eq!(own.noticed, None);
        }

        #[test]
        fn a_power_of_two_clamp_is_never_attributed_to_a_program(
            buffer in 4096_u64..1 << 31,
            scale in 1_u32..=8,
            below: bool,
        ) {
            // tcp_win_from_space before Linux 6.6, for positive and negative tcp_adv_win_scale.
            let space = if below { buffer >> scale } else { buffer - (buffer >> scale) };
            let buffer = Bytes::new(buffer);
            prop_assert_eq!(noticed(true, buffer, buffer, Bytes::new(space)), None);
        }
    }
}
