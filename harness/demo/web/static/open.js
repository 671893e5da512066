// The dialog that opens something: searched models, scenarios and tours, and the sessions that were left.

import { h } from "./dom.js";
import { closeDialog, dialog } from "./float.js";
import { store } from "./store.js";
import { ask } from "./verbs.js";

let chosen = null;
let words = "";

/** Ask what to open. */
export function openWhat() {
  chosen = store.session.scenario || store.session.model;
  words = "";
  drawOpen();
}

/** Do all the words that are searched for occur in these texts? */
function fits(...texts) {
  const where = texts.join(" ").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => where.includes(word));
}

function drawOpen() {
  const { models, scenarios, tours } = store.session.catalogue;
  const groups = [
    ["Scenarios", scenarios.filter((one) => fits(one.name, one.title, one.model))],
    ["Models", models.filter((one) => fits(one.name, one.title))],
    ["Tours", tours.filter((one) => fits(one.name, one.title, "tour")).map((one) => ({ ...one, tour: true }))],
  ];
  const sessions = (store.session.sessions || []).filter((one) => fits(one.what, one.title, one.violates || ""));
  const all = groups.flatMap(([, list]) => list);
  const found = all.find((one) => one.name === chosen) || all[0];
  dialog(
    "Open", "",
    h("form", { class: "open-form", key: "open", onsubmit: (event) => submitOpen(event, found) },
      h("input", { id: "open-search", type: "search", autofocus: true, value: words, autocomplete: "off",
        placeholder: "Search by words of the name or title", "aria-label": "Search", onkeydown: toList,
        oninput: (event) => {
          words = event.target.value;
          drawOpen();
        } }),
      sessions.length > 0 && h("section",
        { class: "open-sessions", key: "sessions", "aria-label": "Sessions you left" },
        h("h3", {}, "Sessions you left"), h("ul", {}, sessions.map(drawSession))),
      found ? h("select", { id: "open-what", key: "what", name: "what", size: "8", "aria-label": "What to open",
        value: found.name, onchange: (event) => {
          chosen = event.target.value;
          drawOpen();
        }, ondblclick: (event) => event.target.form.requestSubmit() },
      groups.map(([label, list]) => list.length > 0 && h("optgroup", { key: label, label },
        list.map((one) => h("option", { key: one.name, value: one.name, title: one.title },
          `${one.name} · ${one.title}`)))))
        : h("p", { class: "empty", key: "none", id: "open-none" }, "No model, scenario or tour has these words."),
      found && h("p", { class: "open-title" }, found.title, found.model ? ` (${found.model})` : ""),
      found && !found.tour && drawForm(found),
      h("div", { class: "dialog-verbs" },
        h("button", { type: "submit", class: "primary", id: "open-go", disabled: !found }, "Open"))),
  );
}

/** From the search the arrow leads to the list. */
function toList(event) {
  if (event.key !== "ArrowDown") return;
  event.preventDefault();
  document.getElementById("open-what")?.focus();
}

function drawSession(one) {
  const more = [`step ${one.at} of ${one.steps}`, one.branches > 1 && `${one.branches} branches`,
    one.violates && `violates ${one.violates}`].filter(Boolean).join(" · ");
  return h("li", { key: one.number, class: "open-session" },
    h("strong", { title: one.title }, one.what), h("span", { class: "view-note" }, more), h("span", { class: "push" }),
    h("button", { type: "button", class: "small", "data-session": one.number, onclick: () => reopen(one.number) },
      "Reopen"));
}

async function reopen(number) {
  if (await ask("reopen", { number })) closeDialog();
}

/** The sizes, settings and faults of a model; of a scenario, its faults alone. */
function drawForm(found) {
  const model = found.sizes ? found : null;
  const { initial } = store.session;
  return [
    model && h("div", { class: "open-grid", key: `form-${model.name}` },
      Object.entries(model.sizes || {}).map(([name, size]) => sizeField(name, size)),
      Object.entries(model.settings || {}).map(([name, setting]) => settingField(name, setting))),
    found.name === store.session.model && initial?.count > 1 && h(
      "label", { class: "field tall", key: "initial" },
      h("span", {}, `Initial state, of 0 to ${initial.count - 1}`),
      h("input", { type: "number", name: "initial", min: 0, max: initial.count - 1, value: String(initial.number) })),
    h("label", { class: "field tall", key: `budget-${Boolean(model)}` }, h("span", {}, "Faults"),
      h("select", { name: "budget", value: model ? "generous" : "own" },
        h("option", { value: "own" }, model ? "none" : "as the scenario has them"),
        h("option", { value: "generous" }, "any, as many as I like"))),
  ];
}

function sizeField(name, size) {
  const about = typeof size === "object" ? size : { default: size };
  return h("label", { class: "field tall", key: `size-${name}`, title: about.doc || null }, h("span", {}, name),
    h("input", { type: "number", name: `size:${name}`, value: String(about.default), min: about.minimum,
      max: about.maximum }));
}

function settingField(name, setting) {
  const several = setting.several;
  const control = several
    ? h("input", { name: `set:${name}`, value: setting.default, title: `any of ${setting.values.join(", ")}`,
      placeholder: setting.values.join(",") })
    : h("select", { name: `set:${name}`, value: setting.default },
      [...new Set([setting.default, ...setting.values])].map((one) =>
        h("option", { key: one, value: one }, one || "–")));
  return h("label", { class: "field tall", key: `set-${name}`, title: setting.doc || null },
    h("span", {}, name), control);
}

async function submitOpen(event, found) {
  event.preventDefault();
  if (!found) return;
  if (found.tour) {
    if (await ask("tour", { name: found.name })) closeDialog();
    return;
  }
  const body = { what: found.name, sizes: {}, settings: {}, budget: "own" };
  for (const [name, value] of new FormData(event.currentTarget)) {
    if (name.startsWith("size:")) body.sizes[name.slice(5)] = Number(value);
    else if (name.startsWith("set:")) body.settings[name.slice(4)] = value;
    else if (name !== "what") body[name] = name === "initial" ? Number(value) : value;
  }
  if (await ask("open", body)) closeDialog();
}
