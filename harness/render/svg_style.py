"""The style sheet of the SVG form: light by default, dark where the reader prefers it, dashes and shapes in both."""

from __future__ import annotations

import re

STYLE = """
text { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; fill: #1b1f24; font-size: 11px; }
.title { font-size: 14px; font-weight: bold; }
.heading { font-size: 13px; font-weight: bold; text-anchor: middle; }
.label { font-size: 10px; }
.number { font-size: 10px; font-weight: bold; text-anchor: middle; }
.quiet { fill: #57606a; }
.bold { font-weight: bold; }
.page { fill: #ffffff; }
.band { fill: #f3f5f7; }
.box { fill: #ffffff; stroke: #57606a; stroke-width: 1.5; }
.life { stroke: #8c959f; stroke-width: 1.5; fill: none; }
.paused { stroke-dasharray: 2 5; }
.node { fill: #ffffff; stroke: #1b1f24; stroke-width: 1.5; }
.fault { fill: #ffe3d1; stroke: #b34000; stroke-width: 2.5; }
.heal { fill: #ddf4e4; stroke: #116329; stroke-width: 2; }
.perturbation { fill: #fff3c4; stroke: #7d5a00; stroke-width: 2; }
.timer { stroke-dasharray: 3 2; }
.inner { fill: none; stroke: #1b1f24; stroke-width: 1; }
.flight { fill: none; stroke: #0b5cad; stroke-width: 1.4; }
.reliable { stroke-dasharray: 9 3; }
.held { stroke-dasharray: 2 3; }
.head { fill: #0b5cad; stroke: none; }
.open { fill: #ffffff; stroke: #0b5cad; stroke-width: 1.4; }
.gone { fill: none; stroke: #b34000; stroke-width: 1.4; }
.cross { fill: none; stroke: #b34000; stroke-width: 2.2; }
.bad { fill: #ffe0e0; stroke: #b00020; stroke-width: 2; }
.ground { fill: #ffe0e0; }
.why { fill: #b00020; font-weight: bold; }
.rule { stroke: #57606a; stroke-width: 1.5; stroke-dasharray: 10 4; fill: none; }
@media (prefers-color-scheme: dark) {
  text { fill: #e6edf3; }
  .quiet { fill: #9aa4af; }
  .page, .box, .node { fill: #0f141a; }
  .band { fill: #171d25; }
  .box { stroke: #9aa4af; }
  .life { stroke: #6e7781; }
  .node, .inner { stroke: #e6edf3; }
  .inner { fill: none; }
  .fault { fill: #5a2a10; stroke: #ff9b61; }
  .heal { fill: #12381f; stroke: #56d37c; }
  .perturbation { fill: #453600; stroke: #e8c04a; }
  .flight { stroke: #6cb2ff; }
  .head { fill: #6cb2ff; }
  .open { fill: #0f141a; stroke: #6cb2ff; }
  .gone, .cross { stroke: #ff9b61; }
  .bad { fill: #4a1219; stroke: #ff7b86; }
  .ground { fill: #4a1219; }
  .why { fill: #ff9aa3; }
  .rule { stroke: #9aa4af; }
}
"""


def scoped(within: str) -> str:
    """Return the style sheet for diagrams inside a page: each rule is for what lies within a selector."""
    def scope(match: re.Match[str]) -> str:
        return match.group(1) + ", ".join(f"{within} {one.strip()}" for one in match.group(2).split(",")) + " {"

    return re.sub(r"(?m)^( *)([^@{}\n]+?) \{", scope, STYLE)
