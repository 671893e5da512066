// Where everything stands: heights of rows, and the life of each message from its leg to its end. Knows no page.

import { Kinds } from "./distinguishing.js";

export const ROW = 24;
export const LEG = 17;
export const BANNER = 22;
/** Each further line of a banner. */
export const LINE = 15;
const SECOND = 14;

/** The fate of one message: who sent it at which row, on which track it waits, how it ends. Rows count from 0. */
class Flight {
  constructor(message, row, leg) {
    this.message = message;
    this.row = row;
    this.leg = leg;
    this.end = Infinity;
    this.how = "under way";
    this.track = 0;
    /** The row in which a later message of its type, on the same way, arrived before it; or null. */
    this.overtaken = null;
    /** Spans [from, to) of rows in which it is held. */
    this.holds = [];
  }
}

/** Rows and flights of a run; `follow` brings them up to the steps, as of the first that changed. */
export class Layout {
  constructor() {
    this.tops = [0];
    this.flights = [];
    this.byId = new Map();
    this.taken = new Map();
    /** The flights that have not ended. */
    this.open = new Set();
    this.fresh = [];
    /** Are minor steps and messages shown, too? */
    this.whole = false;
    /** Do steps tell what they show? Then what they changed has a line, too. */
    this.told = false;
    /** For each row that is folded away with others the first row of those; null for the others. */
    this.folds = [];
    /** For each row how many lines the sentence of each property that begins to fail takes. */
    this.lines = [];
    this.linesOf = () => 1;
    this.spreadFor = null;
    this.length = 0;
    this.kinds = new Kinds();
    /** Where there are no messages, each row has a second line that says what it changed. */
    this.wordy = false;
    /** For each property the spans [from, to] of steps after which it fails. */
    this.spans = new Map();
    /** For each action the first step that took it. */
    this.actions = new Map();
  }

  get height() {
    return this.tops[this.length];
  }

  /** Take in the messages that are under way before the first step. */
  start(messages) {
    for (const message of messages || []) this.send(message, -1, 0);
  }

  follow(steps, keep) {
    if (keep < this.length) this.cut(keep);
    for (let row = this.length; row < steps.length; row += 1) this.add(steps[row], row, steps[row - 1]);
    this.length = steps.length;
  }

  /** Forget the rows from `keep` on. */
  cut(keep) {
    this.tops.length = keep + 1;
    this.fresh.length = keep;
    this.folds.length = keep;
    this.lines.length = keep;
    this.length = keep;
    this.taken.clear();
    this.open.clear();
    const kept = [];
    for (let n = this.flights.length - 1; n >= 0 && this.flights[n].row >= keep; n -= 1) {
      this.byId.delete(this.flights[n].message.id);
      this.kinds.drop(this.flights[n].message);
    }
    for (const flight of this.flights) {
      if (flight.row >= keep) continue;
      if (flight.end >= keep) {
        flight.end = Infinity;
        flight.how = "under way";
        this.occupy(flight);
        this.open.add(flight);
      }
      if (flight.overtaken >= keep) flight.overtaken = null;
      flight.holds = flight.holds.filter((span) => span[0] < keep);
      for (const span of flight.holds) if (span[1] >= keep) span[1] = Infinity;
      kept.push(flight);
    }
    this.flights = kept;
    for (const spans of this.spans.values()) {
      while (spans.length && spans.at(-1)[0] > keep) spans.pop();
      if (spans.length) spans.at(-1)[1] = Math.min(spans.at(-1)[1], keep);
    }
    for (const [name, first] of this.actions) if (first > keep) this.actions.delete(name);
  }

  add(step, row, before) {
    const sent = (step.sent || []).filter((message) => this.whole || !message.minor);
    sent.forEach((message, leg) => this.send(message, row, leg));
    const elsewhere = (step.taken || []).some((one) => one.id === step.received);
    if (step.received && !elsewhere) this.finish(step.received, row, "delivered");
    for (const { id, how } of step.taken || []) {
      const flight = this.byId.get(id);
      if (!flight) continue;
      if (how === "held") flight.holds.push([row, Infinity]);
      else if (how === "released") {
        const span = flight.holds.at(-1);
        if (span) span[1] = row;
      } else this.finish(id, row, how);
    }
    if (!this.actions.has(step.action)) this.actions.set(step.action, step.n);
    for (const name in step.failing) {
      if (!this.spans.has(name)) this.spans.set(name, []);
      const spans = this.spans.get(name);
      if (spans.at(-1)?.[1] === step.n - 1) spans.at(-1)[1] = step.n;
      else spans.push([step.n, step.n]);
    }
    const known = before?.failing || {};
    const fresh = Object.keys(step.failing || {}).filter((name) => !(name in known));
    this.fresh.push(fresh);
    this.lines.push(fresh.map((name) => this.linesOf(step, name)));
    const isFolded = step.minor && !this.whole && !fresh.length;
    this.folds.push(isFolded ? this.folds[row - 1] ?? row : null);
    const goesOn = isFolded && this.folds[row] !== row;
    const words = (this.wordy || this.told) && step.changed?.length ? SECOND : 0;
    this.tops.push(this.tops[row] + (goesOn ? 0 : ROW + Math.max(words, LEG * sent.length) + this.bannersOf(row)));
  }

  /** Return how high the sentences at the end of a row are. */
  bannersOf(row) {
    return this.lines[row].reduce((sum, count) => sum + BANNER + LINE * (count - 1), 0);
  }

  /** Give the sentences of properties that fail as many lines as they take in another width. */
  spread(key, linesOf, steps) {
    if (key === this.spreadFor) return;
    this.spreadFor = key;
    this.linesOf = linesOf;
    let shift = 0;
    for (let row = 0; row < this.length; row += 1) {
      if (this.fresh[row].length) {
        const before = this.bannersOf(row);
        this.lines[row] = this.fresh[row].map((name) => linesOf(steps[row], name));
        shift += this.bannersOf(row) - before;
      }
      this.tops[row + 1] += shift;
    }
  }

  send(message, row, leg) {
    const flight = new Flight(message, row, leg);
    this.flights.push(flight);
    this.byId.set(message.id, flight);
    this.kinds.add(message);
    this.open.add(flight);
    flight.track = this.free(flight);
    this.occupy(flight);
  }

  finish(id, row, how) {
    const flight = this.byId.get(id);
    if (!flight || flight.end !== Infinity) return;
    flight.end = row;
    flight.how = how;
    this.open.delete(flight);
    if (how === "delivered") this.overtake(flight, row);
    const span = flight.holds.at(-1);
    if (span && span[1] === Infinity) span[1] = row;
    this.taken.get(flight.message.to)?.delete(flight.track);
  }

  /** Note whom a message that arrives has overtaken. */
  overtake({ message, row: sent }, row) {
    for (const one of this.open) {
      const other = one.message;
      if (one.row < sent && one.overtaken === null && other.type === message.type && other.from === message.from
        && other.to === message.to) one.overtaken = row;
    }
  }

  free(flight) {
    const used = this.taken.get(flight.message.to);
    let track = 0;
    while (used?.has(track)) track += 1;
    return track;
  }

  occupy(flight) {
    if (!this.taken.has(flight.message.to)) this.taken.set(flight.message.to, new Set());
    this.taken.get(flight.message.to).add(flight.track);
  }

  /** Return the row at a height: the last one that begins above it. */
  rowAt(y) {
    let low = 0;
    let high = Math.max(0, this.length - 1);
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle] <= y) low = middle;
      else high = middle - 1;
    }
    return low;
  }

  /** Return the height at which a row's step stands. */
  nodeY(row) {
    return this.tops[row] + ROW / 2;
  }

  /** Return the height of the leg of a flight. */
  legY(flight) {
    if (flight.row < 0) return -6;
    return this.tops[flight.row] + ROW + LEG * (flight.leg + 0.5) + 1;
  }

  /** Is a row a later one of those that are folded away together? */
  isAway(row) {
    return this.folds[row] !== null && this.folds[row] !== undefined && this.folds[row] !== row;
  }

  /** Is a message received in the row that sent it? */
  static isAtOnce(flight) {
    return flight.end === flight.row && flight.how === "delivered";
  }

  /** Return the flights that are drawn somewhere in rows [first, last]. */
  within(first, last) {
    return this.flights.filter((flight) => flight.row <= last && flight.end >= first);
  }
}
