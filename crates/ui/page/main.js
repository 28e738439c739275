// The bench: controls, questions to the workers, and pictures of the answers.

import { Chart } from "./chart.js";
import { watch } from "./live.js";
import { DEFAULTS, PACKET, fromSlider, fromTyped, isTooLong, largestWindow, packets, product, range, scenario, span, toSlider, warmup } from "./scenario.js";
import * as words from "./words.js";

const $ = (id) => document.getElementById(id);

/** A worker that answers one question at a time. */
class Engine {
  constructor() {
    this.waiting = new Map();
    this.asked = 0;
    this.here = null;
    this.worker = new Worker("engine.js");
    this.worker.onmessage = ({ data: { id, here, told } }) => {
      this.here = here;
      this.waiting.get(id)(told);
      this.waiting.delete(id);
    };
  }

  ask(question) {
    const id = ++this.asked;
    this.worker.postMessage({ id, question });
    return new Promise((resolve) => this.waiting.set(id, resolve));
  }
}

const paper = new Engine();
const player = new Engine();

const settings = { ...DEFAULTS };
const view = { curve: null, series: null, points: new Map() };
let generation = 0;

const charts = {
  curve: new Chart($("curve"), { x: "window S, kB", height: 270, drag: dragWindow }),
  queue: new Chart($("queue"), { x: "time, s" }),
  windows: new Chart($("windows"), { x: "time, s" }),
  goodput: new Chart($("goodput"), { x: "time, s" }),
  rtts: new Chart($("rtts"), { x: "time, s" }),
};

// ---- controls

function readControls() {
  for (const key of ["rate", "rtt", "buffer"]) {
    // A slider that has not moved keeps its exact value.
    if (Number($(key).value) !== toSlider(key, settings[key])) settings[key] = fromSlider(key, $(key).value);
  }
  settings.cross = $("cross").value;
  settings.load = Number($("load").value);
  settings.sizing = $("sizing").value;
  settings.window = Number($("window").value);
}

function showControls() {
  const max = largestWindow(settings);
  settings.window = Math.min(settings.window, max);
  $("window").max = max;
  for (const key of ["rate", "rtt", "buffer"]) $(key).value = toSlider(key, settings[key]);
  for (const key of ["cross", "load", "sizing", "window"]) $(key).value = settings[key];
  $("load").disabled = settings.cross === "none";
  $("window").disabled = settings.sizing !== "fixed";
  const full = (settings.buffer / product(settings)).toPrecision(2);
  document.querySelector("output[for=buffer]").textContent = `${Number(full)} BDP`;
  document.querySelector("output[for=load]").textContent = settings.cross === "none" ? "" : `${settings.load} %`;
  $("load").setAttribute("aria-valuetext", `${settings.load} %`);
  for (const key of ["rate", "rtt", "buffer", "window"]) {
    const text = inWords(key, settings[key]);
    const typed = typedField(key);
    if (typed !== document.activeElement) {
      typed.value = text;
      refuse(typed, "");
    }
    typed.disabled = $(key).disabled;
    $(key).setAttribute("aria-valuetext", text);
  }
}

/** The value of a slider with its unit. */
function inWords(key, value) {
  if (key === "rate") return words.rate(value);
  return key === "rtt" ? words.time(value) : words.bytes(value * PACKET);
}

const typedField = (key) => document.querySelector(`.typed[data-for=${key}]`);

/** Why a typed value cannot be used; empty if it can. */
function wrong(key, value) {
  const [min, max] = key === "window" ? [1, largestWindow(settings)] : range(key);
  if (value === null) return `Write a number and its unit, such as ${inWords(key, DEFAULTS[key])}`;
  if (value < min) return `At least ${inWords(key, min)} here`;
  return value > max ? `At most ${inWords(key, max)} here` : "";
}

/** Shows the reason for refusing a typed value, and the value still in use, below its field; an empty reason removes both. */
function refuse(typed, reason) {
  const key = typed.dataset.for;
  typed.setCustomValidity(reason);
  $(`${key}-refused`).textContent = reason && `${reason}; still showing ${inWords(key, settings[key])}.`;
}

/** Applies a typed value unless it must be refused. */
function take(typed) {
  const key = typed.dataset.for;
  const value = fromTyped(key, typed.value);
  const reason = wrong(key, value);
  refuse(typed, reason);
  if (reason) return;
  settings[key] = value;
  $(key).value = key === "window" ? value : toSlider(key, value);
  typed.blur();
  changed();
}

/** Units for the picture of R(S). */
const units = (s) => ({ window: words.unit("bytes", largestWindow(s) * PACKET), goodput: words.unit("rate", s.rate) });

function dragWindow(at) {
  if (settings.sizing !== "fixed") return;
  const wanted = Math.round((at * units(settings).window.size) / PACKET);
  $("window").value = Math.max(1, Math.min(wanted, largestWindow(settings)));
  changed();
}

// ---- questions

/** Asks about the newest settings; earlier questions without an answer are dropped. */
function changed() {
  readControls();
  showControls();
  generation += 1;
  document.body.removeAttribute("data-settled");
  $("file").textContent = scenario(settings);
  drawCurve();
  schedule(askPaper);
  schedule(askPlayer);
}

const running = new Set();

/** Runs `job` for the newest settings, and again if they changed while it ran. */
async function schedule(job) {
  if (running.has(job)) return;
  running.add(job);
  let seen;
  do {
    seen = generation;
    await job(seen);
  } while (seen !== generation);
  running.delete(job);
}

async function askPaper() {
  const max = largestWindow(settings);
  const windows = Array.from({ length: 161 }, (_, i) => Math.max(1, Math.round((i / 160) * max)) * PACKET);
  const curve = await paper.ask({ ask: "curve", scenario: scenario(settings, settings.window, "max"), windows_bytes: windows });
  view.curve = curve.error ? null : { ...curve, windows };
  $("because").textContent = view.curve ? words.uncovered(view.curve) : "";
  drawCurve();
  drawSeries();
}

async function askPlayer(seen) {
  const simulated = { ...settings };
  if (isTooLong(simulated)) {
    await askPaperAlone(simulated);
    if (seen === generation) document.body.setAttribute("data-settled", "yes");
    return;
  }
  const question = { ask: "series", scenario: scenario(simulated), interval_s: span(simulated) / 400 };
  const told = await player.ask(question);
  if (told.error) {
    $("verdict").textContent = told.error;
    document.body.setAttribute("data-settled", "error");
    return;
  }
  view.series = { ...told, settings: simulated };
  drawSeries();
  drawCurve();
  await simulateCurve(seen, simulated);
  if (seen === generation) document.body.setAttribute("data-settled", "yes");
}

/** Shows the closed forms alone, if the simulator would take too long. */
async function askPaperAlone(simulated) {
  const told = await paper.ask({ ask: "run", engine: "theory", scenario: scenario(simulated) });
  view.series = told.error ? null : { outcome: told, settings: simulated };
  for (const key of ["queue", "windows", "goodput", "rtts"]) charts[key].say("Not simulated at this size of path.");
  $("engine").textContent = "All numbers are from a closed form.";
  if (told.error) {
    $("verdict").innerHTML = words.onPaperAlone(packets(simulated)) + words.beyond(simulated, told.error);
    $("numbers").innerHTML = "";
  }
  drawSeries();
  drawCurve();
}

/** Shows the verdict on an outcome, preceded by `before`, and its numbers. */
function tell(before, s, seen) {
  $("verdict").innerHTML = before + words.verdict(s, view.curve, seen);
  $("period").textContent = seen.dropped === null ? "In numbers" : `In numbers, from ${words.time(warmup(s))} on`;
  const row = ([name, value, more]) => `<tr><th scope="row">${name}</th><td>${value}</td><td>${more}</td></tr>`;
  $("numbers").innerHTML = words.numbers(s, seen.outcome).map(row).join("");
}

/** Simulates the dots of R(S), widely spaced ones first; known dots are kept. */
async function simulateCurve(seen, simulated) {
  for (const packets of dotWindows(simulated)) {
    if (seen !== generation) return;
    const text = scenario(simulated, packets, "fixed");
    if (view.points.has(text)) continue;
    const told = await player.ask({ ask: "run", scenario: text });
    if (!told.error) view.points.set(text, told.transfers[0]);
    drawCurve();
  }
}

const DOTS = 16;

function dotWindows(s) {
  const max = largestWindow(s);
  const order = [16, 8, 4, 12, 2, 6, 10, 14, 1, 3, 5, 7, 9, 11, 13, 15];
  return [...new Set(order.map((i) => Math.max(1, Math.round((i / DOTS) * max))))];
}

// ---- pictures

function drawCurve() {
  const s = settings;
  const unit = units(s);
  const place = (window, goodput) => [window / unit.window.size, goodput === null ? null : goodput / unit.goodput.size];
  const [max] = place(largestWindow(s) * PACKET, null);
  const { curve, series } = view;
  const simulated = dotWindows(s)
    .map((packets) => ({ window: packets * PACKET, told: view.points.get(scenario(s, packets, "fixed")) }))
    .filter(({ told }) => told !== undefined);
  const dots = (which) => simulated.filter(which).map(({ window, told }) => place(window, told.goodput_bps));
  const late = ({ window, told }) => words.recovering(s, curve, window, told) !== null;
  const picture = {
    words: `Goodput in ${unit.goodput.name} against the window in ${unit.window.name}`,
    x: words.caption("window S", unit.window),
    xs: [0, max],
    ys: [0, (s.rate / unit.goodput.size) * 1.08],
    names: { x: (window) => words.bytes(window * unit.window.size) },
    lines: [],
    dots: [{ class: "dot", points: dots((dot) => !late(dot)) }, { class: "dot late", points: dots(late) }],
    bands: [],
    levels: [s.rate / unit.goodput.size],
  };
  $("curve-caption").textContent = `Goodput R, ${unit.goodput.name}, against window S`;
  if (curve) {
    const points = curve.windows.map((w, i) => place(w, curve.goodput_bps[i])).filter(([x]) => x <= max);
    if (points.some(([, y]) => y !== null)) picture.lines.push({ class: "theory", points });
    if (curve.sweet_from_bytes) {
      picture.bands.push({ x: [curve.sweet_from_bytes, curve.sweet_to_bytes].map((window) => window / unit.window.size) });
      $("sweet").textContent = words.sweetSpot(s, curve);
    }
  }
  if (s.sizing === "fixed") [picture.now] = place(s.window * PACKET, null);
  if (series) {
    const told = series.outcome.transfers[0];
    const at = series.settings.sizing === "fixed" ? series.settings.window * PACKET : told.window_final_bytes;
    picture.dots.push({ class: "now-dot", points: [place(at, told.goodput_bps)] });
  }
  charts.curve.draw(picture);
}

/** Counts over the measured time, like those in the outcome, and whether slow start continued into it. */
function measured(s, { at_s: at, dropped_packets: dropped, acked_bytes: acked }) {
  const begin = Math.max(0, at.findIndex((t) => t >= warmup(s)));
  const end = at.length - 1;
  const middle = Math.floor((begin + end) / 2);
  const rate = (from, to) => (acked[to] - acked[from]) / (at[to] - at[from]);
  return {
    dropped: (dropped[end] ?? 0) - (dropped[begin] ?? 0),
    dropped_at: at.findLast((_, i) => dropped[i] > (dropped[i - 1] ?? 0)) ?? null,
    starting: end > middle && middle > begin && rate(middle, end) > STILL_GROWING * rate(begin, middle),
  };
}

/** If the second half is this much faster than the first, the run is not in steady state. */
const STILL_GROWING = 1.1;

const top = (values, min) => Math.max(min, ...values.filter((v) => v !== null)) * 1.08;

function drawSeries() {
  if (!view.series) return;
  const { samples, outcome, settings: s } = view.series;
  if (!samples) {
    tell(words.onPaperAlone(packets(s)), s, { outcome, dropped: null, dropped_at: null, starting: false });
    return;
  }
  const at = samples.at_s;
  const xs = [0, at.at(-1) ?? 1];
  const over = (values) => at.map((t, i) => [t, values[i]]);
  const drops = at.filter((_, i) => samples.dropped_packets[i] > (samples.dropped_packets[i - 1] ?? 0));
  charts.queue.draw({
    words: "Packets waiting over time", xs, counts: true, ys: [0, Math.max(s.buffer, 1) * 1.15],
    lines: [{ class: "queue", points: over(samples.queue_packets) }], levels: [s.buffer], drops,
  });
  const cwnd = samples.cwnd_packets.map((packets) => packets * PACKET);
  // Windows larger than path and buffer together all behave alike.
  const max = Math.min(largestWindow(s) * PACKET, top([...samples.window_bytes, ...cwnd], PACKET));
  const { sweet_from_bytes: from, sweet_to_bytes: to } = view.curve ?? {};
  const window = words.unit("bytes", max);
  const inUnit = ({ size }, values) => over(values.map((value) => (value === null ? null : value / size)));
  charts.windows.draw({
    words: "Advertised window and congestion window over time", xs, ys: [0, max / window.size],
    lines: [
      { class: "cwnd", name: "congestion window", points: inUnit(window, cwnd) },
      { class: "adv", name: "advertised", points: inUnit(window, samples.window_bytes) },
    ],
    names: { y: (value) => words.bytes(value * window.size) },
    bands: from && from < max ? [{ y: [from / window.size, Math.min(to, max) / window.size] }] : [],
  });
  $("windows-caption").textContent = words.caption("Windows", window);
  // Averaged over five RTTs: within one, ACKs arrive in bursts.
  const back = Math.max(1, Math.ceil((5 * s.rtt) / (at[1] - at[0])));
  const goodput = at.map((t, i) => {
    const since = Math.max(0, i - back);
    return i === 0 ? null : ((samples.acked_bytes[i] - samples.acked_bytes[since]) * 8) / (t - at[since]);
  });
  const rate = words.unit("rate", s.rate);
  charts.goodput.draw({
    words: "Goodput over time", xs, ys: [0, (s.rate / rate.size) * 1.08], lines: [{ class: "goodput", points: inUnit(rate, goodput) }],
    names: { y: (value) => words.rate(value * rate.size) },
  });
  $("goodput-caption").textContent = words.caption("Goodput over time", rate);
  const slowest = top(samples.rtt_s, s.rtt);
  const time = words.unit("time", slowest);
  charts.rtts.draw({ words: "Round-trip time over time", xs, ys: [0, slowest / time.size], lines: [{ class: "rtt", points: inUnit(time, samples.rtt_s) }] });
  $("rtts-caption").textContent = words.caption("Round-trip time", time);
  tell("", s, { outcome, ...measured(s, samples) });
  const where = player.here ? "in this page (WebAssembly)" : "by the server, because this program was built without WebAssembly";
  $("engine").textContent = `${words.counted(outcome.packets_forwarded, "packet")} over ${words.time(span(s))}, simulated with Reno ${where}. All numbers above cover the time from ${words.time(warmup(s))} on.`;
}

// ---- start

/** Settings in the address, after #, so that a picture can be linked. */
function readAddress() {
  for (const [key, value] of new URLSearchParams(location.hash.slice(1))) {
    if (!(key in DEFAULTS)) continue;
    if (typeof DEFAULTS[key] === "string") {
      if ([...$(key).options].some((option) => option.value === value)) settings[key] = value;
    } else if (Number(value) > 0) {
      settings[key] = Number(value);
    }
  }
  for (const key of ["rate", "rtt", "buffer"]) settings[key] = clampTo(key, settings[key]);
}

function clampTo(key, value) {
  const place = toSlider(key, value);
  const { min, max } = $(key);
  return place < min || place > max ? fromSlider(key, Math.min(Math.max(place, min), max)) : value;
}

readAddress();
showControls();
$("controls").addEventListener("input", (event) => {
  if (event.target.classList.contains("typed")) refuse(event.target, "");
  else changed();
});
for (const typed of document.querySelectorAll(".typed")) {
  typed.addEventListener("change", () => take(typed));
}
$("controls").addEventListener("change", () => {
  history.replaceState(null, "", `#${new URLSearchParams(Object.entries(settings))}`);
});
$("controls").addEventListener("submit", (event) => event.preventDefault());
changed();
const about = await (await fetch("about")).json().catch(() => ({ watched: [] }));
$("diagnosis").hidden = !about.simulator;
watch(about.watched, $("live"), $("watched"));
