use std::collections::BTreeMap;
use std::net::IpAddr;

use sweetspot_control::{Goal, PaceStep, PacedUpload, PathGroup, TuneEventKind, receiver_config};
use sweetspot_sizing::Sizing;
use sweetspot_units::{Bytes, Duration, Time};

use crate::link::SocketLink;
use crate::member::{Member, ObservedEvent, Reading, is_over};
use crate::options::SocketSizing;
use crate::readings;

/// The pause after a round, as a multiple of the CPU time of the round: all paths together use 0.5 % of a core.
const ROUND_CPU_BUDGET: u64 = 200;

/// Interval at which a helping sender reads its receiver's requests: half of the interval between probes.
const LINK_INTERVAL: Duration = Duration::from_millis(10);

/// Identifies the sockets that are sized together: the two hosts and the goal, or a single socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct PathKey {
    pub ends: (IpAddr, IpAddr),
    is_background: bool,
    /// The cookie of a socket that shares its window with no other socket.
    alone: Option<u64>,
}

impl PathKey {
    /// The key of a socket. A socket with a helping sender is sized alone.
    pub fn new(
        ends: (IpAddr, IpAddr),
        sizing: SocketSizing,
        cookie: u64,
        is_helped: bool,
    ) -> PathKey {
        let is_background = sizing == SocketSizing::LessThanBestEffort;
        let is_shared = sizing.is_shared() && !is_helped;
        PathKey { ends, is_background, alone: (!is_shared).then_some(cookie) }
    }

    /// The path's only possible socket.
    pub fn alone(&self) -> Option<u64> {
        self.alone
    }

    /// Whether to keep the window found on the path for later sockets. The capacity that cross traffic leaves changes too
    /// quickly.
    pub fn is_worth_keeping(&self) -> bool {
        !self.is_background && self.alone.is_none()
    }
}

pub(crate) struct Path {
    pub group: PathGroup,
    pub members: BTreeMap<u64, Member>,
    pub next_round: Time,
}

#[derive(Default)]
pub(crate) struct Round {
    /// Events for observers, with the socket's cookie.
    pub reported: Vec<(u64, ObservedEvent)>,
    /// Sockets that were closed or now rest.
    pub left: Vec<Member>,
}

impl Path {
    /// A path without sockets. Its `group` may be known from before.
    pub fn new(now: Time, group: PathGroup) -> Path {
        Path { group, members: BTreeMap::new(), next_round: now }
    }

    /// The controllers of a path that has one connection and its sender's help.
    pub fn helped_group(mss: Bytes, max_window: Bytes) -> Option<PathGroup> {
        let config = receiver_config(mss, max_window);
        let controller = Sizing::Sobas.controller(&config).ok()?;
        Some(PathGroup::with_help(controller, config.mss))
    }

    /// Reads the datagrams from the sockets' peers. Returns whether any socket has a link.
    pub fn receive(&mut self) -> bool {
        let links = self.members.values_mut().filter_map(|member| member.link.as_deref_mut());
        links.map(SocketLink::receive).count() > 0
    }

    /// The controllers of a path with connections that advertised the MSS `mss`.
    pub fn group(sizing: SocketSizing, mss: Bytes, max_window: Bytes) -> Option<PathGroup> {
        let config = receiver_config(mss, max_window);
        let controller = match sizing {
            SocketSizing::LessThanBestEffort => Goal::LessThanBestEffort.controller(&config),
            other => other.sizing().controller(&config).ok()?,
        };
        Some(PathGroup::new(controller, config.mss))
    }

    pub fn add(&mut self, now: Time, member: Member, reading: &Reading) {
        let cookie = member.socket.cookie();
        self.group.add(now, cookie, readings::download(&reading.info, reading.unread));
        self.members.insert(cookie, member);
        self.next_round = now;
    }

    /// Samples every socket and applies the controllers' decisions.
    pub fn round(&mut self, now: Time) -> Round {
        let mut round = Round::default();
        let mut left = Vec::new();
        for (cookie, member) in &mut self.members {
            match member.sample(now, self.group.limit(*cookie)) {
                Ok(Ok(reading)) if !is_over(&reading.info) => {
                    let download = readings::download(&reading.info, reading.unread);
                    self.group.handle_sample(now, *cookie, download);
                    member.exchange(now, &reading, &mut self.group);
                    let reported = member.handle_upload(&reading);
                    round.reported.extend(reported.map(|reported| (*cookie, reported)));
                    if member.is_idle(now) {
                        left.push(*cookie);
                    }
                }
                Err(lost) if !lost.is_over() => {}
                Ok(_) | Err(_) => {
                    member.is_over = true;
                    left.push(*cookie);
                }
            }
        }
        for cookie in left {
            round.left.extend(self.remove(now, cookie));
        }
        self.group.handle_round(now);
        self.apply(&mut round.reported);
        self.send_request();
        round
    }

    /// Sends the controller's requests to a helping sender.
    fn send_request(&mut self) {
        for link in self.members.values_mut().filter_map(|member| member.link.as_deref_mut()) {
            while let Some(request) = self.group.poll_request() {
                link.send_request(&request);
            }
            link.handle_timeout();
        }
    }

    /// Removes the sockets with a sender that does not answer.
    pub fn remove_unresponsive(&mut self, now: Time) -> Vec<Member> {
        let has_failed = |member: &Member| member.link.as_ref().is_some_and(|l| l.just_failed());
        let failed = self.members.iter().filter(|(_, member)| has_failed(member));
        let failed: Vec<u64> = failed.map(|(cookie, _)| *cookie).collect();
        failed.into_iter().filter_map(|cookie| self.remove(now, cookie)).collect()
    }

    /// Removes a socket and lifts its limits.
    pub fn remove(&mut self, now: Time, cookie: u64) -> Option<Member> {
        let mut member = self.members.remove(&cookie)?;
        self.group.remove(now, cookie);
        member.undo();
        Some(member)
    }

    /// Applies the changes of limits.
    fn apply(&mut self, reported: &mut Vec<(u64, ObservedEvent)>) {
        while let Some(ignored) = self.group.poll_ignored_limit() {
            reported.push((ignored.cookie, (TuneEventKind::Refused, ignored.to_string())));
        }
        let group_events: Vec<ObservedEvent> =
            std::iter::from_fn(|| self.group.poll_event()).collect();
        while let Some(change) = self.group.poll_limit_change() {
            let Some(member) = self.members.get_mut(&change.cookie) else { continue };
            if let Ok(Err(error)) = member.limit(change.limit) {
                let why = format!("the kernel refuses TCP_WINDOW_CLAMP: {error}");
                reported.push((change.cookie, (TuneEventKind::Refused, why)));
                self.group.leave(change.cookie);
                continue;
            }
            if change.limit.is_some() && !std::mem::replace(&mut member.is_claimed, true) {
                let why = "a bulk transfer".to_owned();
                reported.push((change.cookie, (TuneEventKind::Taken, why)));
            }
        }
        for (cookie, _) in self.members.iter().filter(|(_, member)| member.is_claimed) {
            reported.extend(group_events.iter().map(|reported| (*cookie, reported.clone())));
        }
    }

    /// Schedules the next round after one that used `took` of CPU time; `paths` share the CPU budget.
    pub fn rest(&mut self, now: Time, took: Duration, paths: u64) {
        let cpu_budget = took * (ROUND_CPU_BUDGET * paths);
        let mut pause = self.group.pause(now, cpu_budget);
        if self.members.values().any(|member| member.options.uploads) {
            pause = pause.min(PacedUpload::SAMPLE_INTERVAL.max(cpu_budget));
        }
        if self.members.values().any(|member| member.link.as_ref().is_some_and(|l| l.is_up())) {
            pause = pause.min(LINK_INTERVAL.max(cpu_budget));
        }
        let due = self.members.values().map(Member::upload_due).fold(Time::MAX, Time::min);
        self.next_round = due.max(now + cpu_budget).min(now + pause);
    }
}

impl Member {
    /// Paces the data that the socket sends. Returns the event to report, if there is one.
    fn handle_upload(&mut self, reading: &Reading) -> Option<ObservedEvent> {
        if !self.options.uploads || self.leaves_upload || self.apply_requests(reading.at) {
            return None;
        }
        let info = &reading.info;
        let (delivered, report) = (readings::delivered(info), readings::sender_report(info));
        let upload = self.upload.get_or_insert_with(|| {
            Box::new(match self.options.sizing {
                SocketSizing::LessThanBestEffort => PacedUpload::background(info.advmss),
                _ => PacedUpload::default(),
            })
        });
        let PaceStep { kind, before, pace, why } =
            upload.handle_sample(reading.at, delivered, info.rtt.nonzero(), &report)?;
        if pace != before
            && let Ok(Err(error)) = self.pace(pace)
        {
            self.leaves_upload = true;
            let why = format!("the kernel refuses SO_MAX_PACING_RATE: {error}");
            return Some((TuneEventKind::Refused, why));
        }
        kind.map(|kind| (kind, why))
    }

    /// The time of the next call of the upload's controller.
    fn upload_due(&self) -> Time {
        let upload = self.upload.as_deref().filter(|_| !self.leaves_upload);
        upload.map_or(Time::MAX, PacedUpload::poll_timeout)
    }
}
