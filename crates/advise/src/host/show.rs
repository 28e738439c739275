//! The advice as text, as a table, as JSON, and as a sysctl.d file.

use serde_json::{Value, json};
use sweetspot_units::{Bytes, Rate};

use super::caps::{Cap, FlowRole};
use super::target::PathTarget;
use super::{Finding, HostAdvice, PathEnd};
use crate::formula::{Formula, explained};
use crate::text::{row, table, wrap};

const SOURCES: &str = "Sources: Linux Documentation/networking/ip-sysctl.rst and \
    net/ipv4/tcp_input.c; fasterdata.es.net/host-tuning/linux; perfSONAR 5.2 configure_sysctl; \
    RFC 7323, 4821.";

/// The limits that other publishers recommend too, and whether they limit autotuning.
const LIMITS: [(&str, bool); 4] =
    [("tcp_rmem[2]", true), ("tcp_wmem[2]", true), ("rmem_max", false), ("wmem_max", false)];

impl HostAdvice {
    /// The advice as text, with prose in at most `width` columns; `explain` adds the formulas with their numbers and the
    /// sources.
    pub fn text(&self, explain: bool, width: usize) -> String {
        let mut out = self.answer(width);
        if !self.findings.is_empty() {
            out.push('\n');
            out.push_str(&self.findings_text(width));
        }
        if self.window.is_some() && (explain || self.changes_a_limit()) {
            out.push('\n');
            out.push_str(&self.beside(width));
        }
        if explain {
            out.push_str(&explained(&self.formulas(), width));
            out.push('\n');
            out.push_str(&wrap(SOURCES, width, 2));
        }
        out
    }

    /// The changes, one paragraph each, without the commands, which the answer already shows.
    fn findings_text(&self, width: usize) -> String {
        let mut out = String::new();
        for (i, f) in self.findings.iter().enumerate() {
            let head = format!("{}. {} on {}: {}.", i + 1, f.what, f.end.name(), f.why);
            out.push_str(&wrap(&head, width, 3));
            let gain =
                f.gain.map_or(String::new(), |g| format!("; gains up to {g}{}", self.each()));
            let cost = match f.cost {
                Some(cost) if cost > Bytes::ZERO => {
                    format!("; costs up to {cost} of memory{}", self.cost_of(f))
                }
                _ => String::new(),
            };
            let change = format!("   now {}, advised {}{gain}{cost}", f.now, f.wanted);
            out.push_str(&wrap(&change, width, 3));
        }
        out
    }

    /// A suffix that relates the cost of buffers to connections; empty for costs of the host.
    fn cost_of(&self, f: &Finding) -> String {
        let is_buffer = ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"].contains(&f.what.as_str());
        match self.target.as_ref().filter(|_| is_buffer).map(|target| target.connections) {
            None => String::new(),
            Some(1) => " per connection".to_owned(),
            Some(n) => format!(" for {n} connections"),
        }
    }

    /// Whether a limit that other publishers recommend too needs a change.
    fn changes_a_limit(&self) -> bool {
        LIMITS.iter().any(|(name, _)| self.now(name) != self.wanted(name))
    }

    fn beside(&self, width: usize) -> String {
        let mut head = vec!["limit".to_owned(), "now".to_owned(), "advised".to_owned()];
        head.extend(self.references.iter().map(|r| r.who.to_owned()));
        let mut rows = vec![head];
        for (name, autotuning) in LIMITS {
            let mut cells = row([&name, &self.now(name), &self.wanted(name)]);
            cells.extend(self.references.iter().map(|r| {
                let value = if autotuning { r.autotuning_max } else { r.socket_max };
                value.get().to_string()
            }));
            rows.push(cells);
        }
        let classes: Vec<String> =
            self.references.iter().map(|r| format!("{}: {}", r.who, r.class)).collect();
        let beside = format!(
            "Compared with published settings:\n{}  ({})\n",
            table(1, &rows),
            classes.join("; ")
        );
        beside + &wrap(&self.why_others_differ(), width, 2)
    }

    // ESnet: "optimized for network paths up to 100ms RTT, and for friendliness to single and parallel
    // stream tools", fasterdata.es.net/host-tuning/linux.
    fn why_others_differ(&self) -> String {
        let (Some((path, _)), Some(target), Some(kernel)) =
            (self.question.path, &self.target, self.question.here.kernel)
        else {
            return String::new();
        };
        let whom = match target.connections {
            1 => "one connection".to_owned(),
            n => format!("{n} connections"),
        };
        let mut words = format!(
            "  The advised buffers let {whom} fill this path. The published ones are a compromise for all paths of a class"
        );
        if let Some(esnet) = self.references.first() {
            let one = target.carried(kernel.era().window(esnet.autotuning_max, None));
            words += &if one < path {
                let streams = path.bits_per_second().div_ceil(one.bits_per_second().max(1));
                format!(
                    " and assume parallel streams: with {}'s, one connection reaches {one} here, and {streams} fill the path",
                    esnet.who
                )
            } else {
                format!("; with {}'s, one connection fills this one too", esnet.who)
            };
        }
        words + "."
    }

    fn now(&self, name: &str) -> String {
        let s = &self.question.here.sysctls;
        let value = match name.strip_suffix("[2]") {
            Some(name) => s.triple(&format!("net.ipv4.{name}")).map(|t| t[2].to_string()),
            None => s.text(&format!("net.core.{name}")).map(str::to_owned),
        };
        value.unwrap_or("not known".to_owned())
    }

    /// The value that a finding recommends, otherwise the present value.
    fn wanted(&self, name: &str) -> String {
        let full = match name.strip_suffix("[2]") {
            Some(name) => format!("net.ipv4.{name}"),
            None => format!("net.core.{name}"),
        };
        let found = self.findings.iter().find(|f| f.end == PathEnd::Here && f.what == full);
        let last = found.and_then(|f| f.wanted.split_whitespace().last());
        last.map_or_else(|| self.now(name), str::to_owned)
    }

    fn formulas(&self) -> Vec<Formula> {
        let Some(target) = &self.target else { return Vec::new() };
        let (window, mtu) = (target.window, target.raised_mtu);
        let mut all = vec![Formula {
            what: "window to reach",
            rule: "C T (MTU - headers) / MTU, at least ten packets; the same as in advice on the window",
            numbers: format!("{} x {} in packets of {mtu}: {window}", target.rate(), target.rtt()),
            source: "Jain, Prasad, Dovrolis, section IV; RFC 6928",
        }];
        if let Some(kernel) = self.question.here.kernel {
            all.push(Formula {
                what: "memory for it",
                rule: "tcp_rmem[2] x (share that is window)",
                numbers: format!("{} on kernel {kernel}", kernel.era().memory_for(window, None)),
                source: "Linux tcp_win_from_space()",
            });
        }
        for d in &self.directions {
            let Some(cap) = &d.cap else { continue };
            all.extend(self.send_buffer(target, cap));
            all.push(Formula {
                what: d.name,
                rule: "R = min(C, W / T x MTU / (MTU - headers))",
                numbers: format!(
                    "{} allows {} in {}: {}",
                    cap.what,
                    cap.window,
                    target.rtt(),
                    target.carried(cap.window)
                ),
                source: "Jain, Prasad, Dovrolis, eq. (3)",
            });
        }
        all
    }

    /// The formula for the window of a send buffer, if `cap` is one.
    fn send_buffer(&self, target: &PathTarget, cap: &Cap) -> Option<Formula> {
        let host = match cap.end {
            PathEnd::Here => Some(&self.question.here),
            PathEnd::Peer => self.question.peer.as_ref(),
        };
        let wmem = host?.sysctls.triple(&cap.what).filter(|_| cap.side == FlowRole::Sender);
        let buffer = target.send_buffer(Bytes::new(wmem?[2]));
        Some(Formula {
            what: "window of the send buffer",
            rule: "the payload in 2/3 of tcp_wmem[2], from which a waiting program refills it, less 832 B for each segment of 1/1024 s; \
                   halfway to the payload of all of it if refills are sent at once",
            numbers: format!(
                "{}: {} paced, {} in bursts",
                buffer.memory,
                buffer.window(),
                buffer.window_of_bursts()
            ),
            source: "Linux sk_stream_is_writeable(), SKB_TRUESIZE(), tcp_tso_autosize()",
        })
    }

    /// The advice as JSON.
    pub fn json(&self) -> Value {
        let findings: Vec<Value> = self.findings.iter().map(finding).collect();
        let directions: Vec<Value> = self
            .directions
            .iter()
            .map(|d| {
                json!({
                    "direction": d.name,
                    "expected_bps": d.rate.bits_per_second(),
                    "cap": d.cap.as_ref().map(|c| c.what.clone()),
                    "cap_end": d.cap.as_ref().map(|c| c.end.name()),
                    "cap_window_bytes": d.cap.as_ref().map(|c| c.window.get()),
                })
            })
            .collect();
        let references: Vec<Value> = self
            .references
            .iter()
            .map(|r| {
                json!({
                    "who": r.who,
                    "class": r.class,
                    "socket_max_bytes": r.socket_max.get(),
                    "autotuning_max_bytes": r.autotuning_max.get(),
                })
            })
            .collect();
        let formulas: Vec<Value> = self.formulas().iter().map(Formula::json).collect();
        json!({
            "window_bytes": self.window.map(Bytes::get),
            "mtu_bytes": self.question.mtu().get(),
            "window_mtu_bytes": self.target.as_ref().map(|target| target.raised_mtu.get()),
            "connections": self.target.as_ref().map(|target| target.connections),
            "directions": directions,
            "findings": findings,
            "references": references,
            "missing_from_peer": self.missing_from_peer(),
            "formulas": formulas,
            "sources": SOURCES,
        })
    }

    /// The findings that [`HostAdvice::sysctl_file`] fixes: those about this host's sysctls.
    pub fn of_sysctl_file(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.end == PathEnd::Here && f.is_sysctl())
    }

    /// The changes to this host's sysctls as a file for /etc/sysctl.d.
    pub fn sysctl_file(&self) -> String {
        let path = self.question.path.map(|(rate, rtt)| format!(", for {rate} x {rtt}"));
        let mut out = format!("# Written by sweetspot advise host{}.\n", path.unwrap_or_default());
        if self.of_sysctl_file().next().is_none() {
            out.push_str("# No sysctl of this host needs a change.\n");
        }
        for f in self.of_sysctl_file() {
            let was = format!("# Was {}: {}", f.now, f.why);
            out.push_str(&wrap(&was, 78, 0).replace('\n', "\n# "));
            out.truncate(out.trim_end_matches("# ").len());
            out.push_str(&format!("{} = {}\n", f.what, f.wanted));
        }
        out
    }
}

fn finding(f: &Finding) -> Value {
    json!({
        "what": f.what,
        "end": f.end.name(),
        "why": f.why,
        "now": f.now,
        "wanted": f.wanted,
        "gain_bps": f.gain.map(Rate::bits_per_second),
        "cost_bytes": f.cost.map(Bytes::get),
        "command": (!f.command.starts_with('#')).then_some(&f.command),
        "by_hand": f.command.strip_prefix("# "),
        "undo": f.undo(),
    })
}
