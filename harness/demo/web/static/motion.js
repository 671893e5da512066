// Messages that move: a step that is new shows what it took coming in, and what it sent going out.

import { h, render } from "./dom.js";
import { wayOf } from "./course.js";
import { store } from "./store.js";

const MOST = 6;
const IN_MS = 620;
const OUT_MS = 420;
/** Steps a second up to which a run can be watched. */
const WATCHED = 10;
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const box = document.createElement("div");
box.id = "moving";
box.setAttribute("aria-hidden", "true");
let before = { count: 0, last: null, epoch: null };

/** Let messages move, if just one step is new and there is time to watch it. */
export function moveMessages(place, roll) {
  if (box.parentNode !== roll) roll.append(box);
  const { steps, present, session } = store;
  const was = before;
  const last = steps.at(-1) ?? null;
  before = { count: steps.length, last, epoch: session.epoch };
  if (last === was.last) return;
  render(box);
  const isNext = was.epoch === session.epoch && steps.length === was.count + 1
    && (steps.length === 1 || steps.at(-2) === was.last);
  const isFast = present.running && (!present.speed || present.speed > WATCHED);
  if (!isNext || isFast || calm.matches || !last) return;
  const taken = last.received ? [store.layout.byId.get(last.received)] : [];
  const sent = (last.sent || []).map((message) => store.layout.byId.get(message.id));
  const ways = [...taken.map((flight) => [flight, false]), ...sent.map((flight) => [flight, true])]
    .filter(([flight]) => flight && flight.row >= 0).slice(0, MOST);
  render(box, ways.map(([flight, isSent]) => h("i", { key: `${flight.message.id} ${last.n} ${isSent}`,
    class: "envelope", "data-moving": flight.message.id,
    place: { offsetPath: `path("${wayOf(place, flight, isSent)}")` } })));
  [...box.children].forEach((one, n) => {
    const isSent = ways[n][1];
    const wait = isSent && taken.length ? IN_MS : 0;
    const moved = one.animate([
      { offsetDistance: "0%", opacity: 1 }, { offsetDistance: "100%", opacity: 1, offset: 0.9 },
      { offsetDistance: "100%", opacity: 0 },
    ], { duration: isSent ? OUT_MS : IN_MS, delay: wait, easing: "ease-in-out", fill: "both" });
    // Before it leaves nothing is to be seen of it.
    if (wait) one.style.visibility = "hidden";
    setTimeout(() => {
      one.style.visibility = "";
    }, wait);
    moved.finished.then(() => one.remove(), () => {});
  });
}
