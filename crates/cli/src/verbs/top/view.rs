//! The screen: the table, or one connection.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row as Line1, Sparkline, Table as Grid, Wrap};
use sweetspot_diagnose::live::Period;
use sweetspot_diagnose::{Class, Evidence, Flow, counted};
use sweetspot_program::print::whole_parts;

use super::columns::{
    LIMIT_WIDTH, PEER_HEADING, Peers, TableColumn, WATCHED_LIMIT_HEADING, empty_message, fitting,
    ms, size,
};
use super::order::select;
use super::screen::Screen;
use sweetspot_watch::{ConnectionRow, MEASURING, limited_by_briefly};

/// Draws the whole screen.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let foot = footline(screen, frame.area().width.into());
    let below = u16::try_from(foot.len()).unwrap_or(1);
    let [head, body, below] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(below)])
            .areas(frame.area());
    let foot = Paragraph::new(foot.into_iter().map(Line::from).collect::<Vec<_>>()).dim();
    frame.render_widget(foot, below);
    frame.render_widget(Paragraph::new(headline(screen)).bold(), head);
    if screen.help {
        frame.render_widget(Paragraph::new(HELP).wrap(Wrap { trim: false }), body);
        return;
    }
    match screen.open.and_then(|cookie| screen.table.row(cookie)) {
        Some(row) if screen.explained => {
            let flow = screen.table.diagnosis(row, screen.is_own_namespace);
            let lines = cut_to(&explanation(flow), body);
            let lines: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
            frame.render_widget(Paragraph::new(lines), body);
        }
        Some(row) => {
            let tuned = screen.tuned.iter_mut().find(|tuned| tuned.cookie == row.connection.cookie);
            let flow = screen.table.diagnosis(row, screen.is_own_namespace);
            draw_row(frame, body, (row, flow), tuned.map(|tuned| tuned.summary(row)));
        }
        None if screen.open.is_some() => {
            frame.render_widget(Paragraph::new("This connection has ended. Esc goes back."), body);
        }
        None => draw_table(frame, body, screen),
    }
}

/// Help on keys and columns, also at the end of `--help`. It fits a screen of 60 columns and 24 lines.
pub const HELP: &str = "\
q, ?        quit; show this help
s           sort by the next column, which an arrow marks
/           filter by program, address, state or limit
Esc         clear the filter, or go back
n           show names of peers instead of addresses
d           explain the connection: limit, evidence, fix
t           tune it, as sweetspot tune attach does
u           undo that; leaving top undoes all
space, f    freeze or resume
Up, Down    mark a connection; Enter opens it
↑ ↓         mostly sending, mostly receiving
Mbit/s      payload in the last interval
RTT ms      the last; the shortest if data pauses; ≤ at most
window      the peer's, or our own if we receive
cwnd        congestion window; retrans: retransmissions
past        the last ten readings, on wide screens
local       local port, if a peer has several connections
sweet spot  least window at full rate, once a queue shows it
limited by  over the last 10 s, or with --once the interval;
            sender or path: run diagnose at the other end;
            red: losses, or an end that stalls; green: at
            capacity; yellow: a window or an application";

/// Whether tuning can be the cause of this kind of limit.
fn has_tuners_limit(period: &Period) -> bool {
    matches!(period.named().class, Class::Pacing | Class::ReceiverWindow)
}

/// The colour of a connection's limit; the words say the same.
fn colour(period: &Period) -> Style {
    if period.is_idle() {
        return Style::new().dim();
    }
    match period.named().class {
        Class::Congestion | Class::Stalled => Style::new().red(),
        Class::Bandwidth => Style::new().green(),
        Class::Unknown => Style::new(),
        _ => Style::new().yellow(),
    }
}

/// Colour, unless NO_COLOR forbids it (<https://no-color.org>).
fn coloured(style: Style) -> Style {
    let forbidden = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    if forbidden { Style::new() } else { style }
}

fn headline(screen: &Screen) -> String {
    let (all, rows) =
        (screen.table.rows().count(), select(&screen.table, screen.order, &screen.filter));
    // An empty sum of floats is -0.0.
    let total = rows.iter().map(|row| row.rate().as_f64()).fold(0.0, |a, b| a + b);
    let count = rows.len();
    let rate = match rows.iter().any(|row| row.is_measured()) {
        false if count > 0 => MEASURING.to_owned(),
        _ => format!("{:.1} Mbit/s", total / 1e6),
    };
    format!(
        "{}, {rate}, by {}{}",
        shown_of(count, all),
        screen.order.name(),
        if screen.frozen { "  FROZEN" } else { "" }
    )
}

/// The number of connections that match a filter, of `all`.
fn shown_of(count: usize, all: usize) -> String {
    let connections = counted(all as u64, "connection", "connections");
    if count == all { connections } else { format!("{count} of {connections}") }
}

/// Keys of the table and of an open connection. A narrow screen omits the last ones; `?` lists all.
const TABLE_KEYS: [&str; 9] = [
    "q quit",
    "? help",
    "s sort",
    "/ filter",
    "d explain",
    "t tune",
    "u undo",
    "Enter open",
    "n names",
];
const CONNECTION_KEYS: [&str; 7] =
    ["q quit", "? help", "Esc back", "d explain", "t tune", "u undo", "space freeze"];

/// The lines below the table: one line of keys, or a message wrapped to as many lines as it needs.
fn footline(screen: &Screen, width: usize) -> Vec<String> {
    if screen.help {
        return vec!["any key goes back".to_owned()];
    }
    if let Some(why) = screen.trouble.as_ref().or(screen.refusal.as_ref()) {
        return wrapped(why, width);
    }
    let keys: &[&str] = match screen.open {
        Some(_) => &CONNECTION_KEYS,
        None if screen.typing => return wrapped(&format!("filter: {}_", screen.filter), width),
        None if !screen.filter.is_empty() => {
            return wrapped(&format!("filter: {}  (Esc clears)", screen.filter), width);
        }
        None => &TABLE_KEYS,
    };
    vec![whole_parts(keys, width)]
}

/// `text` in lines of at most `width` columns, broken between words.
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { break };
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= width {
            *line = format!("{line} {word}");
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) {
    let rows = select(&screen.table, screen.order, &screen.filter);
    // Only visible rows become text.
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let marked = screen.marked.selected().unwrap_or(0).min(rows.len().saturating_sub(1));
    screen.marked.select(Some(marked));
    let first = (marked + 1).saturating_sub(height);
    let visible = rows.iter().skip(first).take(height);
    let columns = fitting(area.width, true, screen.order, Peers::of(&rows));
    let held: Vec<u64> =
        screen.tuned.iter_mut().filter_map(|tuned| tuned.holds().then_some(tuned.cookie)).collect();
    let lines = visible.enumerate().map(|(at, row)| {
        let text = |column: &TableColumn| match (&screen.names, column.heading) {
            (Some(names), PEER_HEADING) => names.of(row.connection.remote, column.width.into()),
            _ => (column.text)(row),
        };
        let cells = columns.iter().map(|column| cell(text(column), column));
        let period = row.period();
        let limit = if held.contains(&row.connection.cookie) && has_tuners_limit(&period) {
            Cell::from("tuned here").style(coloured(Style::new().green()))
        } else {
            Cell::from(limited_by_briefly(&period)).style(coloured(colour(&period)))
        };
        let line = Line1::new(cells.chain([limit]));
        if first + at == marked { line.reversed() } else { line }
    });
    let headings = columns.iter().map(|c| cell(c.heading_in(screen.order), c));
    let head = Line1::new(headings.chain([Cell::from(WATCHED_LIMIT_HEADING)]))
        .style(Style::new().underlined());
    let limit = Constraint::Min(LIMIT_WIDTH);
    let widths = columns.iter().map(|c| Constraint::Length(c.width)).chain([limit]);
    frame.render_widget(Grid::new(lines, widths).header(head), area);
    if let Some(words) = empty_message(rows.len(), screen.table.rows().count(), &screen.filter) {
        let [_, below] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
        frame.render_widget(Paragraph::new(words).wrap(Wrap { trim: false }), below);
    }
}

fn cell(text: String, column: &TableColumn) -> Cell<'static> {
    let side = if column.right { Alignment::Right } else { Alignment::Left };
    Cell::from(Text::from(text).alignment(side))
}

/// Draws one connection: its limit and fix over the last ten seconds as in `diagnose`, and its recent history. `tuning` has the
/// actions of a tuner started from this table, and whether it limits the connection.
fn draw_row(
    frame: &mut Frame<'_>,
    area: Rect,
    (row, flow): (&ConnectionRow, Flow),
    tuning: Option<(Vec<String>, bool)>,
) {
    let c = &row.connection;
    let mut lines = vec![format!("{} <-> {}", c.local, c.remote)];
    let (time, spot) = (flow.time(), sweet_spot(flow.evidence()));
    // On a small terminal, the tuner's actions have precedence.
    let (tuned, held) = tuning.unwrap_or_default();
    lines.extend(tuned);
    // A limit set by the tuner needs no fix.
    if !(held && has_tuners_limit(&row.period())) {
        lines.extend([flow.verdict.words, flow.fix]);
    }
    lines.extend([
        format!("time in the last 10 s: {time}"),
        format!(
            "RTT {} ms (minimum {}), window {}, cwnd {}, {} retransmitted",
            ms(row.rtt()),
            ms(row.live().rtt_min()),
            size(row.window()),
            size(row.congestion_window()),
            counted(row.retransmitted(), "segment", "segments"),
        ),
        spot,
    ]);
    let past = graph_height(&lines, area);
    let [words, rates, trips] =
        Layout::vertical([Constraint::Min(1), Constraint::Length(past), Constraint::Length(past)])
            .areas(area);
    let text: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), words);
    let past = |f: fn(&(u64, u64)) -> u64| row.past.iter().map(f).collect::<Vec<_>>();
    // Use the units of the table.
    draw_past(frame, rates, ("Mbit/s", 1e6), &past(|(rate, _)| *rate));
    draw_past(frame, trips, ("RTT ms", 1e3), &past(|(_, rtt)| *rtt));
}

/// The height of each of two graphs below `lines`. Text has precedence, and a graph takes at least three lines.
fn graph_height(lines: &[String], area: Rect) -> u16 {
    let words: usize = lines.iter().map(|line| wrapped(line, area.width.into()).len()).sum();
    let left = usize::from(area.height).saturating_sub(words) / 2;
    u16::try_from(left.min(7)).ok().filter(|height| *height >= 3).unwrap_or(0)
}

/// The window that the fix names, from the same evidence.
fn sweet_spot(evidence: &Evidence) -> String {
    match evidence.sweet_spot() {
        Some(window) => format!("sweet spot {window}"),
        None if evidence.others_fill_path => {
            "no sweet spot for this connection alone: another one fills the path".to_owned()
        }
        None => "sweet spot unknown: no standing queue has shown the path's capacity".to_owned(),
    }
}

/// The verdict, fix and remarks of `sweetspot diagnose` on the last ten seconds.
fn explanation(flow: Flow) -> Vec<String> {
    let time = flow.time();
    let mut lines = vec![
        format!("{} -> {}", flow.source, flow.destination),
        String::new(),
        flow.verdict.words,
        String::new(),
        format!("What to do: {}", flow.fix),
        String::new(),
        format!("Time in the last 10 s: {time}"),
    ];
    lines.extend(flow.remarks.iter().map(|remark| format!("Note: {remark}")));
    lines
}

/// `lines` as they fit into `area`; the last line says if any are missing.
fn cut_to(lines: &[String], area: Rect) -> Vec<String> {
    let width = usize::from(area.width);
    let mut shown: Vec<String> = lines.iter().flat_map(|line| wrapped(line, width)).collect();
    let height = usize::from(area.height);
    if shown.len() > height {
        shown.truncate(height.saturating_sub(1));
        shown.push("… a larger terminal shows the rest".to_owned());
    }
    shown
}

/// The history of a quantity, and its newest and largest value in display units.
fn draw_past(frame: &mut Frame<'_>, area: Rect, (unit, scale): (&str, f64), past: &[u64]) {
    let max = past.iter().copied().max().unwrap_or(0);
    let now = past.last().copied().unwrap_or(0);
    let show = |value: u64| format!("{:.1}", value as f64 / scale);
    let title = format!("{unit}: {} now, {} at most", show(now), show(max));
    let shown = past.len().saturating_sub(usize::from(area.width.saturating_sub(2)));
    let line = Sparkline::default().data(&past[shown..]).block(Block::bordered().title(title));
    frame.render_widget(line, area);
}

#[cfg(test)]
mod tests {
    use ratatui::Terminal;
    use ratatui::backend::TestBackend;
    use ratatui::widgets::TableState;
    use sweetspot_diagnose::{LimitVerdict, Limits};
    use sweetspot_units::{Duration, Rate};
    use sweetspot_watch::ConnectionList;

    use super::super::order::SortOrder;
    use super::*;

    fn screen() -> Screen {
        Screen {
            table: ConnectionList::default(),
            order: SortOrder::Traffic,
            filter: String::new(),
            typing: false,
            frozen: false,
            help: false,
            marked: TableState::default(),
            open: None,
            explained: false,
            from_table: false,
            names: None,
            tuned: Vec::new(),
            trouble: None,
            refusal: None,
            is_own_namespace: true,
        }
    }

    /// The text of a screen with 24 lines.
    fn drawn(screen: &mut Screen, width: u16) -> Vec<String> {
        let mut terminal = Terminal::new(TestBackend::new(width, 24)).expect("a terminal");
        terminal.draw(|frame| draw(frame, screen)).expect("drawn");
        let cells = terminal.backend().buffer().content();
        let line = |cells: &[ratatui::buffer::Cell]| {
            cells.iter().map(ratatui::buffer::Cell::symbol).collect::<String>()
        };
        cells.chunks(width.into()).map(|cells| line(cells).trim_end().to_owned()).collect()
    }

    #[test]
    fn the_key_line_shows_whole_keys_and_help_from_40_columns() {
        for (open, keys) in [(None, &TABLE_KEYS[..]), (Some(1), &CONNECTION_KEYS[..])] {
            for width in 40..=130 {
                let line = drawn(&mut Screen { open, ..screen() }, width).pop().expect("a line");
                let shown: Vec<&str> = line.split("  ").collect();
                assert_eq!(shown, keys[..shown.len()], "{width}");
                assert!(shown.contains(&"? help") && shown.contains(&"q quit"), "{width}: {line}");
            }
        }
    }

    #[test]
    fn the_help_fits_60_columns_and_24_lines() {
        let lines = drawn(&mut Screen { help: true, ..screen() }, 60);
        let shown = &lines[1..lines.len() - 1];
        assert_eq!(shown, HELP.lines().collect::<Vec<_>>());
        assert_eq!(lines[lines.len() - 1], "any key goes back");
    }

    #[test]
    fn graphs_shrink_before_text_is_truncated() {
        let lines = |count| vec!["x".repeat(120); count];
        let area = Rect::new(0, 0, 80, 22);
        // Each word without a space takes one line.
        let of = |count| graph_height(&lines(count), area);
        assert_eq!([8, 12, 16, 17, 30].map(of), [7, 5, 3, 0, 0]);
        let broken = vec!["one two ".repeat(15); 4];
        // 120 characters take two lines of 80.
        assert_eq!(graph_height(&broken, area), 7);
        assert_eq!(graph_height(&broken, Rect::new(0, 0, 80, 16)), 4);
    }

    /// 13.042 Mbit/s x 40 ms is 65.21 kB, as the fix prints it.
    #[test]
    fn the_sweet_spot_is_the_window_that_the_fix_names() {
        let mut evidence = Evidence::default();
        evidence.goodput = Rate::from_bits_per_second(13_042_000);
        evidence.capacity = Some(evidence.goodput);
        evidence.rtt_min = Some(Duration::from_millis(40));
        evidence.rtt = Some(Duration::from_millis(60));
        let limits = Limits::only(Class::Bandwidth, Duration::from_secs(10));
        let fix = |evidence: &Evidence| LimitVerdict::new(&limits, evidence).fix;
        assert_eq!(sweet_spot(&evidence), "sweet spot 65.21 kB");
        assert!(fix(&evidence).contains("a window of 65.21 kB"), "{}", fix(&evidence));
        evidence.others_fill_path = true;
        assert!(sweet_spot(&evidence).starts_with("no sweet spot"), "{}", sweet_spot(&evidence));
        assert!(!fix(&evidence).contains("set a window"), "{}", fix(&evidence));
    }

    #[test]
    fn a_truncated_explanation_says_so() {
        let lines = ["one two three".to_owned(), String::new(), "four".to_owned()];
        let of = |height| cut_to(&lines, Rect::new(0, 0, 8, height));
        assert_eq!(of(4), ["one two", "three", "", "four"]);
        assert_eq!(of(3), ["one two", "three", "… a larger terminal shows the rest"]);
    }

    #[test]
    fn a_filter_shows_how_many_connections_match() {
        assert_eq!(shown_of(1, 2), "1 of 2 connections");
        assert_eq!([shown_of(1, 1), shown_of(2, 2)], ["1 connection", "2 connections"]);
    }

    #[test]
    fn an_error_below_the_table_is_wrapped_between_words() {
        let why = "cannot read the sockets of this host: Operation not permitted; run it as root";
        for width in [40, 60, 80, 120] {
            let trouble = Some(why.to_owned());
            let lines = drawn(&mut Screen { trouble, ..screen() }, width);
            let used = why.len().div_ceil(usize::from(width));
            let foot = lines[lines.len() - used..].join(" ");
            assert_eq!(foot, why, "{width}");
        }
    }
}
