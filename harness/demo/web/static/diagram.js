// The sequence diagram: draws the rows that can be seen, and the messages that cross them.

import { pathToViolation } from "./causes.js";
import { course, serialOf } from "./course.js";
import { fit, render, s, width } from "./dom.js";
import { end, sign, sortOf } from "./glyphs.js";
import { arrival, legend } from "./labels.js";
import { BANNER, LEG, LINE } from "./layout.js";
import { wrap } from "./paged.js";
import { clock, onTour, store } from "./store.js";

const FAMILY = 'system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const FONT = `11px ${FAMILY}`;
const BOLD = `600 12px ${FAMILY}`;
const SECOND = `10px ${FAMILY}`;
const SMALL = `600 ${SECOND}`;
const OVER = 600;
/** Rows that a message waits before it says where it comes from. */
const FAR = 4;

let drawn = [0, 0];

/** Is all that is seen between two heights drawn already? */
export function isDrawn(top, high) {
  return top >= drawn[0] && Math.min(store.layout.height, top + high) <= drawn[1];
}

/** Draw what is seen between two heights of the run, and some more, into the canvas element. */
export function draw(canvas, place, top, high) {
  const layout = store.layout;
  const from = Math.max(0, top - OVER);
  const to = Math.min(layout.height, top + high + OVER);
  drawn = [from, to];
  const [first, last] = [layout.rowAt(from), layout.rowAt(to)];
  canvas.style.top = `${layout.tops[first]}px`;
  render(canvas, picture(place, first, last));
}

/** Describe the rows from one to another. */
export function picture(place, first, last) {
  const layout = store.layout;
  const begin = layout.tops[first];
  // The tail below the last row is for messages that are under way.
  const below = last >= layout.length - 1 ? 22 : 0;
  const tall = Math.max(1, (layout.tops[Math.min(last + 1, layout.length)] || 0) - begin + below);
  const flights = layout.within(first, last)
    .filter(({ message }) => place.isShown(message.from) || place.isShown(message.to));
  const path = pathToViolation();
  return s(
    "svg",
    {
      width: place.wide, height: tall, viewBox: `0 ${begin} ${place.wide} ${tall}`, class: "run", "aria-hidden": "true",
    },
    rows(place, first, last, path),
    lifelines(place, first, last, below),
    ending(place, first, last),
    bars(place, first, last),
    flights.map((flight) => drawFlight(place, flight, path)),
    flights.filter(({ row }) => row >= first && row <= last).map((flight) => legend(place, flight)),
    flights.filter((one) => one.how === "delivered" && one.end <= last && isTelling(one, path))
      .map((flight) => arrival(place, flight, path.messages.has(flight.message.id))),
    nodes(place, first, last, path),
    store.steps.slice(first, last + 1).flatMap((step) => banners(place, step.n - 1, step)),
  );
}

/** Is a message's arrival worth a word: one that was overtaken, or a long wait on the path to a violation? */
function isTelling(flight, path) {
  return flight.overtaken !== null || (path.messages.has(flight.message.id) && flight.end - flight.row > FAR);
}

function rows(place, first, last, path) {
  const captions = new Set(onTour() ? store.tour.captions.map((caption) => caption.at) : []);
  return drawnSteps(first, last).map((step) => {
    const row = step.n - 1;
    if (store.layout.folds[row] === row) return folded(place, row, step);
    const picked = store.selected === step.n;
    const hit = store.found.has(step.n);
    const css = `row${picked ? " picked" : ""}${hit ? " hit" : ""}${place.isShown(step.process) ? "" : " away"}${
      path.numbers.has(step.n) ? " cause" : ""}`;
    return s("g", { key: `row${step.n}`, memo: `${serialOf(step)}|${css}|${place.key}|${captions.has(step.n)}`,
      class: css, "data-n": step.n }, () => [
      ground(place, row, Object.keys(step.failing || {}).some(claimed)),
      numbering(place, row, step, captions.has(step.n)),
      wording(place, row, step),
    ]);
  });
}

/** The steps of rows that have a height. */
const drawnSteps = (first, last) =>
  store.steps.slice(first, last + 1).filter((step) => !store.layout.isAway(step.n - 1));

/** A line for steps that are minor: how many there are, of what. */
function folded(place, row, step) {
  let count = 1;
  while (store.layout.isAway(row + count)) count += 1;
  const inside = store.selected !== null && store.selected > row && store.selected <= row + count;
  const css = `row folded${inside ? " picked" : ""}`;
  return s("g", { key: `row${step.n}`, memo: `${serialOf(step)}|${css}|${place.key}|${count}`, class: css,
    "data-n": step.n }, () => {
    const kinds = new Map();
    for (const one of store.steps.slice(row, row + count)) {
      const name = one.action.split(":")[0];
      kinds.set(name, (kinds.get(name) || 0) + 1);
    }
    const words = [...kinds].sort((a, b) => b[1] - a[1]).map(([name, n]) => (n > 1 ? `${n} ${name}` : name)).join(", ");
    const text = `${count} uneventful ${count === 1 ? "step" : "steps"}: ${words}`;
    const y = store.layout.nodeY(row);
    return [
      ground(place, row, false),
      s("g", { class: "number", "data-rewind": step.n + count - 1 },
        s("title", {}, `Click to rewind to step ${step.n + count - 1}`),
        s("rect", { x: 8, y: y - 9, width: 38, height: 18, rx: 9, class: "pill" }),
        s("text", { x: 27, y: y + 4, "text-anchor": "middle" }, step.n)),
      s("g", { class: "wording" }, s("title", {}, text),
        s("text", { x: place.label, y: y + 4, class: "quiet" }, fit(text, place.room, FONT))),
    ];
  });
}

function ground(place, row, failing) {
  const y = store.layout.tops[row];
  const tall = store.layout.tops[row + 1] - y;
  return [
    s("rect", { class: "ground", x: 0, y, width: place.wide, height: tall }),
    failing && s("rect", { class: "failing", x: 0, y, width: 4, height: tall }),
  ];
}

function numbering(place, row, step, caption) {
  const y = store.layout.nodeY(row);
  return s(
    "g",
    { class: "number", "data-rewind": step.n },
    s("title", {}, `Step ${step.n}: click to rewind to it`),
    s("rect", { x: 8, y: y - 9, width: 38, height: 18, rx: 9, class: "pill" }),
    s("text", { x: 27, y: y + 4, "text-anchor": "middle" }, step.n),
    caption && s("path", { class: "caption-mark", d: `M0 ${y - 5}L6 ${y}L0 ${y + 5}Z` }),
    step.at_us !== null &&
      step.at_us !== undefined &&
      s("text", { x: place.gutter - 6, y: y + 4, "text-anchor": "end", class: "time" }, clock(step.at_us)),
  );
}

export const SPEC = {
  step: "M-4 0A4 4 0 1 0 4 0A4 4 0 1 0 -4 0Z",
  stutter: "M-3.5 0H3.5",
  extension: "M-4 0H4M0 -4V4",
  outside: "M-4 -4L4 4M4 -4L-4 4",
};

function wording(place, row, step) {
  const y = store.layout.nodeY(row) + 4;
  const rest = step.args?.length ? `(${step.args.join(", ")})` : step.label.slice(step.action.length).trim();
  const gap = step.args?.length ? 0 : 5;
  const isLong = width(step.action, BOLD) + (rest ? width(rest, FONT) + gap + 3 : 0) > place.room;
  const more = (step.sent?.length || store.layout.wordy || store.layout.told) && step.changed?.length;
  const changed = more ? fit(step.changed.join(" · "), place.room, FONT) : "";
  // What is too long for a line goes on in a second one, and the row has room for both.
  const [action, tail] = broken(step.action, place.room);
  const isTwo = Boolean(tail || (isLong && rest));
  const second = isTwo ? fit(rest, place.room - width(tail, SMALL), SECOND) : "";
  return s(
    "g",
    { class: "wording" },
    s("title", {}, [step.label, ...(step.changed || [])].join("\n")),
    s("text", { x: place.label, y: y - (isTwo ? 5 : 0), class: "action" }, action,
      rest && !isTwo && s("tspan", { class: "args", dx: gap || null }, rest)),
    isTwo && s("text", { x: place.label, y: y + 6, class: "quiet second" }, tail && s("tspan", { class: "tail" }, tail),
      second),
    changed && s("text", { x: place.label, y: y + (isTwo ? 17 : 15), class: "quiet" }, changed),
    step.spec &&
      s(
        "g",
        { class: `spec spec-${step.spec.kind}`, transform: `translate(${place.wide - 16} ${y - 4})` },
        s("title", {}, step.spec.text || step.spec.kind),
        s("rect", { x: -8, y: -8, width: 16, height: 16, class: "nothing" }),
        s("path", { d: SPEC[step.spec.kind] || SPEC.outside }),
      ),
  );
}

/** Return a name in one part, or broken before a capital letter into two, where it is too long for the room. */
function broken(name, room) {
  if (width(name, BOLD) <= room) return [name, ""];
  const parts = name.split(/(?=[A-Z])/);
  let head = parts.shift();
  while (parts.length > 1 && width(head + parts[0], BOLD) <= room) head += parts.shift();
  return [fit(head, room, BOLD), fit(parts.join(""), room, SMALL)];
}

const claimed = (name) => store.session.properties.some((one) => one.name === name && one.claimed);

/** The lines of a property that begins to fail: its name, and why, whole. */
function sentence(place, step, name) {
  const text = `${name}${claimed(name) ? "" : " (not claimed)"}: ${step.failing[name]}`;
  return wrap(text, place.wide - place.gutter - 44, BOLD);
}

/** Give sentences the lines that they take in this width. */
export function spread(place) {
  store.layout.spread(`${place.wide} ${place.gutter}`, (step, name) => sentence(place, step, name).length, store.steps);
}

function banners(place, row, step) {
  const names = store.layout.fresh[row];
  let y = store.layout.tops[row + 1] - store.layout.bannersOf(row);
  return names.map((name) => {
    const lines = sentence(place, step, name);
    const top = y;
    const tall = BANNER + LINE * (lines.length - 1);
    y += tall;
    return s(
      "g",
      { key: `bad${step.n}.${name}`, class: claimed(name) ? "banner" : "banner unclaimed" },
      s("title", {}, lines.join(" ")),
      s("rect", { x: place.gutter, y: top + 1, width: place.wide - place.gutter - 8, height: tall - 3, rx: 4 }),
      s("path", { d: `M${place.gutter + 7} ${top + 6}L${place.gutter + 16} ${top + 15}M${place.gutter + 16} ${
        top + 6}L${place.gutter + 7} ${top + 15}` }),
      lines.map((line, n) => s("text", { x: place.gutter + 24, y: top + 14.5 + LINE * n }, line)),
    );
  });
}

/** The line from which on a loaded run ended fairly. */
function ending(place, first, last) {
  const from = store.present.ending?.fair_from;
  if (from === null || from === undefined || from < first || from > last) return null;
  const y = store.layout.tops[from];
  return s("g", { class: "ending" }, s("title", {}, store.present.ending.text || "fair ending"),
    s("path", { d: `M8 ${y}H${place.wide - 8}` }));
}

function lifelines(place, first, last, below) {
  const tops = store.layout.tops;
  const bottom = (tops[Math.min(last + 1, store.layout.length)] || 0) + below;
  const statusAt = (row, name) => (row >= 0 ? store.steps[row]?.status?.[name] : "") || "up";
  const rest = place.rest !== null && s("path", { key: "rest", d: `M${place.rest} ${tops[first]}V${bottom}`,
    class: "life rest" });
  return [rest, ...place.names.map((name) => {
    const x = place.x(name);
    const kind = store.session.kinds_of_lifeline[name];
    const spans = [];
    let status = statusAt(first - 1, name);
    let since = tops[first];
    for (let row = first; row <= last && row < store.steps.length; row += 1) {
      const now = statusAt(row, name);
      if (now === status) continue;
      const y = store.layout.nodeY(row);
      spans.push([status, since, y]);
      status = now;
      since = y;
    }
    spans.push([status, since, bottom]);
    return s(
      "g",
      { key: `life${name}` },
      spans.map(([how, y0, y1]) => s("path", { d: `M${x} ${y0}V${y1}`, class: `life ${kind} ${how}` })),
    );
  })];
}

/** Draw one message from its leg to its end. */
function drawFlight(place, flight, path) {
  const { message, how } = flight;
  const until = flight.end === Infinity ? store.layout.height : flight.end;
  const late = `${flight.overtaken === null ? "" : " overtaken"}${path.messages.has(message.id) ? " cause" : ""}`;
  return s("g", {
    key: `m${message.id}`, class: `flight ${how.replace(" ", "-")}${late}`, "data-m": message.id,
    memo: `${serialOf(message)}|${how}|${until}|${flight.track}|${flight.holds.join(";")}|${place.key}|${late}`,
  }, () => drawCourse(place, flight));
}

function drawCourse(place, flight) {
  const layout = store.layout;
  const { xs, xt, tx, side, yl, start, atOnce } = course(place, flight);
  const copy = flight.message.copy_of ? "copy" : "";
  const parts = [];
  let outline = `M${start} ${yl}H${tx}`;
  if (atOnce) {
    outline = xs === xt ? `M${xs} ${yl - 6}H${tx}V${yl + 2}H${xt}` : outline;
    const way = xs === xt ? `M${start} ${yl - 6}H${tx}V${yl + 2}H${xt + 8}` : `M${start} ${yl}H${tx + side * 6}`;
    parts.push(...line(way, `leg ${copy}`), ...end("delivered", xs === xt ? xt + 4 : tx, xs === xt ? yl + 2 : yl,
      xs === xt ? 1 : side));
  } else if (["lost", "merged"].includes(flight.how) && flight.end === flight.row) {
    parts.push(...line(`M${start} ${yl}H${tx}`, `leg ${copy}`), ...end(flight.how, tx, yl, side));
  } else {
    const bend = Math.min(6, Math.abs(tx - start));
    const enter = tx > start ? tx - bend : tx + bend;
    parts.push(...line(`M${start} ${yl}H${enter}Q${tx} ${yl} ${tx} ${yl + 6}`, `leg ${copy}`));
    const ye = flight.end === Infinity ? layout.height + 12 : layout.nodeY(flight.end);
    const arrives = flight.how === "delivered";
    parts.push(...waiting(flight, tx, yl + 6, arrives ? ye - 6 : ye, copy));
    if (arrives) {
      parts.push(...line(`M${tx} ${ye - 6}Q${tx} ${ye} ${tx - side * 4} ${ye}H${xt + side * 13}`, `leg ${copy}`));
      parts.push(...end("delivered", xt + side * 6, ye, side));
    } else parts.push(...end(flight.how, tx, flight.end === Infinity ? ye + 6 : ye, 0));
    outline += `V${ye}`;
  }
  return [s("path", { d: outline, class: "touch" }), ...parts];
}

/** A line; a copy of a message has two strokes, so that it is known without colour. */
function line(d, css) {
  return css.includes("copy")
    ? [s("path", { d, class: css }), s("path", { d, class: "hollow" })]
    : [s("path", { d, class: css })];
}

function waiting(flight, x, from, to, copy) {
  const parts = [];
  let y = from;
  for (const [row, until] of flight.holds) {
    const begins = Math.max(y, store.layout.nodeY(row));
    const ends = until === Infinity ? to : Math.min(to, store.layout.nodeY(until));
    if (begins > y) parts.push(...line(`M${x} ${y}V${begins}`, `wait ${copy}`));
    parts.push(s("path", { d: `M${x} ${begins}V${ends}`, class: "wait held" }));
    parts.push(s("path", { d: `M${x - 3} ${begins + 3}v8m6 -8v8`, class: "hold-mark" }));
    y = ends;
  }
  if (to > y) parts.push(...line(`M${x} ${y}V${to}`, `wait ${copy}`));
  return parts;
}

/** The bars beside which the messages of a step leave. They lie below the names of messages. */
function bars(place, first, last) {
  const shown = (step) => (step.sent || []).filter((message) => store.layout.byId.has(message.id)).length;
  return drawnSteps(first, last).filter(shown).map((step) =>
    s("rect", { key: `bar${step.n}`, class: "bar", x: place.x(step.process) - 3, y: store.layout.nodeY(step.n - 1),
      width: 6, height: LEG * shown(step) + 6, rx: 2 }));
}

function nodes(place, first, last, path) {
  return drawnSteps(first, last).filter((step) => store.layout.folds[step.n - 1] === null).map((step) => {
    const x = place.x(step.process);
    const y = store.layout.nodeY(step.n - 1);
    const sort = sortOf(step);
    const picked = store.selected === step.n;
    const cell = picked && store.lane !== null && store.lane !== step.process;
    const along = path.numbers.get(step.n);
    return s("g", {
      key: `node${step.n}`, memo: `${serialOf(step)}|${picked}|${cell && store.lane}|${along}|${place.key}`,
      class: `sort-${sort}`,
    }, () => [
      ["partition", "one_way", "heal"].includes(sort) && step.args?.length === 2 && torn(place, step, y, sort),
      picked && s("circle", { cx: x, cy: y, r: 11, class: "halo" }),
      cell && s("circle", { cx: place.x(store.lane), cy: y, r: 8, class: "halo cell" }),
      along && s("circle", { cx: x, cy: y, r: 11, class: "halo cause" }),
      sign(sort, x, y),
    ]);
  });
}

/** The zigzag between two lifelines that are separated, a straight double line where they are joined again. */
function torn(place, step, y, sort) {
  const [a, b] = step.args.map((name) => place.x(name)).sort((one, other) => one - other);
  if (a === b) return null;
  const to = place.x(step.args[1]);
  const inward = to === a ? 1 : -1;
  if (sort === "heal") return s("path", { class: "joined", d: `M${a} ${y - 2}H${b}M${a} ${y + 2}H${b}` });
  const teeth = [];
  for (let x = a, n = 0; x < b; x += 6, n += 1) teeth.push(`${x.toFixed(1)} ${n % 2 ? y + 3 : y - 3}`);
  return [
    s("path", { class: `torn ${sort}`, d: `M${teeth.join("L")}L${b} ${y}` }),
    // Cut one way: the bar stands at the one who does not hear.
    sort === "one_way" && s("path", { class: "torn", d: `M${to + inward * 12} ${y - 7}V${y + 7}` }),
  ];
}

/** Return the lane near a place of the diagram, or null. */
export function laneAt(place, x) {
  return place.names.find((name) => Math.abs(place.x(name) - x) < Math.min(14, place.lane(name) / 2)) ?? null;
}
