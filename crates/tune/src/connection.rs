use sweetspot_control::{
    AppliedChange, BULK_BYTES, BufferAdvice, CongestionName, ConnectionOwner, Goal, NotLimited,
    OwnClamp, PaceStep, PacedUpload, TuneEvent, TuneEventKind,
};
use sweetspot_kernel::Congestion;
use sweetspot_linux::{clock, sysctl};
use sweetspot_sizing::SavedWindow;
use sweetspot_units::{Bytes, Duration, Rate, Time};

use crate::TuneError;
use crate::guard::Leases;
use crate::handle::{Handle, Sampled};
use crate::lease::AppliedLimit;
use crate::sample::KernelReport;

/// The reason given when a connection gets another congestion control.
const NAMED_BY_POLICY: &str = "the policy names it";

/// A watched connection, and the changes made to it.
pub struct TunedConnection {
    pub handle: Handle,
    pub connection_owner: ConnectionOwner,
    /// Whether its first limit was reported (event `taken`).
    pub claimed: bool,
    /// Whether its window was ever limited.
    pub limited: bool,
    /// Whether another tuner already limited its window when this tuner first did.
    pub has_other_tuner: bool,
    pub advertised: Option<Bytes>,
    pub upload: PacedUpload,
    pub buffer: BufferAdvice,
    own_clamp: OwnClamp,
    /// The program's own pacing rate limit, read before ours was first set.
    paced_before: Option<Option<Rate>>,
    /// The chosen congestion control, and the origin of the one in use.
    congestion: Option<(CongestionName, Congestion)>,
    /// Whether its upload is left alone for good.
    leave_upload: bool,
    /// The latest sample of the upload: delivery rate, RTT and min RTT.
    upload_seen: (Rate, Option<Duration>, Option<Duration>),
    /// Payload received, and payload delivered to the peer, so far.
    moved: (Bytes, Bytes),
}

impl TunedConnection {
    /// A connection on which nothing was changed yet, with its first sample.
    pub fn new(
        handle: Handle,
        connection_owner: ConnectionOwner,
        seen: &KernelReport,
        goal: Goal,
    ) -> TunedConnection {
        // With so few data received, the kernel has not grown the receive buffer yet.
        let is_young = seen.sample.received < BULK_BYTES;
        TunedConnection {
            own_clamp: handle.own_clamp(is_young, seen.advertised_mss),
            handle,
            connection_owner,
            claimed: false,
            limited: false,
            has_other_tuner: false,
            advertised: None,
            upload: match goal {
                Goal::Throughput => PacedUpload::default(),
                Goal::LessThanBestEffort => PacedUpload::background(seen.advertised_mss),
            },
            buffer: BufferAdvice::default(),
            paced_before: None,
            congestion: None,
            leave_upload: false,
            upload_seen: (seen.delivery_rate, seen.rtt, seen.sample.minimum_rtt),
            moved: (seen.sample.received, seen.delivered),
        }
    }

    /// Resumes the upload of goal [`Goal::Throughput`] at the rate that an earlier upload on the path saved.
    pub fn resume_upload(&mut self, now: Time, saved: SavedWindow) {
        self.upload = PacedUpload::resumed(now, saved);
    }

    /// Whether there is something to undo.
    pub fn touched(&self) -> bool {
        self.limited || self.paced_before.is_some() || self.congestion.is_some()
    }

    /// Whether its end is worth an event: the release of a pacing rate was reported before.
    pub fn has_limits(&self) -> bool {
        self.limited || self.upload.pace().is_some() || self.congestion.is_some()
    }

    /// Notes a sample.
    pub fn note(&mut self, seen: &KernelReport) {
        self.advertised = seen.sample.advertised;
        self.moved = (seen.sample.received, seen.delivered);
    }

    /// Why it was never limited; `None` if it was limited, or if another event gave the reason.
    pub fn not_limited(&self, uploads: bool) -> Option<NotLimited> {
        if self.claimed || self.leave_upload || self.touched() {
            return None;
        }
        let (received, delivered) = self.moved;
        Some(match (received.max(delivered) < BULK_BYTES, delivered > received, uploads) {
            (true, ..) => NotLimited::Small,
            (false, false, _) => NotLimited::EndedEarly,
            (false, true, false) => NotLimited::UploadWithoutSend,
            (false, true, true) => NotLimited::NoStandingQueue,
        })
    }

    /// The event for a connection that was never limited, with the reason; `None` if it was not a bulk transfer.
    pub fn not_limited_event(&self, why: NotLimited) -> Option<TuneEvent> {
        let change = match why {
            NotLimited::NoStandingQueue | NotLimited::UploadWithoutSend => {
                AppliedChange::Pace { from: None, to: None, kernel: None }
            }
            NotLimited::EndedEarly => {
                let advertised = self.advertised;
                AppliedChange::Window { from: None, to: None, clamp: None, advertised }
            }
            NotLimited::Small
            | NotLimited::OtherPeer
            | NotLimited::ByPolicy
            | NotLimited::NoRule => return None,
        };
        Some(self.upload_event(TuneEventKind::NotLimited, &why.words(1), change))
    }

    /// The event for the end of its limits. `from`: its window's limit until now, if it had one.
    pub fn end_event(
        &self,
        kind: TuneEventKind,
        why: &str,
        from: Option<Bytes>,
        rates: (Rate, (Duration, Option<Duration>)),
    ) -> TuneEvent {
        let pace = self.upload.pace();
        let was_only_paced = self.paced_before.is_some() && !self.limited;
        if from.is_none() && (pace.is_some() || was_only_paced) {
            let change = AppliedChange::Pace { from: pace, to: None, kernel: None };
            return self.upload_event(kind, why, change);
        }
        let advertised = self.advertised;
        let change = AppliedChange::Window { from, to: None, clamp: None, advertised };
        self.event(kind, why, change, rates.0, rates.1)
    }

    /// Limits its window; `None` lifts the limit. The error says why the kernel refused. A connection that is gone is no
    /// error; the next sample finds that out.
    pub fn limit(&mut self, leases: &mut Leases, to: Option<Bytes>) -> Result<(), TuneError> {
        self.handle.note_clamp(&mut self.own_clamp);
        let mut planned = self.own_clamp;
        planned.plan(to);
        self.has_other_tuner |= !self.limited && self.handle.is_held_by_tuner();
        // Without a guardian, no limit is set.
        if self.handle.lease(leases, AppliedLimit::Window(planned)).is_err() {
            return Ok(());
        }
        self.limited = true;
        self.own_clamp = planned;
        let limited = self.handle.limit(to, &mut self.own_clamp);
        if self.own_clamp != planned {
            let _ = self.handle.lease(leases, AppliedLimit::Window(self.own_clamp));
        }
        limited
    }

    /// Samples the connection, and sets its limit again if the kernel or the program overwrote it.
    pub fn sample(&mut self, leases: &mut Leases, limit: Option<Bytes>) -> Sampled {
        let (limit, touched) = (limit.filter(|_| self.limited), self.touched());
        let before = self.own_clamp;
        let sampled = self.handle.sample(limit, touched, &mut self.own_clamp);
        if self.limited && self.own_clamp != before {
            // If the guardian is gone, this process lifts everything itself.
            let _ = self.handle.lease(leases, AppliedLimit::Window(self.own_clamp));
        }
        sampled
    }

    /// Limits its pacing rate, never above the program's own limit.
    pub fn pace(&mut self, leases: &mut Leases, to: Option<Rate>) -> Result<(), TuneError> {
        let before = match self.paced_before {
            Some(before) => before,
            None => self.handle.own_pace()?,
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
            self.handle.undo(AppliedLimit::Window(self.own_clamp));
        }
        if let Some(before) = self.paced_before.take() {
            self.handle.undo(AppliedLimit::Pace(before));
        }
        if self.congestion.take().is_some() {
            // If no map entry is free, the BPF programs restore the congestion control when they are undone.
            let _ = self.handle.choose_congestion(None);
        }
    }

    /// Chooses the congestion control that the policy names. Returns an event only for a dry run or a refusal; otherwise a
    /// later sample shows whether the kernel switched.
    pub fn choose_congestion(&mut self, to: CongestionName, dry_run: bool) -> Option<TuneEvent> {
        let change = AppliedChange::Congestion { to };
        if dry_run {
            let offered = sysctl::available_congestion_controls().unwrap_or_default();
            let is_offered = offered.contains(&to.to_string());
            return is_offered
                .then(|| self.upload_event(TuneEventKind::Switched, NAMED_BY_POLICY, change));
        }
        if let Err(why) = self.handle.choose_congestion(Some(to)) {
            return Some(self.upload_event(TuneEventKind::Refused, &why.to_string(), change));
        }
        self.congestion = Some((to, Congestion::OfHost));
        None
    }

    /// The event for the chosen congestion control, if its state in the kernel changed.
    fn handle_congestion(&mut self, now: Congestion) -> Option<TuneEvent> {
        let (to, before) = self.congestion.as_mut()?;
        if std::mem::replace(before, now) == now {
            return None;
        }
        let change = AppliedChange::Congestion { to: *to };
        let (kind, why) = match now {
            Congestion::OfHost => return None,
            Congestion::Chosen => (TuneEventKind::Switched, NAMED_BY_POLICY),
            Congestion::Refused => (TuneEventKind::Refused, "this kernel does not offer it"),
            Congestion::OfProgram => (TuneEventKind::Refused, "the program has chosen one itself"),
        };
        Some(self.upload_event(kind, why, change))
    }

    /// An event about this connection, at the current time.
    pub fn event(
        &self,
        kind: TuneEventKind,
        why: &str,
        change: AppliedChange,
        rate: Rate,
        rtt: (Duration, Option<Duration>),
    ) -> TuneEvent {
        let wall_s = clock::wall().as_nanos() as f64 / 1e9;
        TuneEvent {
            wall_s,
            connection_owner: self.connection_owner.clone(),
            kind,
            why: why.to_owned(),
            change,
            rate,
            rtt,
        }
    }

    /// Handles a sample of an upload and applies the resulting pacing rate. Returns the events to report.
    pub fn handle_upload(
        &mut self,
        seen: &KernelReport,
        leases: &mut Leases,
        dry_run: bool,
    ) -> Vec<TuneEvent> {
        let mut events = Vec::new();
        self.upload_seen = (seen.delivery_rate, seen.rtt, seen.sample.minimum_rtt);
        events.extend(self.handle_congestion(seen.congestion));
        if let Some(advice) = self.buffer.handle_sample(seen.at, &seen.buffer) {
            let change = AppliedChange::Pace { from: None, to: None, kernel: None };
            events.push(self.upload_event(TuneEventKind::Advised, &advice, change));
        }
        if !self.leave_upload
            && let Some(step) =
                self.upload.handle_sample(seen.at, seen.delivered, seen.rtt, &seen.report)
        {
            events.extend(self.apply_step(&step, leases, dry_run));
        }
        events
    }

    /// The latest delivery rate and RTT of the upload.
    pub fn upload_rate(&self) -> (Rate, Duration) {
        let (rate, rtt, _) = self.upload_seen;
        (rate, rtt.unwrap_or_default())
    }

    /// When the upload's controller must run next, with or without a new sample.
    pub fn upload_due(&self) -> Time {
        if self.leave_upload { Time::MAX } else { self.upload.poll_timeout() }
    }

    /// Runs the upload's controller without a sample, if its timer is due at `now`.
    pub fn handle_upload_timeout(
        &mut self,
        now: Time,
        leases: &mut Leases,
        dry_run: bool,
    ) -> Option<TuneEvent> {
        if now < self.upload_due() {
            return None;
        }
        let step = self.upload.handle_timeout(now)?;
        self.apply_step(&step, leases, dry_run)
    }

    /// Sets the pacing rate. Returns the event to report, if any.
    fn apply_step(
        &mut self,
        step: &PaceStep,
        leases: &mut Leases,
        dry_run: bool,
    ) -> Option<TuneEvent> {
        let change = |to, kernel| AppliedChange::Pace { from: step.before, to, kernel };
        let kind = step.kind.unwrap_or(TuneEventKind::Adjusted);
        if dry_run {
            // The effect of a pacing rate that cannot be set is unknown.
            self.leave_upload = true;
            return Some(self.upload_event(kind, &step.why, change(step.pace, None)));
        }
        if let Err(why) = self.pace(leases, step.pace) {
            self.leave_upload = true;
            let unchanged = change(step.pace, None);
            return Some(self.upload_event(TuneEventKind::Refused, &why.to_string(), unchanged));
        }
        let change = change(step.pace, self.handle.kernel_pace().ok().flatten());
        Some(self.upload_event(kind, &step.why, change))
    }

    fn upload_event(&self, kind: TuneEventKind, why: &str, change: AppliedChange) -> TuneEvent {
        let (rate, rtt, minimum_rtt) = self.upload_seen;
        self.event(kind, why, change, rate, (rtt.unwrap_or_default(), minimum_rtt))
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    use sweetspot_linux::live::{LiveSocket, ProcessHandle, inode};

    use super::*;
    use crate::kernel::tests::record;

    /// A connection that has moved nothing.
    fn connection() -> (TunedConnection, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let process = ProcessHandle::open(std::process::id()).unwrap();
        let socket =
            LiveSocket::name(&process, stream.as_raw_fd(), inode(&stream).unwrap(), None).unwrap();
        let (local, remote) = (stream.local_addr().unwrap(), stream.peer_addr().unwrap());
        let (pid, cookie, program) = (std::process::id(), socket.cookie(), "test".to_owned());
        let connection_owner = ConnectionOwner { pid, program, local, remote, cookie, rule: None };
        // A record of zeros: the kernel has measured nothing.
        let seen = KernelReport::of_record(&record(1, 0));
        (
            TunedConnection::new(
                Handle::Borrowed(socket, 0),
                connection_owner,
                &seen,
                Goal::Throughput,
            ),
            stream,
        )
    }

    #[test]
    fn an_upload_without_a_min_rtt_reports_none() {
        let (connection, _stream) = connection();
        let change = AppliedChange::Pace { from: None, to: None, kernel: None };
        assert_eq!(connection.upload_event(TuneEventKind::Advised, "", change).rtt.1, None);
    }

    #[test]
    fn a_dry_run_switches_to_a_congestion_control_only_if_the_kernel_offers_it() {
        let (mut connection, _stream) = connection();
        // Every kernel has reno.
        let event = connection.choose_congestion("reno".parse().unwrap(), true).unwrap();
        assert_eq!(event.kind, TuneEventKind::Switched);
        assert!(connection.choose_congestion("no-such".parse().unwrap(), true).is_none());
        assert!(!connection.touched());
    }

    #[test]
    fn a_paced_uploads_end_event_has_a_pacing_rate_and_no_window() {
        let (mut connection, _stream) = connection();
        let now = Time::ZERO + Duration::from_secs(1);
        let rates = (Rate::ZERO, (Duration::ZERO, None));
        let change = |connection: &TunedConnection| {
            connection.end_event(TuneEventKind::Gone, "", None, rates).change
        };
        assert!(matches!(change(&connection), AppliedChange::Window { .. }));
        let (window, minimum_rtt) = (Bytes::new(500_000), Duration::from_millis(40));
        connection.resume_upload(now, SavedWindow { window, minimum_rtt });
        let report = KernelReport::of_record(&record(1, 0)).report;
        let delivered = Bytes::new(14_600);
        connection.upload.handle_sample(now, delivered, Some(minimum_rtt), &report);
        // 500 kB in 40 ms.
        let from = Some(Rate::from_mbit_per_second(100));
        assert_eq!(change(&connection), AppliedChange::Pace { from, to: None, kernel: None });
        assert!(connection.has_limits());
        // A released upload: its socket's own pacing rate is back, and the release was reported.
        connection.upload = PacedUpload::default();
        connection.paced_before = Some(None);
        assert_eq!(change(&connection), AppliedChange::Pace { from: None, to: None, kernel: None });
        assert!(connection.touched() && !connection.has_limits());
        connection.undo();
    }
}
