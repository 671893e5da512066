// The topics: partitions with their records, what became of their transactions, marks, and how far consumers are.

import { get } from "./api.js";
import { fit, h, width } from "./dom.js";
import { MONO, SMALL, paged } from "./paged.js";
import { changed, looked, store } from "./store.js";
import { putTipAway, showPairsTip } from "./tips.js";

const HEAD = 50;
const LINE = 62;
const LEGEND = 50;
/** The sign of each kind of entry, which its colour repeats. */
const SIGNS = {
  plain: "", open: "○", committed: "✓", aborted: "✕", "commit marker": "✓", "abort marker": "✕",
};
const known = new WeakMap();
let shown = { key: null, logs: null };

/** Draw the view into so much room. */
export function drawTopics({ wide, high }) {
  const step = looked();
  fetchLogs(step);
  const items = (shown.logs || []).flatMap((log) => [
    { key: `${name(log)} head`, log, high: HEAD },
    ...lines(log, wide).map((cells, n) => ({ key: `${name(log)} ${n}`, log, cells, high: LINE })),
  ]);
  return [
    h("div", { class: "view-head" }, h("h2", {}, "Topics"),
      h("span", { class: "view-note" }, step ? `after step ${step.n}` : "at the start")),
    paged("topics", items, high - 36 - LEGEND, (item, cell) => (item.cells ? drawLine : drawHead)(item, cell, wide),
      { label: "Topics", empty: shown.logs ? "No partitions." : "Asking for the topics.", tall: (item) => item.high }),
    shown.logs?.some((log) => log.entries.some((entry) => entry.kind !== "plain")) && legend(),
  ];
}

function legend() {
  const sample = (css, sign, word) => h("span", { key: word }, h("i", { class: `record ${css}` }, sign), word);
  return h("p", { key: "legend", class: "log-legend" },
    ["open", "committed", "aborted"].map((kind) => sample(`is-${kind}`, SIGNS[kind], kind)),
    sample("is-commit-marker", "✓", "marker"), sample("seen", "", "consumed"));
}

const name = (log) => `${log.partition} at ${log.holder}`;

function fetchLogs(step) {
  const of = step || store.session;
  if (shown.key === of) return;
  if (known.has(of)) {
    shown = { key: of, logs: known.get(of) };
    return;
  }
  shown = { key: of, logs: shown.logs };
  get("logs", { step: step ? step.n : 0 }).then(
    ({ logs }) => {
      known.set(of, logs);
      if (shown.key !== of) return;
      shown = { key: of, logs };
      putTipAway();
      changed();
    },
    () => {
      if (shown.key === of) shown = { key: null, logs: shown.logs };
    },
  );
}

/** Break a log into lines of cells that fit: its entries, and its end, each with the marks that stand before it. */
function lines(log, wide) {
  const marks = [...log.marks].sort((a, b) => a.offset - b.offset);
  const found = [[]];
  let used = 0;
  for (const entry of [...log.entries, { offset: log.end, text: "end", kind: "end", note: "", seen_by: [] }]) {
    const here = [];
    while (marks.length && (marks[0].offset <= entry.offset || entry.kind === "end")) here.push(marks.shift());
    const sign = SIGNS[entry.kind] ? 14 : 0;
    const room = Math.ceil(Math.max(
      34, width(entry.text, MONO) + sign + 14, width(below(entry), SMALL) + 6,
      here.reduce((sum, mark) => sum + width(mark.label, SMALL) + 12, 4),
    )) + 4;
    if (used && used + room > wide) {
      // Marks at the end stand beside the last record, which comes along.
      const last = entry.kind === "end" && found.at(-1).length > 1 ? [found.at(-1).pop()] : [];
      found.push(last);
      used = last.reduce((sum, one) => sum + one.room, 0);
    }
    found.at(-1).push({ entry, here, room });
    used += room;
  }
  return found;
}

/** What stands below an entry: its offset, a note, who has got it. */
function below(entry) {
  return [entry.offset, entry.note, ...entry.seen_by].filter((word) => word !== "").join(" · ");
}

/** The properties of what shows a tip to the pointer and to the keyboard. */
function tipped(cell, draw) {
  const show = (event) => {
    const box = event.currentTarget.getBoundingClientRect();
    draw(box.left, box.bottom - 8);
  };
  return {
    ...cell, type: "button", "aria-describedby": "tip", onpointerenter: show, onpointerleave: putTipAway,
    onfocus: (event) => {
      cell.onfocus();
      if (event.currentTarget.matches(":focus-visible")) show(event);
    },
    onblur: putTipAway,
  };
}

/** Who leads and is in sync, and where the marks are: as much as fits. */
function facts(log, room) {
  const said = Object.entries(log.facts || {}).map(([name, value]) => `${name} ${value}`);
  const marks = log.marks.map(({ label, offset }) => `${label} ${offset}`);
  return fit([...said, ...marks].join(" · "), room, SMALL);
}

function drawHead({ log }, cell, wide) {
  const { length } = log.entries;
  const words = `${length} ${length === 1 ? "entry" : "entries"}`;
  return h(
    "button",
    { ...tipped(cell(0), (x, y) => showPairsTip(x, y, log.partition, `at ${log.holder}`, Object.entries(log.details))),
      class: "log-head", "data-log": name(log) },
    h("strong", {}, log.partition), h("span", { class: "log-holder" }, `at ${log.holder}`),
    h("span", { class: "count" }, words),
    h("span", { class: "log-facts" }, facts(log, Math.max(120, wide - 16))),
  );
}

function drawLine({ log, cells }, cell) {
  return h("div", { class: "log-line" },
    cells.map(({ entry, here, room }, n) => drawEntry(log, entry, here, room, cell(n))));
}

function drawEntry(log, entry, here, room, cell) {
  const marked = here.map((mark) => `${mark.name} ${mark.offset}`);
  const said = entry.kind === "end" ? "the end of the log" : entry.kind;
  const seen = entry.seen_by.length ? [`seen by ${entry.seen_by.join(", ")}`] : [];
  const about = [`offset ${entry.offset} of ${log.partition}`, said, ...seen].join(" · ");
  const pairs = [...Object.entries(entry.details || {}), ...here.map((mark) => [mark.name, mark.offset])];
  return h(
    "div",
    { key: `${entry.offset}`, "data-of": name(log), class: here.length ? "log-entry marked" : "log-entry",
      place: { width: `${room}px` } },
    h("div", { class: "log-marks" }, here.map((mark) =>
      h("span", { key: mark.label, class: "log-mark", "data-mark": mark.label, title: mark.name }, mark.label))),
    h(
      "button",
      { ...tipped(cell, (x, y) => showPairsTip(x, y, entry.text, about, pairs)), "data-offset": entry.offset,
        "data-kind": entry.kind, class: `record is-${entry.kind.replace(" ", "-")}${seen.length ? " seen" : ""}`,
        "aria-label": [entry.text, about, ...marked].join(", ") },
      SIGNS[entry.kind] && h("span", { class: "record-sign" }, SIGNS[entry.kind]),
      h("span", { class: "record-text" }, entry.text),
    ),
    h("span", { class: "log-below" }, below(entry)),
  );
}
