// Quantities and findings in words.

import { LIMIT, PACKET, product } from "./scenario.js";

const round = (value, digits = 3) => Number(value.toPrecision(digits)).toString();

export function bytes(value) {
  if (value >= 1e9) return `${round(value / 1e9)} GB`;
  return value < 1e6 ? `${round(value / 1e3)} kB` : `${round(value / 1e6)} MB`;
}

export function rate(bits) {
  return bits < 1e9 ? `${round(bits / 1e6)} Mbit/s` : `${round(bits / 1e9)} Gbit/s`;
}

export function time(seconds) {
  if (seconds < 1e-3) return `${round(seconds * 1e6)} µs`;
  return seconds < 1 ? `${round(seconds * 1e3)} ms` : `${round(seconds)} s`;
}

export const share = (value) => `${round(value * 100)} %`;

/**
 * A share in whole percent: the numbers of the link and of the sender differ by up to a window, whose ACKs arrive after the
 * measured time, so further digits mean nothing.
 */
const whole = (value) => (value < 0.01 ? share(value) : `${Math.round(value * 100)} %`);

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

/**
 * A run alone on the path that gets less than this fraction of the closed form's goodput is not in steady state:
 * without losses the difference is small; with losses, Reno's halving leaves more than half.
 */
const SETTLED = { lossless: 0.9, losing: 0.5 };

/** The packets in transmission at the bottleneck and at its input: neither waits in the buffer. */
const IN_SERVICE = 2 * PACKET;

/**
 * The steady-state goodput, bit/s, of a run that has not reached its steady state: slow start overflowed the buffer,
 * and Reno regains one packet per RTT. Otherwise `null`, and also with cross traffic, because the closed forms ignore
 * its bursts.
 */
export function recovering(s, curve, window, { goodput_bps: rate, loss_rate: loss }) {
  if (s.cross !== "none" || !curve?.sweet_from_bytes) return null;
  const steady = onPaper(curve, window);
  const min = window <= curve.sweet_to_bytes ? SETTLED.lossless : SETTLED.losing;
  // A window that overflows the buffer does so in each period of the steady state's sawtooth: without a loss, no full
  // period has passed.
  const partial = window > curve.sweet_to_bytes + IN_SERVICE && loss === 0;
  return steady !== null && (partial || rate < min * steady) ? steady : null;
}

/** Text about a run that has not reached its steady state. */
function unsettled(steady) {
  if (steady === null) return "";
  return ` But the run is <b class="bad">too short for its steady state</b>, of ${rate(steady)}: slow start overflowed the
    buffer, and since then the congestion window has grown by a packet per round trip.`;
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
 * nothing was simulated; `starting` says that the transfer was still growing in that time.
 */
export function verdict(s, curve, { outcome, dropped, starting }) {
  const told = outcome.transfers[0];
  const still = starting ? `<b class="bad">Still starting:</b> the rate was still growing at the end of the run, so this
    is not a steady state. ` : "";
  const goes = `${still}The transfer gets <b>${rate(told.goodput_bps)}</b> of ${rate(s.rate)}; ${queued(outcome.bottleneck)}.`;
  if (s.sizing === "max") {
    return `No window limits the transfer: <b class="bad">only congestion control</b> decides. It fills the buffer
      until packets are lost, halves its rate, and starts again${lost(dropped)}. ${goes}`;
  }
  if (s.sizing !== "fixed") {
    const window = told.window_final_bytes;
    return `${NAMES[s.sizing]} has arrived at a window of <b>${bytes(window)}</b>${where(window, curve)}${lost(dropped)}. ${goes}`;
  }
  const window = s.window * PACKET;
  const early = unsettled(recovering(s, curve, window, told));
  const [from, to] = [curve?.sweet_from_bytes, curve?.sweet_to_bytes];
  if (!from) {
    return `No closed form covers this cross traffic, so these numbers are only simulated. ${goes}`;
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
      ? ` Only slow start's bursts overflowed the buffer${lost(dropped)}; their cost fades with time.`
      : "";
    return `The window is <b class="good">inside the sweet spot</b>, ${bytes(from)} to ${bytes(to)}: the path is full in the steady state, and
      the excess waits in the queue. ${goes}${early || start}`;
  }
  return `The window is <b class="bad">too large</b>: above ${bytes(to)} the buffer overflows, and whenever packets are
    lost congestion control halves the rate${lost(dropped)}. ${goes}${early}`;
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

function lost(packets) {
  if (packets === null) return "";
  if (packets === 0) return "; nothing was dropped";
  return packets === 1 ? "; one packet was dropped" : `; ${packets.toLocaleString("en")} packets were dropped`;
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
  // Retransmissions of packets that were lost before the measured time.
  const earlier = told.loss_rate === 0 && told.retransmitted_packets > 0 ? " (lost before)" : "";
  return [
    ["goodput", rate(told.goodput_bps), `${whole(told.goodput_bps / s.rate)} of the rate, by the ACKs at the sender`],
    ["round-trip time", time(told.rtt_mean_s), `99th percentile ${time(told.rtt_p99_s)}`],
    ["loss", share(told.loss_rate), `${told.retransmitted_packets} packets retransmitted${earlier}, ${told.timeouts} timeouts`],
    ["queue", link.queue_delay_mean_s < 1e-6 ? "none" : time(link.queue_delay_mean_s), `${round(link.queue_mean_packets)} packets on average, ${link.queue_max_packets} at most`],
    ["link in use", whole(link.utilisation), "by the packets that leave it, cross traffic included; it can exceed the goodput while the rate grows, because ACKs come later"],
    ["window at the end", bytes(told.window_final_bytes), `the BDP (rate × RTT) is ${bytes(product(s) * PACKET)}, with the buffer ${bytes((product(s) + s.buffer) * PACKET)}`],
  ];
}
