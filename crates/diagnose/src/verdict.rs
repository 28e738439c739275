use serde::Serialize;
use sweetspot_units::Rate;

use crate::evidence::{BUFFER_MISSING, PROGRAM_OR_BUFFER};
use crate::explained::{allowed, explains};
use crate::fix::fix;
use crate::gain::gain;
use crate::limits::rounded;
use crate::{Class, Evidence, Limits, percent, words};

/// A flow's limit, in words.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct LimitVerdict {
    /// The family of classes with the largest share that explains the rate.
    pub class: Class,
    /// The class of that family with the largest share.
    pub cause: Class,
    /// The family's share of the time, 0 to 1.
    pub share_of_time: f64,
    /// The share of the cause alone.
    #[serde(skip)]
    pub cause_share: f64,
    /// The rate that the named limit allows, in bits per second, if it sets one.
    pub allowed_bps: Option<f64>,
    /// The limit, its share and its cause.
    pub words: String,
    /// The maximum gain without this limit, if known.
    #[serde(skip)]
    pub gain: Option<Rate>,
    /// The fix.
    #[serde(skip)]
    pub fix: String,
}

/// The class and the cause of a [`LimitVerdict`] without words: cheap for tables of many connections.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct NamedLimit {
    /// The family of classes with the largest share that explains the rate.
    pub class: Class,
    /// The class of that family with the largest share.
    pub cause: Class,
    /// The family's share of the time, 0 to 1.
    pub share_of_time: f64,
    /// The share of the cause alone.
    pub cause_share: f64,
}

impl NamedLimit {
    /// The limit of a flow with the division of time `limits`.
    pub fn new(limits: &Limits, evidence: &Evidence) -> NamedLimit {
        NamedLimit::settled(&mut { *limits }, &mut { *evidence })
    }

    /// Finds the limit. Moves the time of classes that do not explain the rate to unknown in `limits`, and records the
    /// reason in `evidence`.
    fn settled(limits: &mut Limits, evidence: &mut Evidence) -> NamedLimit {
        let class = name(limits, evidence);
        let cause = limits.leading(class);
        let [share_of_time, cause_share] = [limits.family_share(class), limits.share(cause)];
        NamedLimit { class, cause, share_of_time, cause_share }
    }
}

/// Minimum share of the time of a class that is reported in place of one with more time that does not explain the
/// rate.
const MIN_SHARE: f64 = 0.3;

impl LimitVerdict {
    /// The verdict on a flow with the division of time `limits`.
    pub fn new(limits: &Limits, evidence: &Evidence) -> LimitVerdict {
        let mut limits = *limits;
        let mut evidence = *evidence;
        let NamedLimit { class, cause, share_of_time: share, cause_share: own } =
            NamedLimit::settled(&mut limits, &mut evidence);
        let gain = gain(cause, own, &evidence);
        LimitVerdict {
            class,
            cause,
            share_of_time: rounded(share),
            cause_share: rounded(own),
            allowed_bps: allowed(cause, &evidence).map(Rate::as_f64),
            words: words::verdict(cause, [share, own], &evidence, gain),
            gain,
            fix: fix_of_all(cause, [share, own], &limits, &evidence),
        }
    }

    /// The limit's name after "limited by": the cause, or the family if other classes of it have a part of
    /// `share_of_time`.
    pub fn limited_by(&self) -> String {
        match words::is_shared([self.share_of_time, self.cause_share]) {
            true => format!("applications, mostly {}", words::part(self.cause)),
            false => self.cause.to_string(),
        }
    }
}

/// The fix; if a connection was idle for less than most of the applications' time, also the fix of the rest.
fn fix_of_all(cause: Class, shares: [f64; 2], limits: &Limits, evidence: &Evidence) -> String {
    let others = [Class::Application, Class::WaitingForPeer];
    let other = others.into_iter().max_by(|a, b| limits.share(*a).total_cmp(&limits.share(*b)));
    let other = other.filter(|_| cause == Class::Idle && !words::is_mostly(shares));
    let Some(other) = other.filter(|other| limits.share(*other) > 0.0) else {
        return fix(cause, evidence);
    };
    let words = match other {
        Class::WaitingForPeer => "waiting for the peer",
        _ => "of the sending application",
    };
    let share = percent(limits.share(other));
    format!("The idle time needs no fix; the {share} % {words} may. {}", fix(other, evidence))
}

/// The class with the most time among those that explain the rate. The time of one that does not
/// is unknown time.
fn name(limits: &mut Limits, evidence: &mut Evidence) -> Class {
    loop {
        let class = limits.dominant();
        if class == Class::Unknown || explains(class, limits.family_share(class), evidence) {
            let next = limits.shares().into_iter().map(|(class, _)| class.family());
            let next = next.filter(|next| *next != Class::Unknown);
            let reported =
                next.max_by(|a, b| limits.family_share(*a).total_cmp(&limits.family_share(*b)));
            return match reported {
                // The class with the most time does not account for the rate: report another one with enough time.
                Some(next)
                    if class == Class::Unknown
                        && replaces_unknown(limits.family_share(next), evidence)
                        && explains(next, limits.family_share(next), evidence) =>
                {
                    next
                }
                _ => class,
            };
        }
        limits.reassign_to_unknown(class);
        evidence.unknown_because = Some(UNEXPLAINED);
        evidence.unexplained.get_or_insert(class);
    }
}

/// Whether a limit with `share` of the time is reported in place of the unknown limit.
fn replaces_unknown(share: f64, evidence: &Evidence) -> bool {
    match evidence.unknown_because {
        Some(UNEXPLAINED | BUFFER_MISSING) => share >= MIN_SHARE,
        because => because == Some(PROGRAM_OR_BUFFER),
    }
}

/// The reason if the class with the most time does not explain the rate.
const UNEXPLAINED: &str = "the most frequent limit does not account for the measured rate";
