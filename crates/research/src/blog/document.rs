//! The result as text: a table for a terminal and for a document.

use core::fmt::Write;

use super::{Blog, PUBLISHED};
use sweetspot_research::page_abstract::Abstract;

const ABSTRACT: Abstract<'_> = Abstract {
    question: "does throughput on this kernel follow the receive buffer as in a published experiment of 2012?",
    method: "five receive buffers over an emulated path of 100 Mbit/s and 10 ms; the blog's numbers stand beside ours.",
    result: "the column *accuracy* compares each buffer's throughput with its expected window per round trip.",
    limitation: "one path, and one run per buffer.",
    command: "`sweetspot-research lab blog --out docs/results/blog.md`",
};

/// Machine, date and command of a measurement.
#[derive(Debug, Clone)]
pub struct Environment {
    /// The command that repeats it.
    pub command: String,
    /// The program's version.
    pub version: String,
    /// The machine and its kernel.
    pub machine: String,
    /// The day.
    pub date: String,
}

/// The meaning of the columns, and why the numbers differ from the blog's.
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
        format!(
            "# The window and its throughput, on this kernel\n\n{ABSTRACT}\
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

    /// The blog's second table with this kernel's numbers, and the blog's own beside them, in
    /// Markdown.
    pub fn table(&self) -> String {
        let mut text = String::from(
            "| -w kB | buffer kB | window expected kB | advertised kB | expected Mbit/s | measured Mbit/s | accuracy % | with headers Mbit/s | blog 2012: window kB | expected | measured | accuracy % |\n\
             |--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        );
        for (row, published) in self.rows.iter().zip(&PUBLISHED) {
            let kb = |bytes: u64| bytes as f64 / 1e3;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "| {:.0} | {:.0} | {:.1} | {:.1} | {:.1} | {:.1} | {:.0} | {:.1} | {} | {:.0} | {} | {} |",
                kb(row.asked_bytes),
                kb(row.buffer_bytes),
                kb(row.window_expected_bytes),
                kb(row.window_advertised_bytes),
                row.expected_bps / 1e6,
                row.measured_bps / 1e6,
                row.accuracy * 100.0,
                row.expected_with_headers_bps / 1e6,
                published.window_kb,
                published.expected,
                published.measured,
                published.accuracy,
            );
        }
        text
    }

    /// The certificate of each row's path, in Markdown.
    pub fn certificates(&self) -> String {
        let mut text = String::from(
            "| -w kB | min RTT ms | retransmitted | verdict | late p99 us | max us |\n|--:|--:|--:|---|--:|--:|\n",
        );
        for row in &self.rows {
            let c = &row.certificate;
            let verdict = match c.trust {
                true => "trust".to_owned(),
                false => format!("**do not trust**: {}", c.reasons.join("; ")),
            };
            let _ = writeln!(
                text,
                "| {} | {:.2} | {} | {verdict} | {:.0} | {:.0} |",
                row.asked_bytes / 1000,
                row.rtt_min_s * 1e3,
                row.retransmitted,
                c.p99_lateness_s * 1e6,
                c.max_lateness_s * 1e6,
            );
        }
        text
    }
}
