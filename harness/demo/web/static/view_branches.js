// The branches: all that was tried, by name, each a click away.

import { lacks } from "./api.js";
import { h } from "./dom.js";
import { icon } from "./glyphs.js";
import { paged } from "./paged.js";
import { store } from "./store.js";
import { ask, forward, undo } from "./verbs.js";

const ROW = 44;

/** Draw the view into so much room. */
export function drawBranches({ high }) {
  const current = store.branches.find((one) => one.current);
  const items = store.branches.map((one) => ({ ...one, key: one.name }));
  return [
    h("div", { class: "view-head" }, h("h2", {}, "Branches"), h("span", { class: "count" }, items.length)),
    paged("branches", items, Math.floor((high - 170) / ROW), draw, { label: "Branches", tall: ROW }),
    !lacks("branch") && h("form", { class: "inline", key: "rename", onsubmit: (event) => rename(event) },
      h("label", { for: "branch-name" }, "Name of this branch"),
      h("input", { id: "branch-name", name: "name", value: current?.name || "", maxlength: "60", autocomplete: "off" }),
      h("button", { type: "submit", class: "small" }, "Name it")),
    h("div", { class: "inline", key: "verbs" },
      h("button", { type: "button", disabled: !store.present.can_undo, onclick: undo,
        title: store.present.can_undo ? "Undo (U)" : "Undo: nothing was done yet" },
        icon("undo"), "Undo"),
      h("button", { type: "button", disabled: !store.ahead,
        title: store.ahead ? "Forward to the end of the branch" : "Forward: no step is kept ahead",
        onclick: () => forward(store.present.step + store.ahead) },
        icon("end"), "Forward to its end")),
    !lacks("branch") && h("p", { class: "empty", key: "how" },
      "Rewind and take another step: a new branch begins by itself, and the old one is kept."),
  ];
}

function rename(event) {
  event.preventDefault();
  ask("branch", { name: event.currentTarget.elements.name.value.trim() });
}

function draw(branch, cell) {
  const from = branch.from ? `from ${branch.from} at step ${branch.at}` : "from the start";
  return h(
    "button",
    { ...cell(0), type: "button", class: branch.current ? "branch current" : "branch", "data-branch": branch.name,
      "aria-current": branch.current ? "true" : null, title: branch.name,
      onclick: () => branch.current || ask("switch", { name: branch.name }) },
    h("strong", {}, branch.name),
    h("span", { class: "branch-length" }, `${branch.length} steps`),
    h("span", { class: "branch-from" }, branch.current ? `${from} · here` : from),
  );
}
