// Shows, in every card at once, the values at the time under the pointer.
"use strict";
const { steps, runs } = JSON.parse(document.getElementById("samples").textContent);
const units = { goodput: "Mbit/s", window: "kB", rtt: "ms", queue: "kB" };
const cards = [...document.querySelectorAll("svg[data-run]")];

function show(part) {
  for (const svg of cards) {
    const [end, left, right] = svg.dataset.t.split(" ").map(Number);
    const cursor = svg.querySelector(".cursor");
    cursor.style.display = part === null ? "none" : "inline";
    if (part !== null) cursor.setAttribute("transform", `translate(${left + part * (right - left)} 0)`);
    for (const panel of svg.querySelectorAll(".panel")) {
      const key = panel.dataset.key;
      const value = part === null ? null : runs[svg.dataset.run][key][Math.round(part * (steps - 1))];
      const time = key === "goodput" && part !== null ? ` at ${(part * end).toFixed(2)} s` : "";
      panel.querySelector(".value").textContent = value === null ? "" : `  ${value} ${units[key]}${time}`;
      const legend = panel.querySelector(".key");
      if (legend) legend.style.display = part === null ? "" : "none";
    }
  }
}

for (const svg of cards) {
  const [, left, right] = svg.dataset.t.split(" ").map(Number);
  const move = (event) => {
    const box = svg.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * svg.viewBox.baseVal.width;
    show(Math.min(1, Math.max(0, (x - left) / (right - left))));
  };
  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", () => show(null));
}
