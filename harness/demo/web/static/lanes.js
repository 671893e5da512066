// Which lifelines are shown, and in which order: chosen in this browser and kept there, for each set of lifelines.

import { width } from "./dom.js";
import { changed, store } from "./store.js";

export const ENVIRONMENT = "environment";
/** Names on heads that are short of room. */
export const TIGHT = '600 11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const ROOMY = '600 13px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const NARROW = 62;
const REST = 54;
const LEAST = 60;
const LABEL = 204;

let known = { key: null, order: [], hidden: new Set() };

/** Return all lifelines in the order in which they stand. */
export const ordered = () => recall().order;

/** Return the lifelines that are shown, from left to right. */
export const shown = () => recall().order.filter((name) => !known.hidden.has(name));

/** Return the lifelines that are hidden. */
export const hidden = () => recall().order.filter((name) => known.hidden.has(name));

/** Move a lifeline so many places to the right among those that are shown. */
export function move(name, by) {
  const names = shown();
  const to = names.indexOf(name) + by;
  if (to < 0 || to >= names.length) return;
  insert(name, by > 0 ? names[to + 1] : names[to]);
}

/** Put a lifeline before another one; without one, at the right end. */
export function insert(name, before) {
  if (name === before) return;
  const rest = recall().order.filter((one) => one !== name);
  const at = before ? rest.indexOf(before) : rest.length;
  known.order = [...rest.slice(0, at), name, ...rest.slice(at)];
  keep();
}

/** Hide a lifeline, or show it. One is always shown. */
export function hide(name, yes = true) {
  recall();
  if (!yes) known.hidden.delete(name);
  else if (shown().length > 1) known.hidden.add(name);
  store.heads = store.heads.filter((one) => !known.hidden.has(one));
  if (known.hidden.has(store.lane)) store.lane = null;
  keep();
}

/** Show all, in the order of the model. */
export function usual() {
  known = { ...known, order: [...store.session.lifelines], hidden: new Set() };
  keep();
}

function recall() {
  const names = store.session?.lifelines || [];
  const key = `lanes ${names.join(" ")}`;
  if (key === known.key) return known;
  const kept = read(key);
  const order = kept.order.filter((name) => names.includes(name));
  const rest = names.filter((name) => !order.includes(name));
  const away = kept.hidden.filter((name) => names.includes(name));
  known = { key, order: [...new Set(order), ...rest], hidden: new Set(away.length < names.length ? away : []) };
  return known;
}

function read(key) {
  try {
    const { order, hidden: away } = JSON.parse(localStorage.getItem(key)) || {};
    return { order: Array.isArray(order) ? order : [], hidden: Array.isArray(away) ? away : [] };
  } catch {
    return { order: [], hidden: [] };
  }
}

function keep() {
  const isUsual = !known.hidden.size && known.order.join(" ") === store.session.lifelines.join(" ");
  if (isUsual) localStorage.removeItem(known.key);
  else localStorage.setItem(known.key, JSON.stringify({ order: known.order, hidden: [...known.hidden] }));
  changed();
}

/** Where the lanes are, for a width in pixels. What needs more than that is wider, and the stage scrolls sideways. */
export function geometry(room) {
  const names = shown();
  const away = hidden().length;
  const gutter = store.session?.mode === "timed" ? 112 : 52;
  // The environment says little and gets a narrow lane; those that are hidden share one at the right.
  const isNarrow = (name) => name === ENVIRONMENT && names.length > 1;
  const least = names.map((name) => (isNarrow(name) ? NARROW : Math.max(LEAST, Math.ceil(width(name, TIGHT)) + 18)));
  const needed = gutter + (away ? REST : 0) + least.reduce((sum, one) => sum + one, 0);
  const wide = Math.max(room, needed + LABEL);
  const growing = Math.max(1, names.filter((name) => !isNarrow(name)).length);
  // Lanes of 84 pixels come first, then labels of 300, then both grow.
  const roomy = names.reduce((sum, name, n) => sum + (isNarrow(name) ? 0 : Math.max(0, 84 - least[n])), 0);
  const slack = wide - needed - roomy;
  // What real clients do stands on their arrows, which need the room.
  const wanted = Math.round(slack < 300 ? Math.max(LABEL, slack) : Math.min(460, 300 + (slack - 300) * 0.3));
  const label = store.session?.is_recorded ? LABEL : wanted;
  const more = (wide - needed - label) / growing;
  const lanes = new Map();
  let left = gutter;
  names.forEach((name, n) => {
    const broad = least[n] + (isNarrow(name) ? 0 : more);
    lanes.set(name, { x: left + broad / 2, broad });
    left += broad;
  });
  const rest = away ? left + REST / 2 : null;
  const aside = rest ?? lanes.get(ENVIRONMENT)?.x ?? gutter;
  return {
    wide, gutter, names, rest, away, label: wide - label, room: label - 34,
    key: `${wide} ${label} ${gutter} ${away} ${store.whole} ${names.join(" ")}`,
    lane: (name) => lanes.get(name)?.broad ?? REST,
    x: (name) => lanes.get(name)?.x ?? aside,
    isShown: (name) => lanes.has(name),
    isTight: (name) => width(name, ROOMY) + 26 > (lanes.get(name)?.broad ?? 0),
  };
}
