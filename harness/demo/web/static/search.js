// Search in the steps up to the present: actions, actors, fields of messages, what changed. Enter goes to the next one.

import { h, render, swallow } from "./dom.js";
import { icon } from "./glyphs.js";
import { changed, store } from "./store.js";
import { select } from "./verbs.js";

const box = document.getElementById("find");
const texts = new WeakMap();
let open = false;
let words = "";
let known = { words: "", version: null, hits: [] };

/** Draw the bar, where a search is on, and note which steps are found. */
export function drawSearch() {
  const hits = open ? found() : [];
  if (hits.length !== store.found.size || hits.some((n) => !store.found.has(n))) store.found = new Set(hits);
  if (!open) {
    render(box);
    return;
  }
  const at = hits.indexOf(store.selected);
  const said = !words.trim() ? "" : !hits.length ? "none"
    : at < 0 ? `${hits.length} found` : `${at + 1} of ${hits.length}`;
  const button = (id, sign, title, act) => h("button", { type: "button", id, class: "icon-button", title,
    "aria-label": title, disabled: !hits.length, onclick: act }, icon(sign));
  render(
    box,
    h("div", { class: "find-bar", key: "find" },
      h("input", { id: "find-text", type: "search", value: words, "aria-label": "Search in the steps",
        autocomplete: "off", placeholder: "action, actor, field=value", oninput: (event) => type(event.target.value) }),
      h("span", { class: "find-count", role: "status" }, said),
      button("find-back", "fold", "The step before that is found (Shift+Enter)", () => go(-1)),
      button("find-next", "unfold", "The next step that is found (Enter)", () => go(1)),
      h("button", { type: "button", id: "find-close", class: "quiet-button", "aria-label": "End the search (Esc)",
        title: "End the search (Esc)", onclick: close }, "✕")),
  );
}

/** Begin to search, or go on. */
export function openSearch() {
  open = true;
  drawSearch();
  const field = document.getElementById("find-text");
  field.focus();
  field.select();
  changed();
}

function close() {
  open = false;
  changed();
  document.getElementById("stage").focus();
}

function type(text) {
  words = text;
  const hits = found();
  if (hits.length) {
    const from = store.selected ?? store.steps.length;
    select(hits.findLast((n) => n <= from) ?? hits[0]);
  } else changed();
}

function go(by) {
  const hits = found();
  if (!hits.length) return;
  const from = store.selected ?? store.steps.length + 1;
  const next = by > 0 ? hits.find((n) => n > from) ?? hits[0] : hits.findLast((n) => n < from) ?? hits.at(-1);
  // The last step selected is a selection, too; only past it comes the present.
  select(next);
}

function found() {
  const { version, session } = store;
  if (known.words === words && known.version === version && known.epoch === session.epoch) return known.hits;
  const all = words.toLowerCase().split(/\s+/).filter(Boolean);
  const hits = all.length ? store.steps.filter((step) => {
    const text = textOf(step);
    return all.every((word) => text.includes(word));
  }).map((step) => step.n) : [];
  known = { words, version: store.version, epoch: store.session.epoch, hits };
  return hits;
}

/** Return all that a step can be found by. */
function textOf(step) {
  if (!texts.has(step)) {
    const taken = [step.received, ...(step.taken || []).map((one) => one.id)].map((id) =>
      store.layout.byId.get(id)?.message).filter(Boolean);
    const messages = [...(step.sent || []), ...taken].flatMap((message) => [message.type, message.from, message.to,
      ...Object.entries(message.fields || {}).map(([name, value]) => `${name}=${value}`)]);
    texts.set(step, [step.label, step.action, step.process, ...(step.args || []), ...(step.changed || []),
      step.op ? `${step.op.name} ${step.op.outcome} ${step.op.value ?? ""}` : "", ...Object.keys(step.failing || {}),
      ...messages].join("\n").toLowerCase());
  }
  return texts.get(step);
}

box.addEventListener("keydown", (event) => {
  if (event.key === "Escape") close();
  else if (event.target.id !== "find-text") return;
  else if (event.key === "Enter") go(event.shiftKey ? -1 : 1);
  else if (event.key === "ArrowDown" || event.key === "ArrowUp") go(event.key === "ArrowDown" ? 1 : -1);
  else return;
  swallow(event);
});
