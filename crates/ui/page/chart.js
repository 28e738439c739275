// Line charts as SVG, redrawn at each change; each is as wide as its container.

import { escape } from "./words.js";

const LEFT = 50;
const RIGHT = 10;
const TOP = 8;
const BOTTOM = 34;
/** Width of a number on the horizontal axis. */
const NUMBER = 36;

/** Round values between `min` and `max`, approximately `about` of them, `whole` ones if only those occur. */
function ticks(min, max, about, whole = false) {
  const rough = Math.max((max - min) / about, whole ? 1 : 0);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough);
  const values = [];
  for (let v = Math.ceil(min / step) * step; v <= max + step * 1e-9; v += step) values.push(v);
  return values;
}

/** The values whose numbers do not overlap. */
function apart(values, px) {
  const kept = [];
  for (const value of values) if (kept.length === 0 || px(value) - px(kept.at(-1)) >= NUMBER) kept.push(value);
  return kept;
}

/** The numbers of an axis, all with the same factor. */
function labels(values) {
  const [factor, size] = Math.max(...values.map(Math.abs)) >= 1e4 ? ["k", 1e3] : ["", 1];
  return values.map((value) => `${Number((value / size).toPrecision(6))}${value === 0 ? "" : factor}`);
}

/** Outlines of different sizes, so that marks at one place remain visible. */
const SHAPES = [
  (x, y) => `M${x - 3.5} ${y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0`,
  (x, y) => `M${x - 5} ${y - 5}h10v10h-10Z`,
  (x, y) => `M${x} ${y - 7}l6 11h-12Z`,
  (x, y) => `M${x - 5} ${y - 5}l10 10m0 -10l-10 10`,
];

/** A mark in one of the shapes, which alone tells it from the others. */
export const shaped = (kind, shape, x, y, more = "") => `<path class="${kind} shaped" d="${SHAPES[shape % SHAPES.length](x, y)}">${more}</path>`;

/** Distinguishes the clip paths of the page's charts. */
let charts = 0;

/** Only as many points as can be distinguished: for each pixel column the first, lowest, highest and last point, and a gap. */
function thin(points, width) {
  if (points.length <= 2 * width) return points;
  const kept = [];
  const bin = Math.ceil(points.length / width);
  for (let start = 0; start < points.length; start += bin) {
    const all = points.slice(start, start + bin);
    const ordered = all.filter((p) => p[1] !== null).sort((a, b) => a[1] - b[1]);
    const told = [all[0], ordered[0], ordered.at(-1), all.find((p) => p[1] === null), all.at(-1)];
    kept.push(...all.filter((p) => told.includes(p)));
  }
  return kept;
}

export class Chart {
  /** Draws into `place`. `drag`, if given, is called with the x value under the dragged pointer. */
  constructor(place, { x, height = 190, drag = null }) {
    this.place = place;
    this.x = x;
    this.height = height;
    this.last = null;
    this.clip = `frame${charts += 1}`;
    new ResizeObserver(() => this.last && this.draw(this.last)).observe(place);
    if (drag) this.listen(drag);
  }

  listen(drag) {
    this.place.classList.add("draggable");
    const tell = (event) => {
      const { width, range } = this;
      const inside = (event.clientX - this.place.getBoundingClientRect().left - LEFT) / (width - LEFT - RIGHT);
      drag(range[0] + Math.min(1, Math.max(0, inside)) * (range[1] - range[0]));
    };
    this.place.addEventListener("pointerdown", (event) => {
      this.place.setPointerCapture(event.pointerId);
      tell(event);
    });
    this.place.addEventListener("pointermove", (event) => {
      if (this.place.hasPointerCapture(event.pointerId)) tell(event);
    });
  }

  /** Shows a text in place of a picture. */
  say(words) {
    this.last = null;
    this.place.innerHTML = `<p class="note">${words}</p>`;
    this.explain();
  }

  /** Shows the keys and notes of the marks that are drawn, and no others. */
  explain() {
    const around = this.place.closest(".explained") ?? this.place.parentElement;
    for (const key of around.querySelectorAll("[data-mark]")) key.hidden = !this.place.querySelector(key.dataset.mark);
  }

  /** Names the lines that leave the picture at the top, with an arrow and their highest values. */
  leaving({ lines = [], ys, names }) {
    if (!names?.y) return "";
    const highest = lines.map(({ name, points }) => [name, points.reduce((best, [, y]) => Math.max(best, y ?? 0), 0)]);
    return highest.filter(([, y]) => y > ys[1]).map(([name, y], row) => {
      const words = (name ? `${name} up to ` : "") + names.y(y);
      return `<text class="end beyond" x="${this.width - RIGHT - 4}" y="${TOP + 14 + 16 * row}">▲ ${words}</text>`;
    }).join("");
  }

  /**
   * Draws `picture`: `words` that describe it, `xs` and `ys` the ends of the axes, `lines` of {class, points: [[x, y or null]]},
   * `dots` likewise, each with an optional name, `bands` {x or y: [from, to]}, `levels` of y, `now` an x, and `x` another label for the horizontal axis.
   * Values beyond an axis for which `names` has a function of {x, y} are written at its edge. `counts` says that the values are whole numbers, and `counted`
   * that those of the horizontal axis are; `marked` are its numbers, if not round ones.
   */
  draw(picture) {
    this.last = picture;
    this.width = Math.max(240, this.place.clientWidth);
    this.range = picture.xs;
    const { width, height } = this;
    const [x0, x1] = picture.xs;
    const [y0, y1] = picture.ys;
    const px = (x) => LEFT + ((x - x0) / (x1 - x0)) * (width - LEFT - RIGHT);
    const py = (y) => height - BOTTOM - ((y - y0) / (y1 - y0)) * (height - TOP - BOTTOM);
    const n = (value) => value.toFixed(1);
    const bottom = height - BOTTOM;
    const right = width - RIGHT;
    const parts = [`<svg viewBox="0 0 ${width} ${height}" height="${height}" role="img" aria-label="${picture.words}">`];
    parts.push(`<clipPath id="${this.clip}"><rect x="${LEFT}" y="${TOP - 2}" width="${right - LEFT + 2}" height="${bottom - TOP + 4}"/></clipPath>`);
    for (const { x, y } of picture.bands ?? []) {
      const [a, b] = x ? x.map((v) => px(Math.min(Math.max(v, x0), x1))) : [LEFT, right];
      const [c, d] = y ? y.map((v) => py(Math.max(v, y0))) : [bottom, TOP];
      parts.push(`<rect class="band" x="${n(a)}" y="${n(d)}" width="${n(Math.max(b - a, 1))}" height="${n(Math.max(c - d, 1))}"/>`);
    }
    const heights = ticks(y0, y1, 4, picture.counts);
    const numbers = labels(heights);
    for (const [i, y] of heights.entries()) {
      parts.push(`<path class="grid" d="M${LEFT} ${n(py(y))}H${right}"/>`);
      parts.push(`<text class="end" x="${LEFT - 6}" y="${n(py(y) + 4)}">${numbers[i]}</text>`);
    }
    const places = apart(picture.marked ?? ticks(x0, x1, Math.max(3, width / 110), picture.counted), px);
    const marks = labels(places);
    for (const [i, x] of places.entries()) {
      // A number at the end of the axis is right-aligned with the picture.
      const [anchor, at] = px(x) > right - 16 ? ["end", width] : ["middle", px(x)];
      parts.push(`<text class="${anchor}" x="${n(at)}" y="${bottom + 15}">${marks[i]}</text>`);
    }
    parts.push(`<text class="end" x="${right}" y="${height - 3}">${picture.x ?? this.x}</text>`);
    parts.push(`<path class="frame" d="M${LEFT} ${TOP}V${bottom}H${right}"/>`);
    for (const y of picture.levels ?? []) parts.push(`<path class="level" d="M${LEFT} ${n(py(y))}H${right}"/>`);
    for (const line of picture.lines ?? []) {
      let pen = "M";
      const path = thin(line.points, width).map(([x, y]) => {
        if (y === null) { pen = "M"; return ""; }
        const step = `${pen}${n(px(x))} ${n(py(y))}`;
        pen = "L";
        return step;
      });
      parts.push(`<path class="line ${line.class}" clip-path="url(#${this.clip})" d="${path.join("")}"/>`);
    }
    for (const { class: kind, shape, points } of picture.dots ?? []) {
      const dot = (x, y, more) => `<circle class="${kind}" cx="${n(x)}" cy="${n(y)}" r="3.6">${more}</circle>`;
      // A different shape, because colours alone are indistinguishable in greyscale.
      const diamond = (x, y) => `<path class="${kind}" d="M${n(x)} ${n(y - 7)}l7 7l-7 7l-7 -7Z"/>`;
      const arrow = (y, words) => `<path class="${kind}" d="M${right - 9} ${n(y - 6)}l11 6l-11 6Z"/>
        <text class="end beyond" x="${right - 14}" y="${n(y + 4)}">${words}</text>`;
      for (const [x, y, name] of points) {
        const title = name ? `<title>${escape(name)}</title>` : "";
        if (x > x1 && picture.names?.x) parts.push(arrow(py(y), picture.names.x(x)));
        else if (shape !== undefined) parts.push(shaped(kind, shape, px(x), py(y), title));
        else parts.push((kind === "now-dot" ? diamond : dot)(px(x), py(y), title));
      }
    }
    if (picture.now != null) parts.push(`<path class="now" d="M${n(px(picture.now))} ${TOP}V${bottom}"/>`);
    for (const x of picture.drops ?? []) parts.push(`<path class="line drop" d="M${n(px(x))} ${bottom}v-9"/>`);
    this.place.innerHTML = `${parts.join("")}${this.leaving(picture)}</svg>`;
    this.explain();
  }
}
