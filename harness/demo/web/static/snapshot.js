// The diagram as a file: the lifelines that are shown, in their order, the steps that are seen, in the page's colours.

import { render, s, zoomOf } from "./dom.js";
import { picture } from "./diagram.js";
import { seen } from "./stage.js";
import { store } from "./store.js";

const SVG = "http://www.w3.org/2000/svg";
const HEAD = 46;
const FOOT = 30;
/** What of an element's style goes into the file, and what need not be said. */
const STYLE = { fill: "rgb(0, 0, 0)", stroke: "none", "stroke-width": "1px", "stroke-dasharray": "none",
  "stroke-linecap": "butt", "stroke-linejoin": "miter", opacity: "1", "paint-order": "normal" };
const LETTERS = ["font-family", "font-size", "font-weight"];
const UNSEEN = ".touch, .nothing, .ground, .pill";

/** Return the diagram as the text of an SVG file: what is on the screen, or the whole run. */
export function diagramFile(whole) {
  const { place, first, last, atEnd } = seen(whole);
  const layout = store.layout;
  const top = layout.length ? layout.tops[first] : 0;
  const tall = (layout.length ? layout.tops[last + 1] : 0) - top + (atEnd ? 22 : 0);
  const high = HEAD + tall + (atEnd ? FOOT : 0);
  const size = { width: place.wide, height: high, viewBox: `0 0 ${place.wide} ${high}` };
  const drawn = document.createElement("div");
  drawn.className = "apart";
  document.body.append(drawn);
  render(
    drawn,
    s("svg", { ...size, class: "run" },
      s("title", {}, document.title),
      s("rect", { width: place.wide, height: high, class: "paper" }),
      s("g", { transform: `translate(0 ${HEAD - top})` }, layout.length > 0 && picture(place, first, last).children),
      atEnd && present(place, HEAD + tall)),
  );
  const made = drawn.firstChild;
  made.append(...[...document.querySelectorAll("#heads .lane-head")].flatMap(head));
  const file = made.cloneNode(true);
  dress(made, file);
  drawn.remove();
  for (const node of file.querySelectorAll("[data-gone]")) node.remove();
  file.setAttribute("xmlns", SVG);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${new XMLSerializer().serializeToString(file)}\n`;
}

function present(place, y) {
  const words = document.querySelector("#present .now-label").textContent;
  return s("g", { class: "now" }, s("rect", { y, width: place.wide, height: FOOT, class: "now-ground" }),
    s("path", { d: `M0 ${y}H${place.wide}`, class: "now-rule" }), s("text", { x: 12, y: y + 19 }, words));
}

/** Return a head as the page has it: its frame and its name. */
function head(button) {
  const [box, at] = [button.parentNode, button].map((one) => inPixels(one));
  const look = getComputedStyle(button);
  const frame = document.createElementNS(SVG, "rect");
  const dash = { dashed: "4 3", dotted: "1.5 2.5" }[look.borderStyle];
  attributes(frame, { x: at.left - box.left, y: at.top - box.top, width: at.width, height: at.height,
    rx: Math.min(at.height / 2, parseFloat(look.borderRadius) || 0) });
  frame.style.cssText = `fill:${look.backgroundColor};stroke:${look.borderColor};stroke-width:1.5px;${
    dash ? `stroke-dasharray:${dash}` : ""}`;
  const name = document.createElementNS(SVG, "text");
  attributes(name, { x: (at.left + at.right) / 2 - box.left, y: (at.top + at.bottom) / 2 - box.top + 4.5,
    "text-anchor": "middle", "data-head": button.dataset.lane ?? "" });
  name.style.cssText = `fill:${look.color};font-weight:${look.fontWeight};font-size:${look.fontSize}`;
  name.textContent = button.textContent;
  return [frame, name];
}

/** Return where an element is, in pixels of the diagram. */
function inPixels(node) {
  const zoom = zoomOf(node.closest("#heads"));
  const { left, top, right, bottom, width, height } = node.getBoundingClientRect();
  return { left: left / zoom, top: top / zoom, right: right / zoom, bottom: bottom / zoom, width: width / zoom,
    height: height / zoom };
}

function attributes(node, named) {
  for (const [name, value] of Object.entries(named)) {
    node.setAttribute(name, typeof value === "number" ? Number(value.toFixed(1)) : value);
  }
}

/** Give each element of the file the style that it has on the page, since a file has no style sheet. */
function dress(node, file) {
  if (node.matches(UNSEEN)) file.setAttribute("data-gone", "");
  else if (!["g", "svg", "title"].includes(node.localName)) {
    const look = getComputedStyle(node);
    for (const [name, plain] of Object.entries(STYLE)) {
      const value = look.getPropertyValue(name);
      if (value !== plain && !(name !== "stroke" && name.startsWith("stroke") && look.stroke === "none")) {
        file.setAttribute(name, value);
      }
    }
    if (["text", "tspan"].includes(node.localName)) {
      for (const name of LETTERS) file.setAttribute(name, look.getPropertyValue(name));
    }
  }
  file.removeAttribute("class");
  file.removeAttribute("style");
  [...node.children].forEach((child, n) => dress(child, file.children[n]));
}
