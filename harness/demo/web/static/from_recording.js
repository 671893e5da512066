// Answers from a recording in the page: every branch with its states, between which one goes back and forth.

import { unpacked } from "./packed.js";

/** What of the page cannot be done here: all that would need the protocol itself. */
export const LACKS = ["open", "find", "tours", "load", "share", "strategy", "shrink", "branch", "why", "text",
  "mermaid", "itf", "shiviz", "tla", "log", "history", "html"];

const recorded = await unpacked(document.getElementById("recording").textContent);
const { pool, branches, session, file, current, begins } = await recorded.json();

let on = null;
let version = 1;
let branch = branches[current];
let at = begins ?? branch.length;
let speed = 10;
let run = null;
let timer = 0;
/** The step up to which the page knows a run that goes on. */
let known = at;
const left = [];

const row = (places) => Object.fromEntries(Object.entries(places).map(([name, place]) => [name, pool[place]]));
const stepsOf = (one, from, to) => one.steps.slice(from, to).map((place) => pool[place]);

/** Return what the session would say of where it is. */
function here() {
  const listed = branches.map((one) => ({ name: one.name, length: one.length, from: one.from, at: one.at,
    current: one === branch }));
  const present = { ...row(branch.presents[at]), speed, running: Boolean(run), can_undo: left.length > 0,
    until: run?.until || "violation" };
  return { version, ahead: branch.length - at, branches: listed, tour: session.tour, present };
}

/** Go to a step of a branch, and tell the page what is new. */
function go(to, there = branch) {
  let keep = 0;
  const common = Math.min(at, to);
  while (keep < common && branch.steps[keep] === there.steps[keep]) keep += 1;
  branch = there;
  at = to;
  tell(keep);
}

function tell(keep) {
  version += 1;
  on?.change({ ...here(), keep, steps: stepsOf(branch, keep, at) });
}

function remember() {
  halt();
  left.push([branch, at]);
}

function halt() {
  clearTimeout(timer);
  run = null;
}

/** Refuse what the run that was recorded does not have. */
function refuse(what) {
  throw new Error(`This page is a recording, and ${what}; save its trail: kafka-proto demo ${file} goes on from it.`);
}

function checked(to, from, end) {
  if (!(to >= from && to <= end)) throw new Error(`expected a step from ${from} to ${end}, found ${to}`);
  return to;
}

/** Take the step of a label: the next one, or that of another branch which is the same up to here. */
function take(label) {
  const isNext = (one) => one.length > at && pool[one.steps[at]].label === label
    && branch.steps.slice(0, at).every((place, n) => place === one.steps[n]);
  const there = [branch, ...branches].find(isNext);
  if (!there) refuse("that step was not taken in it");
  remember();
  go(at + 1, there);
}

function isOver() {
  const step = pool[branch.steps[at - 1]];
  const [kind, what] = run.until.split(":");
  if (at === branch.length || run.left === 0) return true;
  if (kind === "action") return step.action === what;
  if (kind === "step") return at >= Number(what);
  return kind === "violation" && at === pool[branch.presents[at].violation]?.step;
}

/** Play the recorded steps, as fast as a run would go. */
function play() {
  do {
    at += 1;
    run.left -= 1;
    if (isOver()) run = null;
    else if (speed) {
      timer = setTimeout(play, 1000 / speed);
      break;
    }
  } while (run);
  const keep = known;
  known = at;
  tell(keep);
}

const VERBS = {
  rewind({ to }) {
    checked(to, 0, at);
    remember();
    go(to);
  },
  forward({ to }) {
    checked(to, at, branch.length);
    remember();
    go(to);
  },
  take({ index, label }) {
    take(label ?? pool[branch.presents[at].enabled][index]?.label);
  },
  switch({ name }) {
    const there = branches.find((one) => one.name === name);
    if (!there) throw new Error(`there is no branch ${name}`);
    remember();
    go(there.length, there);
  },
  undo() {
    if (!left.length) throw new Error("there is nothing to undo");
    halt();
    const [there, to] = left.pop();
    go(to, there);
  },
  pause() {
    halt();
    tell(at);
  },
  run({ until, steps }) {
    if (at === branch.length) refuse("it ends here");
    remember();
    run = { until: until || "end", left: steps ?? Infinity };
    known = at;
    play();
  },
  strategy(body) {
    if (body.speed === undefined) refuse("no strategy decides in it");
    speed = body.speed;
    tell(at);
  },
};

const READINGS = {
  state({ step, actor }) {
    const { actors, shared } = branch.states[step];
    return { step, actors: row(actor ? { [actor]: actors[actor] } : actors), shared: pool[shared] };
  },
  logs: ({ step }) => ({ step, logs: branch.logs[step].map((place) => pool[place]) }),
  step: ({ n }) => row(branch.about[n - 1]),
};

export async function get(path, query) {
  return (READINGS[path] || (() => refuse("that is not in it")))(query);
}

export async function post(verb, body) {
  (VERBS[verb] || (() => refuse("that cannot be done in it")))(body || {});
  return { version };
}

export async function getFile(address) {
  if (address !== "/api/trail") refuse("has no other file");
  return { name: file, content: new Blob([branch.trail]) };
}

/** Return the step that is shown; a run that goes on is ended. */
export function leave() {
  halt();
  on = null;
  return at;
}

export function listen(listener) {
  on = listener;
  on.session({ ...session, ...here(), steps: stepsOf(branch, 0, at) });
  return { close() {}, readyState: 1 };
}
