// The stage: the one region that scrolls. Heads on top, the run, and the present with what can happen next.

import { h, render, swallow, zoomOf } from "./dom.js";
import { layChips } from "./chips.js";
import { draw, isDrawn, laneAt, spread } from "./diagram.js";
import { icon } from "./glyphs.js";
import { drawHeads } from "./heads.js";
import { geometry, hide, move, shown } from "./lanes.js";
import { ROW } from "./layout.js";
import { moveMessages } from "./motion.js";
import { changed, clock, looked, store } from "./store.js";
import { deedsBetween, deedsOn, rewind, select, take } from "./verbs.js";
import { showLaneTip, showMessageTip, showStepTip, putTipAway } from "./tips.js";

const stage = document.getElementById("stage");
const headsBox = document.getElementById("heads");
const roll = document.getElementById("roll");
const canvas = document.getElementById("canvas");
const presentBox = document.getElementById("present");
const deedBox = document.getElementById("deed");
const toPresent = document.getElementById("to-present");
const spoken = document.getElementById("spoken");

const HEADS = 46;
/** What can happen next takes this part of the stage at most. */
const PART = 0.45;
/** A stage less high than this shows less of it. */
const SMALL = 260;
/** What the page last said of the stage's size, and how high what scrolls in it is. */
let size = measured();
let total = 0;
let place = null;
let following = true;
let shownSelected = null;
let scrolled = 0;

/** The stage in pixels of its content, which are larger than the window's on a large screen. */
function measured() {
  const zoom = zoomOf(roll);
  return { wide: Math.floor(stage.clientWidth / zoom), high: Math.floor(stage.clientHeight / zoom), zoom };
}

/** Return where the pointer is in the run. */
function inRoll(event) {
  const box = roll.getBoundingClientRect();
  return { x: (event.clientX - box.left) / size.zoom, y: (event.clientY - box.top) / size.zoom };
}

/** Draw the stage as things stand. */
export function drawStage() {
  if (!store.session) return;
  // The page is asked nothing before it is drawn, so that it is laid out once.
  place = geometry(size.wide);
  spread(place);
  const { chips, tall } = layChips(place, size.high < SMALL ? size.high * PART : Math.max(200, size.high * PART));
  const high = store.layout.height + tall + (size.high < SMALL ? 30 : 96);
  total = HEADS + high;
  roll.style.height = `${high}px`;
  roll.style.width = `${place.wide}px`;
  presentBox.style.top = `${store.layout.height}px`;
  drawHeads(place);
  render(
    presentBox, presentLine(), h("div", { key: "chips", class: "chips", place: { height: `${tall}px` } }, chips),
    !store.steps.length && !store.ahead && beginning(tall, size.wide));
  drawDeeds();
  const at = Math.max(0, Math.min(total - size.high, whereTo()));
  drawRun(at);
  moveMessages(place, roll);
  if (at !== scrolled) {
    scrolled = at;
    stage.scrollTop = at * size.zoom;
  }
}

/** Return how far the stage is scrolled: to the present while it is watched, to what was just selected. */
function whereTo() {
  const selected = store.selected;
  const isNew = selected !== shownSelected && selected !== null;
  shownSelected = selected;
  if (isNew) return bringIntoView(selected);
  return following && selected === null ? Infinity : scrolled;
}

function bringIntoView(n) {
  if (n < 1) return 0;
  const top = store.layout.tops[n - 1];
  const bottom = store.layout.tops[n];
  const room = size.high - HEADS;
  if (top < scrolled + ROW) return top - ROW * 2;
  return bottom > scrolled + room - ROW ? bottom - room + ROW * 2 : scrolled;
}

function drawRun(at) {
  draw(canvas, place, at, size.high);
  toPresent.hidden = following || atBottom(at);
}

/** Return which rows are seen, and where the lanes are; or all rows. */
export function seen(whole) {
  const layout = store.layout;
  const end = layout.length - 1;
  if (whole) return { place, first: 0, last: end, atEnd: true };
  const bottom = scrolled + size.high - HEADS;
  return {
    place, first: layout.rowAt(scrolled), last: Math.max(0, layout.rowAt(bottom - 1)),
    atEnd: bottom > layout.height + 30,
  };
}

function atBottom(at) {
  return total - at - size.high < 48;
}

/** Go to the present and stay there. */
export function goToPresent() {
  store.selected = null;
  following = true;
  changed();
}

function presentLine() {
  const { present } = store;
  const messages = present.in_flight.filter((one) => store.whole || !one.minor).length;
  const time = present.at_us ? ` · ${clock(present.at_us)}` : "";
  const flying = `${messages} ${messages === 1 ? "message" : "messages"} in flight`;
  const words = present.over || present.ending?.text || flying;
  return h(
    "div",
    { class: "now-line", key: "line" },
    h("span", { class: "now-label" }, `present · step ${present.step}${time}`),
    h("span", { class: "now-note" }, words),
    store.ahead > 0 && h(
      "button",
      { type: "button", class: "quiet-button", "data-verb": "forward-end", title: "Forward to the end of this branch",
        onclick: () => import("./verbs.js").then((verbs) => verbs.forward(present.step + store.ahead)) },
      `${store.ahead} kept ahead`, icon("forward")),
  );
}

/** What to do where nothing has happened yet. */
function beginning(below, wide) {
  return h("p", { key: "beginning", class: "beginning", place: { top: `${below + 70}px`, width: `${wide - 28}px` } },
    "Nothing has happened yet. Click what can happen next, press ", h("kbd", {}, "Space"), " to let it run, ",
    h("kbd", {}, "T"), " for a guided tour, ", h("kbd", {}, "?"), " for all keys and signs.");
}

/** The bar for the lifelines that are chosen: what can be done to one, or to the link of two. */
function drawDeeds() {
  const [a, b] = store.heads;
  if (!a) {
    render(deedBox);
    return;
  }
  const deeds = b ? deedsBetween(a, b) : deedsOn(a);
  const text = b ? `${a} and ${b}` : a;
  const hint = b ? "Nothing can be done to this link." : "Nothing can be done to it now.";
  render(
    deedBox,
    h("div", { class: "deeds" },
      h("strong", {}, text),
      deeds.map((one) => h("button", { key: one.label, type: "button", title: one.label, "data-verb": one.verb,
        onclick: () => take(one) }, wordFor(one))),
      !deeds.length && h("span", { class: "empty" }, hint),
      !b && laneDeeds(a),
      !b && h("span", { class: "deed-hint" }, "choose another lifeline to part the two"),
      h("button", { type: "button", class: "quiet-button", "aria-label": "Choose none",
        onclick: () => {
          store.heads = [];
          changed();
        } }, "✕")),
  );
  deedBox.style.top = `${headsBox.getBoundingClientRect().bottom + window.scrollY}px`;
}

/** Where a lifeline stands, and whether it is shown. */
function laneDeeds(name) {
  const names = shown();
  const at = names.indexOf(name);
  const deed = (word, title, act, disabled) => h("button", { key: word, type: "button", class: "lane-deed", title,
    "aria-label": title, disabled, onclick: act }, word);
  return [
    deed("←", `Move ${name} to the left`, () => move(name, -1), at === 0),
    deed("→", `Move ${name} to the right`, () => move(name, 1), at === names.length - 1),
    deed("Hide", `Hide ${name}`, () => hide(name), names.length === 1),
  ];
}

/** A deed in a word or two. */
export function wordFor(one) {
  if (one.verb === "one_way") return `Cut ${one.args.join(" → ")}`;
  if (one.verb === "skew") return one.action === "SetClock" ? "Set clock" : "Skew clock";
  if (one.verb === "timer" || one.verb === "elect") return [one.action, ...(one.args || [])].join(" ");
  return one.action;
}

stage.addEventListener("scroll", () => {
  if (!place) return;
  const now = measured();
  // The page, and a window that is resized, scroll by themselves: the present stays what is watched.
  const isOurs = Math.abs(stage.scrollTop - scrolled * size.zoom) < 1.5;
  if (isOurs || now.high !== size.high || now.wide !== size.wide) return;
  scrolled = stage.scrollTop / size.zoom;
  following = store.selected === null && atBottom(scrolled);
  toPresent.hidden = following;
  if (!isDrawn(scrolled, size.high)) drawRun(scrolled);
}, { passive: true });

toPresent.addEventListener("click", goToPresent);

canvas.addEventListener("click", (event) => {
  const back = event.target.closest("[data-rewind]");
  if (back) {
    rewind(Number(back.dataset.rewind));
    return;
  }
  const { x, y } = inRoll(event);
  if (!store.steps.length) return;
  const lane = laneAt(place, x);
  store.lane = lane ?? store.lane;
  store.tab = store.tab === "now" ? "step" : store.tab;
  select(store.layout.rowAt(y) + 1);
});

canvas.addEventListener("pointermove", (event) => {
  const { x, y } = inRoll(event);
  const flight = event.target.closest("[data-m]");
  if (flight) showMessageTip(event.clientX, event.clientY, store.layout.byId.get(flight.dataset.m));
  else {
    const lane = laneAt(place, x);
    if (lane) showLaneTip(event.clientX, event.clientY, store.layout.rowAt(y) + 1, lane);
    else putTipAway();
  }
});
canvas.addEventListener("pointerleave", putTipAway);

headsBox.addEventListener("pointerover", (event) => {
  const head = event.target.closest("[data-lane]");
  if (!head) return;
  const box = head.getBoundingClientRect();
  const below = Math.max(box.bottom, deedBox.getBoundingClientRect().bottom);
  showLaneTip(box.left, below, store.steps.length, head.dataset.lane);
});
headsBox.addEventListener("pointerleave", putTipAway);

presentBox.addEventListener("pointerover", (event) => {
  const button = event.target.closest("[data-message]");
  if (button) showMessageTip(event.clientX, event.clientY, store.layout.byId.get(button.dataset.message));
});
presentBox.addEventListener("pointerleave", putTipAway);

stage.addEventListener("keydown", (event) => {
  if (event.target !== stage || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = store.steps.length;
  const at = store.selected ?? last + 1;
  const page = Math.max(1, Math.floor(size.high / 60));
  const rows = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 1, End: last + 1 };
  const sides = { ArrowRight: 1, ArrowLeft: -1 };
  if (event.key in rows) {
    if (last) select(Math.max(1, rows[event.key]));
    if (store.selected === null) following = true;
  } else if (event.key in sides) {
    const names = shown();
    const from = names.indexOf(store.lane ?? looked()?.process ?? names[0]);
    store.lane = names[(from + sides[event.key] + names.length) % names.length];
    changed();
  } else if (event.key === "Enter" && store.selected !== null) rewind(store.selected);
  else return;
  swallow(event);
  speak();
});

/** Say the step that the keyboard has come to, and show what a pointer would show. */
function speak() {
  const step = looked();
  const what = store.selected === null ? "The present." : `Step ${step.n}: ${step.label}`;
  render(spoken, what + (store.lane ? ` Lifeline ${store.lane}.` : ""));
  if (store.selected === null) {
    putTipAway();
    return;
  }
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const box = roll.getBoundingClientRect();
    const y = box.top + store.layout.nodeY(step.n - 1) * size.zoom;
    if (store.lane) showLaneTip(box.left + place.x(store.lane) * size.zoom, y, step.n, store.lane);
    else showStepTip(box.left + place.x(step.process) * size.zoom, y, step);
  }));
}

new ResizeObserver(() => {
  size = measured();
  changed();
}).observe(stage);
