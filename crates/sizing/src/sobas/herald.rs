use sweetspot_units::{Duration, Rate, Time};

use crate::{Output, Setting, Train, TrainRequest};

/// How much faster than the narrow link the links before it are taken to be, at least.
const COMES_IN: f64 = 1.5;

/// The least share of a herald that is counted on to be left in the queue.
const LEAST_LEFT: f64 = 1.0 / 3.0;

/// Packets in a herald.
const SHORTEST: u64 = 8;
const LONGEST: u64 = 512;

/// Between the request to pause and the herald: what the sender's pacer has released by then (Linux
/// releases a millisecond's worth at once) goes ahead of it.
const LEAD: Duration = Duration::from_millis(2);

/// How long to wait for a herald: far beyond any round trip on which SOBAS pays.
const PATIENCE: Duration = Duration::from_millis(600);

/// A train of packets of no worth that takes the place of as many of the transfer's own: it finds
/// out whether the bottleneck's buffer has room for a little more queue, and where it has not, it
/// is the herald that is lost, and not the transfer's data.
#[derive(Debug)]
pub(super) struct Herald {
    request: TrainRequest,
    next: Option<Time>,
    resumes: Time,
    deadline: Time,
    fits: Option<bool>,
}

impl Herald {
    /// A herald that asks for room for `queue` more on a path of `capacity` which the transfer
    /// uses with `rate`.
    pub(super) fn new(
        now: Time,
        setting: &Setting,
        rate: Rate,
        queue: Duration,
        capacity: Rate,
    ) -> Herald {
        // While it comes in, the bottleneck sends as much of it on as it else does of the
        // transfer's data.
        let left = 1.0 - rate.as_f64() / (capacity.as_f64() * COMES_IN);
        let bytes = (capacity * queue).scaled(1.0 / left.max(LEAST_LEFT));
        let packets = (bytes.get() / setting.packet.get().max(1)).clamp(SHORTEST, LONGEST);
        let resumes = now + LEAD + setting.mss * packets / rate;
        Herald {
            request: TrainRequest { packets: packets as u32, size: setting.packet },
            next: Some(now + LEAD),
            resumes,
            deadline: resumes + PATIENCE,
            fits: None,
        }
    }

    /// Until when the transfer is to pause.
    pub(super) fn resumes(&self) -> Time {
        self.resumes
    }

    /// It arrived, or as much of it as did.
    pub(super) fn handle_train(&mut self, train: &Train) {
        if train.sent == self.request.packets {
            self.fits = Some(train.received == train.sent);
        }
    }

    /// When the herald is to be asked for, or the waiting ends.
    pub(super) fn poll_timeout(&self) -> Time {
        self.next.unwrap_or(self.deadline)
    }

    /// The request that is due by `now`.
    pub(super) fn poll_request(&mut self, now: Time) -> Option<Output> {
        self.next.take_if(|due| *due <= now).map(|_| Output::Train(self.request))
    }

    /// Whether there was room, when that is known or too long been waited for.
    pub(super) fn poll_finding(&self, now: Time) -> Option<bool> {
        self.fits.or((now >= self.deadline).then_some(false))
    }
}
