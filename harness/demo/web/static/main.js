// Begins: listens to the server, draws what it reports, and takes the keys of the whole page.

import { lacks, listen } from "./api.js";
import { openHelp, recallTheme, takeFragment, turnTheme } from "./dialogs.js";
import { drawBanner } from "./banner.js";
import { closeMenu } from "./float.js";
import { drawPanel, show, strip } from "./panel.js";
import { openLanes } from "./heads.js";
import { drawSearch, openSearch } from "./search.js";
import { recallSplit } from "./splitter.js";
import { drawStage, goToPresent } from "./stage.js";
import { changed, onChange, onTour, store, takeChange, takeSession } from "./store.js";
import { putTipAway } from "./tips.js";
import { drawTour } from "./tour.js";
import { back, isPlaying, next, togglePlay, where } from "./tour_path.js";
import { drawTop, drawTransport, wanted } from "./transport.js";
import { forward, rewind, run, select, take, toggleRun, undo } from "./verbs.js";
import { offered } from "./view_now.js";

recallTheme();
recallSplit();

onChange(() => {
  drawBanner(begin);
  drawTop();
  drawTransport();
  drawTour();
  drawPanel();
  drawSearch();
  drawStage();
  const what = store.session?.scenario || store.session?.model || "kafka-proto";
  document.title = `${what} · step ${store.present?.step ?? 0}`;
});

const WAIT_MS = 3000;
let stream = null;
let again = 0;

function begin() {
  clearTimeout(again);
  stream?.close();
  stream = listen({
    session: takeSession,
    change: (news) => {
      if (!takeChange(news)) begin();
    },
    finding: takeFinding,
    bye: () => {
      store.connected = false;
      store.ended = true;
      changed();
      // Whoever starts the server again finds the page there.
      again = setTimeout(begin, WAIT_MS);
    },
    link: (up) => {
      if (!up && stream.readyState === EventSource.CLOSED) {
        clearTimeout(again);
        again = setTimeout(begin, WAIT_MS);
      }
      if (store.connected === up) return;
      store.connected = up;
      changed();
    },
  });
}

/** Note how far a search for a violation is; its card shows it. */
function takeFinding(news) {
  store.finding = news;
  changed();
}

takeFragment().then(begin);
window.addEventListener("pageshow", (event) => event.persisted && begin());
window.addEventListener("hashchange", takeFragment);
strip(document.getElementById("deed"), false);

/** Focus what a selector finds, as soon as it is drawn: within two seconds, however slow frames are. */
function focus(find, until = performance.now() + 2000) {
  requestAnimationFrame((now) => {
    const found = document.documentElement.dataset.drawn && document.querySelector(find);
    if (found) found.focus();
    else if (now < until) focus(find, until);
  });
}

/** Focus the first row of a list, in the view that has it. */
function goTo(view, find) {
  show(view);
  focus(find);
}

/** On the path of a tour, Space plays it; elsewhere it runs. */
function playOrRun() {
  const { captions, at } = where();
  if (isPlaying() || (onTour() && !store.present.running && at < captions.length - 1)) togglePlay();
  else toggleRun(wanted());
}

/** Do as a button at the top does, where there is one of that name. */
const press = (name) => document.getElementById(`top-${name}`)?.click();

const KEY = {
  " ": playOrRun,
  ".": () => run({ steps: 1 }),
  "[": () => store.present.step && rewind(store.present.step - 1),
  "]": () => store.ahead && forward(store.present.step + 1),
  "{": () => rewind(0),
  "}": () => store.ahead && forward(store.present.step + store.ahead),
  u: undo,
  n: next,
  N: back,
  d: () => document.getElementById("stage").focus(),
  r: () => store.selected !== null && rewind(store.selected),
  g: goToPresent,
  v: () => {
    const found = store.present.violation;
    if (!found) return;
    store.tab = "step";
    select(found.step);
  },
  m: () => goTo("now", "[data-list=messages] button:not(:disabled)"),
  e: () => goTo("now", "[data-list=enabled] [tabindex='0']"),
  H: openLanes,
  h: () => focus("#heads [tabindex='0']"),
  c: () => focus("#deed button"),
  a: () => goTo("actors", "#tab-actors"),
  T: () => store.session.has_logs && goTo("topics", "[data-list=topics] [tabindex='0']"),
  s: () => goTo("step", "#tab-step"),
  p: () => goTo("properties", "[data-list=properties] [tabindex='0']"),
  b: () => goTo("branches", "[data-list=branches] [tabindex='0']"),
  w: () => !lacks("why") && goTo("why", "[data-list=why] [tabindex='0']"),
  "/": openSearch,
  o: () => press("open"),
  f: () => press("find"),
  t: () => press("tours"),
  l: () => press("load"),
  S: () => press("save"),
  x: () => press("export"),
  k: () => press("share"),
  D: turnTheme,
  "?": openHelp,
  Escape: () => {
    if (closeMenu() || putTipAway()) return;
    store.heads = [];
    select(null);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !store.session) return;
  if (document.getElementById("dialog").open) return;
  const { target } = event;
  // A field of a dialog that was closed just now may still have the focus.
  if (target.matches("input:not([type=checkbox]), select, textarea") && !target.closest("#dialog")) {
    if (event.key === "Escape") target.blur();
    return;
  }
  // A focused button keeps its own Space and Enter.
  if (event.key === " " && target.matches("button, input")) return;
  if (/^[1-9]$/.test(event.key)) {
    const one = offered()[Number(event.key) - 1];
    if (one) take(one);
    event.preventDefault();
    return;
  }
  const act = KEY[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});
