// The card of a violation: what broke, why, the shortest schedule on request, and the command that replays it.

import { lacks } from "./api.js";
import { pathToViolation } from "./causes.js";
import { h } from "./dom.js";
import { icon } from "./glyphs.js";
import { note } from "./float.js";
import { changed, store } from "./store.js";
import { ask, copy, select } from "./verbs.js";

let hidden = "";
let shrinking = false;

/** Describe the card, or nothing. */
export function drawViolation() {
  const found = store.present.violation;
  if (!found) return null;
  const key = `${found.property}@${found.step}`;
  const small = hidden === key;
  return h(
    "section",
    { key, class: small ? "violation small" : "violation", "aria-label": `Violation of ${found.property}` },
    h("div", { class: "violation-head" },
      h("strong", {}, `✕ ${found.property}`),
      h("button", { type: "button", class: "quiet-button", title: "Look at the step", onclick: () => look(found.step) },
        `step ${found.step}`),
      h("button", { type: "button", class: "quiet-button", "aria-expanded": small ? "false" : "true",
        "aria-label": small ? "Show all of it" : "Fold the card", onclick: () => {
          hidden = small ? "" : key;
          changed();
        } }, icon(small ? "unfold" : "fold"))),
    !small && h("p", { class: "violation-reason", title: found.reason }, found.reason),
    !small && found.explanation && h("p", { class: "violation-reason" }, found.explanation),
    !small && drawPath(),
    !small && !lacks("shrink") && drawShrunk(found),
    !small && found.replay && h("div", { class: "replay" },
      h("code", { title: found.replay }, found.replay),
      h("button", { type: "button", class: "small", onclick: () => copy(found.replay) }, "Copy")),
  );
}

/** Most steps of the path that the card names: its first ones and its last ones. */
const MOST = 6;

/** The steps that led to it, its first cause first; each leads to its step. */
function drawPath() {
  const { steps } = pathToViolation();
  if (steps.length < 2) return null;
  const named = steps.length > MOST ? [...steps.slice(0, 2), null, ...steps.slice(3 - MOST)] : steps;
  return h("p", { class: "path", "aria-label": "The path from its first cause" },
    h("span", {}, "From its first cause:"),
    named.map((n) => (n === null ? h("span", { key: "more" }, `… ${steps.length - MOST + 1} more …`)
      : h("button", { key: n, type: "button", class: "path-step", "data-path": n, title: store.steps[n - 1].label,
        onclick: () => look(n) }, h("b", {}, n), ` ${store.steps[n - 1].action}`))));
}

function look(step) {
  store.tab = "step";
  select(step);
}

function drawShrunk(found) {
  const short = found.shrunk;
  return h(
    "div",
    { class: "shrink" },
    h("button", { type: "button", class: "small", disabled: shrinking, "data-verb": "shrink", onclick: shrink },
      icon("reorder"), shrinking ? "Shrinking…" : "Shrink"),
    h("span", {}, short ? shrunkWords(short) : "look for a shorter schedule that breaks the same"),
  );
}

function shrunkWords(short) {
  return `${short.steps_before} steps → ${short.length}${short.proved ? ", proved shortest" : ""}`;
}

async function shrink() {
  shrinking = true;
  changed();
  const done = await ask("shrink");
  shrinking = false;
  if (done) note("The short run is a branch of its own; the long one is kept.");
  changed();
}
