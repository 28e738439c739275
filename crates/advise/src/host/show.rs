//! The advice as text, as a table, as JSON, and as a sysctl.d file.

use serde_json::{Value, json};
use sweetspot_units::{Bytes, Rate};

use super::caps::{self, ASKED};
use super::check::{IN_PROGRAM, PathTarget};
use super::{Finding, HostAdvice, HostDirection, PathEnd};
use crate::formula::{Formula, explained};
use crate::limit::LARGEST_WINDOW;
use crate::text::{labelled, row, table, wrap};

const SOURCES: &str = "Sources: Linux Documentation/networking/ip-sysctl.rst and \
    net/ipv4/tcp_input.c; fasterdata.es.net/host-tuning/linux; perfSONAR 5.2 configure_sysctl; \
    RFC 7323, 4821.";

/// Columns of a line's name.
const LABEL: usize = 9;

impl HostAdvice {
    /// The advice as text, prose in at most `width` columns; `explain` adds the formulas with their numbers.
    pub fn text(&self, explain: bool, width: usize) -> String {
        let mut out = self.in_lines(width);
        if !self.findings.is_empty() {
            out.push('\n');
            out.push_str(&self.findings_text(width));
        }
        if self.window.is_some() {
            out.push('\n');
            out.push_str(&self.beside(width));
        }
        if explain {
            out.push_str(&explained(&self.formulas(), width));
        }
        out.push('\n');
        out.push_str(&wrap(SOURCES, width, 2));
        out
    }

    /// The limits, the sysctls to set, and how to undo them, a line each.
    fn in_lines(&self, width: usize) -> String {
        let line = |name: &str, words: &str| labelled(LABEL, name, words, width);
        let mut out = String::new();
        if self.question.here.asked_receive_buffer.is_some() {
            out.push_str(&line("rcvbuf", &self.rcvbuf_words()));
            let in_program = |f: &Finding| f.command.strip_prefix(IN_PROGRAM).map(str::to_owned);
            let own = self.findings.iter().find(|f| f.what == ASKED);
            out.extend(own.and_then(in_program).map(|words| line("program", &words)));
        }
        if let Some(target) = &self.target {
            for d in &self.directions {
                let name = if d.name == "receiving" { "receive" } else { "send" };
                out.push_str(&line(name, &direction(d, target.rate())));
            }
            out.push_str(&line("window", &window_words(target)));
            out.push_str(&self.sysctl_lines(width));
        }
        let rest = match self.target {
            Some(_) => "",
            None => "; give --rate and --rtt to see what caps a flow and what each change gains",
        };
        out + &line("changes", &format!("{}{rest}", self.count()))
    }

    /// The sysctls that gain rate, as commands to paste, and those that restore the present values.
    fn sysctl_lines(&self, width: usize) -> String {
        let gains: Vec<&Finding> = self.of_sysctl_file().filter(|f| f.gain.is_some()).collect();
        let Some(most) = gains.iter().filter_map(|f| f.gain).max() else {
            return labelled(LABEL, "set", "nothing: no sysctl of this host caps a flow", width);
        };
        // A line to copy is never broken.
        let block = |name: &str, commands: Vec<String>| {
            let names = core::iter::once(name).chain(core::iter::repeat(""));
            let lines = names.zip(commands);
            lines.map(|(name, command)| format!("{name:<LABEL$}{command}\n")).collect::<String>()
        };
        let set = block("set", gains.iter().map(|f| f.command.clone()).collect());
        let undo = block("undo", gains.iter().filter_map(|f| f.undo()).collect());
        let gain = format!(
            "up to {most} where nothing else caps a flow; until the next boot, or for good with --write FILE"
        );
        format!("{set}{}{undo}", labelled(LABEL, "gain", &gain, width))
    }

    /// The effect of the SO_RCVBUF that the program sets.
    fn rcvbuf_words(&self) -> String {
        let here = &self.question.here;
        let asked = here.asked_receive_buffer.unwrap_or_default();
        let Some((granted, cap)) = caps::granted(here).zip(caps::asked(here, PathEnd::Here)) else {
            return format!("{asked}: its window is not known without the version of the kernel");
        };
        let cut = match granted < asked {
            true => format!(", cut to {granted} by net.core.rmem_max"),
            false => String::new(),
        };
        let window = cap.window;
        let effect = match &self.target {
            Some(target) if window < target.filled() => {
                let rate = target.carried(window);
                format!("{rate} over {}, whatever tcp_rmem allows", target.rtt())
            }
            Some(_) => "enough for this path".to_owned(),
            None => "autotuning is off".to_owned(),
        };
        format!("SO_RCVBUF of {asked}{cut} allows a window of {window}: {effect}")
    }

    fn count(&self) -> String {
        match self.findings.len() {
            0 => "nothing to change".to_owned(),
            1 => "one thing to change".to_owned(),
            n => format!("{n} things to change"),
        }
    }

    fn findings_text(&self, width: usize) -> String {
        let mut out = String::new();
        for (i, f) in self.findings.iter().enumerate() {
            let head = format!("{}. {} on {}: {}.", i + 1, f.what, f.end.name(), f.why);
            out.push_str(&wrap(&head, width, 3));
            let gain = f.gain.map_or(String::new(), |g| format!("; gains up to {g}"));
            let cost = match f.cost {
                Some(cost) if cost > Bytes::ZERO => format!("; costs up to {cost} of memory"),
                _ => String::new(),
            };
            let change = format!("   now {}, wanted {}{gain}{cost}", f.now, f.wanted);
            out.push_str(&wrap(&change, width, 3));
            // A line to copy is never broken.
            out.push_str(&format!("   {}\n", f.command));
            if let Some(undo) = f.undo() {
                out.push_str(&format!("   undo: {undo}\n"));
            }
        }
        out
    }

    fn beside(&self, width: usize) -> String {
        let mut head = vec!["limit".to_owned(), "here".to_owned(), "ours".to_owned()];
        head.extend(self.references.iter().map(|r| r.who.to_owned()));
        let mut rows = vec![head];
        for (name, autotuning) in
            [("tcp_rmem[2]", true), ("tcp_wmem[2]", true), ("rmem_max", false), ("wmem_max", false)]
        {
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
            "Beside what others recommend:\n{}  ({})\n",
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
        let mut words =
            "  Ours are per connection, for one that fills this path; the others' are one compromise \
             for all paths of a class"
                .to_owned();
        if let Some(esnet) = self.references.first() {
            let one = target.carried(kernel.era().window(esnet.autotuning_max, None));
            words += &if one < path {
                let streams = path.bits_per_second().div_ceil(one.bits_per_second().max(1));
                format!(
                    ", and count on parallel streams: with {}'s one connection gets {one} here, and \
                     {streams} fill it",
                    esnet.who
                )
            } else {
                format!(": with {}'s, too, one connection fills it", esnet.who)
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

    /// The value that a finding recommends, or else the present one.
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
        let (window, mtu) = (target.window, target.question.mtu);
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
            "connections": self.target.as_ref().map(|target| target.shares),
            "directions": directions,
            "findings": findings,
            "references": references,
            "formulas": formulas,
            "sources": SOURCES,
        })
    }

    /// The findings that [`HostAdvice::sysctl_file`] mends: this host's sysctls.
    pub fn of_sysctl_file(&self) -> impl Iterator<Item = &Finding> {
        self.findings.iter().filter(|f| f.end == PathEnd::Here && f.is_sysctl())
    }

    /// The changes to this host's sysctls as a file for /etc/sysctl.d.
    pub fn sysctl_file(&self) -> String {
        let mut out = String::from("# Written by sweetspot advise host.\n");
        for f in self.of_sysctl_file() {
            out.push_str(&wrap(&format!("# {}", f.why), 78, 0).replace('\n', "\n# "));
            out.truncate(out.trim_end_matches("# ").len());
            out.push_str(&format!("{} = {}\n", f.what, f.wanted));
        }
        out
    }
}

/// The window that one connection needs on the path.
fn window_words(target: &PathTarget) -> String {
    match target.shares {
        1 if target.filled() < target.window => {
            format!("{}, TCP's initial window, fills the path", target.window)
        }
        1 => format!("{} per connection fills the path", target.window),
        n => format!(
            "{} for each of {n} connections, which fill the path together; TCP has no window above {LARGEST_WINDOW} \
             (RFC 7323)",
            target.window
        ),
    }
}

fn direction(d: &HostDirection, rate: Rate) -> String {
    match &d.cap {
        Some(cap) if d.rate < rate && d.rate < rate.scaled(0.995) => {
            format!("{}: {} on {} caps a flow", d.rate, cap.what, cap.end.name())
        }
        _ if d.rate < rate => format!("{}: the device caps a flow", d.rate),
        _ => format!("{}: no setting caps a flow", d.rate),
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
        "command": f.command,
        "undo": f.undo(),
    })
}
