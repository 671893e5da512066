// The worker of a page without a server: runs Python with the models in it, and passes questions and news on.

let session = null;
let timer = 0;
const early = [];

self.addEventListener("message", ({ data }) => {
  if (data.files) begin(data);
  else if (session) take(data);
  else early.push(data);
});

/** Start Python, unpack the wheels, and show something. */
async function begin({ files, what }) {
  const address = (name, type) => URL.createObjectURL(new Blob([files[name]], { type }));
  const script = "text/javascript";
  const [{ loadPyodide }, made] = await Promise.all([
    import(address("pyodide.mjs", script)), import(address("pyodide.asm.mjs", script)),
  ]);
  const beyond = self.fetch;
  self.fetch = (asked, how) => (String(asked).endsWith("pyodide.asm.wasm")
    ? Promise.resolve(new Response(files["pyodide.asm.wasm"], { headers: { "Content-Type": "application/wasm" } }))
    : beyond(asked, how));
  const python = await loadPyodide({
    indexURL: "packed:///", createPyodideModule: made.default,
    stdLibURL: address("python_stdlib.zip", "application/zip"),
    lockFileContents: new TextDecoder().decode(files["pyodide-lock.json"]),
  });
  for (const name of Object.keys(files).filter((one) => one.endsWith(".whl"))) {
    python.unpackArchive(files[name], "wheel");
  }
  const answers = python.pyimport("harness.demo.web.in_worker");
  session = answers.begin(what, (event, news) => self.postMessage({ event, news }));
  early.splice(0).forEach(take);
  tick();
}

/** Answer the page. */
function take({ to, call, name, given }) {
  if (call === "show") session.show();
  else if (call === "post") self.postMessage({ to, said: session.post(name, given) });
  else self.postMessage({ to, said: session[call](name, JSON.stringify(given)) });
  tick();
}

/** Let the session go on by itself, as long as it has something to do. */
function tick() {
  clearTimeout(timer);
  const wait = session.tick();
  if (wait >= 0) timer = setTimeout(tick, wait * 1000);
}
