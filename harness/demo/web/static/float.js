// What floats above the page for a moment: menus, tips, notes; and the one dialog.

import { h, render, swallow } from "./dom.js";

const float = document.getElementById("float");
const tip = document.getElementById("tip");
const toast = document.getElementById("toast");
let opener = null;
let fading = 0;

/** Open a menu below an element; items have `label`, perhaps `hint` and `disabled`, and `act`. */
export function menu(anchor, label, items) {
  opener = anchor;
  const close = (then) => () => {
    closeMenu();
    then?.();
  };
  render(
    float,
    h("div", { class: "menu", role: "menu", "aria-label": label, onkeydown: steer }, items.map((item, n) =>
      h(
        "button",
        { key: n, type: "button", role: "menuitem", tabindex: "-1", disabled: item.disabled, title: item.title,
          onclick: close(item.act) },
        h("span", { class: "menu-label" }, item.label),
        item.hint && h("span", { class: "menu-hint" }, item.hint),
      ))),
  );
  const box = float.firstChild;
  const at = anchor.getBoundingClientRect();
  const left = Math.max(8, Math.min(at.left, window.innerWidth - box.offsetWidth - 8));
  const under = at.bottom + 4 + box.offsetHeight < window.innerHeight;
  box.style.left = `${left}px`;
  box.style.top = `${under ? at.bottom + 4 : Math.max(8, at.top - 4 - box.offsetHeight)}px`;
  box.querySelector("button:not(:disabled)")?.focus();
}

/** Close the menu, if one is open, and give the focus back. */
export function closeMenu() {
  if (!float.firstChild) return false;
  const back = float.contains(document.activeElement);
  render(float);
  if (back) opener?.focus();
  return true;
}

function steer(event) {
  const items = [...float.querySelectorAll("button:not(:disabled)")];
  const at = items.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: items.length - 1 }[event.key];
  if (to !== undefined) items[(to + items.length) % items.length]?.focus();
  else if (event.key === "Escape" || event.key === "Tab") closeMenu();
  else return;
  swallow(event);
}

document.addEventListener("pointerdown", (event) => {
  if (float.firstChild && !float.contains(event.target)) closeMenu();
});

/** Show a tip near a place of the window. */
export function showTip(x, y, ...content) {
  render(tip, ...content);
  tip.classList.add("shown");
  const left = x + 16 + tip.offsetWidth < window.innerWidth ? x + 16 : Math.max(8, x - 16 - tip.offsetWidth);
  const top = Math.max(8, Math.min(y + 12, window.innerHeight - tip.offsetHeight - 8));
  tip.style.left = `${left}px`;
  tip.style.top = `${top}px`;
}

/** Hide the tip. Returns whether one was shown. */
export function hideTip() {
  const was = tip.classList.contains("shown");
  tip.classList.remove("shown");
  return was;
}

/** Say something for some seconds. */
export function note(text, bad = false) {
  render(toast, h("div", { class: bad ? "note bad" : "note" }, text));
  clearTimeout(fading);
  fading = setTimeout(() => render(toast), bad ? 9000 : 4000);
}

/** Open the dialog; content is a heading and what follows. */
export function dialog(title, css, ...content) {
  const box = document.getElementById("dialog");
  box.className = css || "";
  render(
    box,
    h("form", { method: "dialog", class: "dialog-head" },
      h("h2", {}, title),
      h("button", { class: "quiet-button", "aria-label": "Close", value: "close" }, "✕")),
    h("div", { class: "dialog-body" }, ...content),
  );
  if (!box.open) box.showModal();
}

/** Close the dialog. */
export function closeDialog() {
  document.getElementById("dialog").close();
}
