// Who answers the page: the server that it came from, a recording in the page itself, or a worker that runs the models.

const SOURCES = {
  server: () => import("./from_server.js"),
  recording: () => import("./from_recording.js"),
  worker: () => import("./from_worker.js"),
};
const source = await SOURCES[document.documentElement.dataset.answers || "server"]();

/** Ask for something. Throws an Error with one sentence. */
export const { get } = source;

/** Do something to the session; its outcome arrives by `listen`. Throws an Error as `get` does. */
export const { post } = source;

/** Fetch a file: its name and its content. Throws as `get` does. */
export const { getFile } = source;

/** Listen to the session: `on` has the functions `session`, `change`, `finding`, `bye` and `link` (is it up?). */
export const { listen } = source;

/** Is this a page on which that cannot be done: a verb, a view, or a form of export? */
export const lacks = (what) => source.LACKS.includes(what);
