// The heads of the lifelines: choose them, drag them elsewhere; and the dialog that shows, hides and orders them.

import { h, render, swallow, zoomOf } from "./dom.js";
import { dialog } from "./float.js";
import { badge, icon } from "./glyphs.js";
import { ENVIRONMENT, hidden, hide, insert, move, ordered, shown, usual } from "./lanes.js";
import { changed, store } from "./store.js";
import { deedsOn, pick } from "./verbs.js";

const box = document.getElementById("heads");
const FAR = 6;
let place = null;
/** The head that is dragged: its name, where the pointer went down, and before whom it would come. */
let dragged = null;

/** Draw the heads in their lanes. */
export function drawHeads(where) {
  place = where;
  box.style.width = `${place.wide}px`;
  const roving = store.lane && place.names.includes(store.lane) ? store.lane : place.names[0];
  render(
    box,
    h("button", { key: "order", type: "button", id: "lanes-open", class: "quiet-button", "aria-label": "Lifelines",
      title: "Lifelines: show, hide, order (Shift+H)", onclick: openLanes }, icon("lanes")),
    place.names.map((name) => head(name, name === roving)),
    place.rest !== null && h("button", { key: "rest", type: "button", class: "lane-head rest", id: "lanes-hidden",
      place: { left: `${place.rest}px` }, title: `Hidden: ${hidden().join(", ")} (Shift+H shows them again)`,
      onclick: openLanes }, `+${place.away}`),
    dragged?.moved && h("div", { key: "mark", class: "drop-mark", place: { left: `${dragged.mark}px` } }),
  );
}

function head(name, isRoving) {
  const gate = (store.present?.gates || {})[name];
  const kind = store.session.kinds_of_lifeline[name];
  const status = gate?.status && gate.status !== "up" ? gate.status : "";
  const cut = gate?.partitioned_from?.length ? `partitioned from ${gate.partitioned_from.join(", ")}` : "";
  const skew = gate?.skew && gate.skew !== 100 ? `clock at ${gate.skew} %` : "";
  const slow = deedsOn(name).some((one) => one.verb === "fast_disk") ? "disk writes nothing" : "";
  const notes = [kind, status, cut, skew, slow].filter(Boolean).join("; ");
  const marks = [status, cut && "partitioned", skew && "skew", slow && "slow"].filter(Boolean);
  const tight = place.isTight(name) ? "tight" : "";
  return h(
    "button",
    {
      key: name,
      type: "button",
      class: `lane-head ${kind} ${status} ${tight} ${dragged?.moved && dragged.name === name ? "dragged" : ""}`,
      "aria-pressed": store.heads.includes(name) ? "true" : "false",
      "aria-label": `${name}, ${notes}`,
      title: `${name} (${notes})\nDrag it, or press Shift+← or Shift+→, to move it; Delete hides it`,
      tabindex: isRoving ? "0" : "-1",
      "data-lane": name,
      place: { left: `${place.x(name)}px`, maxWidth: `${Math.max(24, place.lane(name) - 4)}px` },
      onclick: () => pick(name),
    },
    h("span", { class: "lane-name" }, name === ENVIRONMENT ? "env" : name),
    marks.length > 0 && h("span", { class: "lane-marks" }, marks.map((mark) => badge(mark))),
  );
}

const focusHead = (name) => [...box.querySelectorAll("[data-lane]")].find((one) => one.dataset.lane === name)?.focus();

box.addEventListener("keydown", (event) => {
  const name = document.activeElement?.dataset?.lane;
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const names = shown();
  const at = names.indexOf(name);
  if (at < 0 || event.ctrlKey || event.metaKey || event.altKey) return;
  if (by && event.shiftKey) {
    store.lane = name;
    move(name, by);
  } else if (by) {
    store.lane = names[(at + by + names.length) % names.length];
    focusHead(store.lane);
    changed();
  } else if (event.key === "Delete") {
    store.lane = names[at + 1] ?? names[at - 1];
    focusHead(store.lane);
    hide(name);
  } else return;
  swallow(event);
});

box.addEventListener("pointerdown", (event) => {
  const name = event.target.closest("[data-lane]")?.dataset.lane;
  if (name && event.button === 0) dragged = { name, from: event.clientX, moved: false };
});

window.addEventListener("pointermove", (event) => {
  if (!dragged || (!dragged.moved && Math.abs(event.clientX - dragged.from) < FAR)) return;
  dragged.moved = true;
  const x = (event.clientX - box.getBoundingClientRect().left) / zoomOf(box);
  dragged.before = place.names.find((name) => x < place.x(name));
  const last = place.names.at(-1);
  dragged.mark = dragged.before ? place.x(dragged.before) - place.lane(dragged.before) / 2
    : place.x(last) + place.lane(last) / 2;
  drawHeads(place);
});

window.addEventListener("pointerup", () => {
  const done = dragged;
  dragged = null;
  if (!done?.moved) return;
  // The click that follows would choose the head.
  window.addEventListener("click", swallow, { capture: true, once: true });
  setTimeout(() => window.removeEventListener("click", swallow, { capture: true }));
  insert(done.name, done.before ?? ordered()[ordered().indexOf(shown().at(-1)) + 1]);
  changed();
});

window.addEventListener("pointercancel", () => {
  dragged = null;
  changed();
});

/** Show, hide and order the lifelines in a dialog. */
export function openLanes() {
  const names = ordered();
  const away = new Set(hidden());
  const act = (does, focus) => () => {
    does();
    openLanes();
    if (focus) document.getElementById(focus)?.focus();
  };
  dialog(
    "Lifelines", "narrow",
    h("p", { class: "empty" }, "Hidden ones share one narrow lane. Kept in this browser for this set of lifelines."),
    h("ul", { class: "lane-list" }, names.map((name, n) => h("li", { key: name, "data-name": name },
      h("label", { class: "check" },
        h("input", { type: "checkbox", id: `lane-show-${n}`, autofocus: n === 0, checked: !away.has(name),
          disabled: !away.has(name) && names.length - away.size === 1,
          onchange: (event) => act(() => hide(name, !event.target.checked))() }), name),
      h("button", { type: "button", id: `lane-up-${n}`, class: "small", disabled: n === 0,
        "aria-label": `${name} to the left`,
        onclick: act(() => insert(name, names[n - 1]), `lane-up-${Math.max(1, n - 1)}`) }, "←"),
      h("button", { type: "button", id: `lane-down-${n}`, class: "small", disabled: n === names.length - 1,
        "aria-label": `${name} to the right`,
        onclick: act(() => insert(name, names[n + 2]), `lane-down-${Math.min(names.length - 2, n + 1)}`) }, "→")))),
    h("div", { class: "dialog-verbs" },
      h("button", { type: "button", id: "lanes-usual", onclick: act(usual) }, "Show all, in the usual order")),
  );
}
