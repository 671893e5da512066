// Answers by a worker of the page, in which Python runs the models: there is no server, and nothing is asked of one.

import * as recording from "./from_recording.js";
import { unpacked } from "./packed.js";

/** What of the page cannot be done here: until the worker has begun, all that its recording cannot do. */
export let { LACKS } = recording;

const waiting = new Map();
let number = 0;
let on = null;
let worker = null;
/** Whether the worker answers; until then the recording of the first tour does, so that there is something to see. */
let isUp = false;

/** Begin a worker with what `runtime.js` beside the page holds: Python, its library, and the wheels. */
async function started() {
  await new Promise((done, failed) => {
    const script = document.createElement("script");
    script.src = document.documentElement.dataset.runtime;
    script.addEventListener("load", done);
    script.addEventListener("error", () => failed(new Error(`${script.src} is missing beside this page`)));
    document.head.append(script);
  });
  const unpack = async ([name, packed]) => [name, await (await unpacked(packed)).arrayBuffer()];
  const files = Object.fromEntries(await Promise.all(Object.entries(globalThis.runtime).map(unpack)));
  delete globalThis.runtime;
  const source = document.getElementById("worker").textContent;
  const made = new Worker(`data:text/javascript;base64,${source}`, { type: "module" });
  made.addEventListener("message", ({ data }) => taken(data));
  made.addEventListener("error", (event) => console.error(`the worker failed: ${event.message}`));
  made.postMessage({ files, what: document.documentElement.dataset.what }, Object.values(files));
  return made;
}

/** Take what the worker says: an answer to a question, or news of the session. */
function taken({ to, said, event, news }) {
  if (to === undefined) {
    if (isUp) on[event](JSON.parse(news));
    return;
  }
  const { answer, error } = JSON.parse(said);
  const [done, failed] = waiting.get(to);
  waiting.delete(to);
  if (error === undefined) done(answer);
  else failed(new Error(error));
}

function ask(call, name, given) {
  number += 1;
  worker.postMessage({ to: number, call, name, given });
  return new Promise((done, failed) => waiting.set(number, [done, failed]));
}

const queryOf = (query) => Object.fromEntries(Object.entries(query || {})
  .filter(([, value]) => value !== undefined && value !== null).map(([name, value]) => [name, String(value)]));

export const get = (path, query) => (isUp ? ask("get", path, queryOf(query)) : recording.get(path, query));

export function post(verb, body) {
  if (!isUp) return recording.post(verb, body);
  return ask("post", verb, typeof body === "string" ? body : JSON.stringify(body || {}));
}

export async function getFile(address) {
  if (!isUp) return recording.getFile(address);
  const asked = new URL(address, "http://page");
  const found = await ask("file", asked.pathname.replace("/api/", ""), Object.fromEntries(asked.searchParams));
  return { name: found.name, content: new Blob([found.text]) };
}

export function listen(listener) {
  on = listener;
  if (isUp) worker.postMessage({ call: "show" });
  else recording.listen(listener);
  return { close() {}, readyState: 1 };
}

/** Let the worker answer from where the recording is by now. */
async function goOn() {
  worker = await started();
  await ask("get", "properties", {});  // it has begun
  const at = recording.leave();
  if (at) await ask("post", "forward", JSON.stringify({ to: at }));
  LACKS = [];
  isUp = true;
  worker.postMessage({ call: "show" });
  window.dispatchEvent(new Event("hashchange"));  // a link's trail can be shown now
}

goOn();
