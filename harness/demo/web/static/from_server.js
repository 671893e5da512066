// Answers by the demo's server: its verbs, and the stream in which it reports the changes of the session.

/** What of the page cannot be done here: nothing. */
export const LACKS = [];

/** Ask for something. Throws an Error with the server's one sentence. */
export async function get(path, query) {
  const given = Object.entries(query || {}).filter(([, value]) => value !== undefined && value !== null);
  const tail = given.length ? `?${new URLSearchParams(given)}` : "";
  return answerOf(await reach(`/api/${path}${tail}`));
}

/** Do something to the session; what comes of it arrives by the stream. Throws an Error as `get` does. */
export async function post(verb, body) {
  const isText = typeof body === "string";
  return answerOf(
    await reach(`/api/${verb}`, {
      method: "POST",
      headers: { "Content-Type": isText ? "text/plain" : "application/json" },
      body: isText ? body : JSON.stringify(body || {}),
    }),
  );
}

/** Fetch a file: its name and its content. Throws as `get` does. */
export async function getFile(address) {
  const response = await reach(address);
  if (!response.ok) await answerOf(response);
  const name = /filename="([^"]+)"/.exec(response.headers.get("Content-Disposition") || "")?.[1];
  return { name: name || "download", content: await response.blob() };
}

/** Fetch, or throw an Error that says that nobody answers. */
async function reach(address, how) {
  try {
    return await fetch(address, how);
  } catch {
    throw new Error("The server does not answer, so nothing was done; is it still running?");
  }
}

async function answerOf(response) {
  const text = await response.text();
  let data = null;
  try {
    data = JSON.parse(text);
  } catch {
    data = response.ok ? { text } : null;
  }
  if (!response.ok) throw new Error(data?.error || `The server answered ${response.status}.`);
  return data;
}

/** Listen to the session: `on` has the functions `session`, `change`, `finding`, `bye` and `link` (is it up?). */
export function listen(on) {
  const stream = new EventSource("/api/events");
  stream.addEventListener("session", (event) => on.session(JSON.parse(event.data)));
  stream.addEventListener("change", (event) => on.change(JSON.parse(event.data)));
  stream.addEventListener("finding", (event) => on.finding(JSON.parse(event.data)));
  stream.addEventListener("bye", () => {
    stream.close();
    on.bye();
  });
  stream.addEventListener("open", () => on.link(true));
  stream.addEventListener("error", () => on.link(false));
  window.addEventListener("pagehide", () => stream.close());
  return stream;
}
