// The sequence diagram: draws the rows that can be seen, and the messages that cross them.

import { fit, h, render, s, width } from "./dom.js";
import { badge, end, sign, sortOf } from "./glyphs.js";
import { BANNER, LEG } from "./layout.js";
import { clock, onTour, store } from "./store.js";

const FONT = '11px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const BOLD = '600 12px system-ui, "Segoe UI", "DejaVu Sans", sans-serif';
const OVER = 600;

let serial = 0;
const serials = new WeakMap();

/** Return a number that tells one step from another one at the same place of another branch. */
function serialOf(step) {
  if (!serials.has(step)) serials.set(step, (serial += 1));
  return serials.get(step);
}

/** Where the lanes are, for a width in pixels. */
export function geometry(wide) {
  const names = store.session?.lifelines || [];
  const gutter = store.session?.mode === "timed" ? 112 : 52;
  // The environment says little and gets a narrow lane of its own, at the right.
  const narrow = names.at(-1) === "environment" ? 62 : 0;
  const wideLanes = Math.max(1, names.length - (narrow ? 1 : 0));
  // Lanes of 84 pixels come first, then labels of 300, then both grow.
  const slack = wide - gutter - narrow - wideLanes * 84;
  const label = Math.round(slack < 300 ? Math.max(204, slack) : Math.min(460, 300 + (slack - 300) * 0.3));
  const gap = (wide - gutter - narrow - label) / wideLanes;
  const at = new Map(names.map((name, n) => [name, gutter + gap * (n + 0.5)]));
  if (narrow) at.set("environment", gutter + gap * wideLanes + narrow / 2);
  const other = at.get("environment") ?? gutter;
  const lane = (name) => (narrow && name === "environment" ? narrow : gap);
  return { wide, gutter, gap, lane, label: wide - label, room: label - 34, names, x: (name) => at.get(name) ?? other };
}

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
  const first = layout.rowAt(from);
  const last = layout.rowAt(to);
  const begin = layout.tops[first];
  // The tail below the last row is for messages that are under way.
  const below = to >= layout.height ? 22 : 0;
  const tall = Math.max(1, (layout.tops[Math.min(last + 1, layout.length)] || 0) - begin + below);
  canvas.style.top = `${begin}px`;
  render(
    canvas,
    s(
      "svg",
      {
        width: place.wide,
        height: tall,
        viewBox: `0 ${begin} ${place.wide} ${tall}`,
        class: "run",
        "aria-hidden": "true",
      },
      rows(place, first, last),
      lifelines(place, first, last, below),
      ending(place, first, last),
      layout.within(first, last).map((flight) => drawFlight(place, flight)),
      nodes(place, first, last),
      allBanners(place, first, last),
    ),
  );
}

function rows(place, first, last) {
  const found = [];
  const captions = new Set(onTour() ? store.tour.captions.map((caption) => caption.at) : []);
  for (let row = first; row <= last && row < store.steps.length; row += 1) {
    const step = store.steps[row];
    const picked = store.selected === step.n;
    const failing = Object.keys(step.failing || {}).some(claimed);
    const memo = `${serialOf(step)}|${picked}|${place.wide}|${place.names.length}|${captions.has(step.n)}`;
    found.push(
      s(
        "g",
        { key: `row${step.n}`, memo, class: picked ? "row picked" : "row", "data-n": step.n },
        ground(place, row, failing),
        numbering(place, row, step, captions.has(step.n)),
        wording(place, row, step),
      ),
    );
  }
  return found;
}

function allBanners(place, first, last) {
  const found = [];
  for (let row = first; row <= last && row < store.steps.length; row += 1) {
    if (store.layout.fresh[row].length) found.push(...banners(place, row, store.steps[row]));
  }
  return found;
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
  const action = fit(step.action, place.room, BOLD);
  const left = place.room - width(action, BOLD) - 3;
  const rest = step.args?.length ? `(${step.args.join(", ")})` : step.label.slice(step.action.length);
  const args = rest && left > 26 ? fit(rest, left, FONT) : "";
  const more = (step.sent?.length || store.layout.wordy) && step.changed?.length;
  const changed = more ? fit(step.changed.join(" · "), place.room, FONT) : "";
  return s(
    "g",
    { class: "wording" },
    s("title", {}, [step.label, ...(step.changed || [])].join("\n")),
    s("text", { x: place.label, y, class: "action" }, action, args && s("tspan", { class: "args" }, args)),
    changed && s("text", { x: place.label, y: y + 15, class: "quiet" }, changed),
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

const claimed = (name) => store.session.properties.some((one) => one.name === name && one.claimed);

function banners(place, row, step) {
  const names = store.layout.fresh[row];
  const base = store.layout.tops[row + 1] - BANNER * names.length;
  return names.map((name, n) => {
    const y = base + BANNER * n;
    const text = `${name}${claimed(name) ? "" : " (not claimed)"}: ${step.failing[name]}`;
    return s(
      "g",
      { key: `bad${step.n}.${name}`, class: claimed(name) ? "banner" : "banner unclaimed" },
      s("title", {}, text),
      s("rect", { x: place.gutter, y: y + 1, width: place.wide - place.gutter - 8, height: BANNER - 3, rx: 4 }),
      s("path", { d: `M${place.gutter + 7} ${y + 6}L${place.gutter + 16} ${y + 15}M${place.gutter + 16} ${y + 6}L${
        place.gutter + 7} ${y + 15}` }),
      s("text", { x: place.gutter + 24, y: y + 14.5 }, fit(text, place.wide - place.gutter - 44, BOLD)),
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
  return place.names.map((name) => {
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
  });
}

/** Draw one message from its leg to its end. */
function drawFlight(place, flight) {
  const { message } = flight;
  const layout = store.layout;
  const xs = place.x(message.from);
  const xt = place.x(message.to);
  const side = xs < xt ? -1 : 1;
  const apart = Math.min(9, Math.max(5, place.gap / 16));
  const most = Math.max(0, Math.floor((place.gap / 2 - 20) / apart));
  const tx = xt + side * (15 + apart * Math.min(flight.track, most));
  const yl = layout.legY(flight);
  const start = xs === xt ? xs + 4 : xs - side * 4;
  const copy = message.copy_of ? "copy" : "";
  const key = `m${message.id}`;
  const parts = [];
  let outline = `M${start} ${yl}H${tx}`;
  if (flight.how === "lost" && flight.end === flight.row) {
    parts.push(...line(`M${start} ${yl}H${tx}`, `leg ${copy}`), ...end("lost", tx, yl, side));
  } else if (flight.how === "merged" && flight.end === flight.row) {
    parts.push(...line(`M${start} ${yl}H${tx}`, `leg ${copy}`), ...end("merged", tx, yl, side));
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
  const name = `${message.type} ${message.from} → ${message.to}: ${flight.how}`;
  return s(
    "g",
    { key, class: `flight ${flight.how.replace(" ", "-")}`, "data-m": message.id },
    s("path", { d: outline, class: "touch" }),
    parts,
    legend(place, flight, start, tx, yl, name),
  );
}

/** A line; a copy of a message has two strokes, which tells it without colour. */
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

function legend(place, flight, start, tx, y, full) {
  const { message } = flight;
  const self = message.from === message.to;
  const room = self ? place.gap - 30 : Math.abs(tx - start) - 8;
  if (room < 20) return null;
  const type = fit(message.type, room, FONT);
  const fields = Object.entries(message.fields || {}).map(([name, value]) => `${name}=${value}`);
  const left = room - width(type, FONT) - 6;
  const rest = type === message.type && left > 30 && fields.length ? fit(fields.join(" "), left, FONT) : "";
  return s(
    "text",
    {
      x: self ? tx + 8 : (start + tx) / 2,
      y: y - 4.5,
      "text-anchor": self ? "start" : "middle",
      class: "type",
    },
    s("title", {}, full),
    type,
    rest && s("tspan", { class: "fields", dx: 5 }, rest),
  );
}

function nodes(place, first, last) {
  const found = [];
  for (let row = first; row <= last && row < store.steps.length; row += 1) {
    const step = store.steps[row];
    const x = place.x(step.process);
    const y = store.layout.nodeY(row);
    const sort = sortOf(step);
    const legs = step.sent?.length || 0;
    const picked = store.selected === step.n;
    const cell = picked && store.lane !== null && store.lane !== step.process;
    found.push(
      s(
        "g",
        {
          key: `node${step.n}`, memo: `${serialOf(step)}|${picked}|${store.lane}|${place.wide}`, class: `sort-${sort}`,
        },
        legs > 0 && s("rect", { class: "bar", x: x - 3, y, width: 6, height: LEG * legs + 6, rx: 2 }),
        ["partition", "one_way", "heal"].includes(sort) && step.args?.length === 2 && torn(place, step, y, sort),
        picked && s("circle", { cx: x, cy: y, r: 11, class: "halo" }),
        cell && s("circle", { cx: place.x(store.lane), cy: y, r: 8, class: "halo cell" }),
        sign(sort, x, y),
      ),
    );
  }
  return found;
}

/** The zigzag between two lifelines that are separated, a straight double line where they are joined again. */
function torn(place, step, y, sort) {
  const [a, b] = step.args.map((name) => place.x(name)).sort((one, other) => one - other);
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
  return place.names.find((name) => Math.abs(place.x(name) - x) < Math.min(14, place.gap / 2)) ?? null;
}

/** The heads of the lifelines: buttons in their lanes. */
export function heads(place, on) {
  const gates = store.present?.gates || {};
  const roving = store.lane && place.names.includes(store.lane) ? store.lane : place.names[0];
  return place.names.map((name) => {
    const gate = gates[name];
    const status = gate?.status && gate.status !== "up" ? gate.status : "";
    const deaf = gate?.deaf_to?.length ? `cannot hear ${gate.deaf_to.join(", ")}` : "";
    const skew = gate?.skew && gate.skew !== 100 ? `clock at ${gate.skew} %` : "";
    const notes = [store.session.kinds_of_lifeline[name], status, deaf, skew].filter(Boolean).join("; ");
    const marks = [status, deaf && "deaf", skew && "skew"].filter(Boolean);
    return h(
      "button",
      {
        key: name,
        type: "button",
        class: `lane-head ${store.session.kinds_of_lifeline[name]} ${status}`,
        "aria-pressed": store.heads.includes(name) ? "true" : "false",
        "aria-label": `${name}, ${notes}`,
        title: `${name} (${notes})`,
        tabindex: name === roving ? "0" : "-1",
        "data-lane": name,
        place: { left: `${place.x(name)}px`, maxWidth: `${Math.max(24, place.lane(name) - 6)}px` },
        onclick: () => on.pick(name),
      },
      h("span", { class: "lane-name" }, name === "environment" ? "env" : name),
      marks.length > 0 && h("span", { class: "lane-marks" }, marks.map((mark) => badge(mark))),
    );
  });
}
