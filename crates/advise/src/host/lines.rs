//! The labelled lines of the answer: limits, window, commands and changes.

use sweetspot_units::Rate;

use super::caps::{self, PROGRAM_BUFFER};
use super::check::IN_PROGRAM;
use super::target::PathTarget;
use super::{Finding, HostAdvice, HostDirection, PathEnd, Sysctls};
use crate::limit::LARGEST_WINDOW;
use crate::text::labelled;

/// Width of a line's label, in columns.
const LABEL: usize = 10;

impl HostAdvice {
    /// Only the answer: limits, window, the commands that change and restore the settings, and the number of changes.
    pub fn answer(&self, width: usize) -> String {
        let line = |name: &str, words: &str| labelled(LABEL, name, words, width);
        let mut out = String::new();
        if self.question.here.asked_receive_buffer.is_some() {
            out.push_str(&line("rcvbuf", &self.rcvbuf_words()));
            let in_program = |f: &Finding| f.command.strip_prefix(IN_PROGRAM).map(str::to_owned);
            let own = self.findings.iter().find(|f| f.what == PROGRAM_BUFFER);
            out.extend(own.and_then(in_program).map(|words| line("program", &words)));
        }
        if let Some(target) = &self.target {
            for d in &self.directions {
                let name = if d.name == "receiving" { "receive" } else { "send" };
                out.push_str(&line(name, &direction(d, target)));
            }
            out.push_str(&line("window", &window_words(target)));
        }
        out.extend(self.gain_words().map(|words| line("gain", &words)));
        out.push_str(&self.commands(PathEnd::Here, ["set", "undo"]));
        out.push_str(&self.commands(PathEnd::Peer, ["peer set", "peer undo"]));
        out.push_str(&self.by_hand(width));
        out.push_str(&line("checked", &self.checked_words()));
        out + &line("changes", &self.count())
    }

    /// The changes on which the reader has to decide: commands with a condition, or words.
    fn by_hand(&self, width: usize) -> String {
        let rows = self.findings.iter().filter(|f| !f.is_in_set() && f.what != PROGRAM_BUFFER);
        rows.map(|f| match f.command.strip_prefix("# ") {
            Some(words) => {
                let label = if f.is_change() { "by hand" } else { "note" };
                labelled(LABEL, label, &format!("{}: {words}", f.what), width)
            }
            None => {
                // A line to copy is never broken.
                let line = |label: &str, command: &str| format!("{label:<LABEL$}{command}\n");
                let undo = f.undo().map_or(String::new(), |undo| line("undo", &undo));
                line("by hand", &f.command) + &undo
            }
        })
        .collect()
    }

    /// The commands for `end` under the first of `names`, and those that restore the present values under the second. They hold until
    /// the next boot.
    fn commands(&self, end: PathEnd, names: [&str; 2]) -> String {
        let all = || self.findings.iter().filter(|f| f.end == end && f.is_in_set());
        // Lines to copy are not wrapped.
        let block = |name: &str, commands: Vec<String>| {
            let names = core::iter::once(name).chain(core::iter::repeat(""));
            let lines = names.zip(commands);
            lines.map(|(name, command)| format!("{name:<LABEL$}{command}\n")).collect::<String>()
        };
        let set = block(names[0], all().map(|f| f.command.clone()).collect());
        set + &block(names[1], all().filter_map(Finding::undo).collect())
    }

    /// The rate that the sysctls gain in each direction: for programs that leave their buffers to the kernel, otherwise for
    /// programs that set them.
    fn gain_words(&self) -> Option<String> {
        let gains = self.directions.iter().filter_map(|d| Some((d.name, self.gain_in(d)?)));
        let gains: Vec<String> = gains
            .map(|(name, (gain, finding))| match finding.command.starts_with(IN_PROGRAM) {
                true => format!("{gain} {name} (in the program)"),
                false => format!("{gain} {name}"),
            })
            .collect();
        if !gains.is_empty() {
            let gains = gains.join(", ");
            return Some(format!("up to {gains}{}, if nothing else limits the flow", self.each()));
        }
        let most = |is_explicit: bool| {
            let all = self.findings.iter().filter(|f| f.is_in_set());
            all.filter(|f| f.is_for_explicit_buffers() == is_explicit).filter_map(|f| f.gain).max()
        };
        match (most(false), most(true)) {
            (Some(most), _) => {
                Some(format!("up to {most}{}, if nothing else limits the flow", self.each()))
            }
            (None, Some(most)) => {
                Some(format!("up to {most}, only for programs that set SO_RCVBUF or SO_SNDBUF"))
            }
            (None, None) => None,
        }
    }

    /// A suffix that says that gains apply to each of several connections; empty for one.
    pub(super) fn each(&self) -> &'static str {
        let is_one = self.target.is_none_or(|target| target.connections == 1);
        if is_one { "" } else { " for each connection" }
    }

    /// The rate that commands, or a change to the program in question, gain in `direction`, and the finding about that change.
    fn gain_in(&self, direction: &HostDirection) -> Option<(Rate, &Finding)> {
        let cap = direction.cap.as_ref()?;
        let mut removed =
            self.findings.iter().filter(|f| f.is_in_set() || f.command.starts_with(IN_PROGRAM));
        let finding = removed.find(|f| f.what == cap.what && f.end == cap.end)?;
        finding.gain.filter(|gain| *gain > Rate::ZERO).map(|gain| (gain, finding))
    }

    /// The effect of the SO_RCVBUF that the program sets.
    fn rcvbuf_words(&self) -> String {
        let here = &self.question.here;
        let asked = here.asked_receive_buffer.unwrap_or_default();
        let Some((granted, cap)) = caps::granted(here).zip(caps::asked(here, PathEnd::Here)) else {
            return format!("{asked}: the window depends on the kernel, whose version is unknown");
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

    /// The settings that were read and checked, and how to have the others checked.
    fn checked_words(&self) -> String {
        let here = &self.question.here;
        let names = |words: &[(bool, &str)]| -> Vec<String> {
            words.iter().filter(|(is, _)| *is).map(|(_, words)| (*words).to_owned()).collect()
        };
        let mut all = names(&[
            (self.target.is_some(), "socket buffers"),
            (here.sysctls.number("net.ipv4.tcp_sack").is_some(), "TCP options"),
            (here.sysctls.triple("net.ipv4.tcp_mem").is_some(), "tcp_mem"),
            (!here.listeners.is_empty(), "listening sockets"),
        ]);
        all.extend(here.device.as_ref().map(|device| device.name.clone()));
        let missing = self.missing_from_peer();
        all.extend(self.question.peer.as_ref().map(|peer| match missing.is_empty() {
            // Only --peer-mtu was given.
            true if peer.sysctls == Sysctls::default() => "the peer's MTU".to_owned(),
            true => "the peer".to_owned(),
            false => {
                format!("the peer except {}, which its list of sysctls lacks", missing.join(", "))
            }
        }));
        let checked = if all.is_empty() { "nothing".to_owned() } else { all.join(", ") };
        match self.target {
            Some(_) => checked,
            None => format!(
                "{checked}; not socket buffers, which depend on the path: give --rate and --rtt"
            ),
        }
    }

    /// The socket buffer settings that are missing from the peer's list of sysctls.
    pub(super) fn missing_from_peer(&self) -> Vec<&'static str> {
        let list = self.question.peer.as_ref().map(|peer| &peer.sysctls);
        let list = list.filter(|list| self.target.is_some() && **list != Sysctls::default());
        let lacks = |name: &&str| list.is_some_and(|list| list.text(name).is_none());
        let buffers =
            ["net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem", "net.core.rmem_max", "net.core.wmem_max"];
        buffers.into_iter().filter(lacks).collect()
    }

    fn count(&self) -> String {
        let changes = self.findings.iter().filter(|f| f.is_change());
        let by_hand = changes.clone().filter(|f| !f.is_in_set()).count();
        let by_hand = match by_hand {
            0 => String::new(),
            n => format!(" ({n} by hand)"),
        };
        let lasts = match self.of_sysctl_file().next() {
            Some(_) if self.is_written => {
                "; to make this host's sysctls permanent, copy the file written to /etc/sysctl.d"
            }
            Some(_) => {
                "; these commands last until reboot; to make this host's permanent, use --write NAME.conf"
            }
            None => "",
        };
        match changes.count() {
            0 if !self.findings.is_empty() => "no setting helps".to_owned(),
            0 => "none needed".to_owned(),
            1 if !by_hand.is_empty() => "1, by hand".to_owned(),
            n => format!("{n}{by_hand}{lasts}"),
        }
    }
}

/// The window that one connection needs on the path, with the MTU that this assumes.
fn window_words(target: &PathTarget) -> String {
    let (window, mtu) = (target.window, target.raised_mtu);
    let mtu = match mtu > target.question.mtu {
        true => format!("MTU {} B, once raised", mtu.get()),
        false => format!("MTU {} B", mtu.get()),
    };
    match (target.connections, target.shares) {
        (1, _) if target.filled() < window => {
            format!("{window} ({mtu}), TCP's initial window, fills the path")
        }
        (1, _) => format!("{window} per connection ({mtu}) fills the path"),
        (n, least) if n > least => {
            format!("{window} for each of {n} connections ({mtu}), which fill the path together")
        }
        (n, _) => format!(
            "{window} per connection ({mtu}); it takes {n} connections to fill the path, as no TCP window exceeds \
             {LARGEST_WINDOW} (RFC 7323)"
        ),
    }
}

fn direction(d: &HostDirection, target: &PathTarget) -> String {
    let rate = target.rate();
    match &d.cap {
        Some(cap) if d.rate < rate && cap.what == "net.ipv4.tcp_mem" => {
            let (what, end, n) = (&cap.what, cap.end.name(), target.connections);
            format!("{}: {what} on {end} limits each of {n} connections", d.rate)
        }
        Some(cap) if d.rate < rate && d.rate < rate.scaled(0.995) => {
            // With a send buffer, bursts can exceed its window.
            let least = if cap.what == "net.ipv4.tcp_wmem" { "at least " } else { "" };
            format!("{least}{}: {} on {} limits a flow", d.rate, cap.what, cap.end.name())
        }
        _ if d.rate < rate => format!("{}: the device limits a flow", d.rate),
        _ => format!("{}: no setting limits a flow", d.rate),
    }
}
