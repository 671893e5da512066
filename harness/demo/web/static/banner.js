// What stands above the page while its server cannot be reached.

import { h, render } from "./dom.js";
import { store } from "./store.js";

const box = document.createElement("div");
box.id = "banner";
document.body.append(box);

/** Draw the banner, where there is no connection; `retry` tries to get one. */
export function drawBanner(retry) {
  if (store.connected) {
    render(box);
    return;
  }
  const said = store.ended ? "The server has ended." : "The server does not answer.";
  render(
    box,
    h("div", { class: "banner offline", role: "alert" },
      h("span", {}, said),
      h("span", {}, "This page keeps what it shows, but nothing can be done until the server runs again; "
        + "it is looked for every few seconds."),
      h("button", { type: "button", class: "small", id: "retry", onclick: retry }, "Try again")),
  );
}
