"""Scripts that a test runs in the page."""

from __future__ import annotations

OVERLAPS = """
() => {
  const clip = document.querySelector('#stage').getBoundingClientRect();
  const top = document.querySelector('#heads').getBoundingClientRect().bottom;
  const boxes = [];
  const add = (node, low, box) => {
    if (box.width && box.top >= low && box.bottom <= clip.bottom) boxes.push([node.textContent.trim(), box]);
  };
  const bare = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return range.getBoundingClientRect();
  };
  for (const node of document.querySelectorAll('#canvas text')) add(node, top, node.getBoundingClientRect());
  for (const node of document.querySelectorAll('#present .chip, #present .now-label, #present .now-note'))
    add(node, top, node.getBoundingClientRect());
  for (const node of document.querySelectorAll('#heads .lane-head')) add(node, clip.top, node.getBoundingClientRect());
  const found = [];
  for (let i = 0; i < boxes.length; i += 1) for (let k = i + 1; k < boxes.length; k += 1) {
    const [a, b] = [boxes[i][1], boxes[k][1]];
    const wide = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const tall = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (wide > 1 && tall > 3) found.push(`${boxes[i][0]} / ${boxes[k][0]} by ${wide.toFixed(0)}x${tall.toFixed(0)}`);
    }
  for (const [text, box] of boxes)
    if (box.right > clip.right + 1 || box.left < clip.left) found.push(`${text} leaves the diagram`);
  return { count: boxes.length, found };
}
"""
