// The properties: a light each, and its history along the run.

import { h, s } from "./dom.js";
import { light } from "./glyphs.js";
import { paged } from "./paged.js";
import { store } from "./store.js";
import { select } from "./verbs.js";

const ROW = 46;

/** Return how a property is: holds, fails, failed (earlier), reached, waiting. */
export function howIs(property) {
  const now = store.present.properties?.[property.name];
  if (property.form === "sometimes") {
    return (store.present.witnessed || []).includes(property.name) ? "reached" : "waiting";
  }
  if (property.form !== "[]") return now?.ok === false ? "fails" : now?.pending ? "waiting" : "holds";
  if (now && !now.ok) return "fails";
  return store.layout.spans.get(property.name)?.length ? "failed" : "holds";
}

/** Draw the view into so much room. */
export function drawProperties({ wide, high }) {
  const items = store.session.properties.map((one) => ({ ...one, key: one.name }));
  const holding = items.filter((one) => ["holds", "reached"].includes(howIs(one))).length;
  return [
    h("div", { class: "view-head" }, h("h2", {}, "Properties"),
      h("span", { class: "view-note" }, `${holding} of ${items.length} hold or were reached`)),
    paged("properties", items, Math.floor((high - 40) / ROW), (one, cell) => draw(one, cell, wide),
      { label: "Properties", tall: ROW }),
  ];
}

function draw(property, cell, wide) {
  const how = howIs(property);
  const now = store.present.properties?.[property.name];
  const words = now?.reason || now?.pending || property.title || FORMS[property.form] || property.form;
  const spans = store.layout.spans.get(property.name) || [];
  const title = `${property.name} (${property.form}${property.claimed ? ", claimed" : ""})\n${words}`;
  const first = spans[0]?.[0];
  return h(
    "button",
    { ...cell(0), type: "button", class: `property is-${how}`, title, "data-property": property.name, "data-how": how,
      onclick: (event) => select(chosen(event, first)) },
    h("span", { class: "property-line" }, light(how), h("strong", {}, property.name),
      property.claimed ? h("span", { class: "tag" }, "claimed") : null,
      h("span", { class: "property-words" }, words)),
    strip(spans, wide),
  );
}

const FORMS = {
  "[]": "always", sometimes: "some run reaches it", "<>": "eventually", "<>[]": "eventually for good",
  "[]<>": "again and again", "~>": "leads to",
};

/** Return the step under the pointer, or where the property first failed. */
function chosen(event, first) {
  const box = event.currentTarget.querySelector("svg.strip").getBoundingClientRect();
  if (event.detail && event.clientY >= box.top - 3) {
    return Math.max(1, Math.ceil(((event.clientX - box.left) / box.width) * store.steps.length));
  }
  return first ?? null;
}

function strip(spans, wide) {
  const count = Math.max(1, store.steps.length);
  const at = (n) => (n / count) * wide;
  return s(
    "svg",
    { class: "strip", viewBox: `0 0 ${wide} 8`, width: wide, height: 8, preserveAspectRatio: "none" },
    s("rect", { class: "strip-ok", x: 0, y: 3, width: wide, height: 2 }),
    spans.map(([from, to]) =>
      s("rect", { class: "strip-bad", x: at(from - 1), y: 0, width: Math.max(2, at(to) - at(from - 1)), height: 8 })),
    store.selected !== null && s("rect", { class: "strip-at", x: at(store.selected) - 1, y: 0, width: 2, height: 8 }),
  );
}
