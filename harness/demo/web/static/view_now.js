// What can happen now: the messages in flight with what can be done to each, and the steps that are enabled.

import { h, width } from "./dom.js";
import { menu } from "./float.js";
import { icon } from "./glyphs.js";
import { ordered } from "./lanes.js";
import { paged, SMALL, wrap } from "./paged.js";
import { changed, enabled, store } from "./store.js";
import { deedsOf, take } from "./verbs.js";

const MESSAGE = 42;
const STEP = 28;
const LINE = 15;
const FIELDS = '11px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';
/** What the buttons of a message and its frame take of its width, and how many lines its fields may have. */
const BESIDE = 148;
const LINES = 9;
const TITLE = 19;
const TYPE = '600 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const OF_REQUESTS = ["delay_request", "drop_request", "lose_request", "duplicate_request", "heal_request"];
const FAULTS = [
  ...OF_REQUESTS, "crash", "restart", "pause", "resume", "skew", "partition", "one_way", "heal", "reorder",
  "slow_disk", "fast_disk",
];
/** Keys that take a step of the list. */
export const DIGITS = 9;
const BUTTONS = [
  ["deliver", "Deliver", "deliver"],
  ["drop", "Drop", "drop"],
  ["duplicate", "Duplicate", "duplicate"],
  ["delay", "Hold", "hold"],
];

/** Draw the view into so much room. */
export function drawNow({ wide, high }) {
  const messages = store.present.in_flight
    .filter((one) => (store.whole || !one.minor) && (!store.only || [one.to, one.from].includes(store.only)))
    .map((one) => ({ ...one, key: one.id, lines: fieldLines(one, wide - BESIDE),
      isLong: width(one.type, TYPE) + 9 + width(`${one.from} → ${one.to}`, SMALL) > wide - BESIDE }));
  const steps = offered();
  const room = high - 2 * 36 - 8;
  const forSteps = Math.min(steps.length + 1, Math.max(6, Math.floor((room * 0.5) / STEP))) * STEP;
  const forMessages = Math.max(2 * MESSAGE, room - forSteps);
  const used = Math.min(messages.reduce((sum, one) => sum + tallOf(one), 0) || MESSAGE, forMessages) + 4;
  return [
    h("div", { class: "view-head" }, h("h2", {}, "Messages in flight"), h("span", { class: "count" }, messages.length)),
    paged("messages", messages, forMessages, drawMessage,
      { label: "Messages in flight", empty: "None is under way.", tall: tallOf }),
    h("div", { class: "view-head" },
      h("h2", {}, "Enabled steps"), h("span", { class: "count" }, steps.length), chooser("only", "Whose", whose()),
      chooser("sort", "Which", store.session.is_live ? [["", "all"], ["faults", "faults"]]
        : [["", "protocol"], ["faults", "faults"], ["all", "all"]])),
    store.session.is_recorded && !store.session.is_live && h("p", { key: "recorded", class: "empty" },
      "A session of real clients: what they sent is recorded, and nothing else can be chosen."),
    paged("enabled", steps.map((one) => ({ ...one, key: one.label })), Math.floor((room - used) / STEP), drawStep,
      { label: "Enabled steps", empty: store.present.over || "No step of this sort is enabled.", tall: STEP }),
  ];
}

/** Return the fields of a message in lines that fit. */
function fieldLines(message, room) {
  const note = { held: "held", waiting: "behind others" }[message.state];
  const marks = [note, message.copy_of && "copy"].filter(Boolean).map((mark) => `${mark}   `).join("");
  const fields = Object.entries(message.fields || {}).map(([name, value]) => `${name}=${value}`).join(" ");
  const lines = wrap(marks + fields, room, FIELDS);
  lines[0] = lines[0].slice(Math.min(marks.length, lines[0].length)).trimStart();
  return lines.length > LINES ? [...lines.slice(0, LINES - 1), `${lines[LINES - 1].slice(0, -1)}…`] : lines;
}

const tallOf = (message) => MESSAGE + LINE * (message.lines.length - 1) + (message.isLong ? TITLE : 0);

/** Return the enabled steps that the list has, in its order: keys 1 to 9 take the first of them. */
export function offered() {
  // Nobody but real clients takes the steps of the protocol there.
  const sort = store.sort || (store.session.is_live ? "all" : "");
  return enabled((one) => {
    if (["deliver", "drop", "duplicate", "delay", "release"].includes(one.verb)) return false;
    if (store.only && !(one.process === store.only || one.actors?.includes(store.only))) return false;
    return sort === "all" || (sort === "faults") === FAULTS.includes(one.verb);
  });
}

function whose() {
  return [["", "everybody"], ...ordered().map((name) => [name, name])];
}

function chooser(field, label, options) {
  return h(
    "select",
    { "aria-label": label, value: store[field] || "", id: `choose-${field}`,
      onchange: (event) => {
        store[field] = event.target.value;
        changed();
      } },
    options.map(([value, text]) => h("option", { value }, text)),
  );
}

function drawMessage(message, cell) {
  const deeds = deedsOf(message);
  const held = message.state === "held";
  const fields = Object.entries(message.fields || {}).map(([name, value]) => `${name}=${value}`).join(" ");
  const note = { held: "held", waiting: "behind others" }[message.state];
  const buttons = held && deeds.release ? [["release", "Release", "release"], ...BUTTONS.slice(1, 3)] : BUTTONS;
  const columns = buttons.map(([verb, word, sign], n) => {
    const ways = deeds[verb] || [];
    return h(
      "button",
      { ...cell(n), type: "button", class: `deed deed-${verb}`, disabled: !ways.length, "data-verb": verb,
        title: ways.length ? `${word} ${message.type}` : `${word}: ${whyNot(message, verb)}`,
        "aria-label": `${word} ${message.type} from ${message.from} to ${message.to}`,
        onclick: (event) => several(event.currentTarget, word, ways) },
      icon(sign),
    );
  });
  return h(
    "div",
    {
      class: "message", "data-message": message.id,
      title: `${message.type} ${message.from} → ${message.to}\n${fields}`,
    },
    h("div", { class: "message-text" },
      h("div", { class: message.isLong ? "message-type long" : "message-type" }, h("strong", {}, message.type),
        h("span", { class: "route" }, `${message.from} → ${message.to}`)),
      h("div", { class: "message-fields" }, note && h("em", {}, note), message.copy_of && h("em", {}, "copy"),
        message.lines.join("\n"))),
    h("div", { class: "deeds-row" }, columns),
  );
}

/** Return why a deed cannot be done to a message now. */
function whyNot(message, verb) {
  return store.present.not?.messages[message.id]?.[verb] || "not possible now";
}

/** Take the only way, or ask which one. */
export function several(anchor, word, ways) {
  if (ways.length === 1) take(ways[0]);
  else if (ways.length) menu(anchor, word, ways.map((one) => ({ label: one.label, act: () => take(one) })));
}

function drawStep(one, cell, index) {
  const rest = one.label.startsWith(one.action) ? one.label.slice(one.action.length) : ` ${one.label}`;
  const title = one.spec?.length ? `${one.label}\nspec: ${one.spec.join(", ")}` : one.label;
  return h(
    "button",
    {
      ...cell(0), type: "button", class: `step step-${one.verb}`, title, "data-label": one.label,
      "data-digit": index < DIGITS ? index + 1 : null,
      onclick: () => take(one),
    },
    icon(SIGNS[one.verb] || "play"),
    h("span", { class: "step-label" }, h("strong", {}, one.action), rest),
    h("span", { class: "step-who" }, one.process === "environment" ? "" : one.process),
  );
}

const SIGNS = { crash: "drop", pause: "hold", resume: "release", partition: "bolt", one_way: "bolt", heal: "plus",
  restart: "plus", delay_request: "hold", drop_request: "drop", lose_request: "drop",
  duplicate_request: "duplicate", heal_request: "plus", slow_disk: "disk", fast_disk: "disk",
  timer: "clock", skew: "clock", reorder: "reorder", elect: "star" };
