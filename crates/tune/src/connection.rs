use std::io;

use sweetspot_groups::{
    AppliedChange, BufferAdvice, ConnectionOwner, PaceStep, PacedUpload, TuneEvent, TuneEventKind,
    buffer_for,
};
use sweetspot_linux::clock;
use sweetspot_linux::live::{BorrowError, LiveSocket};
use sweetspot_linux::tcp::options;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::guard::{AppliedLimit, Leases};
use crate::look::{limit, pace};

/// A watched connection, and what was done to it.
pub struct TunedConnection {
    pub socket: LiveSocket,
    pub started: u64,
    pub who: ConnectionOwner,
    /// Whether it was reported as taken.
    pub claimed: bool,
    /// Whether its window was ever limited.
    pub limited: bool,
    pub advertised: Option<Bytes>,
    pub upload: PacedUpload,
    pub buffer: BufferAdvice,
    /// The program's own pace limit, once ours is set.
    paced_before: Option<Option<Rate>>,
    /// Whether its upload is left alone from now on.
    pub leave_upload: bool,
}

impl TunedConnection {
    /// A connection to which nothing was done yet.
    pub fn new(socket: LiveSocket, started: u64, who: ConnectionOwner) -> TunedConnection {
        TunedConnection {
            socket,
            started,
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
        if leases.take(&self.socket, self.started, AppliedLimit::Window).is_err() {
            return Ok(());
        }
        self.limited = true;
        heard(limit(&self.socket, to), "TCP_WINDOW_CLAMP").map(drop)
    }

    /// Limits its pace, never above the program's own limit.
    pub fn pace(&mut self, leases: &mut Leases, to: Option<Rate>) -> Result<(), String> {
        let before = match self.paced_before {
            Some(before) => before,
            None => {
                let read = self.socket.with(|fd| options::max_pacing_rate(fd));
                heard(read, "SO_MAX_PACING_RATE")?.flatten()
            }
        };
        if leases.take(&self.socket, self.started, AppliedLimit::Pace(before)).is_err() {
            return Ok(());
        }
        self.paced_before = Some(before);
        let to = match (to, before) {
            (Some(to), Some(before)) => Some(to.min(before)),
            (to, before) => to.or(before),
        };
        heard(pace(&self.socket, to), "SO_MAX_PACING_RATE").map(drop)
    }

    /// Lifts all limits.
    pub fn undo(&mut self) {
        if std::mem::take(&mut self.limited) {
            AppliedLimit::Window.undo(&self.socket);
        }
        if let Some(before) = self.paced_before.take() {
            AppliedLimit::Pace(before).undo(&self.socket);
        }
    }

    /// The kernel's current window clamp; `None` if it cannot be read.
    pub fn clamp(&self) -> Option<Bytes> {
        self.socket.with(|fd| options::window_clamp(fd)).ok()?.ok()
    }

    /// The kernel's current pace limit; `None` for none.
    pub fn kernel_pace(&self) -> Option<Rate> {
        self.socket.with(|fd| options::max_pacing_rate(fd)).ok()?.ok()?
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
        seen: &crate::look::Seen,
        leases: &mut Leases,
        dry_run: bool,
    ) -> Vec<TuneEvent> {
        let mut told = Vec::new();
        let rtt = (seen.info.rtt, Some(seen.info.min_rtt));
        let rate = seen.info.delivery_rate;
        if let Some(advice) = self.buffer.handle_sample(now, &seen.buffer) {
            let change = AppliedChange::Pace { from: None, to: None, kernel: None };
            told.push(self.event(TuneEventKind::Advised, &advice, change, rate, rtt));
        }
        if self.leave_upload {
            return told;
        }
        let Some(step) =
            self.upload.handle_sample(now, seen.delivered, seen.info.rtt, &seen.report)
        else {
            return told;
        };
        let change = |to, kernel| AppliedChange::Pace { from: step.before, to, kernel };
        if dry_run {
            // What would follow from a pace that is not set, nobody knows.
            self.leave_upload = true;
            let advice = advice(&step, seen.info.min_rtt);
            let change = change(step.before, None);
            told.push(self.event(TuneEventKind::Advised, &advice, change, rate, rtt));
        } else if let Err(why) = self.pace(leases, step.pace) {
            self.leave_upload = true;
            told.push(self.event(TuneEventKind::Refused, &why, change(step.pace, None), rate, rtt));
        } else if let Some(kind) = step.kind {
            let change = change(step.pace, self.kernel_pace());
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

/// The kernel's answer; `None` if the connection cannot be borrowed any more. The error is the kernel's refusal in
/// words.
fn heard<T>(answer: Result<io::Result<T>, BorrowError>, option: &str) -> Result<Option<T>, String> {
    match answer {
        Ok(Ok(value)) => Ok(Some(value)),
        Ok(Err(error)) => Err(format!("the kernel refuses {option}: {error}")),
        Err(_) => Ok(None),
    }
}
