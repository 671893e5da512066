// What the page knows: the session as the server reports it, and what this tab alone has chosen to look at.

import { Layout } from "./layout.js";

export const store = {
  session: null,
  steps: [],
  present: null,
  branches: [],
  ahead: 0,
  tour: null,
  layout: new Layout(),
  /** Are steps and messages of a session shown that are minor, too? */
  whole: false,
  /** The step that is looked at, or null for the present. */
  selected: null,
  lane: null,
  heads: [],
  /** Whose messages and steps are listed, and which sort of steps; empty for all, and for those of the protocol. */
  only: "",
  sort: "",
  /** The numbers of the steps that the search found. */
  found: new Set(),
  tab: "now",
  connected: true,
  ended: false,
  /** The action that is asked about, or null for the first one. */
  why: null,
  /** How far a search for a violation is, or the outcome of the last one; null before the first. */
  finding: null,
};

const listeners = new Set();
let due = 0;

/** Be called, once per frame at most, when anything has changed. */
export function onChange(listener) {
  listeners.add(listener);
}

/** Say that something has changed. */
export function changed() {
  // Whoever drives the page from outside sees by this mark when it has caught up.
  delete document.documentElement.dataset.drawn;
  if (due) return;
  due = requestAnimationFrame(() => {
    due = 0;
    for (const listener of listeners) listener();
    if (due) return;
    document.documentElement.dataset.drawn = String(store.version ?? 0);
    document.documentElement.dataset.step = String(store.present?.step ?? 0);
  });
}

/** Take over a whole session. */
export function takeSession(news) {
  const other = store.session?.epoch !== news.epoch || store.ended;
  store.session = news;
  store.steps = news.steps;
  take(news);
  layOut();
  if (other) {
    store.heads = [];
    store.lane = null;
    store.selected = null;
    store.why = null;
    if (news.tour?.shows_logs) store.tab = "topics";
  }
  tidy();
  changed();
}

function layOut() {
  const { session } = store;
  store.layout = new Layout();
  store.layout.wordy = !session.is_recorded && !Object.values(session.kinds_of_lifeline).includes("actor");
  store.layout.whole = store.whole;
  store.layout.told = Boolean(session.is_recorded);
  store.layout.start(session.initial?.sent);
  store.layout.follow(store.steps, 0);
}

/** Show all steps, or fold those that are minor. */
export function showWhole(yes) {
  store.whole = yes;
  layOut();
  changed();
}

/** Take over a change: the first `keep` steps stay. Returns false where it does not fit what is known. */
export function takeChange(news) {
  if (!store.session || news.keep > store.steps.length) return false;
  store.steps.length = news.keep;
  store.steps.push(...news.steps);
  take(news);
  store.layout.follow(store.steps, news.keep);
  tidy();
  changed();
  return true;
}

function take(news) {
  store.version = news.version;
  store.present = news.present;
  if (news.branches) store.branches = news.branches;
  if (news.ahead !== undefined) store.ahead = news.ahead;
  if (news.tour !== undefined) store.tour = news.tour;
  if (news.lifelines && store.session !== news) {
    store.session.lifelines = news.lifelines;
    for (const name of news.lifelines) store.session.kinds_of_lifeline[name] ??= "actor";
  }
}

function tidy() {
  if (store.selected !== null && store.selected > store.steps.length) store.selected = null;
  const names = new Set(store.session.lifelines);
  store.heads = store.heads.filter((name) => names.has(name));
  if (store.lane !== null && !names.has(store.lane)) store.lane = null;
  if (store.only && !names.has(store.only)) store.only = "";
}

/** Return the step that is looked at: the selected one, else the last; null at the very start. */
export function looked() {
  const n = store.selected ?? store.steps.length;
  return n ? store.steps[n - 1] : null;
}

/** Is the present on the path of a tour? */
export function onTour() {
  return Boolean(store.tour) && store.branches.find((one) => one.current)?.name === store.tour.branch;
}

/** Return the enabled steps that a test accepts. */
export function enabled(test) {
  return (store.present?.enabled || []).filter(test);
}

/** Return virtual time as text. */
export function clock(at) {
  if (at === null || at === undefined) return "";
  return at < 10_000_000 ? `${(at / 1000).toFixed(1)} ms` : `${(at / 1_000_000).toFixed(2)} s`;
}
