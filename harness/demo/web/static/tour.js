// A guided tour: its title page at the start, then the caption of the step that was reached, and the way on.

import { h, render } from "./dom.js";
import { icon } from "./glyphs.js";
import { onTour, store } from "./store.js";
import { back, follow, goOn, isPlaying, next, timeFor, togglePlay, where } from "./tour_path.js";
import { ask } from "./verbs.js";

const card = document.getElementById("tour");
let closed = null;

/** Break a caption into its first sentence, which says what happens, and the rest. */
export function sentences(text) {
  const end = /[.?!] (?=\S)/.exec(text);
  return end ? [text.slice(0, end.index + 1), text.slice(end.index + 2)] : [text, ""];
}

/** Draw the card, where a tour is on. */
export function drawTour() {
  follow();
  const { tour } = store;
  if (!tour || closed === tour.name) {
    if (!tour) closed = null;
    render(card);
    return;
  }
  const { captions, at } = where();
  const left = !onTour();
  const done = at === captions.length - 1 && !left;
  const isTitle = !store.present.step && !left;
  const text = left ? "This is a branch of your own. Look around, try things, and come back when you like."
    : captions[at]?.text || "Press Next to begin.";
  const [lead, rest] = sentences(text);
  render(
    card,
    h("div", { class: isTitle ? "tour-card title-page" : "tour-card", key: `${tour.name} ${isTitle}` },
      isPlaying() && h("i", { key: `bar${at}`, class: "tour-bar", "aria-hidden": "true",
        place: { animationDuration: `${timeFor(captions[at]?.text)}ms` } }),
      h("div", { class: "tour-head", key: "head" },
        h("strong", {}, tour.title),
        h("span", { class: "tour-count" }, captions.length && !left ? `${at + 1} of ${captions.length}` : ""),
        h("span", { class: "push" }),
        h("button", { type: "button", class: "quiet-button", "aria-label": "Leave the tour", title: "Leave the tour",
          onclick: () => {
            closed = tour.name;
            drawTour();
          } }, "✕")),
      h("p", { class: "tour-text", "aria-live": "polite", key: "text" },
        h("span", { class: "tour-lead" }, lead), rest && " ", rest && h("span", { class: "tour-rest" }, rest)),
      isTitle && h("p", { class: "tour-about", key: "about" }, tour.about),
      verbs(captions, at, left, done),
      isTitle && others(tour)),
  );
}

function verbs(captions, at, left, done) {
  const playing = isPlaying();
  const { then } = store.tour;
  return h("div", { class: "tour-verbs", key: "verbs" },
    h("div", { class: "tour-dots", "aria-hidden": "true" }, captions.map((_, n) =>
      h("span", { key: n, class: n === at ? "here" : n < at ? "past" : "" }))),
    h("span", { class: "push" }),
    left
      ? h("button", { type: "button", class: "primary", id: "tour-return",
        onclick: () => ask("switch", { name: store.tour.branch }) }, "Back to the tour")
      : [h("button", { key: "play", type: "button", class: playing || done ? "" : "primary", id: "tour-play",
        "aria-pressed": playing ? "true" : "false", title: "Play the tour, or stop (Space)", onclick: togglePlay },
      icon(playing ? "stop" : "play"), playing ? "Stop" : done ? "Play again" : "Play"),
      h("button", { key: "back", type: "button", id: "tour-back", disabled: at < 0, title: "Back (Shift+N)",
        onclick: back }, "Back"),
      h("button", { key: "next", type: "button", id: "tour-next", disabled: done, title: "Next (N)",
        onclick: next }, done ? "The end" : "Next"),
      done && then && h("button", { key: "then", type: "button", class: "primary", id: "tour-then",
        title: then.title, onclick: goOn }, "Next tour", icon("forward"))]);
}

/** The other tours, on the title page of one. */
function others(tour) {
  const rest = (store.session.catalogue?.tours || []).filter((one) => one.name !== tour.name);
  return rest.length > 0 && h("div", { class: "tour-others", key: "others" }, h("span", {}, "Or:"), rest.map((one) =>
    h("button", { key: one.name, type: "button", class: "small", "data-tour": one.name, title: one.title,
      onclick: () => ask("tour", { name: one.name }) }, h("span", {}, one.title))));
}
