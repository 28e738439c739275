// Quantities and findings in words.

import { LIMIT, PACKET, largestWindow, product, warmup } from "./scenario.js";

const round = (value, digits = 3) => Number(value.toPrecision(digits)).toString();

/** A number and its unit or noun, which stay on one line. */
const joined = (number, unit) => `${number}\u00a0${unit}`;

export function bytes(value) {
  if (value >= 1e9) return joined(round(value / 1e9), "GB");
  return value < 1e6 ? joined(round(value / 1e3), "kB") : joined(round(value / 1e6), "MB");
}

export function rate(bits) {
  return bits < 1e9 ? joined(round(bits / 1e6), "Mbit/s") : joined(round(bits / 1e9), "Gbit/s");
}

export function time(seconds) {
  if (seconds < 1e-3) return joined(round(seconds * 1e6), "µs");
  return seconds < 1 ? joined(round(seconds * 1e3), "ms") : joined(round(seconds), "s");
}

export const share = (value) => joined(round(value * 100), "%");

export const counted = (number, noun) => joined(number.toLocaleString("en"), number === 1 ? noun : `${noun}s`);

/** The units of an axis, smallest first. */
const AXES = {
  bytes: [["kB", 1e3], ["MB", 1e6], ["GB", 1e9]],
  rate: [["Mbit/s", 1e6], ["Gbit/s", 1e9]],
  time: [["ms", 1e-3], ["s", 1]],
  share: [["%", 0.01]],
  count: [["", 1]],
};

/** The smallest unit that writes `highest`, with some space above it, in up to four digits before the point. */
export function unit(kind, highest) {
  const [name, size] = AXES[kind].find(([, each]) => (1.1 * highest) / each < 1e4) ?? AXES[kind].at(-1);
  return { name, size };
}

/** A caption with the unit of its axis. */
export const caption = (text, { name }) => (name ? `${text}, ${name}` : text);

/**
 * A share in whole percent: the numbers of the link and of the sender differ by up to a window, whose ACKs arrive after the
 * measured time, so further digits mean nothing.
 */
const whole = (value) => (value < 0.01 ? share(value) : joined(Math.round(value * 100), "%"));

/** Escapes text for HTML. */
export const escape = (text) => text.replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const NAMES = { sobas: "SOBAS", drs: "Dynamic Right-Sizing" };

/**
 * Goodput at a window by the closed forms, bit/s, interpolated between the windows asked about; `null` if no form is
 * known.
 */
function onPaper(curve, window) {
  const after = curve.windows.findIndex((w) => w >= window);
  if (after < 0) return null;
  const before = Math.max(0, after - 1);
  const [a, b] = [curve.goodput_bps[before], curve.goodput_bps[after]];
  if (a === null || b === null || before === after) return b;
  const part = (window - curve.windows[before]) / (curve.windows[after] - curve.windows[before]);
  return a + (b - a) * part;
}

/** A goodput of this share of the best is full: closed forms round to whole packets. */
const FULL = 0.995;
/** Mean flight of a run in steady state, as a share of a window that overflows no buffer. */
const FILLED = 0.9;
/** Losses leave Reno, which halves its rate, with more than this share of the closed form's goodput. */
const HALVED = 0.5;

/** The packets in transmission at the bottleneck and at its input: neither waits in the buffer. */
const IN_SERVICE = 2 * PACKET;

/** Closed forms ignore the bursts of this cross traffic, which keep a run from its steady state. */
const BURSTS = ["arrivals", "pareto"];

/**
 * `null` for a run that reached its steady state. Otherwise slow start overflowed the buffer, and Reno, which regains one packet
 * per RTT, has not recovered: then the steady state's goodput, bit/s, or `NaN` if no closed form gives it.
 */
export function recovering(s, curve, window, { goodput_bps: rate, rtt_mean_s: rtt, loss_rate: loss }) {
  if (BURSTS.includes(s.cross) || !curve?.sweet_from_bytes) return null;
  const steady = onPaper(curve, window) ?? NaN;
  if (window <= curve.sweet_to_bytes) {
    return (rate * rtt) / 8 < FILLED * window && rate < FULL * steady ? steady : null;
  }
  // A window that overflows the buffer does so in each period of the steady state's sawtooth: without a loss, no full
  // period has passed.
  const partial = window > curve.sweet_to_bytes + IN_SERVICE && loss === 0;
  return partial || rate < HALVED * steady ? steady : null;
}

/** Text about a run that has not reached its steady state. */
function unsettled(steady, { dropped_at: last }) {
  if (steady === null) return "";
  const due = Number.isNaN(steady) ? "" : `, of ${rate(steady)}`;
  const why = last === null
    ? "the transfer has yet to overflow the buffer"
    : "slow start overflowed the buffer, and since then the congestion window has grown by a packet per round trip";
  return ` But the run is <b class="bad">too short for its steady state</b>${due}: ${why}.`;
}

/** The extent of the sweet spot. */
export function sweetSpot(s, { sweet_from_bytes: from, sweet_to_bytes: to }) {
  const bursts = s.cross === "pareto" ? " The closed form takes the UDP as a constant rate: its bursts lower the goodput near both ends." : "";
  return `The sweet spot, ${bytes(from)} to ${bytes(to)}, runs from the smallest window with ${share(FULL)} of the best goodput to
    the largest without loss.${bursts}`;
}

/** Why the closed form gives no goodput at some windows, or at all of them. */
export function uncovered({ because, goodput_bps: goodput }) {
  if (!because) return "";
  const [why] = because.split(";");
  const found = goodput.some((bps) => bps !== null);
  const so = found ? "The dashed line ends where no closed form applies" : "No closed form covers this traffic, so only simulations are drawn";
  return `${so}: ${why}.`;
}

/** Text about a run that is too long to simulate; `packets` is the number that it would have. */
export function onPaperAlone(packets) {
  return `<b>On paper alone</b>: a run would be ${round(packets / 1e6, 2)} million packets, more than a page simulates while
    you wait; <code>sweetspot run</code> runs the file below. `;
}

/** Text shown if even the closed forms do not cover this sizing. */
export function beyond(s, why) {
  const sizing = NAMES[s.sizing] ? `how ${NAMES[s.sizing]} fares` : "this";
  return `No closed form predicts ${sizing} (${escape(why.split(";")[0])}). Choose a fixed window, or a smaller path.`;
}

/**
 * The result as HTML. `dropped` is the number of packets dropped at the buffer in the measured time, or `null` if
 * nothing was simulated; `dropped_at` is the time of the last drop; `starting` says that the transfer was still growing in that
 * time.
 */
export function verdict(s, curve, seen) {
  const { outcome, dropped, starting } = seen;
  const told = outcome.transfers[0];
  const drops = lost(s, seen);
  const still = starting ? `<b class="bad">Still starting:</b> the rate was still growing at the end of the run, so this
    is not a steady state. ` : "";
  const goes = `${still}The transfer gets <b>${rate(told.goodput_bps)}</b> of ${rate(s.rate)}; ${queued(outcome.bottleneck)}.`;
  const window = (s.sizing === "max" ? largestWindow(s) : s.window) * PACKET;
  const early = dropped === null ? "" : unsettled(recovering(s, curve, window, told), seen);
  if (s.sizing === "max") {
    return `No window limits the transfer: <b class="bad">only congestion control</b> decides. It fills the buffer
      until packets are lost, halves its rate, and starts again${drops}. ${goes}${early}`;
  }
  if (s.sizing !== "fixed") return `${chosen(s, curve, told)}${drops}. ${goes}`;
  const [from, to] = [curve?.sweet_from_bytes, curve?.sweet_to_bytes];
  if (!from) {
    return `No closed form covers this cross traffic, so these numbers are only simulated${drops}. ${goes}`;
  }
  if (window < from) {
    const held = share(Math.min(1, window / (product(s) * PACKET)));
    const why = s.cross === "none"
      ? `${bytes(window)} in flight fill ${held} of the path; the link idles for the rest of each round trip`
      : `cross traffic holds the rest of the path, and ${bytes(window)} in flight claim too little of it`;
    return `The window is <b class="bad">too small</b>: ${why}. ${goes} The sweet spot begins at ${bytes(from)}.${beyondTcp(from)}${early}`;
  }
  if (window <= to) {
    const start = s.cross === "none" && dropped > 0
      ? ` Only slow start's bursts overflowed the buffer${drops}; their cost fades with time.`
      : "";
    return `The window is <b class="good">inside the sweet spot</b>, ${bytes(from)} to ${bytes(to)}: the path is full in the steady state, and
      the excess waits in the queue. ${goes}${early || start}`;
  }
  return `The window is <b class="bad">too large</b>: above ${bytes(to)} the buffer overflows, and whenever packets are
    lost congestion control halves the rate${drops}. ${goes}${early}`;
}

/** The window that the receiver chose. */
function chosen(s, curve, { window_final_bytes: window, events }) {
  const size = `<b>${bytes(window)}</b>${where(window, curve)}`;
  if (s.sizing !== "sobas") return `${NAMES[s.sizing]} ended with a window of ${size}`;
  const state = events.findLast(({ reason }) => reason);
  if (state?.kind === "holding") return `SOBAS has settled on a window of ${size}`;
  const why = state ? `, because ${escape(state.reason)}` : "";
  return `SOBAS has <b class="bad">not settled on a window</b>${why}; it last advertised ${size}`;
}

/** Text for a path that one connection cannot fill. */
function beyondTcp(from) {
  return from <= LIMIT ? "" : ` That exceeds the largest TCP window, ${bytes(LIMIT)}: only several connections can fill this path.`;
}

function queued(link) {
  return link.queue_delay_mean_s < 1e-6
    ? "no queue builds up"
    : `packets wait ${time(link.queue_delay_mean_s)} on average`;
}

function lost(s, { dropped, dropped_at: last }) {
  if (dropped === null) return "";
  const since = `from ${time(warmup(s))} on`;
  if (dropped > 0) return `; ${since}, the buffer dropped ${counted(dropped, "packet")}${s.cross === "none" ? "" : " of all traffic"}`;
  return last === null ? "; nothing was dropped" : `; the buffer last dropped packets at ${time(last)}, and none ${since}`;
}

function where(window, curve) {
  if (!curve?.sweet_from_bytes) return "";
  if (window < curve.sweet_from_bytes) return ", below the sweet spot";
  return window <= curve.sweet_to_bytes ? ", inside the sweet spot" : ", above the sweet spot";
}

/** Rows of the table of numbers: name, value, meaning. */
export function numbers(s, outcome) {
  const told = outcome.transfers[0];
  const link = outcome.bottleneck;
  const again = `the transfer retransmitted ${counted(told.retransmitted_packets, "packet")}`;
  // Retransmissions of packets that were lost before the measured time.
  const earlier = told.loss_rate === 0 && told.retransmitted_packets > 0 ? " (lost before)" : "";
  return [
    ["goodput", rate(told.goodput_bps), `${whole(told.goodput_bps / s.rate)} of the rate, by the ACKs at the sender`],
    ["round-trip time", time(told.rtt_mean_s), `99th percentile ${time(told.rtt_p99_s)}`],
    ["loss", share(told.loss_rate), `${again}${earlier}, with ${counted(told.timeouts, "timeout")}`],
    ["queue", link.queue_delay_mean_s < 1e-6 ? "none" : time(link.queue_delay_mean_s), `${joined(round(link.queue_mean_packets), "packets")} on average, ${link.queue_max_packets} at most`],
    ["link in use", whole(link.utilisation), "by the packets that leave it, cross traffic included; it can exceed the goodput while the rate grows, because ACKs come later"],
    ["window at the end", bytes(told.window_final_bytes), `the BDP (rate × RTT) is ${bytes(product(s) * PACKET)}, with the buffer ${bytes((product(s) + s.buffer) * PACKET)}`],
  ];
}
