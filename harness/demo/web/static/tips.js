// Tips: what a message, a step, or an actor at a moment shows to a pointer or the keyboard.

import { get } from "./api.js";
import { h } from "./dom.js";
import { hideTip, showTip } from "./float.js";
import { ENDS, NAMES, sortOf } from "./glyphs.js";
import { clock, store } from "./store.js";

const MOST = 12;
/** Values that say little: left out where they are not new. */
const PLAIN = new Set(["{}", "()", "[]", "False", "None", "0", "-1", "", "up", "100"]);
const states = new Map();
let wanted = "";
let waiting = 0;

/** Put the tip away. Returns whether there was one. */
export function putTipAway() {
  wanted = "";
  clearTimeout(waiting);
  return hideTip();
}

/** Show the fields of a message and what became of it. */
export function showMessageTip(x, y, flight) {
  wanted = "";
  if (!flight) {
    putTipAway();
    return;
  }
  const { message } = flight;
  const held = flight.holds.at(-1)?.[1] === Infinity;
  const fate = flight.end === Infinity ? (held ? ENDS.held : ENDS["under way"]) : `${ENDS[flight.how]}, step ${
    store.steps[flight.end]?.n}`;
  showTip(
    x,
    y,
    h("strong", {}, message.type),
    h("p", { class: "tip-quiet" }, `${message.from} → ${message.to} · sent in step ${store.steps[flight.row]?.n}`),
    table(Object.entries(message.fields || {})),
    h("p", { class: "tip-quiet" }, fate, message.copy_of ? " · a copy" : ""),
  );
}

/** Show a step. */
export function showStepTip(x, y, step) {
  wanted = "";
  showTip(
    x,
    y,
    h("strong", {}, `${step.n}. ${step.action}${step.args?.length ? `(${step.args.join(", ")})` : ""}`),
    h("p", { class: "tip-quiet" }, [step.process, NAMES[sortOf(step)], clock(step.at_us)].filter(Boolean).join(" · ")),
    (step.changed || []).slice(0, 8).map((line) => h("p", {}, line)),
    step.spec?.text && h("p", { class: "tip-quiet" }, `spec: ${step.spec.text}`),
  );
}

/** Show names and values under a heading and a line of what they are about. */
export function showPairsTip(x, y, heading, line, pairs) {
  wanted = "";
  showTip(x, y, h("strong", {}, heading), h("p", { class: "tip-quiet" }, line), table(pairs));
}

/** Show the state of a lifeline after a step, and what that step changed in it. */
export function showLaneTip(x, y, n, name) {
  const at = Math.min(n, store.steps.length);
  const key = `${at}|${name}`;
  if (wanted === key && document.getElementById("tip").classList.contains("shown")) return;
  wanted = key;
  clearTimeout(waiting);
  waiting = setTimeout(async () => {
    const slots = await stateOf(at, name);
    if (wanted !== key || !slots) return;
    const fields = flat(slots).filter((field) => !PLAIN.has(field[1]) || field[2]);
    const shown = [...fields.filter((field) => field[2]), ...fields.filter((field) => !field[2])].slice(0, MOST);
    showTip(
      x,
      y,
      h("strong", {}, name),
      h("p", { class: "tip-quiet" }, at ? `after step ${at}` : "at the start"),
      table(shown),
      fields.length > MOST && h("p", { class: "tip-quiet" }, "the rest is in the panel, under Actors"),
    );
  }, 90);
}

/** Return the slots of a lifeline after a step, or null. Remembered while the run stays the same up to there. */
export async function stateOf(n, name) {
  const step = n ? store.steps[n - 1] : store.session;
  if (!step) return null;
  if (!states.has(step) && states.size > 400) states.clear();
  const known = states.get(step) || new Map();
  states.set(step, known);
  if (known.has(name)) return known.get(name);
  try {
    const found = await get("state", { step: n, actor: name });
    const slots = [...(found.actors[name] || []), ...(name === "environment" ? found.shared || [] : [])];
    known.set(name, slots);
    return slots;
  } catch {
    return null;
  }
}

/** Return slots as names and values, fields by themselves: `[name, text, changed, was]`. */
export function flat(slots) {
  const found = [];
  for (const slot of slots) {
    if (slot.fields?.length) {
      const prefix = slot.part ? `${slot.part}.` : slots.length > 1 && slots[0] !== slot ? `${slot.slot}.` : "";
      for (const field of slot.fields) found.push([prefix + field.name, field.text, field.changed, field.was]);
    } else found.push([slot.slot, slot.text, slot.changed, slot.was]);
  }
  return found;
}

function table(pairs) {
  if (!pairs.length) return null;
  return h(
    "table",
    {},
    h("tbody", {}, pairs.map(([name, value, isNew, was]) =>
      h("tr", { class: isNew ? "changed" : "" },
        h("th", { scope: "row" }, isNew ? `▸ ${name}` : name),
        h("td", {},
          isNew && was !== undefined ? [h("del", {}, brief(was)), " → "] : null,
          h("span", {}, brief(value)))))),
  );
}

function brief(value) {
  const text = String(value);
  return text.length > 180 ? `${text.slice(0, 179)}…` : text;
}
