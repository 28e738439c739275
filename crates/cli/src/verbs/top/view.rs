//! What the screen shows: the table, or one connection.

use ratatui::Frame;
use ratatui::layout::{Alignment, Constraint, Layout, Rect};
use ratatui::style::{Style, Stylize};
use ratatui::text::{Line, Text};
use ratatui::widgets::{Block, Cell, Paragraph, Row as Line1, Sparkline, Table as Grid, Wrap};
use sweetspot_diagnose::LimitVerdict;

use super::columns::{LIMIT_HEADING, LIMIT_WIDTH, TableColumn, fitting, ms, size};
use super::order::select;
use super::screen::Screen;
use sweetspot_watch::ConnectionRow;

/// Draws all of it.
pub fn draw(frame: &mut Frame<'_>, screen: &mut Screen) {
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(1), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(headline(screen)).bold(), head);
    match screen.open.and_then(|cookie| screen.table.row(cookie)) {
        Some(row) => draw_row(frame, body, row),
        None if screen.open.is_some() => {
            frame.render_widget(Paragraph::new("This connection is over. Esc goes back."), body);
        }
        None => draw_table(frame, body, screen),
    }
    frame.render_widget(Paragraph::new(footline(screen)).dim(), foot);
}

fn headline(screen: &Screen) -> String {
    let total: f64 = screen.table.rows().map(|row| row.rate().as_f64()).sum();
    format!(
        "{} connections, {:.1} Mbit/s, by {}{}",
        screen.table.rows().count(),
        total / 1e6,
        screen.order.name(),
        if screen.frozen { "  FROZEN" } else { "" }
    )
}

fn footline(screen: &Screen) -> String {
    match &screen.trouble {
        Some(why) => why.clone(),
        None if screen.typing || !screen.filter.is_empty() => {
            format!(
                "filter: {}{}",
                screen.filter,
                if screen.typing { "_" } else { "  (Esc clears)" }
            )
        }
        None => "q quit  s sort  / filter  space freeze  Enter open  Esc back".to_owned(),
    }
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, screen: &mut Screen) {
    let rows = select(&screen.table, screen.order, &screen.filter);
    // Only what can be seen is made into text.
    let height = usize::from(area.height.saturating_sub(1)).max(1);
    let marked = screen.marked.selected().unwrap_or(0).min(rows.len().saturating_sub(1));
    screen.marked.select(Some(marked));
    let first = (marked + 1).saturating_sub(height);
    let visible = rows.iter().skip(first).take(height);
    let columns = fitting(area.width);
    let lines = visible.enumerate().map(|(at, row)| {
        let cells = columns.iter().map(|column| cell((column.text)(row), column));
        let line = Line1::new(cells.chain([Cell::from(row.limited_by())]));
        if first + at == marked { line.reversed() } else { line }
    });
    let headings = columns.iter().map(|c| cell(c.heading.to_owned(), c));
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

/// One connection: what has limited it since watching began, and its recent history.
fn draw_row(frame: &mut Frame<'_>, area: Rect, row: &ConnectionRow) {
    let [words, rates, trips] =
        Layout::vertical([Constraint::Min(9), Constraint::Length(7), Constraint::Length(7)])
            .areas(area);
    let verdict = LimitVerdict::new(row.live.limits(), &row.live.evidence());
    let c = &row.connection;
    let shares: Vec<String> = row.live.limits().shares().iter().map(share).collect();
    let lines = [
        format!("{} <-> {}", c.local, c.remote),
        verdict.words,
        verdict.fix,
        format!("time: {}", shares.join(", ")),
        format!(
            "round trip {} ms (least {}), window {}, cwnd {}, sweet spot {}, {} segments sent again",
            ms(row.rtt()),
            ms(row.live.rtt_min()),
            size(row.window()),
            size(row.congestion_window()),
            size(row.live.sweet_spot()),
            row.resent()
        ),
    ];
    let text: Vec<Line<'_>> = lines.into_iter().map(Line::from).collect();
    frame.render_widget(Paragraph::new(text).wrap(Wrap { trim: true }), words);
    let past = |f: fn(&(u64, u64)) -> u64| row.past.iter().map(f).collect::<Vec<_>>();
    let kbit = past(|(rate, _)| rate / 1000);
    draw_past(frame, rates, "kbit/s", &kbit);
    draw_past(frame, trips, "round trip, us", &past(|(_, rtt)| *rtt));
}

fn share((class, share): &(sweetspot_diagnose::Class, f64)) -> String {
    format!("{class} {:.0} %", share * 100.0)
}

fn draw_past(frame: &mut Frame<'_>, area: Rect, what: &str, past: &[u64]) {
    let most = past.iter().copied().max().unwrap_or(0);
    let title = format!("{what}, {most} at most");
    let shown = past.len().saturating_sub(usize::from(area.width.saturating_sub(2)));
    let line = Sparkline::default().data(&past[shown..]).block(Block::bordered().title(title));
    frame.render_widget(line, area);
}
