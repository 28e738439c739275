mod round;
mod view;

use sweetspot_units::{Bytes, Duration, Time};

use self::round::Round;
use self::view::has_shrunk;
pub use self::view::{Sending, View};
use super::accounts::{Account, Accounts, Hold};
use super::elapsed::Elapsed;
use super::silence::is_silent;
use crate::Histogram;

/// Number of rounds over which a constant window is distinguished from one that grows slowly.
pub const HISTORY: usize = 12;
/// A window of fewer segments is full only if no further segment fits. Linux may leave up to a third of a larger window unused
/// (tcp_tso_should_defer).
const FEW: u64 = 8;
/// Time for which a loss shapes the congestion window: CUBIC takes this long to recover a large window.
const AFTER_LOSS: Duration = Duration::from_secs(30);
/// After a pause of an RTO, here Linux's minimum, a sender uses slow start again (RFC 5681 §4.1).
const RESTART: Duration = Duration::from_millis(200);
/// Minimum number of the receiver's messages followed by data that shows a rule, not chance.
const RULE: u64 = 5;

/// A round after which nothing was in flight, or in which a whole burst had been sent. The next event shows whether there was
/// more to send.
#[derive(Debug)]
struct Pending {
    account: Account,
    busy: Elapsed,
    full: bool,
    flight: u64,
}

/// Sums over rounds with one limit: the largest flight or window of each, and their durations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Held {
    rounds: u64,
    bytes: u128,
    nanos: u128,
}

impl Held {
    fn add(&mut self, bytes: u64, time: Duration) {
        self.rounds += 1;
        self.bytes += u128::from(bytes);
        self.nanos += u128::from(time.as_nanos());
    }

    /// The mean bytes and duration of a round; `None` if there was no round.
    pub fn mean(&self) -> Option<(Bytes, Duration)> {
        let n = u128::from(self.rounds);
        let nanos = self.nanos.checked_div(n)?;
        (nanos > 0)
            .then(|| (Bytes::new((self.bytes / n) as u64), Duration::from_nanos(nanos as u64)))
    }
}

/// Divides the lifetime of a stream into rounds and finds the sender's limit in each.
#[derive(Debug, Default)]
pub struct Rounds {
    round: Option<Round>,
    pending: Vec<Pending>,
    /// A round after which the sender continued later than an acknowledgement would have allowed, but by no more than a round
    /// trip. The size of the next flight shows whether RTTs are longer than assumed.
    doubtful: Option<Pending>,
    /// Whether the capture began in mid-stream and no round has ended yet. Then the first round, if only the next one shows
    /// whether the window doubled.
    joined: bool,
    first: Option<(Account, Elapsed)>,
    /// Whether the last doubtful round belonged to slow start.
    slow: bool,
    /// The last segment was not full, so the sender had sent everything it had.
    drained: bool,
    last_hold: Option<Hold>,
    /// Whether the sender ended its last pause by itself, without an acknowledgement. There is no pause before the first flight.
    unprompted: bool,
    /// Whether a small message from the receiver ended the pause.
    granted: bool,
    since: Option<Time>,
    /// Time without data in flight. The cause depends on the side that sends next.
    idle: Elapsed,
    /// Whether data was ever sent, and the time before it in which data seemed to be missing.
    spoke: bool,
    missing: Elapsed,
    flights: [u64; HISTORY],
    /// Number of valid flights in `flights`, since the window was last free to grow.
    known: usize,
    /// The largest flight of those that are no longer in `flights`, without losses since then.
    reached: u64,
    /// The books.
    pub accounts: Accounts,
    /// The largest flight.
    pub largest_flight: u64,
    /// Time in which unread data closed the window, or left no space for a segment.
    pub shut: Duration,
    /// The rounds in which the window was full.
    pub full_rounds: Held,
    /// Flights of rounds that neither the window nor a pause bounded, weighted with their durations.
    pub flights_seen: Histogram,
    /// The rounds without a limit, with the bytes that each delivered.
    pub free_rounds: Held,
    /// The largest flight of rounds limited by the receiver's messages.
    pub granted_flight: u64,
    /// Number of the receiver's messages that released data while other data was in flight.
    granted_midway: u64,
    has_window_above: bool,
    /// The largest flight since nothing was in flight.
    outing: u64,
}

impl Rounds {
    /// Accounts for the time up to `view.now`, in which the state was as in `view`.
    pub fn pass(&mut self, view: &View) {
        // Before the connection is open or data passes, neither side waits.
        let Some(since) = self.since else { return };
        self.since = Some(view.now);
        let now = view.now;
        if view.finished && view.next == view.una {
            // Only the other side keeps the connection open.
            return;
        }
        let shut =
            (view.window() == 0 || view.room() < view.step()) && view.is_small(view.window());
        if shut {
            self.shut += now.since(since);
        }
        let recorded = self.accounts.records();
        match &mut self.round {
            Some(round) if view.next > view.una => {
                let spent = if shut { &mut round.shut } else { &mut round.unanswered };
                spent.add(since, now, recorded);
            }
            _ if shut => {
                let silent = is_silent(view.repeats, Duration::ZERO, view.at_sender);
                let hold = if silent { Hold::Silent } else { Hold::WindowShut };
                self.accounts.book(quiet(hold), &Elapsed::between(since, now, recorded));
            }
            _ => self.idle.add(since, now, recorded),
        }
    }

    /// The stream begins: the time from `since` to `now` was needed to open the connection.
    pub fn open(&mut self, since: Time, now: Time) {
        // For a sender of data with the SYN (RFC 7413), this time was recorded as it passed.
        if self.since.is_none() {
            let opening = Elapsed::between(since, now, self.accounts.records());
            self.accounts.book(quiet(Hold::Opening), &opening);
        }
        self.since = Some(now);
    }

    /// An acknowledgement was seen before any data.
    pub fn begin(&mut self, now: Time) {
        self.since.get_or_insert(now);
    }

    /// The first data of a stream passes after the capture began in mid-connection: data that seemed missing was sent before.
    pub fn join(&mut self) {
        self.joined = true;
        self.missing = Elapsed::default();
    }

    /// Ends a time without data in flight, which was `hold`. Before the first data of a side at an RTT of `away`, that much of
    /// the time counts as opening: the message that it answers had to travel there, and the answer back.
    pub fn settle(&mut self, hold: Hold, away: Duration) {
        let mut idle = std::mem::take(&mut self.idle);
        if !self.spoke && hold == Hold::Unseen {
            return self.missing.extend(idle);
        }
        if !self.spoke && matches!(hold, Hold::Idle | Hold::IdleOrFull) {
            let travel = idle.split_last(away);
            self.accounts.book(quiet(Hold::Opening), &travel);
        }
        let hold = if hold == Hold::Waiting { self.waiting() } else { hold };
        self.accounts.book(quiet(hold), &idle);
    }

    /// The limit of a sender that had nothing in flight until the receiver's next message. Such messages may release data in the
    /// middle of flights, too. If about as much had been in flight as then, this is a wait for another grant.
    fn waiting(&self) -> Hold {
        let alike = 2 * self.outing >= self.granted_flight;
        if alike && self.is_granted_by_rule() { Hold::Granted } else { Hold::Waiting }
    }

    /// The receiver's messages showed a window above TCP of `window` bytes.
    pub fn grant(&mut self, window: u64) {
        self.granted_flight = self.granted_flight.max(window);
        self.has_window_above = true;
    }

    /// Whether messages from the receiver released data in the middle of flights more often than by chance. Answers do not do
    /// that, because they come after the whole request.
    pub fn is_granted_by_rule(&self) -> bool {
        self.has_window_above || (self.granted_midway >= RULE && self.granted_flight > 0)
    }

    /// New data was sent.
    pub fn sent(&mut self, view: &View, sending: &Sending) {
        self.since.get_or_insert(view.now);
        self.spoke = true;
        let flight = view.next - view.una;
        let fresh = flight <= sending.bytes;
        let soon = view.base.is_some_and(|base| sending.gap <= base * 2);
        for mut pending in std::mem::take(&mut self.pending) {
            if fresh && sending.missing {
                pending.account.hold = Hold::Unseen;
            } else if fresh && sending.answers {
                // A request or an answer had been sent, and it was the other end's turn.
                pending.account.hold = self.waiting();
            } else if fresh && pending.full && sending.pause == Some(false) && soon {
                self.settle_doubt(None);
                self.doubtful = Some(pending);
                continue;
            } else if fresh && (sending.pause == Some(false) || !pending.full) {
                // The sender had nothing more to send.
                pending.account.hold = Hold::Idle;
            } else if pending.account.hold == Hold::Granted {
                self.granted_flight = self.granted_flight.max(pending.flight);
            }
            self.accounts.book(pending.account, &pending.busy);
        }
        self.granted_midway += u64::from(sending.midway);
        self.outing = if fresh { flight } else { self.outing.max(flight) };
        self.drained = !sending.full;
        if fresh && sending.gap >= RESTART {
            (self.known, self.reached) = (0, 0);
        }
        let round = self.round.get_or_insert_with(|| Round { fresh, ..Round::new(view) });
        round.flight = round.flight.max(flight);
        round.full |= sending.full;
        if view.room() < round.room {
            (round.room, round.window) = (view.room(), view.window());
            round.largest = view.largest;
        }
        if let Some(prompted) = sending.pause {
            (self.unprompted, self.granted) = (!prompted, sending.granted);
        }
        if self.granted {
            round.granted += sending.bytes;
        }
        *(if self.unprompted { &mut round.unprompted } else { &mut round.prompted }) +=
            sending.bytes;
        if sending.pause == Some(false) {
            round.paused += sending.gap;
        }
        self.largest_flight = self.largest_flight.max(flight);
    }

    /// An RTT was measured.
    pub fn rtt(&mut self, sample: Duration) {
        if let Some(round) = &mut self.round {
            round.rtt = Some(round.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
    }

    /// The peer made progress, after `view.repeats` unanswered retransmissions.
    pub fn answered(&mut self, view: &View) {
        self.divide_silence(view, false);
    }

    /// An acknowledgement arrived.
    pub fn acked(&mut self, view: &View) {
        let Some(round) = self.round.take_if(|round| view.una >= round.end) else { return };
        self.close(round, view);
        if view.next > view.una {
            // In a stream without pauses, acknowledgements release the data, whatever began it.
            self.unprompted = false;
            self.round = Some(Round::new(view));
        }
    }

    /// The stream has ended. Unanswered retransmissions will not be answered, and the time without data in flight was `rest`.
    pub fn end(&mut self, view: &View, rest: Hold) {
        self.pass(view);
        self.divide_silence(view, true);
        self.settle(rest, Duration::ZERO);
        self.accounts.book(quiet(Hold::Unseen), &std::mem::take(&mut self.missing));
        if let Some(round) = self.round.take() {
            self.close(round, view);
        }
        self.settle_doubt(None);
        self.settle_first(Hold::Doubling);
        for Pending { account, busy, .. } in self.pending.drain(..) {
            self.accounts.book(account, &busy);
        }
    }

    /// Books a doubtful round. `next` is the round after it, if any: its flight, whether that ended with a full segment, and
    /// whether it was the last one.
    fn settle_doubt(&mut self, next: Option<(u64, bool, bool)>) {
        let Some(mut doubtful) = self.doubtful.take() else { return };
        self.slow = match next {
            // The last flight is only the rest of the data, and may be small.
            Some((flight, _, true)) if flight <= doubtful.flight => self.slow,
            Some((flight, full, _)) => full && grows(doubtful.flight, flight),
            None => false,
        };
        if !self.slow {
            doubtful.account.hold = Hold::Idle;
        }
        self.accounts.book(doubtful.account, &doubtful.busy);
    }

    /// Books the first round of a stream captured from the middle with the `hold` of the next round, because no earlier round
    /// shows whether its window doubled.
    fn settle_first(&mut self, hold: Hold) {
        if let Some((account, busy)) = self.first.take() {
            self.accounts.book(Account { hold, ..account }, &busy);
        }
    }

    /// Flights were measured wrongly: RTTs are shorter than assumed.
    pub fn forget_flights(&mut self) {
        (self.known, self.reached) = (0, 0);
        self.unprompted = false;
        if let Some(round) = &mut self.round {
            (round.flight, round.room, round.unprompted) = (0, u64::MAX, 0);
        }
    }

    /// The time since the peer last acknowledged data counts as silence if the retransmissions show that. `last`: no answer will
    /// come any more.
    fn divide_silence(&mut self, view: &View, last: bool) {
        let Some(round) = &mut self.round else { return };
        let unanswered = std::mem::take(&mut round.unanswered);
        let never_acked = last && view.repeats > 0;
        if never_acked || is_silent(view.repeats, unanswered.time(), view.at_sender) {
            self.accounts.book(quiet(Hold::Silent), &unanswered);
        } else {
            round.busy.extend(unanswered);
        }
    }

    fn close(&mut self, mut round: Round, view: &View) {
        self.settle_doubt(Some((round.flight, round.full, view.finished)));
        let hold = self.hold(&round, view);
        round.busy.extend(std::mem::take(&mut round.unanswered));
        let micros = round.busy.time().as_micros();
        let lasted = view.now.since(round.started);
        // A round begins behind data already in flight; a flight turns over once an RTT at most. From afar rounds are estimates.
        let least = view.base.filter(|_| view.at_sender).unwrap_or_default();
        let nanos = lasted.max(least).as_nanos().max(1);
        let bytes = view.una.saturating_sub(round.una);
        let rate = (u128::from(bytes) * 8_000_000_000 / u128::from(nanos)) as u64;
        let queue =
            round.rtt.zip(view.base).is_some_and(|(rtt, base)| has_standing_queue(rtt, base));
        let account = Account { hold, queue, rate };
        self.settle_first(hold);
        let is_first = std::mem::take(&mut self.joined);
        // If a whole burst was sent before its first acknowledgement, nothing held it.
        let whole = round.fresh && self.drained;
        let over = view.next == view.una;
        // A loss had to be repaired, wherever in the flight it was: whether more data followed does not matter.
        let is_repaired = round.repaired(view).is_some();
        let held = is_repaired || matches!(hold, Hold::WindowFull | Hold::WindowShut);
        if (over || whole) && !held {
            let (busy, full, flight) = (round.busy, round.full, round.flight);
            self.pending.push(Pending { account, busy, full, flight });
        } else if is_first && hold == Hold::Doubling {
            self.first = Some((account, std::mem::take(&mut round.busy)));
        } else {
            if hold == Hold::Granted {
                self.granted_flight = self.granted_flight.max(round.flight);
            }
            self.accounts.book(account, &round.busy);
        }
        self.accounts.book(Account { hold: Hold::WindowShut, queue, rate }, &round.shut);
        match hold {
            Hold::WindowFull | Hold::WindowShut => {
                self.full_rounds.add(round.window, lasted);
            }
            Hold::Flat | Hold::Growing | Hold::AfterLoss | Hold::TakenBack => {
                self.flights_seen.add(round.flight, micros);
                self.free_rounds.add(bytes, lasted);
            }
            _ => {}
        }
        self.reached = match is_repaired {
            true => 0,
            false if self.known == HISTORY => self.reached.max(self.flights[HISTORY - 1]),
            false => self.reached,
        };
        self.flights.rotate_right(1);
        self.flights[0] = round.flight;
        self.known = (self.known + 1).min(HISTORY);
    }

    /// The sender's limit in a round.
    fn hold(&mut self, round: &Round, view: &View) -> Hold {
        // Check losses before the window: a hole keeps the window from moving, so data fills it.
        if let Some(repair) = round.repaired(view) {
            return repair.hold();
        }
        // Linux may wait until a third of the window is free before it sends (tcp_tso_should_defer), so the window is not always
        // full to the last segment.
        let spare = if round.window < FEW * view.mss {
            view.step()
        } else {
            (2 * view.mss).max(round.window / 16)
        };
        if round.window == 0 || round.room < spare {
            return if has_shrunk(round.window, round.largest) {
                Hold::WindowShut
            } else {
                Hold::WindowFull
            };
        }
        let has_data_in_flight = view.next > view.una;
        if !round.full && has_data_in_flight {
            return Hold::Idle;
        }
        if 2 * round.granted > round.prompted + round.unprompted {
            return Hold::Granted;
        }
        if round.unprompted > round.prompted && !self.starts_slowly(round, view) {
            return Hold::Pausing;
        }
        if let Some(repair) = view.last_repair.filter(|r| view.now.since(r.at) < AFTER_LOSS) {
            return repair.hold();
        }
        if view.finished || round.prompted + round.unprompted == 0 {
            // The last flight is only the rest of the data, and may be small. If more follows, it was all the data available.
            return self.last_hold.unwrap_or(Hold::Doubling);
        }
        let hold = if self.doubles(round.flight) {
            Hold::Doubling
        } else if self.stands_still(view.mss) {
            Hold::Flat
        } else {
            Hold::Growing
        };
        self.last_hold = Some(hold);
        hold
    }

    /// Whether a pause that no acknowledgement ended is in fact an RTT longer than the handshake's: a program seldom has twice
    /// as much to send after each pause.
    fn starts_slowly(&self, round: &Round, view: &View) -> bool {
        let ends = view.finished && self.slow && round.flight <= self.flights[0];
        let grows = round.full && grows(self.flights[0], round.flight);
        (grows || ends) && view.base.is_some_and(|base| round.paused <= base * 2)
    }

    /// Whether the flight grows as in slow start: by a factor of 1.5 to 2 per round (RFC 5681 §3.1), at least 1.25 with
    /// stretched acknowledgements. Congestion avoidance adds one segment.
    fn doubles(&self, flight: u64) -> bool {
        let before = |rounds: usize| self.flights.get(rounds - 1).copied().unwrap_or(0);
        // A flight smaller than an earlier one is not slow start.
        let max = self.flights[..self.known].iter().copied().max().unwrap_or(0);
        match self.known {
            0 => true,
            1 => 4 * flight >= 5 * before(1),
            _ => flight > max && (4 * flight >= 5 * before(1) || 2 * flight >= 3 * before(2)),
        }
    }

    /// Whether the flights of the last rounds do not grow, by a quarter of a segment per round or more: half of CUBIC's slowest growth,
    /// 0.53 (RFC 9438, section 4.3). A congestion window that grows takes them beyond all flights before, as it shrinks only at losses.
    fn stands_still(&self, mss: u64) -> bool {
        let known = &self.flights[..self.known.min(HISTORY - 1)];
        if known.len() < 3 {
            return false;
        }
        let half = known.len().div_ceil(2);
        let mean = |flights: &[u64]| flights.iter().sum::<u64>() / flights.len().max(1) as u64;
        let (late, early) = (mean(&known[..half]), mean(&known[half..]));
        let max = |flights: &[u64]| flights.iter().copied().max().unwrap_or(0);
        let exceeds = max(&known[..half]) > self.reached.max(max(&known[half..]));
        !exceeds || late <= early + mss * known.len() as u64 / 8
    }
}

/// Whether slow start explains the growth from a flight of `before` to `flight` in one round trip. A program seldom has twice as
/// much to send after each pause.
fn grows(before: u64, flight: u64) -> bool {
    2 * flight >= 3 * before && 2 * flight <= 5 * before
}

/// The account of time in which nothing was delivered.
fn quiet(hold: Hold) -> Account {
    Account { hold, queue: false, rate: 0 }
}

/// Whether an RTT of `rtt` shows a standing queue: more than 10 % and 1 ms above the minimum `base`, which hosts do not add.
pub fn has_standing_queue(rtt: Duration, base: Duration) -> bool {
    rtt > base.scaled(1.1) + Duration::from_millis(1)
}
