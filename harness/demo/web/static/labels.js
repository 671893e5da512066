// What stands beside messages: their names, on paper of their own, so that no lifeline crosses them.

import { course, serialOf } from "./course.js";
import { fit, s, width } from "./dom.js";
import { store } from "./store.js";

const FAMILY = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const FONT = `11px ${FAMILY}`;
const TYPE = `500 11px ${FAMILY}`;
const STRONG = `600 11px ${FAMILY}`;

/** The paper below a text that begins at x, on a base line. */
function plate(x, base, wide) {
  return s("rect", { class: "paper", x: (x - 2).toFixed(1), y: (base - 10).toFixed(1), width: (wide + 4).toFixed(1),
    height: 13 });
}

/**
 * Name a message beside its leg: the whole type, and what distinguishes it from those of its type before and after it.
 * Each leg has a height of its own, so that the text may be longer than the leg; other fields come where they fit.
 */
export function legend(place, flight) {
  const { message } = flight;
  // What is told of a real client's request is in the order in which it matters.
  const differing = store.session.is_recorded ? [] : store.layout.kinds.apart(message);
  return s("g", {
    key: `name${message.id}`, class: "flight named", "data-m": message.id,
    memo: `${serialOf(message)}|${flight.how}|${differing.join(" ")}|${flight.track}|${place.key}`,
  }, () => {
    const { xs, xt, tx, yl, start } = course(place, flight);
    const away = !place.isShown(message.from) ? ` ← ${message.from}`
      : !place.isShown(message.to) ? ` → ${message.to}` : "";
    const [low, high] = [place.gutter + 2, place.label - 8];
    const type = fit(message.type + away, high - low, TYPE);
    const leg = (xs === xt ? place.lane(message.to) - 30 : Math.abs(tx - start) - 8) - width(type, TYPE) - 6;
    const others = Object.entries(message.fields || {}).map(([name, value]) => (value ? `${name}=${value}` : name));
    const all = [...differing, ...others.filter((one) => !differing.includes(one))];
    const least = differing.join(" ");
    const left = xs === xt ? tx : Math.min(start, tx);
    const room = store.session.is_recorded ? high - left - width(type, TYPE) - 14 : leg;
    const fields = width(least, FONT) < room ? whole(all, room) : fit(least, high - low - width(type, TYPE) - 6, FONT);
    const long = width(type, TYPE) + (fields ? width(fields, FONT) + 6 : 0);
    // It begins at its sender where it is longer than the leg, and stays within the lanes.
    const middle = store.session.is_recorded ? (xs === xt ? tx + 5 : Math.min(start, tx) + 7) + long / 2
      : xs === xt ? tx + 8 + long / 2 : long <= Math.abs(tx - start) ? (start + tx) / 2
      : xs < xt ? xs + 7 + long / 2 : xs - 7 - long / 2;
    const x = Math.max(low, Math.min(high - long, middle - long / 2));
    return [
      s("title", {}, `${message.type} ${message.from} → ${message.to}: ${flight.how}`),
      plate(x, yl - 4.5, long),
      s("text", { x: x.toFixed(1), y: yl - 4.5, class: "type" }, type,
        fields && s("tspan", { class: "fields", dx: 5 }, fields)),
    ];
  });
}

/** Return as many of these words as fit. */
function whole(words, room) {
  let text = "";
  for (const word of words) {
    const longer = text ? `${text} ${word}` : word;
    if (width(longer, FONT) > room) break;
    text = longer;
  }
  return text;
}

/** Say where a message arrives that a later one of its kind has overtaken, or that led to a violation. */
export function arrival(place, flight, isCause) {
  const { message } = flight;
  return s("g", { key: `late${message.id}`, class: `arrival${isCause ? " cause" : ""}`,
    "data-late": message.id, "data-m": message.id,
    memo: `${serialOf(message)}|${flight.end}|${flight.track}|${place.key}|${isCause}` }, () => {
    const { xt, tx, side } = course(place, flight);
    const sent = flight.row < 0 ? "" : ` of step ${store.steps[flight.row].n}`;
    const room = side < 0 ? tx - 8 - place.gutter : place.label - 14 - Math.max(tx, xt) - 8;
    const text = fit(`${flight.overtaken === null ? "" : "late: "}${message.type}${sent}`, room, STRONG);
    if (text.length < 8) return [];
    const long = width(text, STRONG);
    const x = side < 0 ? tx - 8 - long : tx + 8;
    const y = store.layout.nodeY(flight.end) + 4;
    return [plate(x, y, long), s("text", { x: x.toFixed(1), y, class: "late-word" }, text)];
  });
}
