// What a person does: each verb asks the server, and says its sentence where it refuses.

import { get, post } from "./api.js";
import { note } from "./float.js";
import { changed, enabled, store } from "./store.js";

/** Ask the server for a verb; a refusal becomes a note. */
export const ask = (verb, body) => orNote(post(verb, body));

/** Read something; a refusal becomes a note. */
export const read = (path, query) => orNote(get(path, query));

/** Return what is promised; a refusal becomes a note, and null. */
export async function orNote(promise) {
  try {
    return await promise;
  } catch (failure) {
    note(failure.message, true);
    return null;
  }
}

/** Take an enabled step of the picture that is shown. */
export function take(step) {
  store.selected = null;
  return ask("take", step.outside ? { label: step.label } : { index: step.index, at: store.present.step });
}

/** Go to a step of this branch: back, or forward among those that are kept. */
export function rewind(n) {
  store.selected = null;
  if (n < store.steps.length) ask("rewind", { to: n });
  else changed();
}

export const forward = (to) => ask("forward", { to });
export const undo = () => ask("undo");
export const pause = () => ask("pause");

/** Run until what the transport says. */
export function run(more) {
  return ask("run", more);
}

export const toggleRun = (until) => (store.present.running ? pause() : run({ until }));

/** Look at a step; null is the present. */
export function select(n) {
  const last = store.steps.length;
  store.selected = n === null || n >= last + 1 ? null : Math.max(0, n);
  changed();
}

/** Choose a lifeline's head, or let it go; two chosen ones can be parted. */
export function pick(name) {
  if (store.heads.includes(name)) store.heads = store.heads.filter((one) => one !== name);
  else store.heads = [...store.heads.slice(-1), name];
  store.lane = name;
  changed();
}

const ON_ACTOR = ["crash", "restart", "pause", "resume", "skew", "elect", "timer", "slow_disk", "fast_disk"];
const ON_LINK = ["partition", "one_way", "heal"];

/** Return what can be done to one actor now. */
export function deedsOn(name) {
  return enabled((one) => (ON_ACTOR.includes(one.verb) && (one.actors?.includes(name) || one.process === name))
    || (ON_LINK.includes(one.verb) && one.actors?.join() === name));
}

/** Return what can be done to the link of two actors now. */
export function deedsBetween(a, b) {
  return enabled(
    (one) =>
      ON_LINK.includes(one.verb) && one.actors?.includes(a) && one.actors?.includes(b),
  );
}

/** Return what can be done to a message now, by verb. */
export function deedsOf(message) {
  const found = {};
  for (const one of enabled((step) => step.message !== null)) {
    const other = store.present.in_flight.find((flight) => flight.id === one.message);
    if (other && same(other, message)) (found[one.verb] ||= []).push(one);
  }
  return found;
}

/** Are two messages in flight the same, so that a deed to one is a deed to the other? */
function same(a, b) {
  return a.id === b.id || (a.type === b.type && a.from === b.from && a.to === b.to && a.state === b.state
    && JSON.stringify(a.fields) === JSON.stringify(b.fields));
}

/** Load a trail, or what a link carries. */
export async function load(text) {
  const done = await ask("load", text);
  if (done) note("The trail is loaded.");
}

/** Copy a text. */
export async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    note("Copied.");
  } catch {
    note("The browser does not let the page copy; select the text and copy it.", true);
  }
}
