// Why a step happened: the steps that led to it, from message to sender, as far back as messages go.

import { store } from "./store.js";

const WITHOUT_MESSAGE = ["command", "timer", "fault", "heal", "perturbation"];
let known = { key: null, steps: [], messages: new Set(), numbers: new Map() };

/** Return the step before this one on its lifeline. */
function before(n) {
  const { process } = store.steps[n - 1];
  for (let one = n - 1; one > 0; one -= 1) if (store.steps[one - 1].process === process) return one;
  return 0;
}

/** Return the steps that led to a step, its first cause first, and the messages between them. */
export function causesOf(n) {
  const steps = [];
  const messages = new Set();
  let at = n;
  while (at > 0 && at <= store.steps.length) {
    steps.unshift(at);
    const step = store.steps[at - 1];
    const flight = step.received ? store.layout.byId.get(step.received) : null;
    if (flight) {
      messages.add(flight.message.id);
      at = flight.row + 1;
    } else at = at === n && !WITHOUT_MESSAGE.includes(step.kind) ? before(at) : 0;
  }
  return { steps, messages };
}

/** Return the path to the violation that is shown: its steps, its messages, and the number of each step along it. */
export function pathToViolation() {
  const found = store.present?.violation;
  const end = found && store.steps[found.step - 1];
  if (!end) return NONE;
  if (known.key !== end) {
    const { steps, messages } = causesOf(found.step);
    known = { key: end, steps, messages, numbers: new Map(steps.map((n, at) => [n, at + 1])) };
  }
  return known;
}

const NONE = { key: null, steps: [], messages: new Set(), numbers: new Map() };
