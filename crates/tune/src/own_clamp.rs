//! Clamps that programs set themselves, told from those of the kernel.

use sweetspot_units::Bytes;

/// The kernel counts the part of a buffer that is payload in this many parts (`scaling_ratio` in net/ipv4/tcp.c, since kernel
/// commit dfa2f0483360, Linux 6.6; before, powers of two of it).
const BUFFER_PARTS: u64 = 256;

/// A clamp of which it cannot be told whether the kernel had set it for a smaller buffer is a program's below this part of
/// the buffer: half of what the kernel itself begins with (TCP_DEFAULT_SCALING_RATIO).
const FAR_BELOW: u64 = 4;

/// Notices the clamp that a program set itself (TCP_WINDOW_CLAMP): it is never loosened, and comes back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OwnClamp {
    /// The clamp.
    noticed: Option<Bytes>,
    /// The receive buffer before the kernel could grow it.
    first_buffer: Option<Bytes>,
    /// The MSS that it announced.
    mss: Bytes,
}

impl OwnClamp {
    /// Nothing is known yet of a connection that announced `mss`. The kernel has not grown the receive buffer of one that is
    /// young, which is `buffer` large.
    pub fn new(is_young: bool, buffer: Bytes, mss: Bytes) -> OwnClamp {
        OwnClamp { noticed: None, first_buffer: is_young.then_some(buffer), mss }
    }

    /// Takes a `clamp` that is not ours, where the receive buffer is so large.
    pub fn handle_clamp(&mut self, clamp: Bytes, buffer: Bytes) {
        let is_certain = self.first_buffer == Some(buffer) || clamp < buffer / FAR_BELOW;
        if is_certain && clamp < buffer && !is_of_kernel(clamp, buffer, self.mss) {
            self.noticed = Some(clamp);
        }
    }

    /// The clamp; `None` if the program set none.
    pub fn get(&self) -> Option<Bytes> {
        self.noticed
    }

    /// The program's own `clamp`, as it was told by [`OwnClamp::get`].
    pub fn known(clamp: Option<Bytes>) -> OwnClamp {
        OwnClamp { noticed: clamp, ..OwnClamp::default() }
    }

    /// What a `limit` may be: never above the program's own clamp.
    pub fn bound(&self, limit: Bytes) -> Bytes {
        self.noticed.map_or(limit, |own| limit.min(own))
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

    fn noticed(is_young: bool, first: Bytes, now: Bytes, clamp: Bytes) -> Option<Bytes> {
        let mut own = OwnClamp::new(is_young, first, MSS);
        own.handle_clamp(clamp, now);
        own.get()
    }

    #[test]
    fn a_program_s_own_clamp_bounds_every_limit() {
        let mut own = OwnClamp::new(true, BUFFER, MSS);
        let (clamp, more) = (Bytes::new(50_003), Bytes::new(70_000));
        assert_eq!(own.bound(more), more);
        own.handle_clamp(clamp, BUFFER);
        assert_eq!((own.bound(more), own.bound(MSS)), (clamp, MSS));
        // The kernel overwrites it when it grows the buffer; it is the program's nevertheless.
        own.handle_clamp(BUFFER, BUFFER * 2);
        assert_eq!(own.get(), Some(clamp));
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
            parts in 1..=BUFFER_PARTS,
            less in prop::sample::select(vec![0, MSS.get()]),
            young: bool,
        ) {
            let clamp = Bytes::new((buffer * parts / BUFFER_PARTS).saturating_sub(less));
            let buffer = Bytes::new(buffer);
            prop_assert_eq!(noticed(young, buffer, buffer, clamp), None);
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
