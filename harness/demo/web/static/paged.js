// Lists without a scrollbar: as many rows as there is room for, the others a page away. Arrow keys walk through them.

import { fit, h, swallow, width } from "./dom.js";
import { changed } from "./store.js";

const pages = new Map();
const active = new Map();

const PAGER = 28;

export const SMALL = '12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const STRONG = `600 ${SMALL}`;
export const MONO = '11.5px ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace';

/**
 * Describe a list. `rows` is how many fit, the pager's line included, where all are `tall` pixels high; where `tall` is
 * a function of an item, `rows` is the room in pixels. `draw(item, cell)` describes one row, where `cell(column)` gives
 * the properties of what can be focused in it.
 */
export function paged(id, items, rows, draw, { label, empty, tall = 28 }) {
  if (!items.length) return h("p", { key: `${id}-empty`, class: "empty" }, empty || "Nothing.");
  const starts = typeof tall === "function" ? unevenPages(items, rows, tall) : evenPages(items, rows);
  const page = Math.min(pages.get(id) || 0, starts.length - 1);
  const from = starts[page];
  const to = starts[page + 1] ?? items.length;
  const at = active.get(id) || { row: 0, column: 0 };
  const row = Math.min(Math.max(at.row, from), to - 1);
  const list = h(
    "ul",
    {
      key: id, class: "paged", "aria-label": label, "data-list": id,
      onkeydown: (event) => walk(event, id, starts, items),
    },
    items.slice(from, to).map((item, n) => {
      const index = from + n;
      const cell = (column) => ({
        tabindex: index === row && column === at.column ? "0" : "-1",
        "data-cell": `${index}:${column}`,
        onfocus: () => active.set(id, { row: index, column }),
      });
      const high = typeof tall === "function" ? tall(item) : tall;
      return h("li", { key: item.key ?? index, place: { height: `${high}px` } }, draw(item, cell, index));
    }),
  );
  return [list, starts.length > 1 && pager(id, page, starts, items.length)];
}

/** Return where each page begins. */
function evenPages(items, rows) {
  const fits = Math.max(1, rows);
  const per = items.length <= fits ? fits : Math.max(1, fits - 1);
  return Array.from({ length: Math.ceil(items.length / per) }, (_, n) => n * per);
}

function unevenPages(items, room, tall) {
  if (items.reduce((sum, item) => sum + tall(item), 0) <= room) return [0];
  const starts = [0];
  let used = 0;
  items.forEach((item, n) => {
    const high = tall(item);
    if (used && used + high > room - PAGER) {
      starts.push(n);
      used = 0;
    }
    used += high;
  });
  return starts;
}

function pager(id, page, starts, total) {
  const turn = (to) => {
    pages.set(id, to);
    active.set(id, { row: starts[to], column: 0 });
    changed();
  };
  const count = starts.length;
  return h(
    "div",
    { key: `${id}-pager`, class: "pager" },
    h("span", {}, `${starts[page] + 1}–${starts[page + 1] ?? total} of ${total}`),
    h("button", { type: "button", disabled: page === 0, "aria-label": "Previous page", onclick: () => turn(page - 1) },
      "‹"),
    h("button", { type: "button", disabled: page === count - 1, "aria-label": "Next page",
      onclick: () => turn(page + 1) }, "›"),
  );
}

/** Go back to the first page. */
export function rewindPage(id) {
  pages.delete(id);
  active.delete(id);
}

function walk(event, id, starts, items) {
  const mark = event.target.dataset?.cell;
  if (!mark) return;
  const [row, column] = mark.split(":").map(Number);
  const pageOf = (index) => starts.findLastIndex((start) => start <= index);
  const page = pageOf(row);
  const moves = {
    ArrowDown: [row + 1, column],
    ArrowUp: [row - 1, column],
    PageDown: [starts[page + 1] ?? items.length - 1, column],
    PageUp: [starts[page - 1] ?? 0, column],
    Home: [0, column],
    End: [items.length - 1, column],
    ArrowRight: [row, column + 1],
    ArrowLeft: [row, column - 1],
  };
  const move = moves[event.key];
  if (!move || event.ctrlKey || event.metaKey || event.altKey) return;
  swallow(event);
  const to = Math.min(items.length - 1, Math.max(0, move[0]));
  pages.set(id, pageOf(to));
  const list = event.currentTarget;
  const go = () => {
    const cells = [...list.querySelectorAll("[data-cell]")].filter((cell) => cell.dataset.cell.startsWith(`${to}:`));
    const able = cells.filter((cell) => !cell.disabled);
    const exact = able.find((cell) => cell.dataset.cell === `${to}:${move[1]}`);
    (exact || (move[1] === column ? able[0] : null))?.focus();
  };
  if (pageOf(to) !== page) {
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
  return paged(id, lines.items, Math.floor(high / 20), drawLine, { label, tall: 20, empty: "Nothing to show." });
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
