//! Limits uploads by a pacing rate (`SO_MAX_PACING_RATE`). Since Linux 4.13 the kernel paces TCP even without the fq qdisc
//! (kernel commit 218af599fa63).

mod buffer;

use sweetspot_sizing::{
    Driver, Effect, EventKind, InputSource, KernelView, Reason, SavedWindow, SenderReport,
    SizingPhase,
};
use sweetspot_units::{Bytes, Duration, Rate, Time};

pub use buffer::{BufferAdvice, SendBufferSample, send_buffer_share};

use crate::event::TuneEventKind;

/// A change of an upload's pacing rate, and the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct PaceStep {
    /// The kind of event; `None` for a change between two events.
    pub kind: Option<TuneEventKind>,
    /// The pacing rate before; `None`: no limit.
    pub before: Option<Rate>,
    /// The pacing rate from now on; `None`: no limit.
    pub pace: Option<Rate>,
    /// Why, in words.
    pub why: String,
}

/// Paces one connection by the controller [`sweetspot_sizing::Upload`].
///
/// **Contract.** The caller passes a new sample no later than at [`PacedUpload::poll_timeout`], or then calls
/// [`PacedUpload::handle_timeout`]: samples by the kernel may be older.
pub struct PacedUpload {
    driver: Driver,
    kernel: KernelView,
    delivered: Bytes,
    pace: Option<Rate>,
    /// Whether the pacing rate is lowered so that the queue of a trial drains.
    drains: bool,
    /// Whether it yields to cross traffic.
    yields: bool,
    /// Whether the latest event was that the pacing rate grows.
    grows: bool,
    /// The parameters that the controller saved for the path.
    saved: Option<Option<SavedWindow>>,
    /// The latest time seen. A sample from before a timer's expiry may be read after it.
    now: Time,
}

impl Default for PacedUpload {
    fn default() -> PacedUpload {
        PacedUpload::new(Time::ZERO, sweetspot_sizing::Upload::default())
    }
}

impl PacedUpload {
    /// The longest time between two samples: a quarter of the shortest epoch.
    pub const SAMPLE_INTERVAL: Duration = sweetspot_sizing::Upload::SAMPLE_INTERVAL;

    fn new(now: Time, controller: sweetspot_sizing::Upload) -> PacedUpload {
        // The driver runs at the samples of this connection.
        let driver = Driver::new(Box::new(controller), now, InputSource::Caller);
        let (kernel, delivered) = (KernelView::default(), Bytes::ZERO);
        PacedUpload {
            driver,
            kernel,
            delivered,
            pace: None,
            drains: false,
            yields: false,
            grows: false,
            saved: None,
            now,
        }
    }

    /// A less-than-best-effort upload of segments of `mss` bytes.
    pub fn background(mss: Bytes) -> PacedUpload {
        PacedUpload::new(Time::ZERO, sweetspot_sizing::Upload::background(mss))
    }

    /// An upload on a path with parameters `saved` from an earlier upload.
    pub fn resumed(now: Time, saved: SavedWindow) -> PacedUpload {
        PacedUpload::new(now, sweetspot_sizing::Upload::resumed(now, saved))
    }

    /// Ends the upload at `now`. Returns the parameters to save for its path, if any.
    pub fn end(&mut self, now: Time) -> Option<Option<SavedWindow>> {
        self.now = self.now.max(now);
        self.driver.handle_end(self.now);
        self.take_step();
        self.saved.take()
    }

    /// Handles a sample of the connection: the payload delivered to the peer since the connection began, the smoothed RTT, if
    /// known, and the sender's report. Returns the change to apply or report, if any.
    pub fn handle_sample(
        &mut self,
        now: Time,
        delivered: Bytes,
        rtt: Option<Duration>,
        report: &SenderReport,
    ) -> Option<PaceStep> {
        self.now = self.now.max(now);
        let minimum_rtt = report.minimum_rtt.nonzero();
        self.kernel = KernelView { rtt, minimum_rtt, ..KernelView::default() };
        let before = std::mem::replace(&mut self.delivered, delivered);
        self.driver.handle_kernel(self.now, &self.kernel);
        self.driver.handle_sender(self.now, report);
        self.driver.handle_data(self.now, delivered.saturating_sub(before), Bytes::ZERO);
        self.driver.handle_timeout(self.now, &self.kernel);
        self.take_step()
    }

    /// Handles a timer that expires, at [`PacedUpload::poll_timeout`], without a new sample. Returns the change to apply or
    /// report, if any.
    pub fn handle_timeout(&mut self, now: Time) -> Option<PaceStep> {
        self.now = self.now.max(now);
        self.driver.handle_timeout(self.now, &self.kernel);
        self.take_step()
    }

    /// When to sample the connection next; [`Time::MAX`] if nothing is due.
    pub fn poll_timeout(&self) -> Time {
        self.driver.poll_timeout()
    }

    /// The current pacing rate; `None`: no limit.
    pub fn pace(&self) -> Option<Rate> {
        self.pace
    }

    fn take_step(&mut self) -> Option<PaceStep> {
        let KernelView { rtt, minimum_rtt, .. } = self.kernel;
        let queue = rtt.unwrap_or_default().saturating_sub(minimum_rtt.unwrap_or_default());
        let (before, mut events) = (self.pace, Vec::new());
        while let Some(effect) = self.driver.poll_effect() {
            match effect {
                Effect::Pacing(pace) => self.pace = pace,
                Effect::Saved(saved) => self.saved = Some(saved),
                Effect::Event(event) => events.push(event.kind),
                // Other effects are for receivers.
                _ => {}
            }
        }
        let mut reported =
            events.iter().rev().find_map(|kind| words(kind, (before, self.pace), queue));
        if reported.is_none() && self.pace == before {
            return None;
        }
        if let Some((Some(kind), _)) = &reported {
            self.yields = *kind == TuneEventKind::Yielded;
            let grew = std::mem::replace(&mut self.grows, *kind == TuneEventKind::Reopened);
            if grew && self.grows {
                // One event stands for all steps.
                reported = reported.map(|(_, why)| (None, why));
            }
        }
        let is_held = !self.yields && self.driver.phase() == SizingPhase::Holding;
        let drained = std::mem::replace(&mut self.drains, is_held && self.pace < before);
        let follows = || match self.driver.phase() {
            SizingPhase::Trying => "the queue is draining",
            SizingPhase::Holding if self.yields => "cross traffic keeps a queue",
            SizingPhase::Holding if self.drains => "a trial of a faster rate ends",
            SizingPhase::Holding if drained => "the queue of the trial has drained",
            SizingPhase::Holding => "a trial of a faster rate begins",
            _ => "newer measurements of the path",
        };
        let (kind, why) = reported.unwrap_or_else(|| (None, follows().to_owned()));
        Some(PaceStep { kind, before, pace: self.pace, why })
    }
}

/// The event in words for users, with the pacing rate before and after it, and the queue. It has no kind if a drain begins at a
/// higher rate: the one that a trial found, while the rate was still lowered after that trial.
fn words(
    kind: &EventKind,
    (before, pace): (Option<Rate>, Option<Rate>),
    queue: Duration,
) -> Option<(Option<TuneEventKind>, String)> {
    let EventKind::Entered { phase, reason } = kind else { return None };
    let kind = match (phase, reason) {
        (SizingPhase::Trying, _) if before.is_none() => TuneEventKind::Taken,
        (SizingPhase::Trying, _) if pace >= before => {
            return Some((None, "a trial has found the path's rate".to_owned()));
        }
        (SizingPhase::Trying, _) => TuneEventKind::Tightened,
        (SizingPhase::Holding, Reason::PathRemembered) => TuneEventKind::Taken,
        (SizingPhase::Holding, Reason::PathFaster) => TuneEventKind::Reopened,
        (SizingPhase::Holding, Reason::QueueGone) => TuneEventKind::Reopened,
        (SizingPhase::Holding, Reason::CrossTrafficQueue) => TuneEventKind::Yielded,
        (SizingPhase::Holding, _) => TuneEventKind::Held,
        (SizingPhase::Open, _) => TuneEventKind::LetGo,
        (
            SizingPhase::HandsOff
            | SizingPhase::Measuring
            | SizingPhase::Ramping
            | SizingPhase::Congested,
            _,
        ) => return None,
    };
    let reason = upload_reason(*reason);
    let why = match (kind, phase) {
        (TuneEventKind::Taken | TuneEventKind::Tightened, SizingPhase::Trying) => {
            format!("{reason} (a queue of {queue})")
        }
        _ => reason,
    };
    Some((Some(kind), why))
}

/// The reason in the terms of a pacing rate, which an upload has instead of a window.
fn upload_reason(reason: Reason) -> String {
    match reason {
        Reason::RateInelastic => "a queue persists, and the rate no longer rises".to_owned(),
        Reason::CapacityKnown => "at this rate, the queue has drained".to_owned(),
        Reason::PathFaster => "the path delivers a higher pacing rate, too".to_owned(),
        Reason::PathSlower => "at this rate, a queue has built up again".to_owned(),
        other => other.to_string(),
    }
}
