// The bar between the diagram and the panel: drag it, or move it by arrow keys. Its place is kept in this browser.

import { swallow } from "./dom.js";
import { changed } from "./store.js";

const bar = document.getElementById("splitter");
const root = document.documentElement;
const LEAST = 320;
const STAGE = 380;
const STEP = 24;

const most = () => Math.max(LEAST, window.innerWidth - STAGE);
const now = () => Math.round(document.getElementById("panel").getBoundingClientRect().width);

/** Take up the width of the panel that was chosen last time. */
export function recallSplit() {
  const kept = Number(localStorage.getItem("panel"));
  if (kept >= LEAST) root.style.setProperty("--panel", `${kept}px`);
  announce();
}

function set(wide) {
  const kept = Math.round(Math.max(LEAST, Math.min(most(), wide)));
  root.style.setProperty("--panel", `${kept}px`);
  localStorage.setItem("panel", String(kept));
  announce();
  changed();
}

/** The width of the page's own choosing. */
function reset() {
  root.style.removeProperty("--panel");
  localStorage.removeItem("panel");
  announce();
  changed();
}

function announce() {
  bar.setAttribute("aria-valuemin", String(LEAST));
  bar.setAttribute("aria-valuemax", String(most()));
  bar.setAttribute("aria-valuenow", String(now()));
  bar.setAttribute("aria-valuetext", `panel ${now()} pixels wide`);
}

bar.addEventListener("pointerdown", (event) => {
  bar.setPointerCapture(event.pointerId);
  bar.classList.add("held");
});

bar.addEventListener("pointermove", (event) => {
  if (bar.hasPointerCapture(event.pointerId)) set(window.innerWidth - event.clientX);
});

bar.addEventListener("lostpointercapture", () => bar.classList.remove("held"));
bar.addEventListener("dblclick", reset);

bar.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const to = { ArrowLeft: now() + STEP, ArrowRight: now() - STEP, Home: most(), End: LEAST }[event.key];
  if (to !== undefined) set(to);
  else if (event.key === "Enter") reset();
  else return;
  swallow(event);
});

window.addEventListener("resize", announce);
