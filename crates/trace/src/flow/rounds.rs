use sweetspot_units::{Duration, Time};

use super::accounts::{Account, Accounts, Hold};
use crate::Histogram;

/// Rounds over which a window that stands still is told from one that creeps.
const HISTORY: usize = 12;
/// A loss shapes the window for as long: CUBIC with a large window takes this long to come back.
const AFTER_LOSS: Duration = Duration::from_secs(30);

/// A round: from sending a byte to its acknowledgement, as the sender sees it.
#[derive(Debug)]
struct Round {
    end: u64,
    begun: Time,
    una: u64,
    flight: u64,
    /// The least room that was left in the advertised window, and the window then.
    room: u64,
    window: u64,
    rtt: Option<Duration>,
    /// Bytes sent after a pause that an acknowledgement ended, and that the sender ended by itself.
    prompted: u64,
    unprompted: u64,
    shut: Duration,
    busy: Duration,
}

/// A round after which nothing was under way: what comes next says whether there was more to send.
#[derive(Debug)]
struct Pending {
    account: Account,
    busy: Duration,
}

/// What the sender can see at a time.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub now: Time,
    pub next: u64,
    pub una: u64,
    /// The advertised window's right edge; `None` where the window cannot be known.
    pub edge: Option<u64>,
    pub mss: u64,
    /// The largest window ever advertised.
    pub largest: u64,
    /// Nothing will be sent any more.
    pub finished: bool,
    pub last_loss: Option<Time>,
    /// The shortest round trip so far.
    pub base: Option<Duration>,
}

impl View {
    fn room(&self) -> u64 {
        self.edge.map_or(u64::MAX, |edge| edge.saturating_sub(self.next))
    }

    fn window(&self) -> u64 {
        self.edge.map_or(u64::MAX, |edge| edge.saturating_sub(self.una))
    }
}

/// Divides the life of a stream into rounds and says what held the sender in each.
#[derive(Debug)]
pub struct Rounds {
    round: Option<Round>,
    pending: Option<Pending>,
    last_hold: Option<Hold>,
    /// Whether an acknowledgement ended the sender's last pause.
    prompted: bool,
    since: Option<Time>,
    flights: [u64; HISTORY],
    /// Rounds since the window was last free to grow.
    known: usize,
    /// The books.
    pub accounts: Accounts,
    /// The largest flight.
    pub largest_flight: u64,
    /// The windows that were found full, in bytes, weighted with time in microseconds.
    pub full_windows: Histogram,
    /// Flights of rounds that neither the window nor a pause bounded, weighted likewise.
    pub flights_seen: Histogram,
}

impl Default for Rounds {
    fn default() -> Rounds {
        Rounds {
            round: None,
            pending: None,
            last_hold: None,
            // Nobody waited before the first flight.
            prompted: true,
            since: None,
            flights: [0; HISTORY],
            known: 0,
            accounts: Accounts::default(),
            largest_flight: 0,
            full_windows: Histogram::default(),
            flights_seen: Histogram::default(),
        }
    }
}

impl Rounds {
    /// Time passes up to `view.now`, in which what `view` shows was so.
    pub fn pass(&mut self, view: &View) {
        // Before the connection is open, or data passes, nobody waits.
        let Some(since) = self.since else { return };
        self.since = Some(view.now);
        let time = view.now.since(since);
        if view.finished && view.next == view.una {
            // Only the other side keeps the connection open.
            return;
        }
        let shut = view.room() < view.mss && view.window() < view.largest / 2;
        match &mut self.round {
            Some(round) if view.next > view.una => {
                *(if shut { &mut round.shut } else { &mut round.busy }) += time;
            }
            _ => {
                let hold = if shut { Hold::WindowShut } else { Hold::Idle };
                self.accounts.book(Account { hold, queue: false, rate: 0 }, time);
            }
        }
    }

    /// The life begins: the time until `now` was needed to open the connection.
    pub fn open(&mut self, since: Time, now: Time) {
        // Of who sends data with the SYN (RFC 7413) that time was booked as it passed.
        if self.since.is_none() {
            let account = Account { hold: Hold::Opening, queue: false, rate: 0 };
            self.accounts.book(account, now.since(since));
        }
        self.since = Some(now);
    }

    /// New data, `bytes` of it, was sent; `pause` says whether the sender had paused before, and if so whether an
    /// acknowledgement ended that.
    pub fn sent(&mut self, view: &View, bytes: u64, pause: Option<bool>) {
        self.since.get_or_insert(view.now);
        if let Some(Pending { mut account, busy }) = self.pending.take() {
            if pause == Some(false) {
                // What was sent was all there was.
                account.hold = Hold::Idle;
            }
            self.accounts.book(account, busy);
        }
        let flight = view.next - view.una;
        let round = self.round.get_or_insert_with(|| Round::new(view));
        round.flight = round.flight.max(flight);
        if view.room() < round.room {
            (round.room, round.window) = (view.room(), view.window());
        }
        self.prompted = pause.unwrap_or(self.prompted);
        *(if self.prompted { &mut round.prompted } else { &mut round.unprompted }) += bytes;
        self.largest_flight = self.largest_flight.max(flight);
    }

    /// A round trip was measured.
    pub fn rtt(&mut self, sample: Duration) {
        if let Some(round) = &mut self.round {
            round.rtt = Some(round.rtt.map_or(sample, |rtt| rtt.min(sample)));
        }
    }

    /// An acknowledgement arrived.
    pub fn acked(&mut self, view: &View) {
        let Some(round) = self.round.take_if(|round| view.una >= round.end) else { return };
        self.close(&round, view);
        if view.next > view.una {
            // A stream without pauses is prompted, whatever began it.
            self.prompted = true;
            self.round = Some(Round::new(view));
        }
    }

    /// The stream is over.
    pub fn end(&mut self, view: &View) {
        self.pass(view);
        if let Some(round) = self.round.take() {
            self.close(&round, view);
        }
        if let Some(Pending { account, busy }) = self.pending.take() {
            self.accounts.book(account, busy);
        }
    }

    fn close(&mut self, round: &Round, view: &View) {
        let hold = self.hold(round, view);
        let lasted = view.now.since(round.begun).as_nanos().max(1);
        let bytes = view.una.saturating_sub(round.una);
        let rate = (u128::from(bytes) * 8_000_000_000 / u128::from(lasted)) as u64;
        let queue = round.rtt.zip(view.base).is_some_and(|(rtt, base)| stands(rtt, base));
        let account = Account { hold, queue, rate };
        if view.next == view.una && hold != Hold::WindowFull && hold != Hold::WindowShut {
            self.pending = Some(Pending { account, busy: round.busy });
        } else {
            self.accounts.book(account, round.busy);
        }
        self.accounts.book(Account { hold: Hold::WindowShut, queue, rate }, round.shut);
        let micros = round.busy.as_micros();
        match hold {
            Hold::WindowFull | Hold::WindowShut => self.full_windows.add(round.window, micros),
            Hold::Flat | Hold::Growing | Hold::AfterLoss => {
                self.flights_seen.add(round.flight, micros);
            }
            _ => {}
        }
        self.flights.rotate_right(1);
        self.flights[0] = round.flight;
        self.known = (self.known + 1).min(HISTORY);
    }

    /// What held the sender in a round.
    fn hold(&mut self, round: &Round, view: &View) -> Hold {
        // Linux waits for a third of the window before it sends (tcp_tso_should_defer), so that
        // the window is not always full to the last segment.
        if round.room < (2 * view.mss).max(round.window / 16) {
            let shut = round.window < view.largest / 2;
            return if shut { Hold::WindowShut } else { Hold::WindowFull };
        }
        if view.last_loss.is_some_and(|loss| loss >= round.begun) {
            return Hold::AfterLoss;
        }
        if round.unprompted > round.prompted {
            return Hold::Pausing;
        }
        if view.last_loss.is_some_and(|loss| view.now.since(loss) < AFTER_LOSS) {
            return Hold::AfterLoss;
        }
        if view.finished {
            // The last flight is as small as what was left.
            return self.last_hold.unwrap_or(Hold::Doubling);
        }
        let hold = if self.doubles(round.flight) {
            Hold::Doubling
        } else if self.stands_still(round.flight, view.mss) {
            Hold::Flat
        } else {
            Hold::Growing
        };
        self.last_hold = Some(hold);
        hold
    }

    /// Slow start multiplies the flight by 1.5 to 2 per round (RFC 5681 §3.1), a quarter is its
    /// least with stretched acknowledgements; congestion avoidance adds a segment.
    fn doubles(&self, flight: u64) -> bool {
        let before = |rounds: usize| self.flights.get(rounds - 1).copied().unwrap_or(0);
        match self.known {
            0 => true,
            1 => 4 * flight >= 5 * before(1),
            _ => 4 * flight >= 5 * before(1) || 2 * flight >= 3 * before(2),
        }
    }

    /// Whether the flights of the last rounds neither grow, by half a segment per round or more,
    /// nor swing.
    fn stands_still(&self, flight: u64, mss: u64) -> bool {
        let known = &self.flights[..self.known.min(HISTORY - 1)];
        if known.len() < 3 {
            return false;
        }
        let half = known.len().div_ceil(2);
        let mean = |flights: &[u64]| flights.iter().sum::<u64>() / flights.len().max(1) as u64;
        let (late, early) = (mean(&known[..half]), mean(&known[half..]));
        let most = known.iter().copied().max().unwrap_or(0).max(flight);
        late <= early + mss * half as u64 / 2 && flight + most / 4 >= most
    }
}

impl Round {
    fn new(view: &View) -> Round {
        Round {
            end: view.next,
            begun: view.now,
            una: view.una,
            flight: view.next - view.una,
            room: view.room(),
            window: view.window(),
            rtt: None,
            prompted: 0,
            unprompted: 0,
            shut: Duration::ZERO,
            busy: Duration::ZERO,
        }
    }
}

/// Whether a round trip of `rtt` shows a standing queue: a tenth and a millisecond above the
/// shortest, more than hosts add.
fn stands(rtt: Duration, base: Duration) -> bool {
    rtt > base.scaled(1.1) + Duration::from_millis(1)
}
