"use strict";
// The time-sequence graph, the band of limits, and four curves on one axis of time.
let data = null;
// By class. Colour-blind readers can distinguish them, as far as fourteen colours allow (after Okabe and Ito).
const BAND = ["#56b4e9", "#d55e00", "#f0a070", "#e69f00", "#f0e442", "#cc79a7", "#009e73", "#9a9a94",
  "#7f6fbf", "#b00020", "#bdbdb6", "#dcdcd6", "#5a0010", "#6b6b6b"];
// Room for the numbers beside the curves, and behind them.
const LEFT = 76, RIGHT = 8;
const tone = name => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
// Black or white, whichever stands out more from a colour (WCAG's relative luminance).
const inkOn = colour => {
  const [r, g, b] = [1, 3, 5].map(i => parseInt(colour.slice(i, i + 2), 16) / 255).map(v => v <= .04045 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b > .179 ? "#000" : "#fff";
};
const seconds = us => us >= 1e6 ? (us / 1e6).toFixed(3) + " s" : us >= 1e3 ? (us / 1e3).toFixed(2) + " ms" : us.toFixed(0) + " \u00b5s";
const size = b => b >= 1e9 ? (b / 1e9).toFixed(2) + " GB" : b >= 1e6 ? (b / 1e6).toFixed(2) + " MB" : b >= 1e3 ? (b / 1e3).toFixed(1) + " kB" : b.toFixed(0) + " B";
// The smallest 1, 2 or 5 times a power of ten that is not below a number.
const round = v => { const p = 10 ** Math.floor(Math.log10(v)); return [1, 2, 5, 10].find(m => m * p >= v * (1 - 1e-9)) * p; };
// Units of bytes, microseconds and bits per second, the largest first.
const SIZES = [[1e9, "GB"], [1e6, "MB"], [1e3, "kB"], [1, "B"]];
const TIMES = [[1e6, "s"], [1e3, "ms"], [1, "\u00b5s"]];
const SPEEDS = [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"], [1, "bit/s"]];
// The values of an axis as text: all in one unit, which suits the largest, with the digits of their step.
const ticks = (units, largest, step) => {
  const [unit, name] = units.find(([unit]) => unit <= largest) || units.at(-1);
  const digits = Math.max(0, -Math.floor(Math.log10(step / unit) + 1e-9));
  return value => (value / unit).toFixed(digits) + " " + name;
};
const speed = r => r >= 1e6 ? (r / 1e6).toFixed(1) + " Mbit/s" : (r / 1e3).toFixed(0) + " kbit/s";

function draw(section, graph) {
  const canvas = section.querySelector("canvas"), evidence = section.querySelector(".evidence");
  const context = canvas.getContext("2d");
  const all = Math.max(graph.lasts, 1);
  let from = 0, to = all, pointer = null, queued = false;
  const found = new Set(graph.spans.map(s => s[2]));
  const keys = [["data", "data", true], ["ack", "acknowledged", true], ["window", "window's edge", graph.bins.some(b => b[4] !== null)],
    ["again", "retransmitted", graph.again.length], ["sack", "acknowledged selectively", graph.sacks.length]]
    .filter(([, , drawn]) => drawn).map(([c, w]) => `<span><i class="line" style="background:var(--${c})"></i>${w}</span>`)
    .concat(graph.simulated.length ? ['<span><i class="dashed"></i>simulated without the limit</span>'] : [])
    .concat(found.size ? ["<br>"] : [])
    .concat([...found].sort((a, b) => a - b).map(c => `<span><i style="background:${BAND[c]}"></i>${data.classes[c]}</span>`));
  section.querySelector(".keys").innerHTML = keys.join(" ");
  evidence.innerHTML = "Point at a moment for its values. Wheel or + and &minus; zoom, dragging or arrows move, 0 shows all.";
  // The bins as curves: flight, window, round trip, rate over a fiftieth of the time.
  const bins = graph.bins, wide = Math.max(1, Math.round(3000 / 150));
  const rates = [];
  for (const b of bins) { const k = Math.floor(b[0] / wide); rates[k] = (rates[k] || 0) + b[8]; }
  const rate = [];
  for (let k = 0; k < 150; k++) rate.push([(k + .5) * wide * graph.bin, (rates[k] || 0) * 8e6 / (wide * graph.bin)]);
  const curve = column => bins.filter(b => b[column] !== null).map(b => [(b[0] + .5) * graph.bin, b[column]]);
  const panels = [
    { name: "in flight", tone: "data", points: curve(5), held: true, units: SIZES },
    { name: "window", tone: "window", points: curve(6), held: true, units: SIZES },
    { name: "round trip", tone: "sack", points: curve(7), held: true, units: TIMES },
    { name: "rate", tone: "ack", points: rate, held: false, units: SPEEDS }];

  function paint() {
    queued = false;
    const ratio = window.devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    canvas.width = width * ratio; canvas.height = height * ratio;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = "11px system-ui,sans-serif";
    const left = LEFT, right = width - RIGHT, top = 18, band = 16, gap = 20, axis = 18;
    const small = (height - axis - top) * .105;
    const mainHeight = height - axis - top - band - gap - 4 * (small + gap);
    const x = t => left + (t - from) / (to - from) * (right - left);
    const visible = t => t >= from && t <= to;
    // The sequence graph.
    let min = Infinity, max = 0;
    const stretch = (a, b) => { if (a < min) min = a; if (b > max) max = b; };
    for (const b of bins) if (visible((b[0] + 1) * graph.bin) || visible(b[0] * graph.bin)) {
      if (b[1] !== null) stretch(b[1], b[2]);
      if (b[3] !== null) stretch(b[3], b[3]);
    }
    const empty = min === Infinity;
    if (empty) { min = 0; max = 1; }
    const grain = round((max - min || 1) / 4);
    const room = Math.max((max - min) * .06, 1); min = Math.max(0, min - room); max += room;
    const y = s => top + mainHeight - (s - min) / (max - min) * mainHeight;
    frame(top, mainHeight, min, max, empty ? 0 : grain, SIZES);
    clip(top, mainHeight, () => {
      const step = (points, time, value, colour) => {
        context.strokeStyle = colour; context.lineWidth = 1; context.beginPath();
        let last = null;
        for (const p of points) {
          const v = value(p); if (v === null) continue;
          const px = x(time(p)), py = y(v);
          if (last === null) context.moveTo(px, py); else { context.lineTo(px, last); context.lineTo(px, py); }
          last = py;
        }
        context.stroke();
      };
      const bar = (px, a, b, colour, thick) => {
        context.fillStyle = colour;
        const high = y(b), low = y(a);
        context.fillRect(px - thick / 2, high, thick, Math.max(low - high, 1.2));
      };
      if (graph.thinned) {
        const middle = b => (b[0] + .5) * graph.bin;
        step(bins, middle, b => b[4], tone("window"));
        for (const b of bins) if (b[1] !== null && visible(middle(b))) bar(x(middle(b)), b[1], b[2], tone("data"), 1.4);
        step(bins, middle, b => b[3], tone("ack"));
      } else {
        step(graph.acks, a => a[0], a => a[2], tone("window"));
        for (const d of graph.data) if (visible(d[0])) bar(x(d[0]), d[1], d[2], tone("data"), 1.6);
        step(graph.acks, a => a[0], a => a[1], tone("ack"));
      }
      if (graph.simulated.length) {
        context.strokeStyle = tone("ink"); context.lineWidth = 1.6; context.setLineDash([7, 4]); context.beginPath();
        graph.simulated.forEach(([t, s], i) => i ? context.lineTo(x(t), y(s)) : context.moveTo(x(t), y(s)));
        context.stroke(); context.setLineDash([]);
      }
      for (const s of graph.sacks) if (visible(s[0])) bar(x(s[0]), s[1], s[2], tone("sack"), 1);
      for (const r of graph.again) if (visible(r[0])) {
        bar(x(r[0]), r[1], r[2], tone("again"), 3);
        context.fillRect(x(r[0]) - 2.5, y((r[1] + r[2]) / 2) - 2.5, 5, 5);
      }
    });
    named(top, "sequence");
    // The band.
    let below = top + mainHeight + 4;
    for (const [a, b, c] of graph.spans) {
      const p = Math.max(x(a), left), q = Math.min(x(b), right);
      if (q < left || p > right) continue;
      context.fillStyle = BAND[c]; context.fillRect(p, below, Math.max(q - p, .6), band);
    }
    // A class that holds for long, apart from invisibly short interruptions, is named on the band: in grey, colours are lost.
    const runs = [];
    for (const [a, b, c] of graph.spans) {
      const p = Math.max(x(a), left), q = Math.min(x(b), right), last = runs.at(-1);
      if (q - p < 2) continue;
      if (last?.[2] === c) last[1] = q; else runs.push([p, q, c]);
    }
    context.textAlign = "center";
    for (const [p, q, c] of runs) {
      if (p > left + 1) { context.fillStyle = tone("card"); context.fillRect(p - .5, below, 1, band); }
      if (q - p < context.measureText(data.classes[c]).width + 8) continue;
      context.fillStyle = inkOn(BAND[c]); context.fillText(data.classes[c], (p + q) / 2, below + band / 2 + 4);
    }
    below += band + gap;
    for (const panel of panels) {
      let high = 0;
      for (const [t, v] of panel.points) if (visible(t) && v > high) high = v;
      // A frame without values has no scale. Others end at a round value.
      const grain = high > 0 ? round(high / 4) : 0;
      if (grain) high = Math.ceil(high / grain) * grain; else high = 1;
      frame(below, small, 0, high, grain && high, panel.units);
      clip(below, small, () => {
        context.strokeStyle = tone(panel.tone); context.lineWidth = 1.3; context.beginPath();
        let last = null;
        for (const [t, v] of panel.points) {
          const px = x(t), py = below + small - v / high * small;
          if (last === null) context.moveTo(px, py);
          else {
            // The value holds until the next sample.
            if (panel.held) context.lineTo(px, last);
            context.lineTo(px, py);
          }
          last = py;
        }
        context.stroke();
      });
      named(below, panel.points.length ? panel.name : panel.name + ": no data");
      below += small + gap;
    }
    context.fillStyle = tone("muted"); context.textAlign = "center";
    // At round times, all in the unit of their step.
    const step = round((to - from) / Math.max(4, Math.floor((right - left) / 80)));
    // In seconds for steps of a tenth of a second and more.
    const moment = ticks(TIMES, step * 10, step);
    for (let n = Math.ceil(from / step - 1e-9); n * step <= to * (1 + 1e-9); n++) {
      const words = moment(n * step), half = context.measureText(words).width / 2;
      context.fillText(words, Math.min(x(n * step), right - half), height - 4);
      context.fillRect(x(n * step), height - axis - 2, 1, 3);
    }
    if (pointer !== null) {
      context.strokeStyle = tone("muted"); context.beginPath();
      context.moveTo(pointer, top); context.lineTo(pointer, height - axis); context.stroke();
    }

    // A frame with a line and a number at each multiple of `grain`; without numbers if that is 0.
    function frame(at, tall, low, high, grain, units) {
      context.strokeStyle = tone("grid"); context.lineWidth = 1;
      context.strokeRect(left, at, right - left, tall);
      if (!grain) return;
      const words = ticks(units, high, grain);
      context.fillStyle = tone("muted"); context.textAlign = "right";
      for (let n = Math.ceil(low / grain - 1e-9); n * grain <= high * (1 + 1e-9); n++) {
        const height = at + tall - (n * grain - low) / (high - low) * tall;
        context.fillText(words(n * grain), left - 4, height + 4);
        context.strokeRect(left, height, right - left, 0);
      }
    }
    // Above the frame, so that no curve crosses it.
    function named(at, name) {
      context.textAlign = "left"; context.fillStyle = tone("muted"); context.fillText(name, left, at - 5);
    }
    function clip(at, tall, paintInside) {
      context.save(); context.beginPath(); context.rect(left, at, right - left, tall); context.clip();
      paintInside(); context.restore();
    }
  }
  const again = () => { if (!queued) { queued = true; requestAnimationFrame(paint); } };
  const time = px => from + (px - LEFT) / (canvas.clientWidth - LEFT - RIGHT) * (to - from);
  function zoom(centre, factor) {
    const span = Math.min(all, Math.max((to - from) * factor, 20));
    const share = (centre - from) / (to - from);
    from = Math.max(0, Math.min(all - span, centre - span * share)); to = from + span; again();
  }
  function move(by) {
    const span = to - from;
    from = Math.max(0, Math.min(all - span, from + by)); to = from + span; again();
  }
  function describe(t) {
    const within = graph.spans.find(s => s[0] <= t && t <= s[1]);
    const n = Math.floor(t / graph.bin);
    const near = bins.filter(b => b[0] <= n).slice(-1)[0];
    const words = [seconds(t)];
    if (within) words.push(data.classes[within[2]]);
    const last = column => { for (let i = bins.length - 1; i >= 0; i--) if (bins[i][0] <= n && bins[i][column] !== null) return bins[i][column]; return null; };
    if (near) {
      for (const [word, column, print] of [["in flight", 5, size], ["window", 6, size], ["round trip", 7, seconds]]) {
        const value = last(column); if (value !== null) words.push(word + " " + print(value));
      }
      const r = rate[Math.min(149, Math.floor(n / wide))]; if (r) words.push(speed(r[1]));
    }
    const retransmitted = graph.again.find(r => Math.abs(r[0] - t) < (to - from) / 200);
    if (retransmitted) words.push("retransmitted (" + retransmitted[3] + ")");
    evidence.textContent = words.join(" · ");
  }
  canvas.addEventListener("wheel", e => { e.preventDefault(); zoom(time(e.offsetX), e.deltaY > 0 ? 1.25 : .8); }, { passive: false });
  let dragged = null;
  canvas.addEventListener("pointerdown", e => { dragged = e.offsetX; });
  window.addEventListener("pointerup", () => { dragged = null; });
  canvas.addEventListener("pointermove", e => {
    if (dragged !== null) { move((dragged - e.offsetX) / (canvas.clientWidth - LEFT - RIGHT) * (to - from)); dragged = e.offsetX; }
    pointer = e.offsetX; const t = time(e.offsetX);
    if (t >= from && t <= to) describe(t);
    again();
  });
  canvas.addEventListener("pointerleave", () => { pointer = null; again(); });
  canvas.addEventListener("keydown", e => {
    const keys = { "+": () => zoom((from + to) / 2, .8), "-": () => zoom((from + to) / 2, 1.25), "0": () => { from = 0; to = all; again(); },
      ArrowLeft: () => move((from - to) / 10), ArrowRight: () => move((to - from) / 10) };
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });
  window.addEventListener("resize", again);
  window.addEventListener("beforeprint", paint);
  matchMedia("print").addEventListener("change", paint);
  matchMedia("(prefers-color-scheme:dark)").addEventListener("change", again);
  paint();
}
function drawGraphs(given) {
  data = given;
  for (const graph of data.graphs) draw(document.querySelector(`section[data-n="${graph.n}"]`), graph);
}
