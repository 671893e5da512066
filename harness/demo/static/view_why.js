// Why is it not enabled? For an action, each of its instances with the guard that fails and what it read.

import { get } from "./api.js";
import { h } from "./dom.js";
import { Lines, reading, rewindPage } from "./paged.js";
import { changed, store } from "./store.js";
import { guards } from "./view_step.js";

let shown = { key: null, answer: null, error: null };

/** Draw the view into so much room. */
export function drawWhy({ wide, high }) {
  const spec = store.session.spec?.actions || [];
  const own = actions().filter((name) => !spec.includes(name));
  const chosen = store.why && (spec.includes(store.why) || own.includes(store.why)) ? store.why : spec[0] || own[0];
  if (!chosen) return h("p", { class: "empty" }, "There is no action to ask about.");
  fetchWhy(chosen);
  const lines = new Lines(wide);
  if (shown.error) lines.say(shown.error);
  else if (shown.answer) tell(lines, shown.answer);
  return [
    h("div", { class: "view-head" }, h("h2", {}, h("label", { for: "why-action" }, "Why not")),
      h("select", { id: "why-action", value: chosen, onchange: (event) => {
        store.why = event.target.value;
        rewindPage("why");
        changed();
      } },
        spec.length > 0 && h("optgroup", { label: `Spec ${store.session.spec.model}` }, spec.map(option)),
        own.length > 0 && h("optgroup", { label: "This model" }, own.map(option)))),
    reading("why", lines, high - 40, `Why not ${chosen}`),
  ];
}

const option = (name) => h("option", { key: name, value: name }, name);

/** Return the names of the actions of the model that were seen, sorted. */
export function actions() {
  const found = new Set(store.session.actions || []);
  for (const one of store.present.enabled) found.add(one.action);
  for (const step of store.steps) found.add(step.action);
  return [...found].sort();
}

function tell(lines, answer) {
  if (answer.text) lines.say(answer.text);
  if (answer.enabled?.length) {
    lines.head("Enabled now");
    answer.enabled.forEach((one) => lines.say(typeof one === "string" ? one : one.label, "line-mono"));
  }
  for (const one of answer.instances || []) {
    lines.head(one.label || one.name || one.action || "");
    if (one.text || one.reason || one.why) lines.say(one.text || one.reason || one.why);
    guards(lines, one.guards || (one.guard ? [{ text: one.guard, values: one.values, holds: false }] : []));
  }
}

function fetchWhy(action) {
  const key = `${action}|${store.version}`;
  if (shown.key === key) return;
  shown = { ...shown, key };
  get("why", { action }).then(
    (answer) => finish(key, { key, answer, error: null }),
    (failure) => finish(key, { key, answer: null, error: failure.message }),
  );
}

function finish(key, now) {
  if (shown.key !== key) return;
  shown = now;
  changed();
}
