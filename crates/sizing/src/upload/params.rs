//! Every number that the pacing of uploads is made of. What has no source here was chosen on the fluid
//! of `crates/tune/tests/upload.rs`, and is measured on the kernel: docs/results/live.md.

use sweetspot_units::{Bytes, Duration, Rate};

/// What must have been delivered for it to be an upload: slow start has seen the path by then.
pub(super) const BULK: Bytes = Bytes::new(500_000);

/// Epochs last two round trips, for in one the queue shows what the pace did in the one before, and
/// this at least: acknowledgements come in lumps.
pub(super) const EPOCH_ROUND_TRIPS: u64 = 2;
pub(super) const LEAST_EPOCH: Duration = Duration::from_millis(100);

/// The standing queue, as a share of the least round trip and at least, that is put up with.
pub(super) const QUEUE_SHARE: f64 = 0.1;
pub(super) const LEAST_QUEUE: Duration = Duration::from_millis(2);

/// A rate that rose by no more than this in an epoch no longer rises.
pub(super) const RISING: f64 = 1.1;

/// The pace that is held, as a share of what the path delivers: what an upload gives away for an
/// empty buffer.
pub(super) const HELD_PACE: f64 = 0.99;

/// The least pace: a full segment in 150 ms, below which nothing can be timed.
pub(super) const LEAST_PACE: Rate = Rate::from_bits_per_second(80_000);

/// The least pace while a queue drains, as a share of what the path delivers. For as long as a queue
/// stands the path is busy whatever is sent, so that this costs nothing.
pub(super) const DRAIN_PACE: f64 = 0.5;

/// In which time, besides a round trip, what still stands is to be gone: a few looks.
pub(super) const DRAIN_HORIZON: Duration = Duration::from_millis(50);

/// Round trips, and times what the queue takes by itself, after which one that still stands is
/// judged; and the share of it that must have gone by then for it to be ours.
pub(super) const DRAIN_ROUND_TRIPS: u64 = 8;
pub(super) const DRAIN_QUEUES: u64 = 4;
pub(super) const OURS: f64 = 0.5;

/// Share of its pace from which an upload counts as held by it.
pub(super) const BINDS: f64 = 0.95;

/// A queue so many times what is put up with is taken away when that many epochs in a row show it.
pub(super) const EXCESS: f64 = 1.5;
pub(super) const EXCESS_EPOCHS: u32 = 2;

/// A queue of this share of a round trip is taken away at once: the path got slower, and fills its
/// buffer as fast as time goes by.
pub(super) const SURGE: f64 = 0.5;

/// An upload that was held to less than this share of what it sends when it is free was not helped.
pub(super) const KEEPS: f64 = 0.98;

/// For how long it is left to congestion control before that is judged; doubled each time, up to the
/// longest.
pub(super) const FIRST_OPEN: Duration = Duration::from_secs(10);
pub(super) const LONGEST_OPEN: Duration = Duration::from_secs(160);

/// More than the pace, in the first trial: in one round trip it leaves 0.19 BDP in the buffer of a path
/// that is full already, which one of a quarter bears. (BBR tries a quarter more:
/// draft-ietf-ccwg-bbr, ProbeBW_UP.)
pub(super) const FIRST_STEP: f64 = 0.2;
/// ... and after one that paid: then the path is known to have changed, and by how much is not.
pub(super) const NEXT_STEP: f64 = 0.4;

/// Share of a step that the rate must follow with.
pub(super) const PAID: f64 = 0.5;

/// Share of what was delivered behind a trial's queue that the path is sure to take: a rate over a
/// single round trip errs by a hundredth or two.
pub(super) const SURE: f64 = 0.98;

/// Units of time between two trials, so that with the trial and what pays it back one comes every
/// eight round trips, as BBR's do.
pub(super) const TRIAL_PAUSE: u64 = 6;

/// The unit is a round trip, and this at least, in which that much is delivered: acknowledgements
/// come in lumps.
pub(super) const LEAST_UNIT: Duration = Duration::from_millis(10);
pub(super) const LEAST_DELIVERED: Bytes = Bytes::new(64_000);

/// What may be delivered late and still belong to the trial.
pub(super) const LATE: Duration = Duration::from_millis(5);
