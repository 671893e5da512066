// A small virtual tree: describe with h(), bring the page up to it with render(). Text always becomes a text node.

const SVG = "http://www.w3.org/2000/svg";

/**
 * Describe an element. `key` finds it again among its siblings; an equal `memo` means that nothing changed in it. Where
 * its only child is a function, that describes the children, and is called only if the memo is another one.
 */
export function h(tag, props, ...children) {
  if (typeof children[0] === "function") return { tag, props: props || {}, children: [], later: children[0] };
  const kept = [];
  flatten(children, kept);
  return { tag, props: props || {}, children: kept };
}

/** Describe an SVG element. */
export function s(tag, props, ...children) {
  const made = h(tag, props, ...children);
  made.svg = true;
  return made;
}

function flatten(children, into) {
  for (const child of children) {
    if (Array.isArray(child)) flatten(child, into);
    else if (child !== null && child !== undefined && child !== false && child !== "") {
      into.push(typeof child === "object" ? child : { text: String(child), props: {} });
    }
  }
}

/**
 * Make the children of a node those that are described, keeping nodes (and so focus) where key and tag agree. One that
 * was moved keeps the focus; where the focused one is gone, its list, or else its toolbar, gets it.
 */
export function render(parent, ...described) {
  const wanted = [];
  flatten(described, wanted);
  const focused = parent.contains(document.activeElement) ? document.activeElement : null;
  const list = focused?.closest("[data-list]")?.dataset.list;
  children(parent, wanted);
  if (!focused || parent.contains(document.activeElement)) return;
  const kept = parent.contains(focused) ? focused : null;
  const next = kept || (list && parent.querySelector(`[data-list=${list}] [tabindex='0']`));
  (next || parent.querySelector("button:not(:disabled):not([tabindex='-1'])"))?.focus({ preventScroll: true });
}

function children(parent, wanted) {
  const old = parent.described || [];
  const keyed = new Map();
  const loose = [];
  for (const one of old) {
    if (one.props.key !== undefined) keyed.set(one.props.key, one);
    else loose.push(one);
  }
  let next = 0;
  const kept = new Set();
  for (const one of wanted) {
    let from;
    if (one.props.key !== undefined) from = keyed.get(one.props.key);
    else {
      while (next < loose.length && !alike(loose[next], one)) next += 1;
      from = loose[next];
      next += 1;
    }
    if (from && alike(from, one)) {
      one.node = from.node;
      kept.add(from);
      update(from, one);
    } else one.node = create(one);
  }
  for (const one of old) if (!kept.has(one)) one.node.remove();
  let place = parent.firstChild;
  for (const one of wanted) {
    if (one.node === place) place = place.nextSibling;
    else parent.insertBefore(one.node, place);
  }
  parent.described = wanted;
}

/** Return the children of what is described, which may have been left for later. */
function inside(one) {
  if (one.later) {
    flatten([one.later()], one.children);
    one.later = null;
  }
  return one.children;
}

function alike(a, b) {
  return a.tag === b.tag && (a.text === undefined) === (b.text === undefined);
}

function create(one) {
  if (one.text !== undefined) return document.createTextNode(one.text);
  const node = one.svg ? document.createElementNS(SVG, one.tag) : document.createElement(one.tag);
  one.node = node;
  // Options come before the value of their select.
  children(node, inside(one));
  for (const [name, value] of Object.entries(one.props)) set(node, name, value, undefined);
  return node;
}

function update(from, one) {
  if (one.text !== undefined) {
    if (from.text !== one.text) one.node.data = one.text;
    return;
  }
  if (one.props.memo !== undefined && one.props.memo === from.props.memo) {
    one.props = from.props;
    one.children = from.children;
    one.later = null;
    return;
  }
  children(one.node, inside(one));
  for (const name of Object.keys(from.props)) {
    if (!(name in one.props)) set(one.node, name, undefined, from.props[name]);
  }
  for (const [name, value] of Object.entries(one.props)) set(one.node, name, value, from.props[name]);
}

function set(node, name, value, before) {
  if (name === "key" || name === "memo") return;
  if (name === "value" || name === "checked") {
    // What a person is typing stays; what the session says wins only where it has changed.
    if (value !== before && node[name] !== value) node[name] = value ?? "";
    return;
  }
  if (value === before) return;
  if (name === "place") {
    for (const [property, at] of Object.entries(value || {})) {
      if (before?.[property] !== at) node.style[property] = at;
    }
  } else if (name.startsWith("on")) node[name] = value || null;
  else if (value === undefined || value === null || value === false) node.removeAttribute(name);
  else node.setAttribute(name, value === true ? "" : String(value));
}

const pen = document.createElement("canvas").getContext("2d");
const widths = new Map();

/** Return how wide a text is in a font, in pixels. */
export function width(text, font) {
  const key = `${font}|${text}`;
  let found = widths.get(key);
  if (found === undefined) {
    if (pen.font !== font) pen.font = font;
    found = pen.measureText(text).width;
    if (widths.size > 20000) widths.clear();
    widths.set(key, found);
  }
  return found;
}

/** Return the text, or as much of it as fits into so many pixels, with an ellipsis. */
export function fit(text, room, font) {
  if (width(text, font) <= room) return text;
  let low = 0;
  let high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (width(`${text.slice(0, middle)}…`, font) <= room) low = middle;
    else high = middle - 1;
  }
  return low > 1 ? `${text.slice(0, low).trimEnd()}…` : low === 1 ? text.slice(0, 1) : "";
}

/** Return how many pixels of the window a pixel of an element's content is. */
export const zoomOf = (node) => Number(getComputedStyle(node).zoom) || 1;

/** Keep an event from everybody else, the browser included. */
export function swallow(event) {
  event.preventDefault();
  event.stopPropagation();
}
