// One step in full: what it took and sent, what it changed, and which step of the spec it is, with its guards.

import { get } from "./api.js";
import { h } from "./dom.js";
import { NAMES, sortOf } from "./glyphs.js";
import { Lines, reading, rewindPage } from "./paged.js";
import { changed, clock, looked, store } from "./store.js";
import { rewind, select } from "./verbs.js";

const details = new WeakMap();
let last = null;

/** Draw the view into so much room. */
export function drawStep({ wide, high }) {
  const step = looked();
  if (step !== last) {
    last = step;
    rewindPage("step");
  }
  if (!step) return h("p", { class: "empty" }, "No step was taken yet. The initial state is under Actors.");
  const more = fetchStep(step);
  const lines = new Lines(wide);
  const sort = store.session.is_recorded && !step.sort ? "" : NAMES[sortOf(step)];
  const what = [step.process, sort, clock(step.at_us)].filter(Boolean).join(" · ");
  lines.say(step.args?.length ? `${step.action}(${step.args.join(", ")})` : step.action, "line-strong");
  const detail = step.label.slice(step.label.startsWith(step.action) ? step.label.indexOf(" ") + 1 || Infinity : 0);
  if (detail && !step.received) lines.say(detail, "line-mono");
  lines.say(what, "line-quiet");
  spec(lines, step.spec);
  if (more?.explanation) lines.say([more.explanation].flat().join("\n"));
  guards(lines, "Guards of the spec's action", more?.spec_guards);
  const { op } = step;
  if (op) lines.head("Operation").say(`${op.process} ${op.name}: ${op.outcome} ${op.value ?? ""}`);
  if (step.changed?.length) lines.head("Changed");
  for (const text of step.changed || []) lines.say(text, "line-mono");
  messages(lines, step);
  guards(lines, "Guards of the actor", more?.guards);
  const failing = Object.entries(step.failing || {});
  if (failing.length) lines.head("Fails in the state after it");
  for (const [name, why] of failing) lines.say(`${name}: ${why}`);
  return [
    h("div", { class: "view-head" },
      h("button", { type: "button", class: "small", "aria-label": "The step before", disabled: step.n <= 1,
        onclick: () => select(step.n - 1) }, "‹"),
      h("h2", {}, `Step ${step.n}`),
      h("button", { type: "button", class: "small", "aria-label": "The step after",
        disabled: step.n >= store.steps.length, onclick: () => select(step.n + 1) }, "›"),
      h("span", { class: "push" }),
      h("button", { type: "button", class: "small", "data-verb": "rewind", disabled: step.n >= store.steps.length,
        title: "Go back to the state after this step (R)", onclick: () => rewind(step.n) }, "Rewind to here"),
      h("button", { type: "button", class: "small", title: "Go back to the state before this step",
        onclick: () => rewind(step.n - 1) }, "before it")),
    reading("step", lines, high - 40, `Step ${step.n}`),
  ];
}

function messages(lines, step) {
  const layout = store.layout;
  const fields = (message) => {
    for (const [name, value] of Object.entries(message.fields || {})) lines.pair(`  ${name}`, value);
  };
  const received = step.received && layout.byId.get(step.received)?.message;
  if (received) {
    lines.head(`Takes ${received.type} from ${received.from}`);
    fields(received);
  }
  const told = store.session.is_recorded;
  for (const message of told ? step.sent || [] : []) {
    const flight = layout.byId.get(message.id);
    if (!flight) continue;
    const fate = flight.how === "delivered" && flight.end === flight.row ? "" : `: ${flight.how}`;
    lines.head(`${message.type} ${message.from} → ${message.to}${fate}`);
    fields(message);
  }
  for (const message of told ? [] : step.sent || []) {
    lines.head(`${message.copy_of ? "Copies" : "Sends"} ${message.type} to ${message.to}`);
    fields(message);
  }
  const own = new Set(told ? (step.sent || []).map((message) => message.id) : []);
  for (const { id, how } of step.taken || []) {
    const message = layout.byId.get(id)?.message;
    if (message && !own.has(id)) lines.head(`${message.type} ${message.from} → ${message.to}: ${how}`);
  }
}

const KINDS = {
  step: "a step of the spec", stutter: "a stutter: the spec's state stays", extension: "a named extension of the spec",
  outside: "no step of the spec",
};

function spec(lines, given) {
  if (!given) return;
  lines.head(`In the spec: ${KINDS[given.kind] || given.kind}`);
  for (const action of given.actions || []) lines.say(action, "line-mono");
  if (given.text && !given.actions?.length) lines.say(given.text);
}

/** Add the conditions of the protocol's code that were asked, with the values they read and how they came out. */
function guards(lines, title, list) {
  if (!list?.length) return;
  lines.head(title);
  for (const one of list) {
    lines.say(`${one.outcome ? "true" : "false"}: ${one.text}`, "line-mono");
    for (const value of one.values) lines.say(value, "line-deep");
    if (one.inner) lines.say(one.inner, "line-deep");
    lines.say(one.where, "line-deep line-faint");
  }
}

function fetchStep(step) {
  if (details.has(step)) return details.get(step);
  details.set(step, null);
  get("step", { n: step.n }).then(
    (answer) => {
      details.set(step, answer);
      changed();
    },
    () => details.delete(step),
  );
  return null;
}
