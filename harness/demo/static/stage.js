// The stage: the one region that scrolls. Heads on top, the run, and the present with what can happen next.

import { h, render } from "./dom.js";
import { layChips } from "./chips.js";
import { draw, isDrawn, laneAt } from "./diagram.js";
import { icon } from "./glyphs.js";
import { drawHeads } from "./heads.js";
import { geometry, hide, move, shown } from "./lanes.js";
import { ROW } from "./layout.js";
import { changed, clock, looked, store } from "./store.js";
import { deedsBetween, deedsOn, rewind, select, take } from "./verbs.js";
import { tellLane, tellMessage, tellStep, untell } from "./tips.js";

const stage = document.getElementById("stage");
const headsBox = document.getElementById("heads");
const roll = document.getElementById("roll");
const canvas = document.getElementById("canvas");
const presentBox = document.getElementById("present");
const deedBox = document.getElementById("deed");
const toPresent = document.getElementById("to-present");
const spoken = document.getElementById("spoken");

/** What can happen next takes this part of the stage at most. */
const PART = 0.36;
let place = null;
let following = true;
let shownSelected = null;

/** Draw the stage as things stand. */
export function drawStage() {
  if (!store.session) return;
  // All that is asked of the page comes before anything is changed in it, so that it is laid out once.
  const { clientWidth, clientHeight } = stage;
  place = geometry(clientWidth);
  const { chips, tall } = layChips(place, Math.max(120, clientHeight * PART));
  roll.style.height = `${store.layout.height + tall + 96}px`;
  roll.style.width = `${place.wide}px`;
  presentBox.style.top = `${store.layout.height}px`;
  drawHeads(place);
  render(
    presentBox, presentLine(), h("div", { key: "chips", class: "chips", place: { height: `${tall}px` } }, chips),
    !store.steps.length && !store.ahead && beginning(tall, clientWidth));
  drawDeeds();
  keepPlace();
  drawRun();
}

/** Stay at the present while it is watched; show what is selected. */
function keepPlace() {
  const selected = store.selected;
  if (selected !== shownSelected && selected !== null) bringIntoView(selected);
  else if (following && selected === null) toBottom();
  shownSelected = selected;
}

function toBottom() {
  stage.scrollTop = stage.scrollHeight;
}

function bringIntoView(n) {
  if (n < 1) {
    stage.scrollTop = 0;
    return;
  }
  const layout = store.layout;
  const top = layout.tops[n - 1];
  const bottom = layout.tops[n];
  const room = stage.clientHeight - headsBox.offsetHeight - covered();
  if (top < stage.scrollTop + ROW) stage.scrollTop = Math.max(0, top - ROW * 2);
  else if (bottom > stage.scrollTop + room - ROW) stage.scrollTop = bottom - room + ROW * 2;
}

function covered() {
  const card = document.getElementById("tour");
  return card.firstChild ? card.offsetHeight : 0;
}

function drawRun() {
  draw(canvas, place, stage.scrollTop, stage.clientHeight);
  toPresent.hidden = following || atBottom();
}

/** Return which rows are seen, and where the lanes are; or all rows. */
export function seen(whole) {
  const layout = store.layout;
  const end = layout.length - 1;
  if (whole) return { place, first: 0, last: end, atEnd: true };
  const bottom = stage.scrollTop + stage.clientHeight - headsBox.offsetHeight;
  return {
    place, first: layout.rowAt(stage.scrollTop), last: Math.max(0, layout.rowAt(bottom - 1)),
    atEnd: bottom > layout.height + 30,
  };
}

function atBottom() {
  return stage.scrollHeight - stage.scrollTop - stage.clientHeight < 48;
}

/** Go to the present and stay there. */
export function goToPresent() {
  store.selected = null;
  following = true;
  changed();
}

function presentLine() {
  const { present } = store;
  const messages = present.in_flight.length;
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
  following = store.selected === null && atBottom();
  toPresent.hidden = following;
  if (!isDrawn(stage.scrollTop, stage.clientHeight)) drawRun();
}, { passive: true });

toPresent.addEventListener("click", goToPresent);

canvas.addEventListener("click", (event) => {
  const back = event.target.closest("[data-rewind]");
  if (back) {
    rewind(Number(back.dataset.rewind));
    return;
  }
  const y = event.clientY - roll.getBoundingClientRect().top;
  if (!store.steps.length) return;
  const lane = laneAt(place, event.clientX - roll.getBoundingClientRect().left);
  store.lane = lane ?? store.lane;
  store.tab = store.tab === "now" ? "step" : store.tab;
  select(store.layout.rowAt(y) + 1);
});

canvas.addEventListener("pointermove", (event) => {
  const box = roll.getBoundingClientRect();
  const flight = event.target.closest("[data-m]");
  if (flight) tellMessage(event.clientX, event.clientY, store.layout.byId.get(flight.dataset.m));
  else {
    const lane = laneAt(place, event.clientX - box.left);
    if (lane) tellLane(event.clientX, event.clientY, store.layout.rowAt(event.clientY - box.top) + 1, lane);
    else untell();
  }
});
canvas.addEventListener("pointerleave", untell);

headsBox.addEventListener("pointerover", (event) => {
  const head = event.target.closest("[data-lane]");
  if (!head) return;
  const box = head.getBoundingClientRect();
  const below = Math.max(box.bottom, deedBox.getBoundingClientRect().bottom);
  tellLane(box.left, below, store.steps.length, head.dataset.lane);
});
headsBox.addEventListener("pointerleave", untell);

presentBox.addEventListener("pointerover", (event) => {
  const button = event.target.closest("[data-message]");
  if (button) tellMessage(event.clientX, event.clientY, store.layout.byId.get(button.dataset.message));
});
presentBox.addEventListener("pointerleave", untell);

stage.addEventListener("keydown", (event) => {
  if (event.target !== stage || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = store.steps.length;
  const at = store.selected ?? last + 1;
  const page = Math.max(1, Math.floor(stage.clientHeight / 60));
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
  event.preventDefault();
  event.stopPropagation();
  speak();
});

/** Say the step that the keyboard has come to, and show what a pointer would show. */
function speak() {
  const step = looked();
  const what = store.selected === null ? "The present." : `Step ${step.n}: ${step.label}`;
  render(spoken, what + (store.lane ? ` Lifeline ${store.lane}.` : ""));
  if (store.selected === null) {
    untell();
    return;
  }
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const box = roll.getBoundingClientRect();
    const y = box.top + store.layout.nodeY(step.n - 1);
    if (store.lane) tellLane(box.left + place.x(store.lane), y, step.n, store.lane);
    else tellStep(box.left + place.x(step.process), y, step);
  }));
}

new ResizeObserver(() => changed()).observe(stage);
