// The bars at the top and at the bottom: which cluster this is, and how it runs.

import { lacks } from "./api.js";
import { h, render } from "./dom.js";
import { icon } from "./glyphs.js";
import { menu } from "./float.js";
import { openSearch } from "./search.js";
import { showWhole, store } from "./store.js";
import { actions } from "./view_why.js";
import { openFind } from "./finding.js";
import { openWhat } from "./open.js";
import { ask, forward, rewind, run, toggleRun, undo } from "./verbs.js";
import { exportAs, openHelp, openShare, pickFile, saveTrail, turnTheme, FORMATS } from "./dialogs.js";

const top = document.getElementById("top");
const bar = document.getElementById("transport");
const SPEEDS = [1, 2, 5, 10, 20, 50, 100, 0];

/** What the next run goes on until, as this page has it. */
let until = "violation";
let stepNumber = 100;
let epoch = null;

/** Is this a page that will do all, once its models are loaded? */
const startsUp = () => document.documentElement.dataset.answers === "worker" && lacks("open");

/** Draw the bar at the top. */
export function drawTop() {
  const { session } = store;
  if (!session) return;
  const all = Object.entries(session.sizes || {});
  const said = (pairs) => pairs.map(([name, value]) => `${name} ${value}`);
  const settings = Object.entries(session.settings || {}).filter(([, value]) => value).map((pair) => pair.join("="));
  const words = (sizes) => (session.is_recorded ? ["a session of real clients"] : [
    session.scenario ? session.model : "", ...said(sizes), ...settings, session.network, session.mode,
  ]).filter(Boolean).join(" · ");
  // What there is none of need not be said at first sight.
  const about = words(all.filter(([, value]) => value));
  render(
    top,
    h("span", { class: "brand" }, "kafka-proto"),
    h("div", { class: "what" },
      h("h1", { title: session.title }, session.scenario || session.model),
      h("span", { class: "about", title: `${session.title}\n${words(all)}` }, about)),
    startsUp() && h("span", { class: "about", key: "starts", role: "status" }, "loading the models…"),
    button("open", "Open…", "Open a model, a scenario, a tour or an earlier session (O)", openWhat),
    !session.is_recorded
      && button("find", "Find…", "Find a violation: try seeds and strategies in the background (F)", openFind),
    button("tours", "Tours", "Guided tours (T)", (event) => openTours(event.currentTarget)),
    button("load", "Load", "Load a trail from a file (L)", pickFile),
    button("save", "Save", "Save the trail (Shift+S)", saveTrail),
    button("export", "Export", "Export as a picture or in another format (X)", (event) =>
      menu(event.currentTarget, "Export", FORMATS.filter(([as]) => !lacks(as)).map(([as, label, hint]) =>
        ({ label, hint, act: () => exportAs(as) })))),
    button("share", "Link", "A link that carries this session (K)", openShare),
    button("search", icon("find"), "Search in the steps (/)", openSearch),
    button("theme", icon("theme"), "Light or dark theme (Shift+D)", turnTheme),
    button("help", icon("help"), "Keys and signs (?)", openHelp),
  );
}

function button(name, content, title, act) {
  if (lacks(name)) return null;
  const more = { title, "aria-label": title, onclick: act };
  return h("button", { key: name, id: `top-${name}`, type: "button", ...more }, content);
}

/** Open the menu of tours. */
export function openTours(anchor) {
  const tours = store.session.catalogue?.tours || [];
  const items = tours.map((tour) => ({ label: tour.title, act: () => ask("tour", { name: tour.name }) }));
  menu(anchor || document.getElementById("top-tours"), "Tours", items.length ? items
    : [{ label: "No tour is installed.", disabled: true }]);
}

/** Return what the transport would run until. */
export const wanted = () => until;

/** Draw the bar at the bottom. */
export function drawTransport() {
  const { present, session } = store;
  if (!session) return;
  if (epoch !== session.epoch) {
    // Another model has other actions.
    epoch = session.epoch;
    until = "violation";
  }
  const at = present.step;
  // `not` says why it cannot be done now.
  const act = (name, sign, title, does, not) =>
    h("button", { key: name, id: `go-${name}`, type: "button", class: "icon-button", "aria-label": title,
      title: not ? `${title}: ${not}` : title, disabled: Boolean(not), onclick: does }, icon(sign));
  const canFail = Object.values(session.possible_faults).some(Boolean);
  const atStart = at ? "" : "this is the start";
  const atEnd = store.ahead ? "" : "no step is kept ahead";
  const state = session.is_live && !store.ahead ? "live" : present.running ? "running" : present.over ? "at rest"
    : "paused";
  render(
    bar,
    h("div", { class: "group", role: "group", "aria-label": "Time travel" },
      act("start", "start", "Rewind to the start (Shift+[)", () => rewind(0), atStart),
      act("back", "back", "Rewind one step ([)", () => rewind(at - 1), atStart),
      !session.is_live && h("button", { key: "run", id: "go-run", type: "button", class: "primary",
        "aria-pressed": present.running ? "true" : "false", title: "Run or pause (Space)",
        onclick: () => toggleRun(wanted()) },
      icon(present.running ? "stop" : "play"), present.running ? "Pause" : "Run"),
      !session.is_recorded && act("step", "one", "One step, chosen by the strategy (.)", () => run({ steps: 1 }),
        present.over || ""),
      act("forward", "forward", "Forward one step of those that are kept (])", () => forward(at + 1), atEnd),
      act("end", "end", "Forward to the end of the branch (Shift+])", () => forward(at + store.ahead), atEnd),
      act("undo", "undo", "Undo (U)", undo, present.can_undo ? "" : "nothing was done yet")),
    session.is_live ? [] : howFar(at),
    session.is_recorded ? recorded() : lacks("strategy") ? [] : decides(canFail),
    h("span", { class: "push" }),
    h("span", { class: "state", id: "run-state" }, state,
      ` · step ${at}${store.ahead ? ` of ${at + store.ahead}` : ""}`),
  );
}

/** How far a run goes, and how fast. */
function howFar(at) {
  const speed = store.present.speed ?? 0;
  return [
    field("until", "", untilChoice()),
    until.startsWith("step:") && h("input", { key: "number", type: "number", min: at + 1, value: stepNumber,
      "aria-label": "Run until this step", onchange: (event) => {
        stepNumber = Math.max(1, Number(event.target.value) || 1);
        until = `step:${stepNumber}`;
        drawTransport();
      } }),
    field("speed", "", choice("speed", String(speed), [...new Set([...SPEEDS, speed])]
      .map((one) => [String(one), one ? `${one} a second` : "full speed"]),
    (value) => ask("strategy", { speed: Number(value) }))),
  ];
}

/** What there is to choose in a session of real clients: nothing but what is shown of it. */
function recorded() {
  return [
    h("label", { key: "whole", class: "check", title: "Show uneventful requests, too: metadata, heartbeats, empty "
      + "fetches, connections" },
      h("input", { id: "set-whole", type: "checkbox", checked: store.whole,
        onchange: (event) => showWhole(event.target.checked) }), "all requests"),
    h("span", { key: "recorded", class: "about", id: "recorded" }, store.session.is_live
      ? "live: faults are under Now and Actors" : "real clients: the steps are recorded, no others can be chosen"),
  ];
}

/** Who decides in a run: a strategy with its seed, with faults or without. */
function decides(canFail) {
  const { present, session } = store;
  return [
    field("strategy", "strategy", choice("strategy", present.strategy, session.strategies.map((one) => [one, one]),
      (value) => ask("strategy", { strategy: value }))),
    field("seed", "seed", h("input", { id: "set-seed", type: "number", min: 0, step: 1,
      value: String(present.seed ?? 0),
      onchange: (event) => ask("strategy", { seed: Number(event.target.value) || 0 }) })),
    h("label", { key: "inject-faults", class: "check",
      title: canFail ? "May the strategy choose faults?" : "Faults are off: there are none in this cluster." },
      h("input", { id: "set-faults", type: "checkbox", checked: canFail && Boolean(present.inject_faults),
        disabled: !canFail,
        onchange: (event) => ask("strategy", { inject_faults: event.target.checked }) }), "faults"),
    h("label", { key: "spares", class: "check", title: "Leave my faults alone: in a run, and for a single step, the "
      + "strategy neither heals nor restarts what I cut, crashed, paused or held" },
      h("input", { id: "set-spares", type: "checkbox", checked: Boolean(present.spares),
        onchange: (event) => ask("strategy", { spares: event.target.checked }) }), "leave my faults alone"),
  ];
}

function field(name, label, control) {
  return h("label", { key: name, class: "field" }, label && h("span", {}, label), control);
}

function choice(name, value, options, act) {
  return h("select", { id: `set-${name}`, "aria-label": name, value, onchange: (event) => act(event.target.value) },
    options.map(([one, text]) => h("option", { key: one, value: one }, text)));
}

function untilChoice() {
  const now = wanted();
  const names = new Set([...(store.session.spec?.actions || []), ...actions()]);
  const plain = [["violation", "until a property breaks"], ["end", "until nothing is left to do"]];
  const stepped = now.startsWith("step:") ? now : `step:${stepNumber}`;
  if (now.startsWith("action:")) names.add(now.slice(7));
  return h("select", { id: "set-until", "aria-label": "run until", value: now, onchange: (event) => {
    until = event.target.value;
    if (until.startsWith("step:")) {
      stepNumber = store.present.step + 100;
      until = `step:${stepNumber}`;
    }
    drawTransport();
  } },
  plain.map(([one, text]) => h("option", { key: one, value: one }, text)),
  h("option", { key: "step", value: stepped }, "until a step"),
  h("optgroup", { label: "until an action happens" }, [...names].sort().map((name) =>
    h("option", { key: name, value: `action:${name}` }, name))));
}
