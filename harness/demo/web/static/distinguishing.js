// Which fields distinguish messages of one type. Knows no page.

const LONG = 34;
/** So many messages with the same fields, as to many followers at once, are looked past. */
const FAR = 16;
const wordings = new WeakMap();

function wording(message) {
  if (!wordings.has(message)) wordings.set(message, JSON.stringify(message.fields || {}));
  return wordings.get(message);
}

/** Return a field of a message as text. */
const valueOf = (message, name) => message.fields?.[name] ?? "none";

/**
 * Return the fields in which a message differs from others, as `name=value`: those first that have the fewest values,
 * since a number that differs in every message says least. A long value begins where it differs.
 */
export function apart(message, others, commonness) {
  const names = new Set(Object.keys(message.fields || {}));
  for (const other of others) for (const name of Object.keys(other.fields || {})) names.add(name);
  const found = [];
  for (const name of names) {
    const value = valueOf(message, name);
    const rest = others.map((other) => valueOf(other, name)).filter((other) => other !== value);
    if (!rest.length) continue;
    found.push({ name, text: `${name}=${cut(value, rest)}`, values: commonness?.(name) ?? new Set(rest).size });
  }
  return found.sort((a, b) => a.values - b.values);
}

/** Return a value, or of a long one the part where it begins to differ from others. */
function cut(value, others) {
  if (value.length <= LONG) return value;
  let from = 0;
  for (const other of others) {
    let same = 0;
    while (same < value.length && value[same] === other[same]) same += 1;
    from = Math.max(from, same);
  }
  from = Math.max(0, Math.min(from - 8, value.length - LONG));
  const part = value.slice(from, from + LONG);
  return `${from ? "…" : ""}${part}${from + LONG < value.length ? "…" : ""}`;
}

/** The messages of a run by type, in the order in which they were sent, and how many values each field has. */
export class Kinds {
  constructor() {
    this.byType = new Map();
  }

  add(message) {
    if (!this.byType.has(message.type)) this.byType.set(message.type, { sent: [], at: new Map(), values: new Map() });
    const kind = this.byType.get(message.type);
    kind.at.set(message.id, kind.sent.length);
    kind.sent.push(message);
    for (const [name, value] of Object.entries(message.fields || {})) {
      if (!kind.values.has(name)) kind.values.set(name, new Map());
      const counts = kind.values.get(name);
      counts.set(value, (counts.get(value) || 0) + 1);
    }
  }

  /** Take back the message that was added last of its type. */
  drop(message) {
    const kind = this.byType.get(message.type);
    kind.sent.pop();
    kind.at.delete(message.id);
    for (const [name, value] of Object.entries(message.fields || {})) {
      const counts = kind.values.get(name);
      if (counts.get(value) === 1) counts.delete(value);
      else counts.set(value, counts.get(value) - 1);
    }
  }

  /** Return the next message of a type, forwards or backwards, whose fields are other ones. */
  other(kind, at, by) {
    const own = wording(kind.sent[at]);
    for (let n = at + by; kind.sent[n] && Math.abs(n - at) <= FAR; n += by) {
      if (wording(kind.sent[n]) !== own) return kind.sent[n];
    }
    return null;
  }

  /** Return what distinguishes a message from those of its type that were sent before it and after it. */
  apart(message) {
    const kind = this.byType.get(message.type);
    const at = kind?.at.get(message.id);
    if (at === undefined) return [];
    const others = [-1, 1].map((by) => this.other(kind, at, by)).filter(Boolean);
    return apart(message, others, (name) => kind.values.get(name)?.size ?? 0).map((one) => one.text);
  }
}
