//! The result as text: tables for a terminal and for a document.

use super::{Blog, BlogRow, PUBLISHED};
use sweetspot_research::markdown::MarkdownTable;
use sweetspot_research::page_abstract::Abstract;

/// Machine, date and command of a measurement.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The command that repeats the measurement.
    pub command: String,
    /// The program's version.
    pub version: String,
    /// The machine and its kernel.
    pub machine: String,
    /// The date.
    pub date: String,
}

/// Explanation of the columns for a terminal.
const HEADINGS: &str =
    "  asked         SO_RCVBUF, as iperf -w sets it; the kernel grants twice that
  window        the largest that this kernel allows for that buffer
  advertised    the largest that the sender saw
  expected      the window per round trip of 10 ms, or the link's 100 Mbit/s
  measured      by the receiver's program, slow start included
  accuracy      measured over expected
  with headers  expected, if headers and a packet's time on the wire count";

/// Explanation of the columns, and why the numbers differ from the blog's.
const EXPLANATION: &str = "\
* The path: 100 Mbit/s of Ethernet (an IP packet of 1500 B takes as long as its frame of 1538 B), 5 ms
  each way, room for 1000 packets, offloads off, Reno, `tcp_moderate_rcvbuf` off in the receiver's
  namespace: the blog's two computers with netem.
* *window expected*: this kernel's rule for SO_RCVBUF. The blog's kernel advertised three quarters of the
  doubled buffer; from 6.8 on it is the measured ratio of payload to memory, 160/256 for packets of
  1448 B in 2304 B. The largest buffer's window ends at 65,535 x 2: its window scale was chosen in the
  handshake, for the half of the buffer that is window then.
* *advertised*: the largest that the sender saw; about a segment less than expected, as in the blog
  (73,552 of 75,000), because a segment waits unread when the ACK leaves.
* *expected*: that window per 10 ms, or 100 Mbit/s if that is less, and *accuracy* is measured over
  expected, as in the blog's table.
* *with headers*: the same formula with what the blog explains in words: the link carries at most
  1448/1538 of its rate as payload, and the round trip holds a packet's 123 us on the wire.
* *measured* is what the receiver's program read, from the first SYN on, slow start included. It falls
  short of *with headers*: a window takes longer than one ping. Likely reasons, not told apart here:
  every second segment's ACK waits for the next one, and the window opens when the program has read.
  The blog's computers had the same: 75 kB at 54.1 Mbit/s are 11.1 ms, at a ping of 10.5 ms.
";

impl Blog {
    /// The whole document, in Markdown.
    pub fn document(&self, place: &Environment) -> String {
        let result = self.verdict();
        let page = Abstract {
            question: "does throughput on this kernel depend on the receive buffer as in an experiment published \
                in 2012?",
            method: "five receive buffers over an emulated path of 100 Mbit/s and 10 ms; the blog's numbers are next to ours.",
            result: &result,
            limitation: "one path, and one run per buffer.",
            command: "`sweetspot-research lab blog --out docs/results/blog.md`",
        };
        format!(
            "# The window and its throughput, on this kernel\n\n{page}\
             The experiment of S. Gordon, *Impact of Bandwidth Delay Product on TCP Throughput* (2012): five\n\
             receive buffers at 100 Mbit/s and 10 ms. Written by `{}`.\n\n\
             | | |\n|---|---|\n| program | sweetspot {} |\n| measured on | {}, {} |\n\
             | each buffer | {} s |\n\n{}\n{EXPLANATION}\n## Certificates\n\n{}",
            place.command,
            place.version,
            place.machine,
            place.date,
            self.seconds_each,
            self.table(),
            self.certificates(),
        )
    }

    /// The result for a terminal: the verdict, the tables, and the meaning of their headings.
    pub fn text(&self) -> String {
        let mut here = MarkdownTable::new(&[
            "asked",
            "window",
            "advertised",
            "expected",
            "measured",
            "accuracy",
            "with headers",
        ]);
        for row in &self.rows {
            let [requested, window, advertised, expected, measured, accuracy, with_headers] =
                cells(row);
            let accuracy = format!("{accuracy} %");
            here.row(&[requested, window, advertised, expected, measured, accuracy, with_headers]);
        }
        let mut then = MarkdownTable::new(&["asked", "window", "expected", "measured", "accuracy"]);
        for row in &PUBLISHED {
            then.row(&[
                row.asked_kb.to_string(),
                format!("{:.1}", row.window_kb),
                format!("{:.1}", row.expected),
                format!("{:.1}", row.measured),
                format!("{} %", row.accuracy),
            ]);
        }
        format!(
            "Result: {}\n{}\n\nOn this kernel, {} s each, sizes in kB and rates in Mbit/s:\n{}\n\
             In the blog of 2012:\n{}\n{HEADINGS}\n",
            self.verdict(),
            self.trust(),
            self.seconds_each,
            here.aligned(),
            then.aligned()
        )
    }

    /// Measured relative to expected throughput, here and in the blog.
    fn verdict(&self) -> String {
        let range = |shares: &mut dyn Iterator<Item = f64>| {
            let (low, high) = shares
                .map(|share| share.round())
                .fold((f64::MAX, 0.0), |(low, high), share| (share.min(low), share.max(high)));
            if low < high { format!("{low} % to {high} %") } else { format!("{high} %") }
        };
        let here = range(&mut self.rows.iter().map(|row| row.accuracy * 100.0));
        let then = range(&mut PUBLISHED.iter().map(|row| row.accuracy as f64));
        format!(
            "throughput is {here} of the expected window per round trip; in the blog of 2012 it was {then}."
        )
    }

    fn trust(&self) -> String {
        let doubted = self.rows.iter().filter(|row| !row.certificate.trust).map(|row| {
            let reasons = row.certificate.reasons.join("; ");
            format!("Do not trust the row of {} kB: {reasons}.", kb(row.asked_bytes, 0))
        });
        let doubted: Vec<String> = doubted.collect();
        if doubted.is_empty() {
            return "The emulation can be trusted.".to_owned();
        }
        doubted.join("\n")
    }

    /// The blog's second table with this kernel's numbers, beside the blog's own, in Markdown.
    fn table(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(&[
            "-w kB",
            "buffer kB",
            "window expected kB",
            "advertised kB",
            "expected Mbit/s",
            "measured Mbit/s",
            "accuracy %",
            "with headers Mbit/s",
            "blog 2012: window kB",
            "expected",
            "measured",
            "accuracy %",
        ]);
        for (row, published) in self.rows.iter().zip(&PUBLISHED) {
            let [requested, window, advertised, expected, measured, accuracy, with_headers] =
                cells(row);
            table.row(&[
                requested,
                kb(row.buffer_bytes, 0),
                window,
                advertised,
                expected,
                measured,
                accuracy,
                with_headers,
                published.window_kb.to_string(),
                format!("{:.0}", published.expected),
                published.measured.to_string(),
                published.accuracy.to_string(),
            ]);
        }
        table
    }

    /// The certificate of each row's path.
    fn certificates(&self) -> MarkdownTable {
        let mut table = MarkdownTable::new(&[
            "-w kB",
            "min RTT ms",
            "retransmitted",
            "verdict",
            "late p99 us",
            "max us",
        ]);
        for row in &self.rows {
            let c = &row.certificate;
            table.row(&[
                kb(row.asked_bytes, 0),
                format!("{:.2}", row.rtt_min_s * 1e3),
                row.retransmitted.to_string(),
                match c.trust {
                    true => "trust".to_owned(),
                    false => format!("**do not trust**: {}", c.reasons.join("; ")),
                },
                format!("{:.0}", c.p99_lateness_s * 1e6),
                format!("{:.0}", c.max_lateness_s * 1e6),
            ]);
        }
        table
    }
}

/// The cells of a row that both tables share: requested buffer, expected and advertised windows, kB; expected and measured rates,
/// Mbit/s; accuracy, %; expected rate with headers, Mbit/s.
fn cells(row: &BlogRow) -> [String; 7] {
    [
        kb(row.asked_bytes, 0),
        kb(row.window_expected_bytes, 1),
        kb(row.window_advertised_bytes, 1),
        mbit(row.expected_bps),
        mbit(row.measured_bps),
        format!("{:.0}", row.accuracy * 100.0),
        mbit(row.expected_with_headers_bps),
    ]
}

fn kb(bytes: u64, decimals: usize) -> String {
    format!("{:.decimals$}", bytes as f64 / 1e3)
}

fn mbit(bps: f64) -> String {
    format!("{:.1}", bps / 1e6)
}
