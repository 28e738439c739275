//! All parameters of upload pacing. Those without a source were chosen on the fluid model of
//! `crates/groups/tests/upload.rs` and are measured on the kernel: docs/results/live.md.

use sweetspot_units::{Bytes, Duration, Rate};

/// Least delivered payload of an upload: slow start has filled the path by then.
pub(super) const MIN_UPLOAD_BYTES: Bytes = Bytes::new(500_000);

/// Epochs last two round trips, for in one the queue shows what the pace did in the one before, and
/// this at least: acknowledgements come in lumps.
pub(super) const EPOCH_ROUND_TRIPS: u64 = 2;
pub(super) const MIN_UPLOAD_EPOCH: Duration = Duration::from_millis(100);

/// Tolerated standing queue: a share of the minimum RTT, and at least this time.
pub(super) const UPLOAD_QUEUE_SHARE: f64 = 0.1;
pub(super) const MIN_UPLOAD_QUEUE: Duration = Duration::from_millis(2);

/// A rate that rose by no more than this factor in an epoch no longer rises.
pub(super) const RISING_RATE_RATIO: f64 = 1.1;

/// The pace as a share of the path's delivery rate. The rest is the price of an empty buffer.
pub(super) const UPLOAD_PACE_SHARE: f64 = 0.99;

/// Smallest pace: a full segment in 150 ms. With less nothing can be timed.
pub(super) const MIN_PACE: Rate = Rate::from_bits_per_second(80_000);

/// Smallest pace while a queue drains, as a share of the delivery rate. While there is a queue the
/// path is busy, so this costs nothing.
pub(super) const DRAIN_PACE: f64 = 0.5;

/// Time, besides a round trip, in which the rest of a queue should drain: a few updates.
pub(super) const DRAIN_HORIZON: Duration = Duration::from_millis(50);

/// Round trips, and times what the queue takes by itself, after which one that still stands is
/// judged; and the share of it that must have gone by then for it to be ours.
pub(super) const DRAIN_ROUND_TRIPS: u64 = 8;
pub(super) const DRAIN_QUEUES: u64 = 4;
pub(super) const OURS: f64 = 0.5;

/// Share of its pace from which an upload counts as limited by it.
pub(super) const PACE_BINDS_SHARE: f64 = 0.95;

/// A queue this many times the tolerated one is drained when it lasts for this many epochs in a
/// row.
pub(super) const EXCESS_QUEUE_RATIO: f64 = 1.5;
pub(super) const EXCESS_EPOCHS: u32 = 2;

/// A queue of this share of a round trip is drained at once: the path got slower, and its buffer
/// fills quickly.
pub(super) const SURGE_RTT_SHARE: f64 = 0.5;

/// If an upload was paced at less than this share of its unpaced rate, pacing did not help.
pub(super) const HELPED_RATE_SHARE: f64 = 0.98;

/// Time without pacing before that is evaluated; doubled each time, up to the longest.
pub(super) const FIRST_OPEN: Duration = Duration::from_secs(10);
pub(super) const LONGEST_OPEN: Duration = Duration::from_secs(160);

/// More than the pace, in the first trial: in one round trip it leaves 0.19 BDP in the buffer of a
/// path that is full already, which one of a quarter bears. (BBR tries a quarter more:
/// draft-ietf-ccwg-bbr, ProbeBW_UP.)
pub(super) const FIRST_STEP: f64 = 0.2;
/// Step after a trial that paid: then the path is known to have changed, but not by how much.
pub(super) const NEXT_STEP: f64 = 0.4;

/// A trial paid if the rate rose by this share of its step.
pub(super) const PAID_STEP_SHARE: f64 = 0.5;

/// Share of the rate delivered behind a trial's queue that the path surely carries: a rate over a
/// single round trip has an error of 1 to 2 %.
pub(super) const SURE_RATE_SHARE: f64 = 0.98;

/// Units of time between two trials, so that with the trial and what pays it back one comes every
/// eight round trips, as BBR's do.
pub(super) const TRIAL_PAUSE: u64 = 6;

/// The unit is a round trip, but at least this time, in which that much is delivered: ACKs are
/// bursty.
pub(super) const MIN_TRIAL_UNIT: Duration = Duration::from_millis(10);
pub(super) const LEAST_DELIVERED: Bytes = Bytes::new(64_000);

/// Delay after which deliveries no longer belong to the trial.
pub(super) const LATE_DELIVERY: Duration = Duration::from_millis(5);
