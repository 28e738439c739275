//! All parameters of `sobas`. Those without a source were chosen on populations of random paths and
//! are measured on others: docs/results/controller.md.

use sweetspot_units::{Bytes, Duration};

/// The window advertised before anything is known: Linux's own first one, so that nothing is lost.
pub(super) const FIRST_WINDOW: Bytes = Bytes::new(65_535);

/// Below this RTT nothing can be timed, and a limit is not worth its cost.
pub const SHORT_PATH: Duration = Duration::from_millis(1);

/// By so much a receiving kernel's round trips may be too short, and by half of it they are on average: they are differences
/// of timestamps that count milliseconds (Linux: `TCP_TS_HZ`), and since 6.16 a lower one replaces their average at once.
pub(super) const KERNEL_RTT_ERROR: Duration = Duration::from_millis(1);

/// Epochs last a round trip, and this at least: three probes (section VII-A sends one in 20 ms).
pub(super) const MIN_EPOCH: Duration = Duration::from_millis(60);

/// Share of a transfer's bytes that trains may add; where they would add more, its end comes before
/// a limit could pay.
pub(super) const TRAINS_SHARE: f64 = 0.005;

/// Trains are waited for two round trips (a request and a train that queues), and this.
pub(super) const TRAIN_PATIENCE: Duration = Duration::from_millis(100);

/// Wait for trains while the round trip is unknown.
pub(super) const BLIND_PATIENCE: Duration = Duration::from_millis(300);

/// From the first train to the last: the window in BDPs. Slow start is not held back, and overflows
/// no buffer of half a BDP meanwhile.
pub(super) const STARTUP_BDPS: f64 = 1.1;

/// Smallest such window: TCP's initial one (RFC 6928).
pub(super) const INITIAL_SEGMENTS: u64 = 10;

/// Pace over the capacity: the window is the limit, and bursts (after a stall of the sender, or of
/// compressed ACKs) leave it smoothly.
pub(super) const HELD_PACE: f64 = 1.01;

/// The queue that keeps the bottleneck busy: 3 % of a round trip, at least half a millisecond.
pub(super) const QUEUE_SHARE: f64 = 0.03;
pub(super) const MIN_QUEUE: Duration = Duration::from_micros(500);

/// Segments that a receiver with delayed ACKs may leave unacknowledged (RFC 5681 section 4.2).
pub(super) const UNACKNOWLEDGED_SEGMENTS: u64 = 2;

/// The smallest window, in segments: one that fast retransmit still works with (RFC 5681 needs
/// three duplicate ACKs behind a loss).
pub(super) const MIN_WINDOW_SEGMENTS: u64 = 4;

/// Share of the window in flight (rate x round trip) from which the limit binds.
pub(super) const WINDOW_BINDS_SHARE: f64 = 0.93;

/// Share of the capacity that a transfer alone keeps under the limit, and the epochs in which it
/// must not; likewise for a collapse.
pub(super) const KEPT_RATE_SHARE: f64 = 0.97;
pub(super) const KEEPS_EPOCHS: u32 = 4;
pub(super) const COLLAPSE: f64 = 0.9;
pub(super) const COLLAPSE_EPOCHS: u32 = 2;

/// A queue of other traffic: this many times our own, while the rate is below this share.
pub(super) const OTHERS_QUEUE: u64 = 2;
pub(super) const OTHERS_RATE: f64 = 0.8;

/// A loss becomes known when it has been repaired: the queue that overflowed lies within this many
/// epochs before.
pub(super) const LOSS_EPOCHS: usize = 3;

/// Where packets are lost at random, under a congestion control that takes no notice of that: the
/// window in BDPs, the pace, and the time without a loss after which the sender's own is back.
pub(super) const LOSSY_BDPS: u64 = 3;
pub(super) const LOSSY_PACE: f64 = 0.99;
pub(super) const LOSSLESS: Duration = Duration::from_secs(10);

/// A step of the capacity, to see whether the path has become faster: less than the least buffer worth serving
/// ([`LEAST_ROOM`]) has room for; of a small window two segments. As long as the rate follows, the next one is twice as
/// large, up to that buffer; a path whose rate follows more steps than these is opened.
pub(super) const FASTER_STEP: f64 = 1.03;
pub(super) const FASTER_STEPS: u32 = 2;

/// The epochs between two such steps. One takes six of them, in which it adds 3 % of a round trip to the queue.
pub(super) const PROBE_EPOCHS: u32 = 32;

/// What a remembered path's buffer surely holds, as a share of the longest queue that was seen: others may have had a part of
/// it. And the least one, in round trips, with which a window opens within a few of them.
pub(super) const ROOM_SHARE: f64 = 0.75;
pub(super) const LEAST_ROOM: f64 = 0.1;

/// Epochs within which a change of the window has shown what it does.
pub(super) const SETTLING_EPOCHS: u32 = 2;

/// The window of an open path over the largest flight that arrived in a round trip: slow start
/// doubles it in each, twice over before the window is seen, and buffers hold a few BDPs.
pub(super) const OPEN_FLIGHTS: u64 = 8;

/// Growth of an open window per byte that arrives: two bytes as Linux gives (`__tcp_grow_window`),
/// and where it was held before, a quarter in each round trip.
pub(super) const OPEN_GROWTH: f64 = 2.0;
pub(super) const HELD_GROWTH: f64 = 0.25;

/// Growth of an open window that is reported as an event.
pub(super) const REPORTED_GROWTH: f64 = 1.25;

/// Trains are sent once more after so many epochs with random losses, and no more often than this.
pub(super) const RANDOM_LOSSES: u32 = 2;
pub(super) const MEASUREMENTS: u32 = 2;

/// A trial's first queue as a share of the standing one, and the number of epochs that evaluate it.
pub(super) const TRIAL_QUEUE: f64 = 0.75;
pub(super) const TRIAL_EPOCHS: u32 = 4;
/// Each next queue as a share of the one before.
pub(super) const TRIAL_STEP: f64 = 0.5;

/// Share of its lifetime that a transfer may spend on trials that fail.
pub(super) const TRIAL_BUDGET: f64 = 0.1;

/// No trial so soon after a loss that no queue explains.
pub(super) const AFTER_RANDOM_LOSS: Duration = Duration::from_secs(4);

/// A trial is likely to be free where the rate answers the window by less than this (plus a
/// standard error), the window having moved by that much, and the rate varied by no more than the
/// last.
pub(super) const INELASTIC: f64 = 0.3;
pub(super) const MOVED: f64 = 0.08;
pub(super) const VARIED: f64 = 0.03;
