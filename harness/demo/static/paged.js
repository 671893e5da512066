// Lists without a scrollbar: as many rows as there is room for, the others a page away. Arrow keys walk through them.

import { fit, h, width } from "./dom.js";
import { changed } from "./store.js";

const pages = new Map();
const active = new Map();

export const SMALL = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const STRONG = `600 ${SMALL}`;
export const MONO = '11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

/**
 * Describe a list. `rows` is how many fit, the pager's line included; `draw(item, cell)` describes one row, where
 * `cell(column)` gives the properties of what can be focused in it.
 */
export function paged(id, items, rows, draw, { label, empty, tall = 28 }) {
  if (!items.length) return h("p", { key: `${id}-empty`, class: "empty" }, empty || "Nothing.");
  const fits = Math.max(1, rows);
  const per = items.length <= fits ? fits : Math.max(1, fits - 1);
  const count = Math.ceil(items.length / per);
  const page = Math.min(pages.get(id) || 0, count - 1);
  const from = page * per;
  const at = active.get(id) || { row: 0, column: 0 };
  const row = Math.min(Math.max(at.row, from), Math.min(from + per, items.length) - 1);
  const list = h(
    "ul",
    {
      key: id, class: "paged", "aria-label": label, "data-list": id,
      onkeydown: (event) => walk(event, id, per, items),
    },
    items.slice(from, from + per).map((item, n) => {
      const index = from + n;
      const cell = (column) => ({
        tabindex: index === row && column === at.column ? "0" : "-1",
        "data-cell": `${index}:${column}`,
        onfocus: () => active.set(id, { row: index, column }),
      });
      return h("li", { key: item.key ?? index, place: { height: `${tall}px` } }, draw(item, cell, index));
    }),
  );
  return [list, count > 1 && pager(id, page, count, from, per, items.length)];
}

function pager(id, page, count, from, per, total) {
  const turn = (to) => {
    pages.set(id, to);
    active.set(id, { row: to * per, column: 0 });
    changed();
  };
  return h(
    "div",
    { key: `${id}-pager`, class: "pager" },
    h("span", {}, `${from + 1}–${Math.min(from + per, total)} of ${total}`),
    h("button", { type: "button", disabled: page === 0, "aria-label": "Previous page", onclick: () => turn(page - 1) },
      "‹"),
    h("button", { type: "button", disabled: page === count - 1, "aria-label": "Next page",
      onclick: () => turn(page + 1) }, "›"),
  );
}

/** Show the page with an item. */
export function reveal(id, index, per) {
  pages.set(id, Math.floor(index / per));
}

/** Go back to the first page. */
export function rewindPage(id) {
  pages.delete(id);
  active.delete(id);
}

function walk(event, id, per, items) {
  const mark = event.target.dataset?.cell;
  if (!mark) return;
  const [row, column] = mark.split(":").map(Number);
  const moves = {
    ArrowDown: [row + 1, column],
    ArrowUp: [row - 1, column],
    PageDown: [row + per, column],
    PageUp: [row - per, column],
    Home: [0, column],
    End: [items.length - 1, column],
    ArrowRight: [row, column + 1],
    ArrowLeft: [row, column - 1],
  };
  const move = moves[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const to = Math.min(items.length - 1, Math.max(0, move[0]));
  pages.set(id, Math.floor(to / per));
  const list = event.currentTarget;
  const go = () => {
    const cells = [...list.querySelectorAll("[data-cell]")].filter((cell) => cell.dataset.cell.startsWith(`${to}:`));
    const able = cells.filter((cell) => !cell.disabled);
    const exact = able.find((cell) => cell.dataset.cell === `${to}:${move[1]}`);
    (exact || (move[1] === column ? able[0] : null))?.focus();
  };
  if (Math.floor(to / per) !== Math.floor(row / per)) {
    changed();
    requestAnimationFrame(() => requestAnimationFrame(go));
  } else go();
}

/** Break a text into lines that fit into so many pixels. */
export function wrap(text, room, font = SMALL) {
  const lines = [];
  for (const paragraph of String(text).split("\n")) {
    let line = "";
    for (const word of paragraph.split(" ")) {
      const longer = line ? `${line} ${word}` : word;
      if (width(longer, font) <= room) line = longer;
      else {
        if (line) lines.push(line);
        line = word;
        while (width(line, font) > room) {
          let cut = line.length - 1;
          while (cut > 1 && width(line.slice(0, cut), font) > room) cut -= 1;
          lines.push(line.slice(0, cut));
          line = line.slice(cut);
        }
      }
    }
    lines.push(line);
  }
  return lines;
}

/** Lines of reading matter: headings, sentences, names with values. */
export class Lines {
  constructor(room) {
    this.room = room;
    this.items = [];
  }

  add(css, text, title, extra) {
    this.items.push({ css, text, title, ...extra });
    return this;
  }

  head(text) {
    return this.add("line-head", text);
  }

  say(text, css = "line-say") {
    const isDeep = css.startsWith("line-deep");
    const font = css === "line-mono" || isDeep ? MONO : css === "line-strong" ? STRONG : SMALL;
    wrap(text, this.room - (isDeep ? 22 : 4), font).forEach((line) => this.add(css, line));
    return this;
  }

  /** A name and its value; a value too long for the line goes on below. */
  pair(name, value, css = "") {
    const text = String(value);
    const label = fit(name, this.room * 0.58, MONO);
    const left = this.room - width(label, MONO) - 14;
    if (width(text, MONO) <= left) return this.add(`line-pair ${css}`, text, `${name} = ${text}`, { name: label });
    this.add(`line-pair ${css}`, "", `${name} = ${text}`, { name: fit(name, this.room - 4, MONO) });
    const lines = wrap(text, this.room - 18, MONO);
    lines.slice(0, 8).forEach((line, n) => {
      const last = n === 7 && lines.length > 8;
      this.add(`line-more ${css}`, last ? fit(`${line}……`, this.room - 20, MONO) : line, text);
    });
    return this;
  }
}

/** Describe lines, as many as fit. */
export function reading(id, lines, high, label) {
  return paged(id, lines.items, Math.floor(high / 20), drawLine, { label, tall: 20, empty: "Nothing to tell." });
}

function drawLine(line, cell) {
  const focus = cell(0);
  return h(
    "div",
    { ...focus, class: `line ${line.css}`, title: line.title },
    line.name !== undefined && h("span", { class: "line-name" }, line.name),
    h("span", { class: "line-text" }, line.text),
  );
}
