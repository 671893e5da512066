// The stage: the one region that scrolls. Heads on top, the run, and the present with what can happen next.

import { h, render } from "./dom.js";
import { draw, geometry, heads, isDrawn, laneAt } from "./diagram.js";
import { icon } from "./glyphs.js";
import { ROW } from "./layout.js";
import { changed, clock, enabled, looked, store } from "./store.js";
import { deedsBetween, deedsOn, pick, rewind, select, take } from "./verbs.js";
import { tellLane, tellMessage, tellStep, untell } from "./tips.js";

const stage = document.getElementById("stage");
const headsBox = document.getElementById("heads");
const roll = document.getElementById("roll");
const canvas = document.getElementById("canvas");
const presentBox = document.getElementById("present");
const deedBox = document.getElementById("deed");
const toPresent = document.getElementById("to-present");
const spoken = document.getElementById("spoken");

const CHIP = 24;
const MOST = 6;
let place = null;
let following = true;
let shownSelected = null;

/** Draw the stage as things stand. */
export function drawStage() {
  if (!store.session) return;
  place = geometry(stage.clientWidth);
  render(headsBox, heads(place, { pick }));
  const columns = chips();
  const tall = Math.max(1, ...columns.map((column) => Math.min(column.items.length, MOST))) * CHIP;
  roll.style.height = `${store.layout.height + tall + 96}px`;
  presentBox.style.top = `${store.layout.height}px`;
  render(presentBox, presentLine(), columns.map(column), !store.steps.length && !store.ahead && beginning(tall));
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
function beginning(below) {
  return h("p", { key: "beginning", class: "beginning", place: { top: `${below + 74}px` } },
    "Nothing has happened yet. Click what can happen next, press ", h("kbd", {}, "Space"), " to let it run, ",
    h("kbd", {}, "T"), " for a guided tour, ", h("kbd", {}, "?"), " for all keys and signs.");
}

const OFFERED = ["deliver", "act", "command", "timer", "elect"];

/** What can happen next, by lane, without faults. */
function chips() {
  const lanes = new Map(place.names.map((name) => [name, []]));
  for (const one of enabled((step) => OFFERED.includes(step.verb))) {
    (lanes.get(one.process) || lanes.get("environment") || []).push(one);
  }
  return [...lanes].map(([name, items]) => ({ name, items }));
}

function column({ name, items }) {
  const shown = items.length > MOST ? items.slice(0, MOST - 1) : items;
  return h(
    "div",
    { key: name, class: "chips", place: { left: `${place.x(name) - place.lane(name) / 2 + 2}px`,
      width: `${place.lane(name) - 4}px` } },
    shown.map((one) => chip(one)),
    items.length > shown.length && h(
      "button",
      { key: "more", type: "button", tabindex: "-1", class: "chip more", title: `${items.length} steps of ${name}`,
        onclick: () => {
          store.tab = "now";
          store.only = name;
          changed();
        } },
      `+${items.length - shown.length}`,
    ),
  );
}

function chip(one) {
  const message = one.message && store.present.in_flight.find((other) => other.id === one.message);
  const text = message ? message.type : one.action;
  return h(
    "button",
    {
      key: one.label, type: "button", tabindex: "-1", class: `chip chip-${one.verb}`, title: one.label,
      "data-message": one.message || null, onclick: () => take(one),
    },
    icon({ deliver: "deliver", timer: "clock", elect: "star" }[one.verb] || "play"),
    h("span", {}, text),
  );
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
      !b && h("span", { class: "deed-hint" }, "choose another lifeline to part the two"),
      h("button", { type: "button", class: "quiet-button", "aria-label": "Choose none",
        onclick: () => {
          store.heads = [];
          changed();
        } }, "✕")),
  );
  deedBox.style.top = `${headsBox.getBoundingClientRect().bottom}px`;
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

headsBox.addEventListener("keydown", (event) => {
  const to = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  const names = store.session?.lifelines || [];
  const at = names.indexOf(document.activeElement?.dataset?.lane);
  if (!to || at < 0) return;
  event.preventDefault();
  event.stopPropagation();
  store.lane = names[(at + to + names.length) % names.length];
  [...headsBox.querySelectorAll("[data-lane]")].find((one) => one.dataset.lane === store.lane)?.focus();
  changed();
});

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
    const names = store.session.lifelines;
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
