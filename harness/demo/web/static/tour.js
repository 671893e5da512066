// A guided tour: the caption of the step that was reached, and the way on.

import { h, render } from "./dom.js";
import { onTour, store } from "./store.js";
import { ask, forward, rewind } from "./verbs.js";

const card = document.getElementById("tour");
let closed = null;

/** Return the captions, and which of them the present has come to (-1: none yet). */
function where() {
  const captions = store.tour?.captions || [];
  let at = -1;
  captions.forEach((caption, n) => {
    if (caption.at <= store.present.step) at = n;
  });
  return { captions, at };
}

/** Draw the card, where a tour is on. */
export function drawTour() {
  const { tour } = store;
  if (!tour || closed === tour.name) {
    if (!tour) closed = null;
    render(card);
    return;
  }
  const { captions, at } = where();
  const left = astray();
  const done = at === captions.length - 1 && !left;
  render(
    card,
    h("div", { class: "tour-card", key: tour.name },
      h("div", { class: "tour-head" },
        h("strong", {}, tour.title),
        h("span", { class: "tour-count" }, captions.length && !left ? `${at + 1} of ${captions.length}` : ""),
        h("span", { class: "push" }),
        h("button", { type: "button", class: "quiet-button", "aria-label": "Leave the tour", title: "Leave the tour",
          onclick: () => {
            closed = tour.name;
            drawTour();
          } }, "✕")),
      !store.present.step && h("p", { class: "tour-about" }, tour.about),
      h("p", { class: "tour-text", "aria-live": "polite" },
        left ? "This is a branch of your own. Look around, try things, and come back when you like."
          : captions[at]?.text || "Press Next to begin."),
      h("div", { class: "tour-verbs" },
        h("div", { class: "tour-dots", "aria-hidden": "true" }, captions.map((_, n) =>
          h("span", { key: n, class: n === at ? "here" : n < at ? "past" : "" }))),
        h("span", { class: "push" }),
        left
          ? h("button", { type: "button", class: "primary", id: "tour-return",
            onclick: () => ask("switch", { name: tour.branch }) }, "Back to the tour")
          : [h("button", { key: "back", type: "button", id: "tour-back", disabled: at < 0, title: "Back (Shift+N)",
            onclick: back }, "Back"),
          h("button", { key: "next", type: "button", class: "primary", id: "tour-next", disabled: done,
            title: "Next (N)", onclick: next }, done ? "The end" : "Next")])),
  );
}

/** Has the person left the tour's path for a branch of their own? */
const astray = () => !onTour();

/** Go on to the next caption. */
export function next() {
  if (!store.tour || astray()) return;
  const { captions, at } = where();
  const to = captions[at + 1]?.at;
  if (to !== undefined) forward(to);
}

/** Go back to the caption before. */
export function back() {
  if (!store.tour || astray()) return;
  const { captions, at } = where();
  if (at >= 0) rewind(captions[at - 1]?.at ?? 0);
}
