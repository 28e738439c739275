use sweetspot_linux::clock;
use sweetspot_linux::signals::{Event, Supervisor};
use sweetspot_tune::{Scope, TuneError, Tuner};

use super::options::Journal;

/// Who ends the tuning.
pub enum Until {
    /// The command with this number, to which signals are passed on.
    CommandEnds(u32),
}

/// Tunes until that; returns the exit code.
pub fn steer<S: Scope>(
    tuner: &mut Tuner<S>,
    supervisor: &mut Supervisor,
    journal: &mut Journal,
    until: &Until,
) -> Result<u8, TuneError> {
    let mut tuning = true;
    loop {
        let due = if tuning { tuner.poll_timeout() } else { sweetspot_units::Time::MAX };
        let event = supervisor.next_event_by(due).map_err(TuneError::at("waiting for signals"))?;
        match (event, until) {
            (Some(Event::ChildEnded { pid, code }), Until::CommandEnds(command))
                if pid == *command =>
            {
                finish(tuner, journal, "the command has ended");
                return Ok(code);
            }
            (Some(Event::Told(signal)), Until::CommandEnds(command)) => signal.send(*command),
            _ => {}
        }
        if tuning {
            tuner.handle_timeout(clock::now())?;
            tell(tuner, journal);
            if tuner.is_unguarded() {
                say!(
                    "sweetspot: the guardian process was killed: every limit is lifted, and no more are set"
                );
                finish(tuner, journal, "nobody would lift it if this process were killed");
                tuning = false;
            }
        }
    }
}

fn tell<S: Scope>(tuner: &mut Tuner<S>, journal: &mut Journal) {
    for refusal in tuner.take_refusals() {
        say!("sweetspot: {refusal}");
    }
    tuner.take_events().iter().for_each(|event| journal.record(event));
}

fn finish<S: Scope>(tuner: &mut Tuner<S>, journal: &mut Journal, why: &str) {
    tuner.lift(why);
    tell(tuner, journal);
}
