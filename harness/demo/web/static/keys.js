// Everything by keyboard: one table, which the help shows too.

export const KEYS = [
  {
    title: "Run",
    keys: [
      ["Space", "run or pause; on a tour, play it"],
      [".", "one step, chosen by the strategy"],
      ["[ ]", "rewind or forward one step"],
      ["{ }", "to the start, to the end of the branch"],
      ["U", "undo"],
      ["N Shift+N", "next caption of a tour, or back"],
    ],
  },
  {
    title: "Look",
    keys: [
      ["D", "the diagram: ↑ ↓ step, ← → lifeline"],
      ["Enter", "in the diagram: rewind to the step"],
      ["R", "rewind to the step that is looked at"],
      ["G", "go to the present"],
      ["V", "go to the violation"],
      ["/", "search in the steps: Enter next, Shift+Enter back"],
      ["Shift+H", "lifelines: show, hide, order"],
      ["Esc", "close, let go"],
    ],
  },
  {
    title: "Do",
    keys: [
      ["M", "messages in flight: ↑ ↓ message, ← → deed"],
      ["E", "enabled steps"],
      ["1 … 9", "take the enabled step of that number"],
      ["H", "lifeline heads: Enter chooses, two can be parted"],
      ["Shift+← →", "on a head: move the lifeline; Delete hides it"],
      ["C", "what can be done to those chosen"],
    ],
  },
  {
    title: "Views and files",
    keys: [
      ["A S P B W", "actors, step, properties, branches, why not"],
      ["Shift+T", "topics: ← → record, ↑ ↓ line"],
      ["O T F", "open, tours, find a violation"],
      ["L Shift+S", "load, save a trail"],
      ["X K", "export, link"],
      ["Shift+D", "light or dark theme"],
      ["?", "this help"],
    ],
  },
];
