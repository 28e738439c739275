//! The table's columns, for a screen and for text.

use std::collections::HashSet;
use std::io::IsTerminal;
use std::net::{IpAddr, SocketAddr};

use ratatui::crossterm::terminal;
use sweetspot_diagnose::counted;
use sweetspot_diagnose::live::Side;
use sweetspot_linux::diag::TcpState;
use sweetspot_units::{Bytes, Duration, Rate};

use super::TopArguments;
use super::order::SortOrder;
use sweetspot_watch::ConnectionRow;

/// A column: its heading, its width, and its content. The last column gets the remaining width.
pub struct TableColumn {
    pub heading: &'static str,
    pub width: u16,
    pub right: bool,
    /// On a narrow terminal the columns of the highest rank are dropped first.
    rank: u8,
    /// Whether it appears only on a screen: text is printed once, without a history.
    screen: bool,
    pub text: fn(&ConnectionRow) -> String,
}

/// All columns except the limit.
const COLUMNS: [TableColumn; 15] = [
    column("", 1, LEFT, 2, direction),
    column("program", PROGRAM_WIDTH, LEFT, 0, |r| program_text(r, PROGRAM_WIDTH)),
    column(PEER_HEADING, PEER_WIDTH, LEFT, 3, |r| peer(r.connection.remote, PEER_WIDTH)),
    column("state", 6, LEFT, 12, |r| state(r.connection.state)),
    column(RATE_HEADING, RATE_WIDTH, RIGHT, 1, rate),
    past("past rate", 13, |r| sparkline(r.past.iter().map(|(rate, _)| *rate))),
    column("RTT ms", 8, RIGHT, RTT_RANK, rtt),
    past("past RTT", 14, |r| sparkline(r.past.iter().map(|(_, rtt)| *rtt))),
    column("min", 7, RIGHT, 6, |r| ms(r.live().rtt_min())),
    column("cc", 6, LEFT, 11, congestion),
    column("window", 9, RIGHT, 7, |r| size(r.window())),
    column("cwnd", 9, RIGHT, 8, |r| size(r.congestion_window().filter(|_| sends(r)))),
    column("retrans", 8, RIGHT, 9, |r| r.retransmitted().to_string()),
    column("bytes", 9, RIGHT, 10, |r| size(Some(r.bytes()))),
    column("sweet spot", 11, RIGHT, 5, |r| size(r.sweet_spot())),
];

/// The local port, after the peer. It is shown if several connections have the same peer.
const LOCAL: TableColumn =
    column("local", 6, RIGHT, 3, |r| format!(":{}", r.connection.local.port()));

/// Replaces the program column if local ports are shown, so that the RTT still fits into 80 characters.
const BESIDE_PORTS: TableColumn =
    column("program", SHORT_PROGRAM, LEFT, 0, |r| program_text(r, SHORT_PROGRAM));

/// Replace program and peer instead, if no peer needs more: the program gets the rest.
const BESIDE_SHORT_PEERS: [TableColumn; 2] = [
    column("program", SHORT_PROGRAM + PEER_WIDTH - NARROW_PEER, LEFT, 0, |r| {
        program_text(r, SHORT_PROGRAM + PEER_WIDTH - NARROW_PEER)
    }),
    SHORT_PEER,
];

const SHORT_PEER: TableColumn =
    column(PEER_HEADING, NARROW_PEER, LEFT, 3, |r| peer(r.connection.remote, NARROW_PEER));

/// Replace program, peer and rate if the peer does not fit otherwise: 60 characters show all of them, and the direction.
const NARROW: [TableColumn; 3] = [
    column("program", NARROW_PROGRAM, LEFT, 0, |r| program_text(r, NARROW_PROGRAM)),
    SHORT_PEER,
    column(RATE_HEADING, NARROW_RATE, RIGHT, 1, rate),
];

const RTT_RANK: u8 = 4;
const PROGRAM_WIDTH: u16 = 15;
const SHORT_PROGRAM: u16 = 9;
const NARROW_PROGRAM: u16 = 10;
const NARROW_PEER: u16 = 17;
/// Enough for any IPv4 address and port.
const PEER_WIDTH: u16 = 21;
const LEFT: bool = false;
const RIGHT: bool = true;

const RATE_HEADING: &str = "Mbit/s";
/// Enough for 99,999.99 and an arrow.
const RATE_WIDTH: u16 = 9;
/// Enough for 99,999.99, or for the heading and an arrow.
const NARROW_RATE: u16 = 8;

/// Heading of the column that may show names.
pub const PEER_HEADING: &str = "peer";
/// Heading of the last column, with the time over which the limit is judged, `OBSERVATION`.
pub const WATCHED_LIMIT_HEADING: &str = "limited by (10 s)";
/// The width of that column, enough for "100 % receiver's wnd".
pub const LIMIT_WIDTH: u16 = 20;

const fn column(
    heading: &'static str,
    width: u16,
    right: bool,
    rank: u8,
    text: fn(&ConnectionRow) -> String,
) -> TableColumn {
    TableColumn { heading, width, right, rank, screen: false, text }
}

/// A column with a quantity's history.
const fn past(heading: &'static str, rank: u8, text: fn(&ConnectionRow) -> String) -> TableColumn {
    TableColumn { screen: true, ..column(heading, PAST_WIDTH as u16, LEFT, rank, text) }
}

/// Number of readings in such a column.
const PAST_WIDTH: usize = 10;

/// The last readings as bars relative to the largest of them, the newest at the right.
fn sparkline(past: impl DoubleEndedIterator<Item = u64>) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let mut last: Vec<u64> = past.rev().take(PAST_WIDTH).collect();
    last.reverse();
    let max = last.iter().copied().max().unwrap_or(0).max(1) as f64;
    let bar = |value: &u64| match *value {
        0 => ' ',
        some => BARS[((some as f64 / max * BARS.len() as f64).ceil() as usize).clamp(1, 8) - 1],
    };
    let bars: String = last.iter().map(bar).collect();
    format!("{bars:>PAST_WIDTH$}")
}

impl TableColumn {
    /// The heading, with an arrow if the table is sorted by this column.
    pub fn heading_in(&self, order: SortOrder) -> String {
        let arrow = if order == SortOrder::Program { "▲" } else { "▼" };
        if self.heading == order.column() {
            format!("{}{arrow}", self.heading)
        } else {
            self.heading.to_owned()
        }
    }
}

/// Properties of the peers of all connections in a table, which decide about its columns.
#[derive(Debug, Clone, Copy, Default)]
pub struct Peers {
    /// Several connections have the same peer, so that only their local ports differ.
    are_parallel: bool,
    /// All of them fit into a narrow column.
    are_short: bool,
}

impl Peers {
    /// The peers of `rows`.
    pub fn of(rows: &[&ConnectionRow]) -> Peers {
        let mut seen = HashSet::new();
        let mut peers = rows.iter().map(|row| row.connection.remote);
        Peers {
            are_parallel: !peers.clone().all(|peer| seen.insert(peer)),
            are_short: peers.all(|peer| peer.to_string().len() <= NARROW_PEER.into()),
        }
    }
}

/// The columns that fit into `width` characters, of a screen or of text. Columns are dropped, not truncated, because a
/// truncated number would be another number. The sort column is kept as long as it fits.
pub fn fitting(
    width: u16,
    on_screen: bool,
    order: SortOrder,
    Peers { are_parallel, are_short }: Peers,
) -> Vec<&'static TableColumn> {
    const ALL: &[TableColumn] = &COLUMNS;
    let mut shown: Vec<&TableColumn> = ALL.iter().filter(|c| on_screen || !c.screen).collect();
    if are_parallel {
        let behind = shown.iter().position(|c| c.heading == PEER_HEADING).map_or(0, |at| at + 1);
        shown.insert(behind, const { &LOCAL });
    }
    let needed =
        |shown: &[&TableColumn]| shown.iter().map(|c| c.width + 1).sum::<u16>() + LIMIT_WIDTH;
    let up_to_rtt = |c: &&TableColumn| c.rank <= RTT_RANK;
    let basic: Vec<&TableColumn> = shown.iter().copied().filter(up_to_rtt).collect();
    if are_parallel && needed(&basic) > width {
        let ports: &[TableColumn] = const { &[BESIDE_PORTS] };
        let short_peers: &[TableColumn] = const { &BESIDE_SHORT_PEERS };
        for other in if are_short { short_peers } else { ports } {
            let column = shown.iter_mut().find(|c| c.heading == other.heading);
            column.into_iter().for_each(|column| *column = other);
        }
    }
    while needed(&shown) > width {
        // The program is always shown, the rate if it fits beside the limit, and the sort column almost always.
        let rank =
            |c: &&TableColumn| if c.heading == order.column() { c.rank.min(2) } else { c.rank };
        let Some(last) = shown.iter().map(rank).max().filter(|rank| *rank > 0) else { break };
        shown.retain(|c| rank(c) != last);
    }
    const NARROW_ALL: &[TableColumn] = &NARROW;
    const DIRECTION: &TableColumn = &COLUMNS[0];
    let replaced = ["", "program", RATE_HEADING];
    let others = shown.iter().copied().filter(|c| !replaced.contains(&c.heading));
    // Parallel connections to one peer usually have the same program, but different ports.
    let first: &TableColumn = if are_parallel { const { &LOCAL } } else { &NARROW_ALL[0] };
    let others = others.filter(|c| c.heading != LOCAL.heading);
    let narrow = [DIRECTION, first, &NARROW_ALL[1], &NARROW_ALL[2]].into_iter().chain(others);
    let narrow: Vec<&TableColumn> = narrow.collect();
    let lacks_peer = !shown.iter().any(|c| c.heading == PEER_HEADING);
    if lacks_peer && needed(&narrow) <= width { narrow } else { shown }
}

/// Default width of text without a terminal, if `COLUMNS` is not set: it fits any screen.
const USUAL_WIDTH: u16 = 80;

/// Width of the terminal, or of the text if there is no terminal.
pub fn terminal_width() -> u16 {
    let terminal = terminal::size().ok().filter(|_| std::io::stdout().is_terminal());
    let wished = || std::env::var("COLUMNS").ok()?.parse().ok().filter(|width| *width > 0);
    terminal.map(|(width, _)| width).or_else(wished).unwrap_or(USUAL_WIDTH)
}

/// The message for a table without rows; `None` if there are rows. `shown` of `all` connections match the filter.
pub fn empty_message(shown: usize, all: usize, filter: &str) -> Option<String> {
    match (shown, all) {
        (1.., _) => None,
        (0, 0) => Some("no connections".to_owned()),
        (0, _) => {
            let all = counted(all as u64, "connection", "connections");
            Some(format!("the filter \"{filter}\" matches none of {all}"))
        }
    }
}

/// The table as text of that width; `none` is the message if it has no rows.
pub fn text(
    rows: &[&ConnectionRow],
    all: usize,
    width: u16,
    TopArguments { sort, interval, .. }: &TopArguments,
    none: Option<String>,
) -> String {
    let order = *sort;
    let columns = fitting(width, false, order, Peers::of(rows));
    let line = |cells: &dyn Fn(&TableColumn) -> String, limit: &str| {
        let mut line: String = columns.iter().map(|c| fit(c, &cells(c))).collect();
        line += limit;
        cut(line, width.into())
    };
    let limit = format!("limited by ({interval})");
    let mut lines = vec![line(&|column| column.heading_in(order), &limit)];
    lines.extend(
        rows.iter().map(|row| line(&|column| (column.text)(row), &row.limited_by_briefly())),
    );
    lines.extend(none);
    if all > rows.len() {
        let left = (all - rows.len()) as u64;
        let more = counted(left, "more connection", "more connections");
        lines.push(format!("{more} (--rows N, --filter TEXT)"));
    }
    lines.join("\n")
}

/// `line` in `width` characters; an ellipsis marks a cut.
fn cut(line: String, width: usize) -> String {
    if line.chars().count() <= width {
        return line;
    }
    let kept = line.chars().take(width.saturating_sub(1));
    kept.chain(['…']).take(width).collect()
}

/// `text` in the width of its column, and a space.
fn fit(column: &TableColumn, text: &str) -> String {
    let width = usize::from(column.width);
    let cut: String = text.chars().take(width).collect();
    if column.right { format!("{cut:>width$} ") } else { format!("{cut:<width$} ") }
}

/// The direction of most data, as an arrow.
fn direction(row: &ConnectionRow) -> String {
    match row.side() {
        Side::Sender => "↑",
        Side::Receiver => "↓",
    }
    .to_owned()
}

fn program_text(row: &ConnectionRow, width: u16) -> String {
    row.owner.as_ref().map_or("-".to_owned(), |owner| {
        shortened(&owner.name, &format!("/{}", owner.pid), width.into())
    })
}

/// An address and its port. A long address is cut at its end.
fn peer(peer: SocketAddr, width: u16) -> String {
    let port = format!(":{}", peer.port());
    match peer.ip() {
        IpAddr::V4(address) => shortened(&address.to_string(), &port, width.into()),
        IpAddr::V6(address) => {
            let end = format!("]{port}");
            shortened(&format!("[{address}"), &end, width.into())
        }
    }
}

/// `head` and `tail` in `width` characters. If they do not fit, the end of `head` is cut and marked.
fn shortened(head: &str, tail: &str, width: usize) -> String {
    let room = width.saturating_sub(tail.chars().count());
    if head.chars().count() <= room {
        return format!("{head}{tail}");
    }
    let kept: String = head.chars().take(room.saturating_sub(1)).collect();
    format!("{kept}…{tail}")
}

/// The sender's congestion control, which a receiver does not know.
fn congestion(row: &ConnectionRow) -> String {
    let own = row.connection.congestion.clone().filter(|_| sends(row));
    own.unwrap_or_else(|| "-".to_owned())
}

fn sends(row: &ConnectionRow) -> bool {
    row.side() == Side::Sender
}

fn rate(row: &ConnectionRow) -> String {
    if row.is_measured() { mbit(row.rate()) } else { "-".to_owned() }
}

/// The RTT in milliseconds, marked if it is only an upper bound.
fn rtt(row: &ConnectionRow) -> String {
    bounded(ms(row.rtt()), row.may_time_pauses())
}

fn bounded(time: String, is_upper_bound: bool) -> String {
    if is_upper_bound { format!("≤{time}") } else { time }
}

/// The state in a few letters, similar to ss(8).
fn state(state: TcpState) -> String {
    match state {
        TcpState::Established => "ESTAB",
        TcpState::FinWait1 => "FIN1",
        TcpState::FinWait2 => "FIN2",
        TcpState::CloseWait => "CLOSEW",
        _ => "other",
    }
    .to_owned()
}

fn mbit(rate: Rate) -> String {
    match rate.as_f64() / 1e6 {
        0.0 => "0".to_owned(),
        m if m < 0.01 => "<0.01".to_owned(),
        m => format!("{m:.2}"),
    }
}

/// Milliseconds.
pub fn ms(time: Option<Duration>) -> String {
    time.map_or("-".to_owned(), |time| format!("{:.1}", time.as_secs_f64() * 1e3))
}

/// A size with three digits.
pub fn size(bytes: Option<Bytes>) -> String {
    let Some(bytes) = bytes else { return "-".to_owned() };
    let units = [(1e9, "GB"), (1e6, "MB"), (1e3, "kB")];
    let n = bytes.as_f64();
    match units.into_iter().find(|(unit, _)| n >= *unit) {
        Some((unit, name)) => {
            let n = n / unit;
            let digits = if n >= 100.0 { 0 } else { 1 };
            format!("{n:.digits$} {name}")
        }
        None => format!("{n} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARALLEL: Peers = Peers { are_parallel: true, are_short: false };

    fn headings(width: u16) -> Vec<&'static str> {
        sorted(width, SortOrder::Traffic)
    }

    fn sorted(width: u16, order: SortOrder) -> Vec<&'static str> {
        fitting(width, false, order, Peers::default())
            .into_iter()
            .map(|column| column.heading)
            .collect()
    }

    #[test]
    fn shortened_names_and_addresses_keep_their_numbers() {
        assert_eq!(shortened("systemd-resolve", "/4194304", 16), "systemd…/4194304");
        let peer = |text: &str, width| peer(text.parse().unwrap(), width);
        assert_eq!(peer("192.0.2.7:443", 21), "192.0.2.7:443");
        assert_eq!(peer("192.168.100.200:50123", 21), "192.168.100.200:50123");
        assert_eq!(peer("192.168.100.200:50123", 18), "192.168.100…:50123");
        assert_eq!(peer("[2001:db8::7]:443", 21), "[2001:db8::7]:443");
        let long = peer("[2001:db8:aaaa:bbbb:cccc::7]:50123", 21);
        assert_eq!(long, "[2001:db8:aaa…]:50123");
        assert_eq!(long.chars().count(), 21);
    }

    #[test]
    fn a_sparkline_scales_from_zero_to_its_maximum() {
        // 8 is the largest, 1 its eighth, 4 its half.
        assert_eq!(sparkline([0, 1, 4, 8].into_iter()), format!("{}{}", " ".repeat(7), "▁▄█"));
        assert_eq!(sparkline(0..100).chars().count(), 10);
        assert_eq!(sparkline(std::iter::empty()), " ".repeat(10));
    }

    /// With parallel connections, the columns take 79 + 7 characters. To fit into 80, the program column is six
    /// characters shorter.
    #[test]
    fn the_local_port_of_parallel_connections_fits_80_columns() {
        let shown = |width| {
            let columns = fitting(width, false, SortOrder::Traffic, PARALLEL);
            columns.into_iter().map(|column| column.heading).collect::<Vec<_>>()
        };
        let all = ["", "program", "peer", "local", "Mbit/s", "RTT ms"];
        assert_eq!(shown(80), all);
        assert_eq!(shown(86), all);
        assert_eq!(shown(79), &all[..5]);
        // 1 + 6 + 17 + 8 and four spaces are 36, the limit 20.
        assert_eq!(shown(60), ["", "local", "peer", "Mbit/s"]);
    }

    /// Peers of 17 characters leave four of 21 to the program: 13, enough for python3/65535.
    #[test]
    fn short_peers_leave_room_for_the_program() {
        let widths = |are_short| {
            let peers = Peers { are_short, ..PARALLEL };
            let columns = fitting(80, true, SortOrder::Traffic, peers);
            columns.iter().skip(1).take(2).map(|column| column.width).collect::<Vec<_>>()
        };
        assert_eq!([widths(false), widths(true)], [vec![9, 21], vec![13, 17]]);
    }

    /// The two history columns take ten characters and a space each, in addition to 152 for all others.
    #[test]
    fn a_wide_table_includes_the_history_columns() {
        let shown = |width| fitting(width, true, SortOrder::Traffic, Peers::default()).len();
        assert_eq!([shown(174), shown(173), shown(163), shown(162)], [15, 14, 14, 13]);
    }

    /// The thirteen columns take 119 characters and a space each, and the limit 20: 152.
    #[test]
    fn columns_that_do_not_fit_are_omitted_not_truncated() {
        assert_eq!(headings(u16::MAX).len(), 13);
        assert_eq!(headings(152).len(), 13);
        assert_eq!(headings(151).len(), 12);
        // 1 + 15 + 21 + 9 + 8 and five spaces are 59, the limit 20.
        assert_eq!(headings(80), ["", "program", "peer", "Mbit/s", "RTT ms"]);
        assert_eq!(headings(78), ["", "program", "peer", "Mbit/s"]);
        // 1 + 15 + 21 + 9 and four spaces are 50. 1 + 10 + 17 + 8 of the narrow columns and four spaces are 40.
        assert_eq!(headings(70), ["", "program", "peer", "Mbit/s"]);
        assert_eq!(headings(69), ["", "program", "peer", "Mbit/s"]);
        assert_eq!(headings(60), ["", "program", "peer", "Mbit/s"]);
        assert_eq!(headings(59), ["", "program", "Mbit/s"]);
        // 15 + 9 and two spaces are 26.
        assert_eq!(headings(46), ["program", "Mbit/s"]);
        assert_eq!(headings(45), ["program"]);
        assert_eq!(headings(0), ["program"]);
    }

    #[test]
    fn bounds_stand_beside_their_numbers() {
        assert_eq!(
            [bounded("57.1".into(), true), bounded("40.0".into(), false)],
            ["≤57.1", "40.0"]
        );
    }

    #[test]
    fn an_unmatched_filter_differs_from_a_host_without_connections() {
        assert_eq!(empty_message(1, 2, "x"), None);
        assert_eq!(empty_message(0, 0, "x").unwrap(), "no connections");
        let words = "the filter \"x\" matches none of 109 connections";
        assert_eq!(empty_message(0, 109, "x").unwrap(), words);
    }

    #[test]
    fn the_sort_column_is_always_visible() {
        let by = |order| sorted(80, order);
        assert_eq!(by(SortOrder::Bytes), ["", "program", "peer", "Mbit/s", "bytes"]);
        assert_eq!(by(SortOrder::Retransmitted), ["", "program", "peer", "Mbit/s", "retrans"]);
    }
}
