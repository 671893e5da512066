// What can happen next, below the present: chips at their lanes, as wide as their texts, in as many rows as it takes.

import { fit, h, width } from "./dom.js";
import { icon } from "./glyphs.js";
import { wrap } from "./paged.js";
import { changed, enabled, store } from "./store.js";
import { apart } from "./distinguishing.js";
import { take } from "./verbs.js";
import { DIGITS, offered } from "./view_now.js";

const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const BOLD = `600 ${FONT}`;
const OFFERED = ["deliver", "act", "command", "timer", "elect"];
const MOST = 6;
const BROAD = 364;
const LINES = 3;
const LINE = 14;
const AROUND = 32;

/** Lay out what can happen next, faults apart, within so many pixels of height: `{chips, tall}`. */
export function layChips(place, room) {
  const lanes = new Map([...place.names, ""].map((name) => [name, []]));
  for (const one of enabled((step) => OFFERED.includes(step.verb))) {
    lanes.get(place.isShown(one.process) ? one.process : "").push(one);
  }
  const texts = new Map();
  const said = (one) => {
    if (!texts.has(one)) texts.set(one, words(one, place));
    return texts.get(one);
  };
  for (let most = MOST; ; most -= 1) {
    const laid = pack(place, lanes, said, most);
    if (laid.tall <= room || most === 1) return laid;
  }
}

/** The lines of a chip: what it is, in bold, and what distinguishes it from the others. */
function words(one, place) {
  const { present } = store;
  const message = one.message && present.in_flight.find((other) => other.id === one.message);
  let head = one.action;
  const isNamed = one.args?.includes(one.process) || !place.isShown(one.process);
  let rest = one.outside ? one.args.join(" ")
    : `${isNamed ? "" : one.process}${one.args?.length ? `(${one.args.join(", ")})` : ""}`;
  if (message) {
    const others = present.in_flight.filter((other) => other.type === message.type && other !== message);
    head = message.type;
    const isLate = (store.layout.byId.get(message.id)?.overtaken ?? null) !== null;
    rest = [`${message.from} → ${message.to}`, message.copy_of ? "copy" : "", isLate ? "late" : "",
      ...apart(message, others).map(({ text }) => text)].filter(Boolean).join(" ");
  }
  const most = Math.min(BROAD, place.wide - 12) - AROUND;
  const first = width(head, BOLD);
  const line = rest && first + 5 + width(rest, FONT) <= most;
  const lines = line ? [rest] : rest ? wrap(rest, most, FONT) : [];
  if (lines.length > LINES) lines.splice(LINES - 1, Infinity, fit(lines.slice(LINES - 1).join(" "), most, FONT));
  const broad = line ? first + 5 + width(rest, FONT) : Math.max(first, ...lines.map((text) => width(text, FONT)));
  return {
    head: fit(head, most, BOLD), lines, beside: line, broad: Math.ceil(Math.min(broad, most)) + AROUND,
    tall: (line ? 1 : 1 + lines.length) * LINE + 8,
  };
}

function pack(place, lanes, said, most) {
  const rows = [];
  const chips = [];
  const put = (x, broad, tall) => {
    const tries = rows.map(({ used }, row) => ({ row, ...gapIn(used, x, broad, place.wide) }))
      .filter(({ left }) => left !== undefined);
    // Over its lane, or else beside it, or else in a row of its own.
    const found = tries.find(({ off }) => off < broad / 2 - 8) ?? tries.sort((a, b) => a.off - b.off)[0]
      ?? { row: rows.push({ tall: 0, used: [] }) - 1, ...gapIn([], x, broad, place.wide) };
    const row = rows[found.row];
    row.used.push([found.left, found.left + broad]);
    row.tall = Math.max(row.tall, tall);
    return found;
  };
  for (const [name, items] of lanes) {
    const x = place.x(name);
    const shown = items.length > most ? items.slice(0, most - 1) : items;
    for (const one of shown) {
      const text = said(one);
      chips.push({ one, text, x, ...put(x, text.broad, text.tall) });
    }
    if (items.length > shown.length) {
      const text = `+${items.length - shown.length}`;
      chips.push({ more: name, count: items.length, text, x, broad: 44, ...put(x, 44, 22) });
    }
  }
  const tops = [0];
  for (const { tall } of rows) tops.push(tops.at(-1) + tall + 6);
  const first = offered().slice(0, DIGITS);
  return { chips: chips.map((chip) => draw(chip, tops, first.indexOf(chip.one) + 1)), tall: Math.max(28, tops.at(-1)) };
}

/** Return where a chip begins in a row, as near to its lane as the others let it: `{left, off}`, or nothing. */
function gapIn(used, x, broad, wide) {
  const within = (left) => Math.max(6, Math.min(wide - 6 - broad, left));
  const tries = [x - broad / 2, ...used.flatMap(([from, to]) => [to + 6, from - 6 - broad])];
  const free = tries.map(within)
    .filter((left) => used.every(([from, to]) => left >= to + 5 || left + broad <= from - 5))
    .map((left) => ({ left, off: Math.abs(left + broad / 2 - x) }));
  return free.sort((a, b) => a.off - b.off)[0];
}

function draw({ one, more, count, text, x, row, left, off }, tops, digit) {
  const over = off < (text.broad ?? 44) / 2 - 8;
  const tick = over && h("i", { class: "tick", place: { left: `${(x - left).toFixed(0)}px` } });
  const at = { left: `${left.toFixed(0)}px`, top: `${tops[row]}px` };
  if (!one) {
    return h("button", { key: `more ${more}`, type: "button", tabindex: "-1", class: "chip more",
      title: `${count} steps of ${more || "hidden lifelines"}: they are listed in the panel`,
      place: { ...at, width: "44px" },
      onclick: () => {
        store.tab = "now";
        store.only = more;
        changed();
      } }, text, tick);
  }
  return h(
    "button",
    {
      key: one.label, type: "button", tabindex: "-1", class: `chip chip-${one.verb}`, title: one.label,
      "data-message": one.message || null, "data-digit": digit || null, onclick: () => take(one),
      place: { ...at, width: `${text.broad}px`, height: `${text.tall}px` },
    },
    icon({ deliver: "deliver", timer: "clock", elect: "star" }[one.verb] || "play"),
    h("span", { class: text.beside ? "chip-text beside" : "chip-text" },
      h("strong", {}, text.head), text.lines.map((line) => h("span", {}, line))),
    tick,
  );
}
