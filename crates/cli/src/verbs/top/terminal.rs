//! The table on a terminal: reads connections, draws, waits for keys.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use sweetspot_linux::clock;
use sweetspot_linux::event_fd::is_hung_up;
use sweetspot_linux::signals::{self, ProcessEvent, Signal, Supervisor};
use sweetspot_units::{Duration, Time};

use super::readings::Readings;
use super::screen::Screen;
use super::{Ending, TopArguments, view};

/// Shows the table until the user quits.
pub fn run(mut host: Readings, arguments: &TopArguments) -> Ending {
    let mut screen = Screen::new(arguments, host.is_own_namespace());
    // Handle signals, so that the terminal is restored.
    let supervisor = Supervisor::new()?;
    let mut waker = Waker { keyboard: keyboard()?, supervisor };
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &mut host, &mut screen, arguments, &mut waker);
    if let Ok(Some(signal)) = shown {
        signals::end_within(signals::CLEANING_TIME, signal.exit_code());
    }
    // A terminal that is gone cannot be restored.
    let restored = ratatui::try_restore();
    match shown? {
        None => Ok(restored.map(|()| ExitCode::SUCCESS)?),
        Some(signal) => Ok(ExitCode::from(signal.exit_code())),
    }
}

/// The terminal for keys: standard input, or otherwise the controlling terminal.
fn keyboard() -> io::Result<OwnedFd> {
    match io::stdin().is_terminal() {
        true => io::stdin().as_fd().try_clone_to_owned(),
        false => Ok(File::open("/dev/tty")?.into()),
    }
}

/// Shows the table until the user quits or a signal arrives. Returns the signal.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    host: &mut Readings,
    screen: &mut Screen,
    arguments: &TopArguments,
    waker: &mut Waker,
) -> io::Result<Option<Signal>> {
    let (mut next_due, mut is_drawn) = (Time::ZERO, false);
    loop {
        if clock::now() >= next_due {
            next_due = clock::now() + arguments.interval;
            screen.read(host);
            is_drawn = false;
        } else if clock::now() >= host.next_due() {
            // The sample is shown with the next reading.
            screen.sample(host);
        }
        if !std::mem::replace(&mut is_drawn, true) {
            terminal.draw(|frame| view::draw(frame, screen))?;
        }
        let reason = waker.wait(next_due.min(host.next_due()))?;
        is_drawn = matches!(reason, WakeReason::Due);
        match reason {
            WakeReason::Due => {}
            WakeReason::Terminal(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                if screen.handle_key(key) {
                    return Ok(None);
                }
            }
            WakeReason::Terminal(_) => {}
            WakeReason::Signal(signal) => return Ok(Some(signal)),
        }
    }
}

/// The reason why waiting ended.
enum WakeReason {
    /// The next reading or sample is due.
    Due,
    /// A key, or a new terminal size.
    Terminal(Event),
    /// A signal to end.
    Signal(Signal),
}

/// Interval between two checks of the terminal's size, in case another thread receives SIGWINCH.
const RESIZE_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for keys and signals.
struct Waker {
    keyboard: OwnedFd,
    supervisor: Supervisor,
}

impl Waker {
    /// Waits for an event, until `next_due` at the latest.
    fn wait(&mut self, next_due: Time) -> io::Result<WakeReason> {
        loop {
            // Crossterm must not read a terminal that is gone: at the end of the input it would retry forever.
            if is_hung_up(&self.keyboard) {
                return Ok(WakeReason::Signal(Signal::HANG_UP));
            }
            // A key that arrived together with others has already been read.
            if event::poll(std::time::Duration::ZERO)? {
                return event::read().map(WakeReason::Terminal);
            }
            if clock::now() >= next_due {
                return Ok(WakeReason::Due);
            }
            let until = next_due.min(clock::now() + RESIZE_INTERVAL);
            let event = self.supervisor.next_event_or(self.keyboard.as_fd(), until)?;
            if let Some(ProcessEvent::Signal(signal) | ProcessEvent::TerminalSignal(signal)) = event
            {
                return Ok(WakeReason::Signal(signal));
            }
        }
    }
}
