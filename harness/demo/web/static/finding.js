// Looking for a violation in the background: the dialog that begins it, how far it is, its outcome; and the outcome
// of a run.

import { h } from "./dom.js";
import { closeDialog, dialog } from "./float.js";
import { changed, store } from "./store.js";
import { ask } from "./verbs.js";

/** What of the outcomes was put away: a search's and a run's. */
const closed = { finding: null, run: null };

/** Ask how long to look, and begin. */
export function openFind() {
  if (store.finding?.on) return;
  const off = store.present.inject_faults ? "with faults, as the box for faults says"
    : "without faults; tick the box for faults to let runs inject some";
  dialog(
    "Find a violation", "narrow",
    h("form", { class: "open-form", key: "find", onsubmit: begin },
      h("p", {}, "Runs from the start, with one seed and strategy after the other, until a claimed property breaks: ",
        `${off}. The first hit is shown; this run is kept, and Undo leads back to it.`),
      h("div", { class: "open-grid" },
        h("label", { class: "field tall" }, h("span", {}, "Runs at most"),
          h("input", { id: "find-runs", type: "number", name: "runs", min: "1", max: "1000000", value: "3000",
            required: true, autofocus: true })),
        h("label", { class: "field tall" }, h("span", {}, "First seed"),
          h("input", { id: "find-seed", type: "number", name: "seed", min: "0", max: "999999999", value: "0",
            required: true }))),
      h("div", { class: "dialog-verbs" },
        h("button", { type: "submit", class: "primary", id: "find-go" }, "Find"))),
  );
}

async function begin(event) {
  event.preventDefault();
  const { runs, seed } = event.currentTarget.elements;
  if (await ask("find", { runs: Number(runs.value), seed: Number(seed.value) })) closeDialog();
}

/** Describe the search that goes on, or the outcome of the last one; or nothing. */
export function drawFinding() {
  const found = store.finding;
  if (!found?.outcome && !found?.on) return null;
  if (!found.on) {
    if (closed.finding === found.outcome) return null;
    return card("finding-over", "search", found.outcome, () => {
      closed.finding = found.outcome;
    });
  }
  closed.finding = null;
  const left = found.seconds_left === null ? "" : `, at most ${span(found.seconds_left)} left`;
  return h(
    "section",
    { key: "finding", class: "outcome", id: "finding", "aria-label": "Looking for a violation" },
    h("div", { class: "outcome-head" },
      h("strong", {}, "Looking for a violation"), h("span", { class: "push" }),
      h("button", { type: "button", class: "small", id: "find-stop", onclick: () => ask("stop") }, "Stop")),
    h("progress", { max: found.runs, value: String(found.tried) }),
    h("p", { class: "outcome-text" },
      `${found.tried.toLocaleString()} of ${found.runs.toLocaleString()} runs, ${found.rate} a second${left}`,
      found.now && ` · ${found.now}`),
  );
}

/** Return a time as text. */
function span(seconds) {
  if (seconds < 120) return `${seconds} s`;
  return seconds < 7200 ? `${Math.round(seconds / 60)} min` : `${Math.round(seconds / 3600)} h`;
}

/** Describe the outcome of the last run, where no card of a violation says more; or nothing. */
export function drawOutcome() {
  const { outcome, violation, running, step } = store.present;
  const key = `${store.session.epoch}|${step}|${outcome}`;
  if (!outcome || running || violation || closed.run === key) return null;
  return card("outcome", "run", outcome, () => {
    closed.run = key;
  });
}

function card(id, what, text, close) {
  return h(
    "section",
    { key: id, class: "outcome", id, "aria-label": `Outcome of the ${what}`, role: "status" },
    h("div", { class: "outcome-head" },
      h("p", { class: "outcome-text" }, `${text[0].toUpperCase()}${text.slice(1)}.`), h("span", { class: "push" }),
      h("button", { type: "button", class: "quiet-button", "aria-label": "Put away", onclick: () => {
        close();
        changed();
      } }, "✕")),
  );
}
