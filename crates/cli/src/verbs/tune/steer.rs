use sweetspot_linux::clock;
use sweetspot_linux::event_fd::is_readable;
use sweetspot_linux::live::ProcessHandle;
use sweetspot_linux::signals::{self, ProcessEvent, Supervisor};
use sweetspot_tune::{Scope, TuneError, Tuner};
use sweetspot_units::{Duration, Time};

use super::journal::EventLog;

/// When tuning ends.
pub enum Until {
    /// When the command with this process ID ends; signals are passed on to it.
    CommandEnds(u32),
    /// When one of these processes ends, each given with the reason to report, or when a signal arrives. They are not child
    /// processes.
    AnyEnds(Vec<(ProcessHandle, &'static str)>),
    /// When a signal arrives.
    Signal,
}

const WAITING: &str = "waiting for signals";

const METRICS_INTERVAL: Duration = Duration::from_secs(1);

/// The time over which a download's rate is averaged: a shorter interval would read the same data twice.
const READING_INTERVAL: Duration = Duration::from_millis(200);

/// Tunes until `until` occurs; returns the exit code.
pub fn steer<S: Scope>(
    tuner: &mut Tuner<S>,
    supervisor: &mut Supervisor,
    journal: &mut EventLog,
    until: &Until,
) -> Result<u8, TuneError> {
    steer_with(tuner, supervisor, journal, until, &mut |_| {})
}

/// Like [`steer`], but calls `revise` once per second.
pub fn steer_with<S: Scope>(
    tuner: &mut Tuner<S>,
    supervisor: &mut Supervisor,
    journal: &mut EventLog,
    until: &Until,
    revise: &mut dyn FnMut(&mut Tuner<S>),
) -> Result<u8, TuneError> {
    let (mut next_publication, mut next_reading) = (Time::ZERO, Time::ZERO);
    journal.rehearse(tuner.is_dry_run());
    loop {
        let due = tuner.poll_timeout();
        let event = wait(tuner, supervisor, due)?;
        if let Some((code, why)) = ends(until, event) {
            // The exit code is decided. After this time, the guardian lifts the remaining limits.
            signals::end_within(signals::CLEANING_TIME, code);
            signals::ignore_further();
            tuner.lift(why);
            report_events(tuner, journal);
            journal.summarise(tuner.unlimited());
            return Ok(code);
        }
        let now = clock::now();
        if let Err(error) = tuner.handle_timeout(now) {
            tuner.lift("tuning failed");
            report_events(tuner, journal);
            return Err(error);
        }
        report_events(tuner, journal);
        if now >= next_reading {
            next_reading = now + READING_INTERVAL;
            tuner.readings().for_each(|reading| journal.read(reading));
        }
        if now >= next_publication {
            next_publication = now + METRICS_INTERVAL;
            revise(tuner);
            // A policy that starts or ends a dry run has lifted all limits of the previous mode.
            report_events(tuner, journal);
            journal.rehearse(tuner.is_dry_run());
            journal.publish(|| tuner.snapshot());
        }
        if tuner.is_unguarded() {
            err!(
                "sweetspot: the guardian process was killed: the tuner lifts all limits and sets no more"
            );
            tuner.lift("no guardian would lift it if this process were killed, too");
            report_events(tuner, journal);
            // The command continues, but no caller is left to receive its exit code.
            return Ok(1);
        }
    }
}

/// Waits for an event until `due`. If a connection can be found earlier, makes the tuner search for it at once.
fn wait<S: Scope>(
    tuner: &mut Tuner<S>,
    supervisor: &mut Supervisor,
    due: Time,
) -> Result<Option<ProcessEvent>, TuneError> {
    let (mut event, mut found) = (Ok(None), false);
    tuner.announced(&mut |source| match source {
        Some(source) => {
            event = supervisor.next_event_or(source, due);
            found = is_readable(source);
        }
        None => event = supervisor.next_event_by(due),
    });
    if found {
        tuner.search_at(clock::now());
    }
    event.map_err(TuneError::at(WAITING))
}

/// The exit code and the reason, if tuning ends here.
fn ends(until: &Until, event: Option<ProcessEvent>) -> Option<(u8, &'static str)> {
    match (until, event) {
        (Until::CommandEnds(command), Some(ProcessEvent::ChildEnded { pid, code })) => {
            (pid == *command).then_some((code, "the command has ended"))
        }
        (Until::CommandEnds(command), Some(ProcessEvent::Signal(signal))) => {
            signal.send(*command);
            None
        }
        (Until::CommandEnds(_), _) => None,
        (_, Some(ProcessEvent::Signal(_) | ProcessEvent::TerminalSignal(_))) => {
            Some((0, "tuning ends"))
        }
        (Until::AnyEnds(any), _) => {
            let ended = any.iter().find(|(process, _)| process.has_ended());
            ended.map(|(_, why)| (0, *why))
        }
        _ => None,
    }
}

fn report_events<S: Scope>(tuner: &mut Tuner<S>, journal: &mut EventLog) {
    for refusal in tuner.take_refusals() {
        err!("sweetspot: {refusal}");
    }
    tuner.take_events().iter().for_each(|event| journal.record(event));
}
