// Along the captions of a tour: which one the present has come to, the next and the one before, and playing.

import { changed, onTour, store } from "./store.js";
import { ask, forward, rewind } from "./verbs.js";

/** How long a caption stands while the tour plays: long enough to read it, letter by letter. */
const LEAST_MS = 3200;
const MOST_MS = 12_000;
const LETTER_MS = 48;

/** What plays: the tour's name, the caption that was come to last, and the tour that it goes on with; or null. */
let playing = null;
let due = 0;

/** Return the captions, and which of them the present has come to (-1: none yet). */
export function where() {
  const captions = store.tour?.captions || [];
  let at = -1;
  captions.forEach((caption, n) => {
    if (caption.at <= store.present.step) at = n;
  });
  return { captions, at };
}

/** Return how long a caption stands. */
export const timeFor = (text) => Math.max(LEAST_MS, Math.min(MOST_MS, 1000 + LETTER_MS * (text || "").length));

export const isPlaying = () => Boolean(playing);

/** Go on to the next caption. */
export function next() {
  if (!store.tour || !onTour()) return;
  const { captions, at } = where();
  const to = captions[at + 1]?.at;
  if (to !== undefined) forward(to);
}

/** Go back to the caption before. */
export function back() {
  if (!store.tour || !onTour()) return;
  halt();
  const { captions, at } = where();
  if (at >= 0) rewind(captions[at - 1]?.at ?? 0);
}

/** Play the tour from here, or from its start where it has ended; or stop playing. */
export function togglePlay() {
  if (playing) {
    halt();
    changed();
    return;
  }
  const { captions, at } = where();
  if (!captions.length || !onTour()) return;
  playing = { tour: store.tour.name, at: -2, then: "" };
  if (at === captions.length - 1) rewind(0);
  else if (at <= 0) next();
  changed();
}

/** Open the tour that goes on where this one ends, and play it too if this one played. */
export function goOn() {
  const then = store.tour?.then?.name;
  if (!then) return;
  playing = { tour: store.tour.name, at: Infinity, then };
  ask("tour", { name: then });
}

function halt() {
  clearTimeout(due);
  playing = null;
}

/** Keep step with the session while the tour plays: each caption has its time, and whoever goes elsewhere ends it. */
export function follow() {
  if (!playing) return;
  const { tour } = store;
  if (playing.then && tour?.name === playing.then) playing = { tour: tour.name, at: -2, then: "" };
  if (!tour || tour.name !== playing.tour || !onTour() || !store.connected) {
    halt();
    return;
  }
  const { captions, at } = where();
  if (at === playing.at || playing.then) return;
  if (at < playing.at) {
    halt();
    return;
  }
  playing.at = at;
  clearTimeout(due);
  due = setTimeout(() => {
    if (at < captions.length - 1) next();
    else if (store.tour?.then) goOn();
    else {
      halt();
      changed();
    }
  }, timeFor(captions[at]?.text));
}
