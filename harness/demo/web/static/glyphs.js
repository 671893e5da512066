// The signs of the diagram: every kind of step and every end of a message has a shape of its own.

import { s } from "./dom.js";

const BY_ACTION = {
  Crash: "crash",
  Restart: "restart",
  Pause: "pause",
  Resume: "resume",
  SkewClock: "skew",
  SetClock: "clock",
  Partition: "partition",
  Cut: "one_way",
  Heal: "heal",
  Drop: "drop",
  Duplicate: "duplicate",
  Delay: "delay",
  Release: "release",
  Reconnect: "reorder",
};

/** Return what sort of step it is: a name that `sign` and the legend know. */
export function sortOf(step) {
  if (step.sort) return step.sort;
  if (step.kind === "fault" || step.kind === "heal") return BY_ACTION[step.action] || step.kind;
  if (step.kind === "perturbation") return "elect";
  if (step.kind === "timer" || step.kind === "command") return step.kind;
  return step.received ? "receive" : "act";
}

/** What each sort is called. */
export const NAMES = {
  receive: "takes a message",
  act: "acts by itself",
  command: "a client's command",
  timer: "a timer fires",
  elect: "election, or another perturbation",
  crash: "crash",
  restart: "restart",
  pause: "pause",
  resume: "resume",
  skew: "clock runs fast",
  clock: "clock is set right",
  partition: "partition",
  one_way: "cut one way",
  heal: "link healed",
  drop: "message dropped",
  duplicate: "message duplicated",
  delay: "message held",
  release: "message released",
  reorder: "connection reopened",
  slow_disk: "disk writes nothing",
  fast_disk: "disk writes again",
  fault: "fault",
};

/** What each end of a message is called. */
export const ENDS = {
  delivered: "delivered",
  dropped: "dropped",
  lost: "lost: its receiver was down or partitioned",
  held: "held back",
  merged: "the same message was there already",
  "under way": "under way",
};

const diamond = (x, y, r) => `M${x} ${y - r}L${x + r} ${y}L${x} ${y + r}L${x - r} ${y}Z`;
const cross = (x, y, r) => `M${x - r} ${y - r}L${x + r} ${y + r}M${x + r} ${y - r}L${x - r} ${y + r}`;
const plus = (x, y, r) => `M${x - r} ${y}H${x + r}M${x} ${y - r}V${y + r}`;
const right = (x, y, r) => `M${x - r * 0.6} ${y - r}L${x + r} ${y}L${x - r * 0.6} ${y + r}Z`;
const bars = (x, y, r) => `M${x - r * 0.45} ${y - r}V${y + r}M${x + r * 0.45} ${y - r}V${y + r}`;
const bolt = (x, y) => `M${x + 2} ${y - 5}L${x - 2.5} ${y + 0.5}H${x + 2.5}L${x - 2} ${y + 5}`;
const disk = (x, y) => `M${x - 3} ${y - 2.5}a3 1.4 0 1 0 6 0a3 1.4 0 1 0 -6 0v5a3 1.4 0 0 0 6 0v-5`;
const hands = (x, y) => `M${x} ${y - 4}V${y}L${x + 3} ${y + 1.5}`;

function star(x, y, r) {
  const points = [];
  for (let n = 0; n < 10; n += 1) {
    const angle = (Math.PI * n) / 5 - Math.PI / 2;
    const far = n % 2 ? r * 0.45 : r;
    points.push(`${(x + far * Math.cos(angle)).toFixed(1)} ${(y + far * Math.sin(angle)).toFixed(1)}`);
  }
  return `M${points.join("L")}Z`;
}

const ring = (x, y, r, css) => s("circle", { cx: x, cy: y, r, class: css });
const path = (d, css) => s("path", { d, class: css });

/** What is drawn in the diamond of each fault that has a sign of its own. */
const FAULTS = {
  drop: (x, y) => cross(x, y, 3),
  delay: (x, y) => `M${x - 3} ${y - 4}H${x + 3}L${x - 3} ${y + 4}H${x + 3}Z`,
  pause: (x, y) => bars(x, y, 3.2),
  partition: bolt,
  one_way: bolt,
  duplicate: (x, y) => `M${x - 3} ${y - 2}H${x + 3}M${x - 3} ${y + 2}H${x + 3}`,
  skew: hands,
  slow_disk: disk,
  reorder: (x, y) => `M${x - 4} ${y - 2}L${x + 4} ${y + 2}M${x - 4} ${y + 2}L${x + 4} ${y - 2}`,
};
const heal = (x, y) => [ring(x, y, 7.5, "node heal"), path(plus(x, y, 4), "ink heal")];
const release = (x, y) => [ring(x, y, 7.5, "node heal"), path(right(x, y, 3.6), "shape heal")];
/** How the other sorts of steps are drawn. */
const SIGNS = {
  receive: (x, y) => [ring(x, y, 5, "node full")],
  act: (x, y) => [ring(x, y, 5, "node")],
  command: (x, y) => [s("rect", { x: x - 5.5, y: y - 5.5, width: 11, height: 11, rx: 1.5, class: "node command" })],
  timer: (x, y) => [ring(x, y, 7, "node timer"), path(hands(x, y), "ink timer")],
  elect: (x, y) => [path(star(x, y, 9), "node elect")],
  crash: (x, y) => [path(diamond(x, y, 9), "node fault solid"), path(cross(x, y, 3), "ink inverse")],
  restart: heal,
  heal,
  resume: release,
  release,
  clock: (x, y) => [ring(x, y, 7.5, "node heal"), path(hands(x, y), "ink heal")],
  fast_disk: (x, y) => [ring(x, y, 7.5, "node heal"), path(disk(x, y), "ink heal")],
};

/** Draw the sign of a sort of step. */
export function sign(sort, x, y) {
  if (FAULTS[sort]) return [path(diamond(x, y, 9), "node fault"), path(FAULTS[sort](x, y), "ink fault")];
  return SIGNS[sort]?.(x, y) ?? [path(diamond(x, y, 8), "node fault")];
}

/** Draw the end of a message that comes from a side (-1: from the left, 1: from the right, 0: from above). */
export function end(how, x, y, side) {
  switch (how) {
    case "delivered":
      return [path(`M${x} ${y}L${x + side * 8} ${y - 4}V${y + 4}Z`, "head")];
    case "dropped":
      return [path(cross(x, y, 4.5), "gone")];
    case "lost":
      return side
        ? [path(`M${x} ${y - 6}V${y + 6}M${x - side * 4} ${y - 4}V${y + 4}`, "gone")]
        : [path(`M${x - 6} ${y}H${x + 6}M${x - 4} ${y + 4}H${x + 4}`, "gone")];
    case "merged":
      return [ring(x, y, 4, "open")];
    default:
      return [path(`M${x} ${y}L${x - 4} ${y - 7}H${x + 4}Z`, "open")];
  }
}

const STROKES = {
  play: "M5 3.5L13 8L5 12.5Z",
  stop: "M5 3.5V12.5M11 3.5V12.5",
  one: "M4 3.5L10 8L4 12.5ZM12.5 3.5V12.5",
  back: "M11.5 3.5L5 8L11.5 12.5Z",
  start: "M12 3.5L6 8L12 12.5ZM3.8 3.5V12.5",
  forward: "M4.5 3.5L11 8L4.5 12.5Z",
  end: "M4 3.5L10 8L4 12.5ZM12.2 3.5V12.5",
  deliver: "M2.5 8H12M8.5 4.5L12.5 8L8.5 11.5",
  drop: "M4 4L12 12M12 4L4 12",
  duplicate: "M5.5 5.5V2.5H13.5V10.5H10.5M2.5 5.5H10.5V13.5H2.5Z",
  hold: "M5.5 3.5V12.5M10.5 3.5V12.5",
  release: "M4 3.5L12.5 8L4 12.5Z",
  reorder: "M2.5 5H5L11 11H13.5M2.5 11H5L11 5H13.5",
  undo: "M3 6.5H9.5A3.5 3.5 0 0 1 9.5 13.5H6M3 6.5L6 3.5M3 6.5L6 9.5",
  theme: "M8 2.5A5.5 5.5 0 1 0 8 13.5ZM8 2.5A5.5 5.5 0 0 1 8 13.5",
  help: "M5.5 6A2.5 2.5 0 1 1 8.6 8.4C8.2 8.6 8 9 8 9.8M8 12.2V12.6",
  fold: "M4 10L8 6L12 10",
  unfold: "M4 6L8 10L12 6",
  disk: "M3 4.5a5 2 0 1 0 10 0a5 2 0 1 0 -10 0v7a5 2 0 0 0 10 0v-7",
  clock: "M8 2.5A5.5 5.5 0 1 0 8 13.5A5.5 5.5 0 1 0 8 2.5M8 5V8L10.5 9.5",
  plus: "M8 3V13M3 8H13",
  bolt: "M9.5 2.5L5 8.5H11L6.5 13.5",
  star: "M8 2L9.6 6.2L14 6.4L10.5 9.2L11.8 13.6L8 11L4.2 13.6L5.5 9.2L2 6.4L6.4 6.2Z",
  lanes: "M3.5 3V13M8 3V13M12.5 3V13M2 5H5M6.5 8H9.5M11 11H14",
  find: "M7 2.5A4.5 4.5 0 1 0 7 11.5A4.5 4.5 0 1 0 7 2.5M10.3 10.3L13.8 13.8",
  more: "M8 3.4V3.8M8 7.8V8.2M8 12.2V12.6",
};

/** Draw the sign of a button. */
export function icon(name) {
  return s(
    "svg",
    { viewBox: "0 0 16 16", class: `icon icon-${name}`, "aria-hidden": "true", focusable: "false" },
    s("path", { d: STROKES[name] }),
  );
}

const BADGES = {
  down: cross(6, 6, 3.5),
  paused: bars(6, 6, 4),
  partitioned: bolt(6, 6),
  skew: hands(6, 6),
  slow: disk(6, 6),
};

/** Draw the small mark on the head of a lifeline: down, paused, partitioned, skew, slow. */
export function badge(name) {
  return s("svg", { viewBox: "0 0 12 12", class: "badge", "aria-hidden": "true", focusable: "false" },
    s("path", { d: BADGES[name] }));
}

/** Draw the light of a property: a full disc holds, a crossed square fails, a ring is not reached yet. */
export function light(how) {
  const inside = {
    holds: [ring(8, 8, 4.5, "light holds")],
    fails: [
      s("rect", { x: 2.5, y: 2.5, width: 11, height: 11, class: "light fails" }),
      path(cross(8, 8, 2.6), "light-ink"),
    ],
    failed: [s("rect", { x: 3.5, y: 3.5, width: 9, height: 9, class: "light failed" })],
    reached: [path(star(8, 8, 6.5), "light holds")],
    waiting: [ring(8, 8, 4.5, "light waiting")],
  }[how];
  return s("svg", { viewBox: "0 0 16 16", class: "icon lamp", "aria-hidden": "true", focusable: "false" }, inside);
}
