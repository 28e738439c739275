//! The state of the table on a terminal, and the effect of keys on it.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui::widgets::TableState;

use super::TopArguments;
use super::names::HostNames;
use super::order::{SortOrder, select};
use super::readings::Readings;
use super::tuning::TunedHere;
use sweetspot_watch::ConnectionList;

/// The state of the screen.
pub struct Screen {
    pub table: ConnectionList,
    pub order: SortOrder,
    pub filter: String,
    /// Whether keys are typed into the filter.
    pub typing: bool,
    pub frozen: bool,
    /// Whether the help is shown.
    pub help: bool,
    /// The marked row.
    pub marked: TableState,
    /// The cookie of the open connection.
    pub open: Option<u64>,
    /// Whether the open connection shows an explanation instead of graphs.
    pub explained: bool,
    /// Whether the explanation was opened from the table, to which closing it returns.
    pub from_table: bool,
    /// Names of peers, if they are shown.
    pub names: Option<HostNames>,
    /// The connections that were tuned from here.
    pub tuned: Vec<TunedHere>,
    /// Why the last reading failed.
    pub trouble: Option<String>,
    /// Why the last key had no effect.
    pub refusal: Option<String>,
    /// Whether the connections are in this process's network namespace.
    pub is_own_namespace: bool,
}

impl Screen {
    /// A screen before the first reading.
    pub fn new(arguments: &TopArguments, is_own_namespace: bool) -> Screen {
        Screen {
            table: ConnectionList::default(),
            order: arguments.sort,
            filter: arguments.filter.clone(),
            typing: false,
            frozen: false,
            help: false,
            marked: TableState::default().with_selected(0),
            open: None,
            explained: false,
            from_table: false,
            names: None,
            tuned: Vec::new(),
            trouble: None,
            refusal: None,
            is_own_namespace,
        }
    }

    /// Reads all connections, unless the screen is frozen.
    pub fn read(&mut self, host: &mut Readings) {
        if self.frozen {
            return;
        }
        self.trouble = host.all(&mut self.table).err();
        self.tuned.iter_mut().for_each(TunedHere::count_reading);
        if let Some(names) = &mut self.names {
            names.request_names(self.table.rows().map(|row| row.connection.remote.ip()));
        }
    }

    /// Samples the busiest receivers, unless the screen is frozen.
    pub fn sample(&mut self, host: &mut Readings) {
        match self.frozen {
            true => host.leave_out_busiest(),
            false => host.busiest(&mut self.table),
        }
    }

    /// Handles a key; true if it ends the program.
    pub fn handle_key(&mut self, key: KeyEvent) -> bool {
        let with_others = key.modifiers.intersects(!KeyModifiers::SHIFT);
        if let KeyCode::Char(letter) = key.code
            && with_others
        {
            // Letters with Ctrl or Alt have no effect, except Ctrl-C.
            return letter == 'c' && key.modifiers.contains(KeyModifiers::CONTROL);
        }
        self.refusal = None;
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
            KeyCode::Esc | KeyCode::Char('d') if self.explained => self.close_explanation(),
            KeyCode::Esc if self.open.take().is_none() => self.filter.clear(),
            KeyCode::Char('n') => self.toggle_names(),
            KeyCode::Char('d') => {
                self.from_table = self.open.is_none();
                self.open = self.chosen();
                self.explained = self.open.is_some();
            }
            KeyCode::Char('t') => self.tune(),
            KeyCode::Char('u') => self.undo(),
            // Filtering and sorting apply to the table.
            KeyCode::Char('/') => (self.open, self.explained, self.typing) = (None, false, true),
            KeyCode::Char('s') if self.open.is_none() => self.order = self.order.next(),
            KeyCode::Char(' ' | 'f') => self.frozen = !self.frozen,
            KeyCode::Enter => self.open = self.chosen(),
            // The mark moves only in the table.
            _ if self.open.is_some() => {}
            KeyCode::Down | KeyCode::Char('j') => self.marked.select_next(),
            KeyCode::Up | KeyCode::Char('k') => self.marked.select_previous(),
            KeyCode::PageDown => self.marked.scroll_down_by(20),
            KeyCode::PageUp => self.marked.scroll_up_by(20),
            KeyCode::Home => self.marked.select_first(),
            _ => {}
        }
        false
    }

    /// The connection that is open, or marked.
    fn chosen(&self) -> Option<u64> {
        self.open.or_else(|| self.marked_cookie())
    }

    /// Returns to the view from which the explanation was opened.
    fn close_explanation(&mut self) {
        self.explained = false;
        if self.from_table {
            self.open = None;
        }
    }

    fn toggle_names(&mut self) {
        self.names = match self.names.take() {
            Some(_) => None,
            None => {
                let mut names = HostNames::default();
                names.request_names(self.table.rows().map(|row| row.connection.remote.ip()));
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
            Err(why) => self.refusal = Some(why),
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

#[cfg(test)]
mod tests {
    use sweetspot_units::Duration;

    use super::*;

    fn screen() -> Screen {
        let arguments = TopArguments {
            netns: None,
            once: false,
            json: false,
            interval: Duration::from_secs(1),
            sort: SortOrder::Traffic,
            filter: String::new(),
            record: None,
            rows: 50,
        };
        Screen::new(&arguments, true)
    }

    fn state(screen: &Screen) -> (SortOrder, [bool; 4], String) {
        let Screen { order, typing, frozen, help, names, filter, .. } = screen;
        (*order, [*typing, *frozen, *help, names.is_some()], filter.clone())
    }

    #[test]
    fn a_letter_with_ctrl_or_alt_triggers_no_key() {
        for letter in "q?hsf/ n".chars() {
            let mut screen = screen();
            let before = state(&screen);
            for modifiers in [KeyModifiers::CONTROL, KeyModifiers::ALT] {
                assert!(
                    !screen.handle_key(KeyEvent::new(KeyCode::Char(letter), modifiers)),
                    "{letter}"
                );
                assert_eq!(state(&screen), before, "{letter}");
            }
            // Without a modifier, the key has an effect.
            let ends = screen.handle_key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
            assert!(ends || state(&screen) != before, "{letter}");
        }
        assert!(screen().handle_key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)));
    }

    fn press(screen: &mut Screen, keys: &[KeyCode]) {
        for key in keys {
            assert!(!screen.handle_key(KeyEvent::new(*key, KeyModifiers::NONE)));
        }
    }

    #[test]
    fn closing_an_explanation_returns_to_where_it_was_opened() {
        let explain = KeyCode::Char('d');
        for back in [KeyCode::Esc, explain] {
            let mut from_table = Screen { open: None, ..screen() };
            // There is no connection to mark: this is the state after `d`.
            (from_table.open, from_table.explained, from_table.from_table) = (Some(1), true, true);
            press(&mut from_table, &[back]);
            assert_eq!((from_table.open, from_table.explained), (None, false), "{back:?}");
            let mut from_connection = Screen { open: Some(1), ..screen() };
            press(&mut from_connection, &[explain, back]);
            let Screen { open, explained, .. } = from_connection;
            assert_eq!((open, explained), (Some(1), false), "{back:?}");
        }
    }

    #[test]
    fn only_the_filter_key_acts_on_a_hidden_table() {
        let mut screen = Screen { open: Some(1), explained: true, ..screen() };
        let order = screen.order;
        press(&mut screen, &[KeyCode::Char('s'), KeyCode::Down]);
        assert_eq!((screen.order, screen.marked.selected()), (order, Some(0)));
        press(&mut screen, &[KeyCode::Char('/'), KeyCode::Char('t'), KeyCode::Char('s')]);
        assert_eq!((screen.open, screen.explained, screen.filter.as_str()), (None, false, "ts"));
        assert_eq!(screen.order, order);
    }

    #[test]
    fn the_filter_ignores_letters_with_ctrl() {
        let mut screen = Screen { typing: true, ..screen() };
        screen.handle_key(KeyEvent::new(KeyCode::Char('u'), KeyModifiers::CONTROL));
        screen.handle_key(KeyEvent::new(KeyCode::Char('U'), KeyModifiers::SHIFT));
        assert_eq!(screen.filter, "U");
    }
}
