// Dialogs: what to open, the link to share, keys and signs; files in and out; light and dark theme.

import { getFile, lacks } from "./api.js";
import { h, render, s } from "./dom.js";
import { SPEC } from "./diagram.js";
import { dialog } from "./float.js";
import { end, light, NAMES, sign } from "./glyphs.js";
import { diagramFile } from "./snapshot.js";
import { store } from "./store.js";
import { ask, copy, load, orNote, read } from "./verbs.js";
import { KEYS } from "./keys.js";

export const FORMATS = [
  ["screen", "Picture", "as on the screen, SVG"],
  ["whole", "All steps", "the same lifelines and colours, SVG"],
  ["text", "Columns", "text"],
  ["mermaid", "Mermaid", "diagram source"],
  ["itf", "ITF", "Apalache, Quint"],
  ["shiviz", "ShiViz", "log with vector clocks"],
  ["tla", "TLA+", "a module for TLC, of a spec's run"],
  ["log", "Log lines", "JSON"],
  ["html", "Page", "one file: this run, its branches"],
  ["history", "History", "all there is to check"],
];

/** Have the browser download the run in a format. */
export const exportAs = (as) => (as === "screen" || as === "whole" ? saveDiagram(as === "whole")
  : download(`/api/export?as=${as}`));

function saveDiagram(whole) {
  const name = (store.session.scenario || store.session.model).replaceAll("/", "-");
  save(`${name}.svg`, new Blob([diagramFile(whole)], { type: "image/svg+xml" }));
}

/** Save the trail of the present. */
export const saveTrail = () => download("/api/trail");

async function download(address) {
  const file = await orNote(getFile(address));
  if (file) save(file.name, file.content);
}

function save(name, content) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Ask for a file and load it as a trail. */
export function pickFile() {
  const input = document.createElement("input");
  input.type = "file";
  input.id = "file";
  input.className = "apart";
  input.accept = ".jsonl,.json,.txt,application/json";
  input.addEventListener("change", async () => {
    if (input.files[0]) await load(await input.files[0].text());
    input.remove();
  });
  document.getElementById("file")?.remove();
  document.body.append(input);
  input.click();
}

/** Show a link that carries the session. */
export async function openShare() {
  const found = await read("link");
  if (!found) return;
  const link = location.href.split("#")[0] + found.link;
  dialog(
    "Link to this session", "narrow",
    h("p", {}, "The link carries the model and the trail up to the present. Whoever runs the demo at the same address ",
      "can open it."),
    h("input", {
      id: "share-link", autofocus: true, class: "wide mono", readonly: true, value: link, "aria-label": "Link",
      onfocus: (event) => event.target.select(),
    }),
    h("div", { class: "dialog-verbs" }, h("span", { class: "empty" }, `${link.length} characters`),
      h("button", { type: "button", class: "primary", onclick: () => copy(link) }, "Copy")),
  );
}

/** Load what the address carries, and clear it. */
export async function takeFragment() {
  if (lacks("load") || !/^#(trail|s)=/.test(location.hash)) return;
  const link = location.hash;
  history.replaceState(null, "", location.pathname);
  await ask("load", link);
}

/** Show all keys, and what the signs mean. */
export function openHelp() {
  dialog(
    "Keys and signs", "help",
    h("div", { class: "help-keys" }, KEYS.map((group) =>
      h("section", { key: group.title }, h("h3", {}, group.title),
        h("dl", {}, group.keys.map(([keys, text]) => [
          h("dt", {}, keys.split(" ").map((key) => h("kbd", {}, key))), h("dd", {}, text)]))))),
    h("div", { class: "help-signs" }, h("h3", {}, "Steps"),
      h("ul", {}, SIGNS.map((sort) => h("li", { key: sort }, swatch(sign(sort, 12, 12)), NAMES[sort])))),
    h("div", { class: "help-signs" }, h("h3", {}, "Messages, lights, the spec"),
      h("ul", {}, MESSAGES.map(([name, parts]) => h("li", { key: name }, swatch(parts, 44), name)))),
  );
}

const SIGNS = [
  "receive", "act", "command", "timer", "elect", "crash", "restart", "pause", "resume", "partition", "heal", "drop",
  "duplicate", "delay", "release", "reorder", "skew", "clock",
];
const leg = (css, to = 30) => s("path", { d: `M4 12H${to}`, class: css });
const MESSAGES = [
  ["delivered", [leg("leg"), end("delivered", 38, 12, -1)]],
  ["under way", [s("path", { d: "M4 5H16Q22 5 22 9V12", class: "leg" }), end("under way", 22, 19, 0)]],
  ["dropped", [leg("leg"), end("dropped", 32, 12, 0)]],
  ["lost: its receiver was down or partitioned", [leg("leg"), end("lost", 32, 12, -1)]],
  ["held back", [leg("wait held", 40)]],
  ["a copy", [leg("leg copy", 30), leg("hollow", 30), end("delivered", 38, 12, -1)]],
  ["merged: it was there already", [leg("leg"), end("merged", 34, 12, 0)]],
  ["property holds, fails now", [lamp("holds", 4), lamp("fails", 24)]],
  ["failed before, waits", [lamp("failed", 4), lamp("waiting", 24)]],
  ["witness reached", [lamp("reached", 14)]],
  ["a step of the spec", [specMark("step")]],
  ["the spec's state stays", [specMark("stutter")]],
  ["an extension of the spec", [specMark("extension")]],
  ["no step of the spec", [specMark("outside")]],
];

function lamp(how, x) {
  const drawn = light(how);
  return s("svg", { ...drawn.props, x, y: 4, width: 16, height: 16 }, drawn.children);
}

function specMark(kind) {
  return s("g", { class: `spec spec-${kind}`, transform: "translate(22 12)" }, s("path", { d: SPEC[kind] }));
}

function swatch(parts, wide = 24) {
  const size = { viewBox: `0 0 ${wide} 24`, width: wide, height: 24 };
  return s("svg", { ...size, class: "swatch run", "aria-hidden": "true" }, parts);
}

/** Switch between the light and the dark theme, and remember it. */
export function turnTheme() {
  const dark = isDark();
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
}

function isDark() {
  const set = document.documentElement.dataset.theme;
  return set ? set === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

/** Take up the theme that was chosen last time. */
export function recallTheme() {
  const known = localStorage.getItem("theme");
  if (known === "light" || known === "dark") document.documentElement.dataset.theme = known;
}

document.getElementById("dialog").addEventListener("close", (event) => render(event.target));
