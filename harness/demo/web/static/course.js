// Where a message runs through the diagram: its leg, where it waits, and where it arrives.

import { store } from "./store.js";

let serial = 0;
const serials = new WeakMap();

/** Return a number that distinguishes one step from another one at the same place of another branch. */
export function serialOf(step) {
  if (!serials.has(step)) serials.set(step, (serial += 1));
  return serials.get(step);
}

/** Where a message leaves, where it waits, and on which side of its taker. */
export function course(place, flight) {
  const { message } = flight;
  const xs = place.x(message.from);
  const xt = place.x(message.to);
  const side = xs < xt ? -1 : 1;
  const lane = place.lane(message.to);
  const apart = Math.min(9, Math.max(5, lane / 16));
  const most = Math.max(0, Math.floor((lane / 2 - 20) / apart));
  const tx = xt + side * (15 + apart * Math.min(flight.track, most));
  const atOnce = flight.end === flight.row && flight.how === "delivered";
  return { xs, xt, tx: atOnce && xs !== xt ? xt + side * 6 : tx, side, atOnce, yl: store.layout.legY(flight),
    start: xs === xt ? xs + 4 : xs - side * 4 };
}

/** Return the way of a message as a path, as far as it has come: to its end, or out along its leg to where it waits. */
export function wayOf(place, flight, isSent) {
  const { xt, tx, side, yl, start, atOnce } = course(place, flight);
  const out = `M${start} ${yl}H${tx}`;
  if (isSent || atOnce || flight.end === Infinity) return out;
  const ye = store.layout.nodeY(flight.end);
  return `${out}V${ye}${flight.how === "delivered" ? `H${xt + side * 13}` : ""}`;
}
