// The files that running programs write: the series of a transfer, the events of tune, the journal of a sweep.

import { Chart, shaped } from "./chart.js";
import { bytes, caption, escape, rate, share, time, unit } from "./words.js";

/** Time between two polls of the files, milliseconds. */
const LOOK = 500;
/** Samples kept per connection: an hour at twenty per second. */
const KEPT = 72_000;
/** Maximum number of lines in the list of events. */
const EVENTS = 100;

/** Shows the files with the names `watched`, which the server follows, as long as the page is open. */
export async function watch(watched, section, place) {
  section.hidden = watched.length === 0;
  const files = watched.map((name, index) => new Followed(index, name, place));
  if (files.length === 0) return;
  for (;;) {
    await Promise.all(files.map((file) => file.poll()));
    await new Promise((resolve) => setTimeout(resolve, LOOK));
  }
}

class Followed {
  constructor(index, name, place) {
    this.index = index;
    this.from = 0;
    this.lines = 0;
    this.view = null;
    const box = document.createElement("article");
    box.innerHTML = `<h3>${escape(name)}</h3><p class="state">Nothing has been written yet.</p><div class="cards"></div>
      <ul class="events"></ul>`;
    place.append(box);
    this.state = box.querySelector(".state");
    this.cards = box.querySelector(".cards");
    this.events = box.querySelector(".events");
  }

  /** Reads new lines until there are no more. */
  async poll() {
    let more = true;
    while (more) {
      const response = await fetch(`watch?file=${this.index}&from=${this.from}`).catch(() => null);
      if (!response?.ok) {
        this.state.textContent = response ? await response.text() : "sweetspot ui has ended; this is the last state.";
        return;
      }
      if (response.headers.get("Sweetspot-Anew") === "true") this.view = null;
      const next = Number(response.headers.get("Sweetspot-Next"));
      more = next !== this.from;
      this.from = next;
      const lines = (await response.text()).split("\n").filter((line) => line !== "");
      if (lines.length > 0) this.take(lines);
    }
  }

  take(lines) {
    for (const line of lines) {
      let row;
      try {
        row = JSON.parse(line);
      } catch {
        continue;
      }
      this.view ??= this.open(row);
      this.view?.take(row);
    }
    this.view?.draw();
  }

  open(row) {
    this.cards.innerHTML = "";
    this.events.innerHTML = "";
    if ("sweetspot_journal" in row) return new Sweep(this);
    if ("cookie" in row || "not_limited" in row) return new Tune(this);
    if ("t_s" in row) return new Transfers(this);
    this.state.textContent = "time" in row && ("outlook" in row || "unknown" in row)
      ? "This is a series of measure --watch, which this page does not draw. measure --html draws a single measurement."
      : "This file is not a series, event log or journal of Sweetspot.";
    return null;
  }

  /** A chart of values of a kind that has units, as in `unit`. */
  chart(words, kind, x) {
    const card = document.createElement("figure");
    card.className = "card";
    card.innerHTML = `<figcaption>${words}</figcaption><div></div><p class="legend"></p>`;
    this.cards.append(card);
    const chart = new Chart(card.querySelector("div"), { x });
    return Object.assign(chart, { legend: card.querySelector("p"), caption: card.querySelector("figcaption"), words, kind });
  }

  event(when, words) {
    const item = document.createElement("li");
    item.innerHTML = `<b>${when}</b>${escape(words)}`;
    this.events.prepend(item);
    while (this.events.children.length > EVENTS) this.events.lastChild.remove();
  }
}

/** Colours of connections; they repeat after these. */
const COLOURS = ["own0", "own1", "own2", "own3"];
/** A line with fewer samples than this is also drawn with dots. */
const FEW = 40;

/**
 * The corners of a value that holds until the next one, and finally until `end`; `null` means no value. A point may include the
 * value `before` it, which no earlier point reported: the step passes through it.
 */
function steps(points, end) {
  const corners = [];
  for (const [x, y, before] of points) {
    if (corners.length > 0) corners.push([x, corners.at(-1)[1]]);
    if (before != null) corners.push([x, before]);
    corners.push([x, y]);
  }
  if (corners.length > 0) corners.push([end, corners.at(-1)[1]]);
  return corners.filter(([x, y], n) => n === 0 || x !== corners[n - 1][0] || y !== corners[n - 1][1]);
}

/** Space around dots without lines, as a share of the axes, so that none lies on an axis. */
const MARGIN = 0.05;

/**
 * Draws a line or dots per connection. `pick` returns a row's value: `null` for none, `undefined` if the row does not change it.
 * `before`, if given, returns the value up to that row. All charts of the same rows have the same horizontal axis, which extends
 * beyond the last row by the fraction `tail`. Lines for which `proposed(key)` is true are drawn as proposals, not as values in
 * force.
 */
function plot(chart, connections, pick, name = (key) => key, { lined = true, stepped = false, before, tail = 0, proposed, counted, swept } = {}) {
  const times = [...connections.values()].flatMap((rows) => rows.map((row) => row.at));
  const xs = times.reduce(([min, max], at) => [Math.min(min, at), Math.max(max, at)], [Infinity, -Infinity]);
  const wide = xs[1] - xs[0] || 1;
  if (lined) xs[1] += xs[0] === xs[1] ? 1 : tail * wide;
  else [xs[0], xs[1]] = [xs[0] - MARGIN * wide, xs[1] + MARGIN * wide];
  const groups = [...connections].map(([key, rows], i) => ({
    class: COLOURS[i % COLOURS.length] + (proposed?.(key) ? " proposed" : ""),
    shape: lined ? undefined : i,
    name: name(key),
    points: rows.map((row) => [row.at, pick(row), before?.(row), row.name]).filter(([, y]) => y !== undefined),
  }));
  const known = groups.flatMap((group) => group.points).filter(([, y]) => y !== null);
  if (known.length === 0) return;
  const highest = known.reduce((best, [, y, until]) => Math.max(best, y, until ?? 0), 0);
  const { size, name: named } = unit(chart.kind, highest);
  for (const group of groups) group.points = group.points.map(([x, y, until, title]) => [x, y && y / size, until && until / size, title]);
  const top = (highest / size) * 1.08 || 1;
  const line = (group) => (stepped ? { ...group, points: steps(group.points, xs[1]) } : group);
  const dotted = groups.filter(({ points }) => !lined || points.length < FEW);
  const dots = ({ class: own, shape, points }) => ({
    class: `dot ${own}`, shape, points: points.filter(([, y]) => y !== null).map(([x, y, , title]) => [x, y, title]),
  });
  chart.caption.textContent = caption(chart.words, { name: named });
  chart.draw({
    words: chart.words, xs, ys: [lined ? 0 : -MARGIN * top, top],
    lines: lined ? groups.map(line) : [], dots: dotted.map(dots), counts: chart.kind === "count", counted,
    marked: swept && [...new Set(times)].sort((a, b) => a - b),
  });
  chart.legend.innerHTML = groups.length > 1 || groups.some((group) => group.class.includes("proposed")) ? groups.map(key).join("") : "";
}

/** The key of a group: its line, or its mark where only marks are drawn. */
function key({ class: own, shape, name }) {
  const mark = shape === undefined ? "" : `<svg viewBox="0 0 16 16" aria-hidden="true">${shaped(`dot ${own}`, shape, 8, 8)}</svg>`;
  return `<span class="key ${own}${mark && " shaped"}">${mark}${escape(String(name))}</span>`;
}

function keep(connections, key, row) {
  if (!connections.has(key)) connections.set(key, []);
  const rows = connections.get(key);
  rows.push(row);
  if (rows.length > KEPT) rows.splice(0, rows.length - KEPT);
}

/** The phases of a controller in words. */
const PHASES = {
  "hands-off": "nothing limits the window", measuring: "measuring the path before the first limit",
  ramping: "the window grows towards the path's capacity", holding: "the window is held at the sweet spot",
  trying: "testing whether a smaller window costs goodput", open: "the window is left to congestion control",
  congested: "the path is congested, so the window is left to congestion control", paced: "the sender is paced",
};

/** The series of `send --series` and `serve --series`. */
class Transfers {
  constructor(file) {
    this.file = file;
    this.connections = new Map();
    this.goodput = file.chart("Goodput", "rate", "time, s");
    this.window = file.chart("Advertised window", "bytes", "time, s");
    this.rtt = file.chart("Round-trip time", "time", "time, s");
    this.lost = file.chart("Segments retransmitted so far", "count", "time, s");
  }

  take(row) {
    if (row.event) {
      const window = row.window_bytes ? `, window ${bytes(row.window_bytes)}` : "";
      const found = row.rate_bps ? `, ${rate(row.rate_bps)}` : "";
      this.file.event(`${row.t_s.toFixed(2)} s`, `transfer ${row.transfer ?? 1}: ${row.event.replace("_", " ")}${found}${window}`);
      return;
    }
    keep(this.connections, row.transfer ?? 1, { ...row, at: row.t_s });
  }

  draw() {
    const name = (number) => `transfer ${number}`;
    // A full receive buffer closes the window: 0 is a value.
    plot(this.goodput, this.connections, (row) => row.goodput_bps, name);
    plot(this.window, this.connections, (row) => row.window_bytes ?? null, name);
    plot(this.rtt, this.connections, (row) => row.rtt_s || null, name);
    plot(this.lost, this.connections, (row) => row.retransmitted ?? null, name);
    const [number, rows] = [...this.connections].at(-1) ?? [];
    if (!rows) return;
    const last = rows.at(-1);
    const second = rows.filter((row) => row.at > last.at - 1);
    const recent = second.reduce((sum, row) => sum + row.goodput_bps, 0) / second.length;
    const now = last.at < 1 ? "" : `, ${rate(recent)} in its last second`;
    const mean = rate((last.bytes * 8) / last.at) + now;
    const phase = last.phase ? `; ${PHASES[last.phase] ?? `phase ${last.phase}`}` : "";
    const window = last.window_bytes == null ? "unknown" : bytes(last.window_bytes);
    this.file.state.textContent = `Transfer ${number}: ${bytes(last.bytes)} in ${time(last.at)}; mean ${mean}, last window ${window}${phase}.`;
  }
}

/** The actions of a tuner, in the words of the terminal output. */
const ACTIONS = {
  taken: "limited", held: "held", reopened: "growing again", tightened: "reduced", yielded: "yielding",
  let_go: "released", lifted: "lifted",
  refused: "cannot be limited", gone: "closed", advised: "advice", switched: "switched", not_limited: "not limited",
};

/** An event in words; for a dry run, in the conditional. */
function action({ event, dry_run: dry, to_bytes: to, congestion_to: congestion }) {
  const would = {
    taken: "would limit its window to", held: "would hold its window at", tightened: "would reduce its window to",
    adjusted: "would change its limit to",
  }[event];
  if (dry && would) return to ? `${would} ${bytes(to)}` : would;
  return (ACTIONS[event] ?? event) + (to ? `, window ${bytes(to)}` : "") + (congestion ? `, congestion control ${congestion}` : "");
}

/** Extension of the axis after the last event, as a fraction of the time until then: the last settings still hold. */
const TAIL = 0.06;

/** The events of `tune --events`. */
class Tune {
  constructor(file) {
    this.file = file;
    this.connections = new Map();
    this.open = new Set();
    this.start = null;
    this.limit = file.chart("Limit of the window", "bytes", "time, s");
    this.goodput = file.chart("Goodput at each event", "rate", "time, s");
    this.rtt = file.chart("Round-trip time at each event", "time", "time, s");
  }

  take(row) {
    this.start ??= row.t_s;
    const at = row.t_s - this.start;
    const dry = row.dry_run ? "dry run: " : "";
    const say = (words) => this.file.event(`${at.toFixed(1)} s`, dry + words);
    // The last event belongs to no connection.
    if (row.event === "ended") return say(`tuning has ended: ${row.why ?? `connections tuned: ${row.tuned}`}`);
    const words = `${row.program}[${row.pid}] ${row.remote}: ${action(row)}: ${row.why}`;
    if (row.event === "not_limited") return say(words);
    // A dry run's proposals are kept apart from actual limits, even for the same connection.
    keep(this.connections, `${row.cookie} ${row.dry_run ?? false}`, { ...row, at });
    if (row.dry_run || row.event === "gone" || row.event === "lifted") this.open.delete(row.cookie);
    else if (row.event !== "advised") this.open.add(row.cookie);
    return say(words);
  }

  draw() {
    const first = (key) => this.connections.get(key)[0];
    const name = (key) => `${first(key).program} ${first(key).remote}`;
    const proposed = (key) => first(key).dry_run;
    const named = (key) => name(key) + (proposed(key) ? ", proposed by a dry run" : "");
    // A switch of the congestion control does not change the limit.
    const limit = ({ event, to_bytes: to }) => (event === "gone" ? null : to);
    // Older files have no event for a growing limit; the next event has its size. A dry run has no limit that could grow.
    const before = ({ dry_run: dry, from_bytes: from }) => (dry ? undefined : from);
    const plotted = { tail: TAIL };
    plot(this.limit, this.connections, limit, named, { ...plotted, stepped: true, before, proposed });
    // The end of a connection is not a measurement of its path.
    const alive = (pick) => (row) => (row.event === "gone" ? undefined : pick(row));
    const trip = ({ rtt_s: rtt }) => (rtt > 0 ? rtt : null);
    const goodput = ({ goodput_bps: bps }) => bps;
    plot(this.goodput, this.connections, alive(goodput), name, plotted);
    plot(this.rtt, this.connections, alive(trip), name, plotted);
    this.file.state.textContent = this.summary();
  }

  summary() {
    const kinds = [...this.connections.values()].map((rows) => rows[0].dry_run ?? false);
    const dry = kinds.filter((kind) => kind).length;
    const tuned = `Connections tuned so far: ${kinds.length - dry}; now: ${this.open.size}.`;
    if (dry === 0) return tuned;
    const words = `A dry run: no connection is changed, and the limits are those that it proposes. Connections seen so far: ${dry}.`;
    return dry === kinds.length ? words : `Partly a dry run, whose limits are only proposed. ${tuned}`;
  }
}

/** A value with a unit: its number and its unit, behind words such as `fixed:`; `null` for other values. */
function quantity(value) {
  const parts = /^([a-z]+:)?(\d+(?:\.\d+)?(?:e-?\d+)?)\s*([a-z%/]*)$/i.exec(value);
  return parts ? { words: parts[1] ?? "", number: Number(parts[2]), unit: parts[3] } : null;
}

/** Whether all of `values` are different numbers in one unit, which make an axis. */
function isAxis(values) {
  const all = [...values].map(quantity);
  const [first] = all;
  return all.length > 1 && all.every((one) => one && one.unit === first.unit && one.words === first.words);
}

/** The journal of a sweep. Only the runs of the combinations that it announced last are shown. */
class Sweep {
  constructor(file) {
    this.file = file;
    this.outcomes = new Map();
    this.planned = [];
    this.seen = [];
  }

  take(row) {
    const key = ({ engine, scenario, seed }) => `${engine} ${scenario} ${seed}`;
    if (row.planned) {
      if (row.planned.place === 0) this.begin();
      for (let i = 0; i < row.planned.seeds; i += 1) {
        this.planned.push({ key: key({ ...row, seed: row.seed + i }), values: row.planned.values });
      }
    } else if (row.outcome?.transfers?.[0]) {
      this.outcomes.set(key(row), row.outcome);
      this.last = key(row);
    }
  }

  /** Another sweep begins: its runs are counted anew. */
  begin() {
    this.planned = [];
    this.seen = [];
    this.last = null;
    this.goodput = null;
  }

  /** The finished runs of this sweep: of a journal that announces none, all. */
  runs() {
    const all = this.planned.length > 0 ? this.planned : [...this.outcomes.keys()].map((key) => ({ key, values: [] }));
    return all.map((run, n) => ({ ...run, n, outcome: this.outcomes.get(run.key) })).filter(({ outcome }) => outcome);
  }

  /** The key whose values are an axis: the one with the most values. */
  axis() {
    const keys = new Map();
    for (const { values } of this.planned) {
      for (const [key, value] of values) keys.set(key, (keys.get(key) ?? new Set()).add(value));
    }
    const axes = [...keys].filter(([, values]) => isAxis(values)).sort((a, b) => b[1].size - a[1].size);
    return axes.length > 0 ? { key: axes[0][0], unit: quantity([...axes[0][1]][0]).unit } : null;
  }

  draw() {
    const runs = this.runs();
    const axis = this.axis();
    if (!this.goodput) {
      this.file.cards.innerHTML = "";
      const label = axis ? axis.key + (axis.unit ? `, ${axis.unit}` : "") : "run";
      this.goodput = this.file.chart("Goodput of each run", "rate", label);
      this.loss = this.file.chart("Loss of each run", "share", label);
    }
    const groups = new Map();
    for (const { key, values, n, outcome } of runs) {
      const told = outcome.transfers[0];
      const others = inWords(values.filter(([swept]) => swept !== axis?.key));
      const at = axis ? quantity(values.find(([swept]) => swept === axis.key)[1]).number : n + 1;
      const name = `${named(values, outcome)}: ${rate(told.goodput_bps)}, loss ${share(told.loss_rate)}`;
      const row = { at, name, goodput: told.goodput_bps, loss: told.loss_rate };
      keep(groups, values.length > 0 ? others : told.sizing.split(":")[0], row);
      if (key === this.last) this.words = name;
    }
    const same = (name) => name;
    const dots = { lined: false, counted: axis === null, swept: axis !== null };
    plot(this.goodput, groups, (row) => row.goodput, same, dots);
    plot(this.loss, groups, (row) => row.loss, same, dots);
    this.file.state.textContent = this.progress(runs.length);
  }

  progress(done) {
    const now = performance.now() / 1e3;
    this.seen.push([now, done]);
    this.seen = this.seen.filter(([at]) => at > now - 10);
    const [since, before] = this.seen[0];
    const pace = now > since + 1 ? `, ${Number(((done - before) / (now - since)).toPrecision(2))} per second` : "";
    const total = this.planned.length > 0 ? ` of ${this.planned.length}` : "";
    return `${done}${total} runs are finished${pace}.${this.last && this.words ? ` The last: ${this.words}.` : ""}`;
  }
}

/** The values of a run and its seed; without values, its sizing. */
function named(values, { transfers: [told], seed }) {
  return `${inWords(values) || told.sizing}, seed ${seed}`;
}

const inWords = (values) => values.map(([key, value]) => `${key}=${value}`).join(" ");
