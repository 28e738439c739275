//! The table on a terminal: reads, draws, handles keys.

use std::fs::File;
use std::io::{self, IsTerminal};
use std::os::fd::{AsFd, OwnedFd};
use std::process::ExitCode;

use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::widgets::TableState;
use sweetspot_linux::clock;
use sweetspot_linux::diag::Detail;
use sweetspot_linux::event_fd::is_hung_up;
use sweetspot_linux::signals::{self, ProcessEvent, Signal, Supervisor};
use sweetspot_units::{Duration, Time};

use super::names::HostNames;
use super::order::{SortOrder, select};
use super::record::Recording;
use super::tuning::TunedHere;
use super::{Arguments, Ending, view};
use sweetspot_watch::{ConnectionList, NamespaceConnections};

/// The state of the screen.
pub struct Screen {
    pub table: ConnectionList,
    pub order: SortOrder,
    pub filter: String,
    /// Whether keys go into the filter.
    pub typing: bool,
    pub frozen: bool,
    /// Whether the help is shown.
    pub help: bool,
    /// The row that is marked.
    pub marked: TableState,
    /// The connection that is open, by its cookie.
    pub open: Option<u64>,
    /// Whether the open connection is explained rather than drawn over time.
    pub explained: bool,
    /// Names of peers, if they are shown.
    pub names: Option<HostNames>,
    /// The connections that were tuned from here.
    pub tuned: Vec<TunedHere>,
    /// Why the last reading failed.
    pub trouble: Option<String>,
    /// Where readings are kept.
    pub recording: Option<Recording>,
}

/// Shows the table until the user quits.
pub fn run(
    mut host: NamespaceConnections,
    arguments: &Arguments,
    recording: Option<Recording>,
) -> Ending {
    if !std::io::stdout().is_terminal() {
        return Err("top draws on a terminal; print instead with --once, or --json".into());
    }
    let mut screen = Screen {
        table: ConnectionList::default(),
        order: arguments.sort,
        filter: arguments.filter.clone(),
        typing: false,
        frozen: false,
        help: false,
        marked: TableState::default().with_selected(0),
        open: None,
        explained: false,
        names: None,
        tuned: Vec::new(),
        trouble: None,
        recording,
    };
    // Signals are handled, so that the terminal is restored.
    let supervisor = Supervisor::new()?;
    let mut waker = Waker { keyboard: keyboard()?, supervisor };
    let mut terminal = ratatui::try_init()?;
    let shown = show(&mut terminal, &mut host, &mut screen, arguments, &mut waker);
    if let Ok(Some(signal)) = shown {
        signals::end_within(signals::CLEANING_TIME, signal.exit_code());
    }
    // One that is gone cannot be restored.
    let restored = ratatui::try_restore();
    match shown? {
        None => Ok(restored.map(|()| ExitCode::SUCCESS)?),
        Some(signal) => Ok(ExitCode::from(signal.exit_code())),
    }
}

/// The terminal that keys come from: standard input, or else the controlling one.
fn keyboard() -> io::Result<OwnedFd> {
    match io::stdin().is_terminal() {
        true => io::stdin().as_fd().try_clone_to_owned(),
        false => Ok(File::open("/dev/tty")?.into()),
    }
}

/// Shows the table until the user quits, or a signal comes, which it returns.
fn show(
    terminal: &mut ratatui::DefaultTerminal,
    host: &mut NamespaceConnections,
    screen: &mut Screen,
    arguments: &Arguments,
    waker: &mut Waker,
) -> io::Result<Option<Signal>> {
    let mut due = Time::ZERO;
    loop {
        if clock::now() >= due {
            due = clock::now() + arguments.interval;
            screen.read(host);
        }
        terminal.draw(|frame| view::draw(frame, screen))?;
        match waker.wait(due)? {
            WakeReason::Due => {}
            WakeReason::Terminal(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                if screen.obey(key) {
                    return Ok(None);
                }
            }
            WakeReason::Terminal(_) => {}
            WakeReason::Signal(signal) => return Ok(Some(signal)),
        }
    }
}

/// Why waiting ended.
enum WakeReason {
    /// It is time to read again.
    Due,
    /// A key, or another size.
    Terminal(Event),
    /// A signal says to end.
    Signal(Signal),
}

/// Interval between two checks of the terminal's size: another thread may take its signal.
const RESIZE_INTERVAL: Duration = Duration::from_millis(200);

/// Waits for keys and signals.
struct Waker {
    keyboard: OwnedFd,
    supervisor: Supervisor,
}

impl Waker {
    /// Waits until something happens or `due` has come.
    fn wait(&mut self, due: Time) -> io::Result<WakeReason> {
        loop {
            // Crossterm must not read a terminal that is gone: it takes the end of the input for a reason to read again,
            // for ever.
            if is_hung_up(&self.keyboard) {
                return Ok(WakeReason::Signal(Signal::HANG_UP));
            }
            // A key that came with others is read already.
            if event::poll(std::time::Duration::ZERO)? {
                return event::read().map(WakeReason::Terminal);
            }
            if clock::now() >= due {
                return Ok(WakeReason::Due);
            }
            let until = due.min(clock::now() + RESIZE_INTERVAL);
            let event = self.supervisor.next_event_or(self.keyboard.as_fd(), until)?;
            if let Some(ProcessEvent::Signal(signal) | ProcessEvent::TerminalSignal(signal)) = event
            {
                return Ok(WakeReason::Signal(signal));
            }
        }
    }
}

impl Screen {
    fn read(&mut self, host: &mut NamespaceConnections) {
        if self.frozen {
            return;
        }
        match host.read(Detail::ALL) {
            Ok(connections) => {
                let now = clock::now();
                let written = self.recording.as_mut().map(|r| r.write(now, &connections));
                self.trouble = written.and_then(Result::err);
                self.table.handle(now, connections);
                self.tuned.iter_mut().for_each(TunedHere::count_reading);
            }
            Err(why) => self.trouble = Some(why),
        }
        if let Some(names) = &mut self.names {
            names.ask(self.table.rows().map(|row| row.connection.remote.ip()));
        }
    }

    /// Handles a key; true if it ends the program.
    fn obey(&mut self, key: KeyEvent) -> bool {
        if key.modifiers.contains(KeyModifiers::CONTROL) && key.code == KeyCode::Char('c') {
            return true;
        }
        if self.typing {
            self.type_filter(key.code);
            return false;
        }
        if std::mem::take(&mut self.help) {
            return false;
        }
        match key.code {
            KeyCode::Char('q') => return true,
            KeyCode::Char('?' | 'h') => self.help = true,
            KeyCode::Esc if self.explained => self.explained = false,
            KeyCode::Esc if self.open.take().is_none() => self.filter.clear(),
            KeyCode::Char('n') => self.toggle_names(),
            KeyCode::Char('d') => {
                self.open = self.chosen();
                self.explained = self.open.is_some() && !self.explained;
            }
            KeyCode::Char('t') => self.tune(),
            KeyCode::Char('u') => self.undo(),
            KeyCode::Char('s') => self.order = self.order.next(),
            KeyCode::Char('/') => self.typing = true,
            KeyCode::Char(' ' | 'f') => self.frozen = !self.frozen,
            KeyCode::Down | KeyCode::Char('j') => self.marked.select_next(),
            KeyCode::Up | KeyCode::Char('k') => self.marked.select_previous(),
            KeyCode::PageDown => self.marked.scroll_down_by(20),
            KeyCode::PageUp => self.marked.scroll_up_by(20),
            KeyCode::Home => self.marked.select_first(),
            KeyCode::Enter => self.open = self.chosen(),
            _ => {}
        }
        false
    }

    /// The connection that is open, or marked.
    fn chosen(&self) -> Option<u64> {
        self.open.or_else(|| self.marked_cookie())
    }

    fn toggle_names(&mut self) {
        self.names = match self.names.take() {
            Some(_) => None,
            None => {
                let mut names = HostNames::default();
                names.ask(self.table.rows().map(|row| row.connection.remote.ip()));
                Some(names)
            }
        };
    }

    /// Tunes the chosen connection, and opens it.
    fn tune(&mut self) {
        let Some(row) = self.chosen().and_then(|cookie| self.table.row(cookie)) else { return };
        let cookie = row.connection.cookie;
        (self.open, self.explained) = (Some(cookie), false);
        if self.tuned.iter_mut().any(|tuned| tuned.cookie == cookie && tuned.is_on()) {
            return;
        }
        self.tuned.retain(|tuned| tuned.cookie != cookie);
        match TunedHere::begin(row) {
            Ok(tuned) => self.tuned.push(tuned),
            Err(why) => self.trouble = Some(why),
        }
    }

    /// Undoes the tuning of the chosen connection.
    fn undo(&mut self) {
        let Some(cookie) = self.chosen() else { return };
        let tuned = self.tuned.iter_mut().filter(|tuned| tuned.cookie == cookie);
        tuned.for_each(TunedHere::undo);
    }

    fn type_filter(&mut self, key: KeyCode) {
        match key {
            KeyCode::Enter => self.typing = false,
            KeyCode::Esc => {
                self.typing = false;
                self.filter.clear();
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char(c) => self.filter.push(c),
            _ => {}
        }
    }

    fn marked_cookie(&self) -> Option<u64> {
        let rows = select(&self.table, self.order, &self.filter);
        rows.get(self.marked.selected()?).map(|row| row.connection.cookie)
    }
}
