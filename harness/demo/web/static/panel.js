// The panel beside the stage: lights, the violation, and one view at a time. Nothing in it scrolls.

import { lacks } from "./api.js";
import { h, render, swallow } from "./dom.js";
import { light } from "./glyphs.js";
import { changed, store } from "./store.js";
import { putTipAway } from "./tips.js";
import { drawNow } from "./view_now.js";
import { drawActors } from "./view_actors.js";
import { drawStep } from "./view_step.js";
import { drawProperties, howIs } from "./view_properties.js";
import { drawTopics } from "./view_topics.js";
import { drawBranches } from "./view_branches.js";
import { drawWhy } from "./view_why.js";
import { drawFinding, drawOutcome } from "./finding.js";
import { drawViolation } from "./violation.js";

export const VIEWS = [
  ["now", "Now", "M", drawNow],
  ["actors", "Actors", "A", drawActors],
  ["topics", "Topics", "Shift+T", drawTopics],
  ["step", "Step", "S", drawStep],
  ["properties", "Properties", "P", drawProperties],
  ["branches", "Branches", "B", drawBranches],
  ["why", "Why not?", "W", drawWhy],
];

/** The views that there are: topics only where the model has any. */
function views() {
  return VIEWS.filter(([name]) => (name !== "topics" || store.session.has_logs) && !lacks(name));
}

const lamps = document.getElementById("lamps");
const tabs = document.getElementById("tabs");
const body = document.getElementById("body");
const violation = document.getElementById("violation");

/** Draw the panel as things stand. */
export function drawPanel() {
  if (!store.session) return;
  if (!views().some(([name]) => name === store.tab)) store.tab = "now";
  drawLamps();
  render(violation, drawViolation(), drawFinding(), drawOutcome());
  render(
    tabs,
    views().map(([name, title, key]) =>
      h(
        "button",
        {
          key: name, type: "button", role: "tab", id: `tab-${name}`, "aria-controls": "body",
          title: `${title} (${key})`, "aria-selected": store.tab === name ? "true" : "false",
          tabindex: store.tab === name ? "0" : "-1", onclick: () => show(name),
        },
        title,
      )),
  );
  tabs.className = views().length > 6 ? "many" : "";
  body.setAttribute("aria-labelledby", `tab-${store.tab}`);
  const view = VIEWS.find(([name]) => name === store.tab)[3];
  render(body, h("div", { key: store.tab, class: `view view-${store.tab}` }, view(space())));
}

/** What the page last said of its size. To ask it while it is drawn would have it laid out once more. */
let size = { wide: body.clientWidth, high: body.clientHeight };

/** The room of a view in pixels. */
function space() {
  return { wide: size.wide - 24, high: size.high - 16 };
}

/** Show a view. */
export function show(name) {
  if (store.tab !== name) putTipAway();
  store.tab = name;
  changed();
}

/** The lights: those that fail, or failed, by their names; how many properties hold, were reached or wait. */
function drawLamps() {
  const { properties } = store.session;
  const by = new Map(["fails", "failed", ...Object.keys(COUNTED)].map((how) => [how, []]));
  for (const one of properties) by.get(howIs(one)).push(one);
  const lit = (key, text, title, how, more, inside) => h("button", { key, type: "button",
    class: `lamp-button is-${how}`, title, "aria-label": text, ...more, onclick: () => show("properties") },
  light(how), h("span", {}, inside));
  const broken = [...by.get("fails"), ...by.get("failed")].map((one) => {
    const how = howIs(one);
    const text = `${one.name}: ${SAID[how]}`;
    return lit(one.name, text, text, how, { "data-property": one.name, "data-how": how }, one.name);
  });
  const counts = Object.entries(COUNTED).filter(([how]) => by.get(how).length).map(([how, word]) => {
    const names = by.get(how).map((one) => one.name);
    const text = `${names.length} of ${properties.length} ${word}`;
    return lit(how, text, `${text}:\n${names.join("\n")}`, how, { "data-lit": how }, `${names.length} ${word}`);
  });
  const all = [...broken, ...counts];
  all.forEach((one, n) => {
    one.props.tabindex = n ? "-1" : "0";
  });
  render(lamps, all);
}

const COUNTED = { holds: "hold", reached: "reached", waiting: "not yet" };

export const SAID = {
  holds: "holds", fails: "fails now", failed: "failed earlier in this run", reached: "was reached",
  waiting: "not reached, or not fulfilled yet",
};

/** Arrow keys walk through a row of buttons. */
export function strip(box, act) {
  box.addEventListener("keydown", (event) => {
    const all = [...box.querySelectorAll("button")];
    const at = all.indexOf(document.activeElement);
    const to = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (to === undefined || at < 0) return;
    swallow(event);
    const next = all[(to + all.length) % all.length];
    next.focus();
    if (act) next.click();
  });
}

strip(tabs, true);
strip(lamps, false);
new ResizeObserver(() => {
  size = { wide: body.clientWidth, high: body.clientHeight };
  changed();
}).observe(body);
