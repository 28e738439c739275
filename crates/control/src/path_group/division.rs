//! Divides a window among the connections of a path.

use sweetspot_sizing::SizingPhase;
use sweetspot_sizing::share::max_min;
use sweetspot_units::{Bytes, Duration};

use super::{LimitChange, PathGroup};

/// The minimum share of a connection, in segments: fast retransmit needs this many (RFC 5681).
pub const MIN_SHARE_SEGMENTS: u64 = 4;

/// A limit is not set again if it changes by less than this fraction.
const MIN_LIMIT_CHANGE: f64 = 0.02;

impl PathGroup {
    /// The queueing delay caused by the minimum share of each connection. The controller cannot drain it, and must not mistake
    /// it for cross traffic. The queue drains at the path's rate, however small a part of it cross traffic leaves.
    pub(super) fn floor_queue(&self) -> Duration {
        let Some(window) = self.window.flatten() else { return Duration::ZERO };
        let held = self.members.values().filter(|m| m.limit.is_some()).count() as u64;
        let over = (self.mss * MIN_SHARE_SEGMENTS * held).saturating_sub(window);
        if over == Bytes::ZERO { Duration::ZERO } else { over / self.capacity }
    }

    /// Divides the window among the bulk transfers.
    pub(super) fn divide(&mut self) {
        let window = match (self.window, self.ceiling) {
            (None, None) => return,
            (window, None) => window.flatten(),
            (window, Some(ceiling)) => Some(window.flatten().map_or(ceiling, |w| w.min(ceiling))),
        };
        let bulk = self.members.iter().filter(|(_, m)| m.is_bulk() && !m.refuses);
        let bulk: Vec<u64> = bulk.map(|(cookie, _)| *cookie).collect();
        let limits: Vec<Option<Bytes>> = match window {
            None => vec![None; bulk.len()],
            Some(window) => {
                let min = self.mss * MIN_SHARE_SEGMENTS;
                let demands: Vec<Bytes> =
                    bulk.iter().map(|c| self.members[c].demand(window, self.rtt)).collect();
                let shares = max_min(window, &demands);
                // A connection that uses little now may need more soon. It may have an equal share, which costs nothing while
                // it is unused.
                let equal = window / bulk.len().max(1) as u64;
                shares.into_iter().map(|share| Some(share.max(equal).max(min))).collect()
            }
        };
        // A receiver never takes back an advertised window (RFC 9293, section 3.8.6). While the path is open, a lower limit
        // would only stop new data once that window is used up.
        let is_open = matches!(self.phase(), SizingPhase::Measuring | SizingPhase::Open)
            && self.ceiling.is_none();
        for (cookie, limit) in bulk.into_iter().zip(limits) {
            let Some(member) = self.members.get_mut(&cookie) else { continue };
            if member.limit.is_none() {
                member.first = member.last.advertised.unwrap_or(Bytes::ZERO);
            }
            let limit = limit.map(|limit| if is_open { limit.max(member.first) } else { limit });
            if differs(member.limit, limit) {
                let before = std::mem::replace(&mut member.limit, limit);
                self.limit_changes.push_back(LimitChange { cookie, before, limit });
            }
        }
    }
}

fn differs(before: Option<Bytes>, after: Option<Bytes>) -> bool {
    match (before, after) {
        (Some(before), Some(after)) => {
            (after.as_f64() - before.as_f64()).abs() > before.as_f64() * MIN_LIMIT_CHANGE
        }
        _ => before != after,
    }
}
