// What the controls mean: settings in the units of the field, and the scenario they make.

/** Bytes of a packet: the papers' simulations have 1000, all of them payload. */
export const PACKET = 1000;

/** Packets that one run should take: more are not simulated while somebody waits. */
const PACKETS = 300_000;
/** Round trips that a run has at least, however many packets that takes, */
const ROUND_TRIPS = 60;
/** up to so many: a run of more would keep somebody waiting, and the closed forms answer alone. */
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

/** Steps of 1 % of a decade between slider and value. */
const RANGES = { rate: [1e6, 5], rtt: [1e-3, 2.5], buffer: [5, 5] };

export function toSlider(key, value) {
  return Math.round(100 * Math.log10(value / RANGES[key][0]));
}

/** The value at a place of a slider, to two digits; of the buffer whole packets, to three. */
export function fromSlider(key, place) {
  const value = RANGES[key][0] * 10 ** (place / 100);
  return key === "buffer" ? Math.round(Number(value.toPrecision(3))) : Number(value.toPrecision(2));
}

/** The least and the largest value of a slider. */
export function range(key) {
  const [min, decades] = RANGES[key];
  return [min, min * 10 ** decades];
}

/** Factors of the units of a quantity; those without a unit are the usual ones. */
const UNITS = {
  rate: { "": 1e6, k: 1e3, M: 1e6, G: 1e9 },
  rtt: { "": 1e-3, us: 1e-6, µs: 1e-6, ms: 1e-3, s: 1 },
  buffer: { "": 1e3, B: 1, kB: 1e3, MB: 1e6, GB: 1e9, pkt: PACKET },
};

/** A quantity as people write it (50 Mbit/s, 10G, 80ms, 300 kB), in the settings' units; `null` if it is none. */
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

/** No TCP window is larger, bytes: 65,535 with a scale of 14 (RFC 7323, section 2.3). */
export const LIMIT = 65_535 * 2 ** 14;

/** Packets beyond which the buffer overflows anyhow. */
const overflowing = (s) => Math.max(8, Math.ceil(1.6 * (product(s) + s.buffer)));

/** The largest window worth looking at, packets. */
export const largestWindow = (s) => Math.min(overflowing(s), Math.floor(LIMIT / PACKET));

/** Packets of a run. */
export const packets = (s) => (span(s) * s.rate) / 8 / PACKET;

/** Whether a run would take longer than somebody waits for a page. */
export const isTooLong = (s) => packets(s) > MAX_PACKETS;

/** Simulated time, seconds: 600 round trips, or what a run may take. */
export function span(s) {
  const max = Math.max((PACKETS * PACKET * 8) / s.rate, ROUND_TRIPS * s.rtt);
  return Number(Math.min(Math.max(600 * s.rtt, 2), max, 120).toPrecision(3));
}

/**
 * Time before counting begins, seconds: half of the run, so that slow start and the repair of what it overflowed are
 * over where the run is short.
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

/** A scenario's windows end at a million packets, unless it says otherwise. */
const limit = (s) => (overflowing(s) > 1e6 ? `\n[tcp]\nmax_window = "${overflowing(s)}pkt"\n` : "");

/** The scenario file of these settings, with this window (packets) where it is fixed. */
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
