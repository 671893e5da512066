// Why is it not enabled? For an action, each of its instances with the guard that fails and what it read.

import { get } from "./api.js";
import { h } from "./dom.js";
import { Lines, reading, rewindPage } from "./paged.js";
import { changed, store } from "./store.js";

let shown = { key: null, about: null, answer: null, error: null };

/** Draw the view into so much room. */
export function drawWhy({ wide, high }) {
  const spec = store.session.spec?.actions || [];
  const own = actions().filter((name) => !spec.includes(name));
  const chosen = store.why && (spec.includes(store.why) || own.includes(store.why)) ? store.why : spec[0] || own[0];
  if (!chosen) return h("p", { class: "empty" }, "There is no action to ask about.");
  fetchWhy(chosen);
  const lines = new Lines(wide);
  if (shown.error) lines.say(shown.error);
  else if (shown.answer) showAnswer(lines, shown.answer);
  else lines.say("Looking…", "line-quiet");
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
  const found = new Set([...(store.session.actions || []), ...store.layout.actions.keys()]);
  for (const one of store.present.enabled) found.add(one.action);
  return [...found].sort();
}

function showAnswer(lines, answer) {
  const parts = [answer.spec, answer.model].filter((one) => one && (one.seen || one.enabled.length || one.not.length));
  if (!parts.length) lines.say("It was possible nowhere on the way to here, so there is no attempt to look at.");
  for (const part of parts) {
    lines.head(part.name);
    if (part.enabled.length) lines.say("Enabled now:");
    for (const label of part.enabled) lines.say(`✓ ${label}`, "line-mono");
    for (const one of part.not) {
      lines.say(`✕ ${one.process && !one.instance.includes("(") ? one.process : one.instance}`, "line-strong");
      one.why.split("; there ").forEach((text, n) => lines.say(n ? `there ${text}` : text, "line-deep"));
    }
    if (part.more) lines.say(`and ${part.more} more`, "line-quiet");
  }
}

function fetchWhy(action) {
  const about = `${store.session.epoch}|${action}`;
  const key = `${about}|${store.version}`;
  if (shown.key === key) return;
  // An answer stays until the next one is there, but not one about another session or another action.
  if (shown.about !== about) {
    rewindPage("why");
    shown = { about, answer: null, error: null };
  }
  shown = { ...shown, key };
  get("why", { action }).then(
    (answer) => finish(key, { key, about, answer, error: null }),
    (failure) => finish(key, { key, about, answer: null, error: failure.message }),
  );
}

function finish(key, now) {
  if (shown.key !== key) return;
  shown = now;
  changed();
}
