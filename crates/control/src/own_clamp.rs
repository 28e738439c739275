//! Distinguishes clamps that programs set themselves from the kernel's.
//!
//! The kernel does not report a clamp's origin. Without a tuner a connection has the clamp that its program or the
//! kernel set last. The tuner therefore keeps the last clamp that it found, never sets a looser one, and restores
//! exactly that clamp. This also works if the kernel set it: each time the kernel wants a larger clamp, it overwrites
//! the previous one (tcp_rcv_space_adjust, tcp_measure_rcv_mss), and the tuner sees the new one.
//!
//! If only a program can have set a clamp, the tuner keeps it for good, even after the kernel has overwritten it.

use sweetspot_units::Bytes;

/// A clamp that limits nothing: the largest value of the option.
pub const UNCLAMPED: Bytes = Bytes::new(i32::MAX as u64);

/// The kernel counts the part of a buffer that is payload in this many parts (`scaling_ratio` in net/ipv4/tcp.c, since kernel
/// commit dfa2f0483360, Linux 6.6; before, powers of two of it).
const BUFFER_PARTS: u64 = 256;

/// A clamp that the kernel may have set for a smaller buffer counts as the program's below this part of the buffer: half of the
/// kernel's own initial ratio (TCP_DEFAULT_SCALING_RATIO).
const FAR_BELOW: u64 = 4;

/// The initial receive buffer of a connection (`tcp_rmem`, since Linux 4.20). Its clamp stays in force if a program sets
/// another buffer before the first data arrive.
const DEFAULT_BUFFER: Bytes = Bytes::new(131_072);

/// Changes whenever the kernel sets a clamp: it grows the buffer, or has measured a larger segment and finds from that how
/// much of a buffer is payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BufferState {
    /// The receive buffer.
    pub size: Bytes,
    /// The largest segment that arrived (`tcpi_rcv_mss`).
    pub largest_segment: Bytes,
}

/// Notices the clamp that a program set itself (TCP_WINDOW_CLAMP): it is never loosened, and comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnClamp {
    /// The program's clamp, which the kernel did not set.
    noticed: Option<Bytes>,
    /// The last clamp that was not the tuner's: the program or the kernel set it.
    found: Option<Bytes>,
    set: Option<Bytes>,
    /// The buffer before the clamp was read or set last.
    seen: Option<BufferState>,
    /// The size of the receive buffer before the kernel could grow it.
    first_size: Option<Bytes>,
    mss: Bytes,
}

impl OwnClamp {
    /// Nothing is known yet of a connection that advertised `mss`. The kernel has not grown the receive buffer of one that is
    /// young, which is `size` large.
    pub fn new(is_young: bool, size: Bytes, mss: Bytes) -> OwnClamp {
        OwnClamp { first_size: is_young.then_some(size), mss, ..OwnClamp::default() }
    }

    /// Takes the `clamp` that a connection has now, with its buffer before and after the clamp was read.
    pub fn handle_clamp(&mut self, clamp: Bytes, before: BufferState, after: BufferState) {
        // The kernel has set no clamp since the last sample.
        let is_quiet = self.seen == Some(after);
        self.seen = Some(before);
        if self.set.or(self.found) == Some(clamp) {
            return;
        }
        self.found = Some(clamp);
        // The kernel may have grown the buffer, and the clamp with it, between the two reads.
        let is_steady = before.size == after.size;
        let may_tell =
            is_steady && self.first_size == Some(before.size) || clamp < before.size / FAR_BELOW;
        let is_of_kernel = [before.size, after.size, DEFAULT_BUFFER]
            .into_iter()
            .any(|buffer| is_of_kernel(clamp, buffer, self.mss));
        let is_above = clamp >= before.size.max(after.size);
        if is_quiet || is_above || may_tell && !is_of_kernel {
            self.noticed = Some(clamp);
        }
    }

    /// Takes the buffer after the planned clamp was set. Returns whether the kernel may have set one of its own since the
    /// clamp was read, unseen; then the clamp found before is void, and the limit needs another plan.
    pub fn handle_set(&mut self, now: BufferState) -> bool {
        let overwritten = self.seen.replace(now).is_some_and(|seen| seen != now);
        if overwritten {
            self.found = None;
        }
        overwritten
    }

    /// Whether `clamp` is the one that the tuner set last.
    pub fn is_set(&self, clamp: Bytes) -> bool {
        self.set == Some(clamp)
    }

    /// The clamp to set for `limit`, never above the one that the connection has without the tuner; without a limit it is
    /// that one.
    pub fn plan(&mut self, limit: Option<Bytes>) -> Bytes {
        let clamp = limit.into_iter().chain(self.without_tuner()).min();
        let clamp = clamp.unwrap_or(UNCLAMPED);
        self.set = Some(clamp);
        clamp
    }

    /// The clamp that was set last; none if there was no plan.
    pub fn planned(&self) -> Bytes {
        self.set.unwrap_or(UNCLAMPED)
    }

    /// The limit in force: the clamp that the tuner set, if the connection would have a larger one without it.
    pub fn limit(&self) -> Option<Bytes> {
        self.set.filter(|set| *set < self.without_tuner().unwrap_or(UNCLAMPED))
    }

    /// The clamp that was in force before the tuner set one.
    fn without_tuner(&self) -> Option<Bytes> {
        self.noticed.into_iter().chain(self.found).min()
    }

    /// The program's own clamp, which the kernel certainly did not set.
    pub fn of_program(&self) -> Option<Bytes> {
        self.noticed
    }

    /// As words for the guardian, which [`OwnClamp::from_words`] reads.
    pub fn words(&self) -> String {
        let word = |value: Option<Bytes>| value.map_or("-".to_owned(), |n| n.get().to_string());
        let (size, segment) = self.seen.map(|seen| (seen.size, seen.largest_segment)).unzip();
        [self.set, self.noticed, self.found, size, segment].map(word).join(":")
    }

    /// Reads [`OwnClamp::words`].
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

/// Whether the kernel sets this clamp where the buffer is this large: all of it that is payload, or in the beginning a
/// segment less (tcp_init_buffer_space).
fn is_of_kernel(clamp: Bytes, buffer: Bytes, mss: Bytes) -> bool {
    let is_part = |space: u64| {
        let parts = (space * BUFFER_PARTS).div_ceil(buffer.get().max(1));
        (1..=BUFFER_PARTS).contains(&parts) && buffer.get() * parts / BUFFER_PARTS == space
    };
    // Before Linux 6.6 what is not payload was rounded down, and so payload up.
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

    /// A buffer of this size after full segments.
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
    fn a_program_s_own_clamp_bounds_every_limit() {
        let mut own = OwnClamp::new(true, BUFFER, MSS);
        let (clamp, more) = (Bytes::new(50_003), Bytes::new(70_000));
        assert_eq!(own.plan(Some(more)), more);
        handle(&mut own, clamp, BUFFER);
        assert_eq!((own.plan(Some(more)), own.plan(Some(MSS))), (clamp, MSS));
        // The kernel overwrites it when it grows the buffer; it is the program's nevertheless.
        handle(&mut own, BUFFER, BUFFER * 2);
        assert_eq!(own.plan(None), clamp);
    }

    /// 50,003 is the program's own clamp, and half of the buffer the kernel's.
    #[test]
    fn a_limit_is_in_force_only_below_the_clamp_that_the_connection_would_have_without_it() {
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

    /// 65,536 is half of the buffer, as the kernel's own clamp is, and 32,768 a quarter. The limits are below, at and above
    /// it: 6 * 1448 = 8,688, and 100,000.
    #[test]
    fn a_clamp_that_the_kernel_might_have_set_is_never_loosened_and_comes_back() {
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
                // A program sets the buffer (SO_RCVBUF), which leaves the clamp as it is.
                handle(&mut own, set, BUFFER * 4);
                assert_eq!(own.plan(None), clamp, "{is_young} {limit}");
            }
        }
    }

    /// The kernel sets 160/256 of the buffer, and grows the buffer to three times its size.
    #[test]
    fn the_kernel_s_own_clamp_is_followed_as_it_grows() {
        let natural = |size: Bytes| size * 160 / 256;
        let mut own = OwnClamp::new(true, BUFFER, MSS);
        handle(&mut own, natural(BUFFER), BUFFER);
        own.plan(Some(LIMIT));
        handle(&mut own, natural(BUFFER * 3), BUFFER * 3);
        assert_eq!(own.plan(Some(BUFFER * 9)), natural(BUFFER * 3));
        assert_eq!(own.plan(None), natural(BUFFER * 3));
    }

    #[test]
    fn a_clamp_of_the_kernel_s_that_was_overwritten_unseen_leaves_no_limit_behind() {
        for now in [state(BUFFER * 2), BufferState { largest_segment: MSS * 2, ..state(BUFFER) }] {
            let mut own = OwnClamp::new(true, BUFFER, MSS);
            handle(&mut own, BUFFER / 2, BUFFER);
            assert_eq!(own.plan(Some(BUFFER)), BUFFER / 2);
            assert!(own.handle_set(now));
            assert_eq!((own.plan(Some(BUFFER)), own.plan(None)), (BUFFER, UNCLAMPED));
        }
    }

    #[test]
    fn a_clamp_that_appears_while_the_kernel_sets_none_is_a_program_s_for_good() {
        let mut own = OwnClamp::new(false, BUFFER, MSS);
        handle(&mut own, BUFFER * 160 / 256, BUFFER);
        let set = own.plan(Some(LIMIT));
        handle(&mut own, set, BUFFER);
        // Less, more, and more than the buffer holds.
        for clamp in [BUFFER / 4, BUFFER / 2, BUFFER * 2] {
            handle(&mut own, clamp, BUFFER);
            assert_eq!((own.noticed, own.plan(Some(LIMIT))), (Some(clamp), LIMIT));
        }
        handle(&mut own, BUFFER * 4, BUFFER * 8);
        assert_eq!(own.plan(None), BUFFER * 2);
        // A segment larger than all before may have made the kernel set the clamp, before or after it was read.
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

    /// The first clamp of the kernel is half of the buffer, less a segment.
    #[test]
    fn a_buffer_that_a_program_sets_before_the_first_data_makes_no_clamp_of_its_own() {
        let first = BUFFER / 2 - MSS;
        for size in [BUFFER * 2, BUFFER * 16] {
            assert_eq!(noticed(true, size, size, first), None);
        }
    }

    #[test]
    fn the_guardian_reads_what_the_tuner_knows() {
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
    fn where_the_kernel_may_have_grown_the_buffer_only_what_is_far_below_is_a_program_s() {
        let (small, half) = (Bytes::new(30_003), Bytes::new(65_483));
        assert_eq!(noticed(true, BUFFER, BUFFER, small), Some(small));
        assert_eq!(noticed(false, BUFFER, BUFFER, small), Some(small));
        // Half of the first buffer, less a segment: the kernel's, for a buffer that has since grown.
        assert_eq!(noticed(true, BUFFER, BUFFER + MSS, half), None);
        assert_eq!(noticed(false, BUFFER, BUFFER + MSS, half), None);
    }

    proptest! {
        #[test]
        fn no_clamp_of_the_kernel_is_taken_for_a_program_s(
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
        fn nor_one_for_a_buffer_that_grew_between_the_reads(
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
        fn nor_one_of_a_kernel_that_reckons_in_powers_of_two(
            buffer in 4096_u64..1 << 31,
            scale in 1_u32..=8,
            below: bool,
        ) {
            // tcp_win_from_space before Linux 6.6, by tcp_adv_win_scale of either sign.
            let space = if below { buffer >> scale } else { buffer - (buffer >> scale) };
            let buffer = Bytes::new(buffer);
            prop_assert_eq!(noticed(true, buffer, buffer, Bytes::new(space)), None);
        }
    }
}
