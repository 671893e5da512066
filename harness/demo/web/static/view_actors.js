// The actors: what can be done to each, the links that are cut, and the state of the one that is looked at.

import { h } from "./dom.js";
import { ENVIRONMENT, ordered } from "./lanes.js";
import { Lines, paged, reading } from "./paged.js";
import { changed, enabled, looked, store } from "./store.js";
import { several } from "./view_now.js";
import { flat, stateOf } from "./tips.js";
import { deedsOn, take } from "./verbs.js";

const ROW = 28;
let shown = { key: null, slots: null };

/** Draw the view into so much room. */
export function drawActors({ wide, high }) {
  const names = ordered().filter((name) => name !== ENVIRONMENT);
  const cuts = enabled((one) => one.verb === "heal");
  const cutRows = Math.min(cuts.length, high > 800 ? 5 : 2);
  const forCuts = cuts.length ? 36 + cutRows * ROW : 0;
  const most = Math.max(3, Math.floor((high - 36 - forCuts - 40 - 160) / ROW));
  const rows = Math.min(names.length, most);
  const below = high - 36 - rows * ROW - forCuts - 40;
  return [
    h("div", { class: "view-head" }, h("h2", {}, "Actors"),
      h("span", { class: "view-note", title: left() }, left())),
    paged("actors", names.map((name) => ({ key: name, name })), rows, drawActor, { label: "Actors", tall: ROW }),
    cuts.length > 0 && h("div", { class: "view-head" }, h("h2", {}, "Links that are cut"),
      h("span", { class: "count" }, cuts.length)),
    cuts.length > 0 && paged("cuts", cuts.map((one) => ({ ...one, key: one.label })), cutRows, drawCut,
      { label: "Links that are cut", tall: ROW }),
    !store.session.is_recorded && drawState(wide, below),
  ];
}

/** What is left of a budget that is not generous. */
function left() {
  if (store.session.is_live) return "click two brokers' heads to part them";
  if (store.session.is_recorded) return "";
  if (store.session.budget === "generous") return "click two heads to partition them";
  const kinds = Object.entries(store.present.budget_left || {}).map(([kind, n]) => `${kind} ${n}`);
  return kinds.length ? `faults left: ${kinds.join(", ")}` : "no faults left in the budget";
}

function drawActor({ name }, cell) {
  const gate = store.present.gates?.[name];
  const status = gate?.status || "up";
  const deeds = deedsOn(name);
  const of = (...verbs) => deeds.filter((one) => verbs.includes(one.verb));
  const [down, paused] = [status === "down", status === "paused"];
  const has = (verb) => deeds.some((one) => one.verb === verb);
  // Nothing but brokers can be hit where clients are real.
  const groups = store.session.is_live && !deeds.length ? [] : [
    [down ? "Restart" : "Crash", down ? "restart" : "crash", of("crash", "restart")],
    [paused ? "Resume" : "Pause", paused ? "resume" : "pause", of("pause", "resume")],
    ...(store.session.is_live ? [
      [has("heal") ? "Heal" : "Cut off", "partition", of("partition", "heal")],
      [has("fast_disk") ? "Mend disk" : "Slow disk", "slow_disk", of("slow_disk", "fast_disk")],
    ] : [["Timer", "timer", of("timer")]]),
    ["Elect", "elect", of("elect")],
    ...(store.session.is_live ? [] : [["Clock", "skew", of("skew")]]),
  ];
  const why = store.present.not?.actors[name] || {};
  return h(
    "div",
    { class: store.lane === name ? "actor chosen" : "actor" },
    h("button", { ...cell(0), type: "button", class: "actor-name", title: `State of ${name}`,
      onclick: () => {
        store.lane = name;
        changed();
      } }, h("span", { class: `gate ${status}` }), h("span", { class: "actor-text" }, name)),
    groups.map(([word, verb, ways], n) => h(
      "button",
      { ...cell(n + 1), type: "button", class: "small", disabled: !ways.length, "data-deed": word,
        title: ways.length ? ways.map((one) => one.label).join("\n")
          : `${word}: ${why[verb] || "not possible now"}`,
        onclick: (event) => several(event.currentTarget, word, ways) },
      word)),
  );
}

function drawCut(one, cell) {
  return h("div", { class: "actor" }, h("span", { class: "actor-text" }, one.args.join(" ↯ ")),
    h("button", { ...cell(0), type: "button", class: "small", onclick: () => take(one) }, "Heal"));
}

function drawState(wide, high) {
  const step = looked();
  const name = store.lane ?? (step?.process !== "environment" ? step?.process : null) ?? store.session.lifelines[0];
  const n = step ? step.n : 0;
  fetchState(n, name, step);
  const head = h("div", { class: "view-head", key: "state-head" }, h("h2", {}, `State of ${name}`),
    h("span", { class: "view-note" }, n ? `after step ${n}` : "at the start"));
  const lines = new Lines(wide);
  for (const [field, text, isNew, was] of flat(shown.slots || [])) {
    lines.pair(isNew ? `▸ ${field}` : field, isNew && was !== undefined ? `${text}  (was ${was})` : text,
      isNew ? "is-new" : "");
  }
  return [head, reading("state", lines, Math.max(60, high), `State of ${name}`)];
}

function fetchState(n, name, step) {
  const key = `${n}|${name}|${store.version}`;
  if (shown.key === key) return;
  shown = { key, slots: shown.slots };
  stateOf(n, name, step).then((slots) => {
    if (shown.key !== key) return;
    shown = { key, slots };
    changed();
  });
}
