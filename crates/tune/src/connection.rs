use sweetspot_groups::{
    AppliedChange, BULK_BYTES, BufferAdvice, ConnectionOwner, PaceStep, PacedUpload, TuneEvent,
    TuneEventKind, buffer_for,
};
use sweetspot_linux::clock;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::guard::{AppliedLimit, Leases};
use crate::handle::{Handle, Looked};
use crate::look::Seen;
use crate::own_clamp::OwnClamp;

/// A watched connection, and what was done to it.
pub struct TunedConnection {
    pub handle: Handle,
    pub who: ConnectionOwner,
    /// Whether it was reported as taken.
    pub claimed: bool,
    /// Whether its window was ever limited.
    pub limited: bool,
    pub advertised: Option<Bytes>,
    pub upload: PacedUpload,
    pub buffer: BufferAdvice,
    own_clamp: OwnClamp,
    /// The program's own pace limit, once ours is set.
    paced_before: Option<Option<Rate>>,
    /// Whether its upload is left alone from now on.
    pub leave_upload: bool,
}

impl TunedConnection {
    /// A connection to which nothing was done yet, with its first look.
    pub fn new(handle: Handle, who: ConnectionOwner, seen: &Seen) -> TunedConnection {
        // The buffer grows with what arrives.
        let is_young = seen.look.received < BULK_BYTES;
        TunedConnection {
            own_clamp: handle.own_clamp(is_young, seen.advertised_mss),
            handle,
            who,
            claimed: false,
            limited: false,
            advertised: None,
            upload: PacedUpload::default(),
            buffer: BufferAdvice::default(),
            paced_before: None,
            leave_upload: false,
        }
    }

    /// Whether there is something to undo.
    pub fn touched(&self) -> bool {
        self.limited || self.paced_before.is_some()
    }

    /// Limits its window; `None` lifts the limit. The error says why the kernel refused. A connection that is gone is no
    /// error; the next look finds that out.
    pub fn limit(&mut self, leases: &mut Leases, to: Option<Bytes>) -> Result<(), String> {
        // Without a guardian nothing is done.
        if !self.limited {
            self.handle.note_clamp(&mut self.own_clamp);
        }
        if self.handle.lease(leases, AppliedLimit::Window(self.own_clamp.get())).is_err() {
            return Ok(());
        }
        self.limited = true;
        self.handle.limit(to, self.own_clamp)
    }

    /// Looks at it, and sets its limit again if that was overwritten.
    pub fn look(&mut self, leases: &mut Leases, limit: Option<Bytes>) -> Looked {
        let (limit, touched) = (limit.filter(|_| self.limited), self.touched());
        let before = self.own_clamp.get();
        let looked = self.handle.look(limit, touched, &mut self.own_clamp);
        if self.limited && self.own_clamp.get() != before {
            // Without a guardian this process lifts everything.
            let _ = self.handle.lease(leases, AppliedLimit::Window(self.own_clamp.get()));
        }
        looked
    }

    /// Limits its pace, never above the program's own limit.
    pub fn pace(&mut self, leases: &mut Leases, to: Option<Rate>) -> Result<(), String> {
        let before = match self.paced_before {
            Some(before) => before,
            None => self.handle.kernel_pace()?,
        };
        if self.handle.lease(leases, AppliedLimit::Pace(before)).is_err() {
            return Ok(());
        }
        self.paced_before = Some(before);
        let to = match (to, before) {
            (Some(to), Some(before)) => Some(to.min(before)),
            (to, before) => to.or(before),
        };
        self.handle.pace(to)
    }

    /// Lifts all limits.
    pub fn undo(&mut self) {
        if std::mem::take(&mut self.limited) {
            self.handle.undo(AppliedLimit::Window(self.own_clamp.get()));
        }
        if let Some(before) = self.paced_before.take() {
            self.handle.undo(AppliedLimit::Pace(before));
        }
    }

    /// An event about this connection, with the present time.
    pub fn event(
        &self,
        kind: TuneEventKind,
        why: &str,
        change: AppliedChange,
        rate: Rate,
        rtt: (Duration, Option<Duration>),
    ) -> TuneEvent {
        let wall_s = clock::wall().as_nanos() as f64 / 1e9;
        TuneEvent { wall_s, who: self.who.clone(), kind, why: why.to_owned(), change, rate, rtt }
    }

    /// Looks at what the connection sends and applies its pace. Returns the events to report.
    pub fn handle_upload(
        &mut self,
        now: Time,
        seen: &Seen,
        leases: &mut Leases,
        dry_run: bool,
    ) -> Vec<TuneEvent> {
        let mut told = Vec::new();
        let minimum_rtt = seen.look.minimum_rtt;
        let rtt = (seen.rtt, Some(minimum_rtt));
        let rate = seen.delivery_rate;
        if let Some(advice) = self.buffer.handle_sample(now, &seen.buffer) {
            let change = AppliedChange::Pace { from: None, to: None, kernel: None };
            told.push(self.event(TuneEventKind::Advised, &advice, change, rate, rtt));
        }
        if self.leave_upload {
            return told;
        }
        let Some(step) = self.upload.handle_sample(now, seen.delivered, seen.rtt, &seen.report)
        else {
            return told;
        };
        let change = |to, kernel| AppliedChange::Pace { from: step.before, to, kernel };
        if dry_run {
            // What would follow from a pace that is not set, nobody knows.
            self.leave_upload = true;
            let advice = advice(&step, minimum_rtt);
            let change = change(step.before, None);
            told.push(self.event(TuneEventKind::Advised, &advice, change, rate, rtt));
        } else if let Err(why) = self.pace(leases, step.pace) {
            self.leave_upload = true;
            told.push(self.event(TuneEventKind::Refused, &why, change(step.pace, None), rate, rtt));
        } else if let Some(kind) = step.kind {
            let change = change(step.pace, self.handle.kernel_pace().ok().flatten());
            told.push(self.event(kind, &step.why, change, rate, rtt));
        }
        told
    }
}

/// Advice about an upload that is not to be touched.
fn advice(step: &PaceStep, rtt: Duration) -> String {
    let PaceStep { why, pace, .. } = step;
    let Some(pace) = *pace else { return why.clone() };
    let buffer = buffer_for(pace, rtt);
    format!(
        "{why}; SO_MAX_PACING_RATE of {pace} would empty it, and SO_SNDBUF of {buffer} hold what is \
         then in flight"
    )
}
