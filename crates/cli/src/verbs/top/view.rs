//! The screen: the table, or one connection.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row as Line1, Sparkline, Table as Grid, Wrap};
use sweetspot_diagnose::live::Side;
use sweetspot_diagnose::{Class, Flow, LimitVerdict};

use super::columns::{LIMIT_HEADING, LIMIT_WIDTH, PEER_HEADING, TableColumn, fitting, ms, size};
use super::order::select;
use super::screen::Screen;
use sweetspot_watch::{ConnectionRow, locked_buffer};

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(headline(screen)).bold(), head);
    if screen.help {
        frame.render_widget(Paragraph::new(HELP), body);
        frame.render_widget(Paragraph::new("any key goes back").dim(), foot);
        return;
    }
    match screen.open.and_then(|cookie| screen.table.row(cookie)) {
        Some(row) if screen.explained => {
            let lines: Vec<Line<'_>> = explanation(row).into_iter().map(Line::from).collect();
            frame.render_widget(Paragraph::new(lines).wrap(Wrap { trim: false }), body);
        }
        Some(row) => {
            let tuned = screen.tuned.iter_mut().find(|tuned| tuned.cookie == row.connection.cookie);
            draw_row(frame, body, row, tuned.map(|tuned| tuned.told(row)));
        }
        None if screen.open.is_some() => {
            frame.render_widget(Paragraph::new("This connection is over. Esc goes back."), body);
        }
        None => draw_table(frame, body, screen),
    }
    frame.render_widget(Paragraph::new(footline(screen)).dim(), foot);
}

const HELP: &str = "\
q         quit
s         sort by the next column; the arrow in the headings shows by which
/         filter by program, address, state or limit; Esc clears
n         names of peers in the place of addresses, and back
d         explain the connection: what limits it, the evidence, what to do
t         tune it, as sweetspot tune attach does; shows before and after
u         undo that; leaving top undoes all
space, f  freeze and go on
Up, Down  mark a connection; Enter opens it, Esc goes back

↑ ↓       most data goes out, comes in
RTT ms    round trip by this end's kernel; min: the shortest one seen
window    that bounds the connection: the peer's, or our own where we receive
cwnd      congestion window
retrans   segments that this end has retransmitted
past      the last ten readings, up to the largest; on wide screens
sweet spot   the window that would be as fast without a queue
limited by   what the last interval went to; sweetspot diagnose PID says more

Red: losses or an end that stalls. Yellow: a window or an application limits.
Green: at the path's capacity.";

/// Whether a limit of this kind is one that tuning sets.
fn is_tuners(class: Class) -> bool {
    matches!(class, Class::Pacing | Class::ReceiverWindow)
}

/// The colour of a connection's limit; the words say the same.
fn colour(row: &ConnectionRow) -> Style {
    if row.rate().as_f64() == 0.0 {
        return Style::new().dim();
    }
    match row.limits().dominant() {
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
    // A sum of nothing is -0.0.
    let total = screen.table.rows().map(|row| row.rate().as_f64()).fold(0.0, |a, b| a + b);
    let count = screen.table.rows().count();
    format!(
        "{count} connection{}, {:.1} Mbit/s, by {}{}",
        if count == 1 { "" } else { "s" },
        total / 1e6,
        screen.order.name(),
        if screen.frozen { "  FROZEN" } else { "" }
    )
}

fn footline(screen: &Screen) -> String {
    match &screen.trouble {
        Some(why) => why.clone(),
        None if screen.open.is_some() => {
            "Esc back  d explain  t tune  u undo  space freeze  ? help  q quit".to_owned()
        }
        None if screen.typing || !screen.filter.is_empty() => {
            format!(
                "filter: {}{}",
                screen.filter,
                if screen.typing { "_" } else { "  (Esc clears)" }
            )
        }
        None => "q quit  ? help  s sort  / filter  n names  Enter open  d explain  t tune  u undo"
            .to_owned(),
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) {
    let rows = select(&screen.table, screen.order, &screen.filter);
    // Only visible rows become text.
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let marked = screen.marked.selected().unwrap_or(0).min(rows.len().saturating_sub(1));
    screen.marked.select(Some(marked));
    let first = (marked + 1).saturating_sub(height);
    let visible = rows.iter().skip(first).take(height);
    let columns = fitting(area.width, true, screen.order);
    let held: Vec<u64> =
        screen.tuned.iter_mut().filter_map(|tuned| tuned.holds().then_some(tuned.cookie)).collect();
    let lines = visible.enumerate().map(|(at, row)| {
        let text = |column: &TableColumn| match (&screen.names, column.heading) {
            (Some(names), PEER_HEADING) => names.of(row.connection.remote, column.width.into()),
            _ => (column.text)(row),
        };
        let cells = columns.iter().map(|column| cell(text(column), column));
        let limit = if held.contains(&row.connection.cookie) && is_tuners(row.limits().dominant()) {
            Cell::from("tuned here").style(coloured(Style::new().green()))
        } else {
            Cell::from(row.limited_by_briefly()).style(coloured(colour(row)))
        };
        let line = Line1::new(cells.chain([limit]));
        if first + at == marked { line.reversed() } else { line }
    });
    let headings = columns.iter().map(|c| cell(c.heading_in(screen.order), c));
    let head =
        Line1::new(headings.chain([Cell::from(LIMIT_HEADING)])).style(Style::new().underlined());
    let limit = Constraint::Min(LIMIT_WIDTH);
    let widths = columns.iter().map(|c| Constraint::Length(c.width)).chain([limit]);
    frame.render_widget(Grid::new(lines, widths).header(head), area);
}

fn cell(text: String, column: &TableColumn) -> Cell<'static> {
    let side = if column.right { Alignment::Right } else { Alignment::Left };
    Cell::from(Text::from(text).alignment(side))
}

/// One connection: its limit since watching began, and its recent history. With `tuning`, also the tuner's actions on it from
/// here, and whether those limit it.
fn draw_row(
    frame: &mut Frame<'_>,
    area: Rect,
    row: &ConnectionRow,
    tuning: Option<(Vec<String>, bool)>,
) {
    // The words have room at 80 columns and 24 lines, too.
    let past = if area.height < 28 { 5 } else { 7 };
    let [words, rates, trips] =
        Layout::vertical([Constraint::Min(12), Constraint::Length(past), Constraint::Length(past)])
            .areas(area);
    let verdict = LimitVerdict::new(row.live.limits(), &row.live.evidence());
    let c = &row.connection;
    let shares: Vec<String> = row.live.limits().shares().iter().map(share).collect();
    let mut lines = vec![format!("{} <-> {}", c.local, c.remote)];
    // On a small terminal, actions come before omissions.
    let (tuned, held) = tuning.unwrap_or_default();
    lines.extend(tuned);
    // Its own limit is no fault to mend.
    if !(held && is_tuners(row.limits().dominant())) {
        lines.extend([verdict.words, verdict.fix]);
    }
    lines.extend([
        format!("time: {}", shares.join(", ")),
        format!(
            "round trip {} ms (least {}), window {}, cwnd {}, sweet spot {}, {} retransmitted",
            ms(row.rtt()),
            ms(row.live.rtt_min()),
            size(row.window()),
            size(row.congestion_window()),
            size(row.live.sweet_spot()),
            row.resent()
        ),
    ]);
    let text: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), words);
    let past = |f: fn(&(u64, u64)) -> u64| row.past.iter().map(f).collect::<Vec<_>>();
    // The same units as in the table.
    draw_past(frame, rates, ("Mbit/s", 1e6), &past(|(rate, _)| *rate));
    draw_past(frame, trips, ("RTT ms", 1e3), &past(|(_, rtt)| *rtt));
}

/// The verdict of `sweetspot diagnose` on everything since watching began.
fn explanation(row: &ConnectionRow) -> Vec<String> {
    let (local, remote) = (row.connection.local, row.connection.remote);
    let (source, destination) = match row.live.direction() {
        Side::Sender => (local, remote),
        Side::Receiver => (remote, local),
    };
    let flow = Flow::new(source, destination, *row.live.limits(), &row.live.evidence());
    let shares: Vec<String> = flow.limits.shares().iter().map(share).collect();
    let mut lines = vec![
        format!("{source} -> {destination}"),
        String::new(),
        flow.verdict.words,
        String::new(),
        format!("What to do: {}", flow.fix),
        String::new(),
        format!("Time: {}", shares.join(", ")),
    ];
    let owner = row.owner.as_ref().map(|owner| owner.pid);
    let locked =
        owner.and_then(|pid| locked_buffer(&row.connection, row.live.side(), row.live.rtt(), pid));
    let remarks = flow.remarks.iter().chain(&locked);
    lines.extend(remarks.map(|remark| format!("Note: {remark}")));
    lines
}

fn share((class, share): &(Class, f64)) -> String {
    format!("{class} {:.0} %", share * 100.0)
}

/// The history of a quantity, and its newest and largest value in display units.
fn draw_past(frame: &mut Frame<'_>, area: Rect, (unit, scale): (&str, f64), past: &[u64]) {
    let most = past.iter().copied().max().unwrap_or(0);
    let now = past.last().copied().unwrap_or(0);
    let show = |value: u64| format!("{:.1}", value as f64 / scale);
    let title = format!("{unit}: {} now, {} at most", show(now), show(most));
    let shown = past.len().saturating_sub(usize::from(area.width.saturating_sub(2)));
    let line = Sparkline::default().data(&past[shown..]).block(Block::bordered().title(title));
    frame.render_widget(line, area);
}
