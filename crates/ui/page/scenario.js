// The meaning of the controls: settings in the units of the field, and the scenario made from them.

/** Packet size in bytes: 1000 in the papers' simulations, all of it payload. */
export const PACKET = 1000;

/** Target number of packets per run, to keep the wait short. */
const PACKETS = 300_000;
/** Minimum length of a run in RTTs, unless it would exceed `MAX_PACKETS`. */
const ROUND_TRIPS = 60;
/** Maximum number of packets per run: a longer run would take too long, and only the closed forms answer. */
const MAX_PACKETS = 2_500_000;

export const DEFAULTS = {
  rate: 50e6, // bit/s
  rtt: 0.1, // seconds
  buffer: 313, // packets
  cross: "none",
  load: 30, // per cent of the rate
  sizing: "fixed",
  window: 300, // packets
};

/** Each slider covers its range in steps of 1 % of a decade. */
const RANGES = { rate: [1e6, 5], rtt: [1e-3, 2.5], buffer: [5, 5] };

export function toSlider(key, value) {
  return Math.round(100 * Math.log10(value / RANGES[key][0]));
}

/** The value at a slider position, to two digits; for the buffer, whole packets to three digits. */
export function fromSlider(key, place) {
  const value = RANGES[key][0] * 10 ** (place / 100);
  return key === "buffer" ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(2));
}

/** The minimum and maximum of a slider. */
export function range(key) {
  const [min, decades] = RANGES[key];
  return [min, min * 10 ** decades];
}

/** Factors of the units of a quantity; without a unit, the usual one is assumed. */
const UNITS = {
  rate: { "": 1e6, k: 1e3, M: 1e6, G: 1e9 },
  rtt: { "": 1e-3, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1 },
  buffer: { "": 1e3, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, pkt: PACKET },
};

/**
 * A quantity as people write it (50 Mbit/s, 10G, 80ms, 300 kB), in the settings' units; `null` if it is not a
 * quantity.
 */
export function fromTyped(key, text) {
  const parts = /^\s*(\d+(?:\.\d+)?)\s*([a-zµ]*)(?:\/s)?\s*$/i.exec(text);
  if (!parts) return null;
  const unit = key === "rate" ? parts[2].replace(/(?:bit|b|bps)$/, "") : parts[2];
  const factor = UNITS[key === "window" ? "buffer" : key][unit];
  if (factor === undefined) return null;
  const value = Number(parts[1]) * factor;
  return key === "rate" || key === "rtt" ? value : Math.round(value / PACKET);
}

/** C T_m in packets. */
export const product = (s) => (s.rate * s.rtt) / 8 / PACKET;

/** Maximum TCP window, bytes: 65,535 with a scale of 14 (RFC 7323, section 2.3). */
export const LIMIT = 65_535 * 2 ** 14;

/** Number of packets beyond which the buffer overflows in any case. */
const overflowing = (s) => Math.max(8, Math.ceil(1.6 * (product(s) + s.buffer)));

/** The largest window worth considering, in packets. */
export const largestWindow = (s) => Math.min(overflowing(s), Math.floor(LIMIT / PACKET));

/** Number of packets in a run. */
export const packets = (s) => (span(s) * s.rate) / 8 / PACKET;

/** Whether a run would take longer than a user waits for a page. */
export const isTooLong = (s) => packets(s) > MAX_PACKETS;

/** Simulated time, seconds: 600 RTTs, or less if that is too many packets. */
export function span(s) {
  const max = Math.max((PACKETS * PACKET * 8) / s.rate, ROUND_TRIPS * s.rtt);
  return Number(Math.min(Math.max(600 * s.rtt, 2), max, 120).toPrecision(3));
}

/**
 * Time before counting begins, in seconds: half of the run, so that even in a short run slow start and the recovery
 * from its losses are over.
 */
export const warmup = (s) => Number((span(s) / 2).toPrecision(3));

const milliseconds = (seconds) => `"${Number((seconds * 1e3).toPrecision(6))}ms"`;

function cross(s) {
  const load = (s.rate * s.load) / 100;
  const rate = (bits) => `"${Math.max(1, Math.round(bits / 1e3))}kbit/s"`;
  const head = (kind) => `\n[[cross]]\nkind = "${kind}"\n`;
  switch (s.cross) {
    case "elephants": {
      const packets = Math.max(2, (product(s) * s.load) / 100);
      const count = Math.max(1, Math.min(20, Math.round(packets / 4)));
      const window = Math.max(1, Math.round(packets / count));
      const spread = `[${milliseconds(0.8 * s.rtt)}, ${milliseconds(1.2 * s.rtt)}]`;
      return `${head("elephants")}count = ${count}\nwindow = "${window}pkt"\nrtt = ${spread}\n`;
    }
    case "arrivals":
      return `${head("arrivals")}rate = ${rate(load)}\nsize_mean = "${30 * PACKET}B"\nsize_shape = 1.8\n`;
    case "pareto":
      return `${head("pareto")}count = 10\nrate = ${rate(load / 10)}\n`;
    default:
      return "";
  }
}

/** A scenario's windows are limited to a million packets unless it says otherwise. */
const limit = (s) => (overflowing(s) > 1e6 ? `\n[tcp]\nmax_window = "${overflowing(s)}pkt"\n` : "");

/** The scenario file for these settings, with a fixed window of `window` packets if the sizing is fixed. */
export function scenario(s, window = s.window, sizing = s.sizing) {
  const sized = sizing === "fixed" ? `fixed:${window}pkt` : sizing;
  return `title = "Tried out on the page"
seed = 1
warmup = "${warmup(s)}s"
duration = "${Number((span(s) - warmup(s)).toPrecision(3))}s"

[path]
rate = "${Number((s.rate / 1e3).toPrecision(6))}kbit/s"
rtt = ${milliseconds(s.rtt)}
buffer = "${s.buffer}pkt"
packet = "${PACKET}B"
access_rate = "${Number((Math.max(1e9, 10 * s.rate) / 1e3).toPrecision(6))}kbit/s"
reverse = "clean"
${limit(s)}${cross(s)}
[[transfer]]
congestion = "reno"
sizing = "${sized}"
`;
}
