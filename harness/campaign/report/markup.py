"""What pages are made of: escaped text, tables, sections, and the sheet that makes them readable in light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from harness.render.svg_style import scoped

STYLE = """
:root { color-scheme: light dark; --ink: #1b1f24; --quiet: #57606a; --ground: #ffffff; --band: #f3f5f7;
  --line: #c9d1d9; --bad: #b00020; --good: #116329; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6edf3; --quiet: #9aa4af; --ground: #0f141a; --band: #171d25; --line: #3d444d; --bad: #ff9aa3;
    --good: #56d37c; }
}
body { font: 15px/1.5 system-ui, 'DejaVu Sans', sans-serif; color: var(--ink); background: var(--ground);
  max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { margin-top: 2.5rem; border-bottom: 1px solid var(--line); }
h3 { margin: 1.6rem 0 0.3rem; overflow-wrap: anywhere; } p { margin: 0.4rem 0; max-width: 60rem; }
.quiet { color: var(--quiet); } .bad { color: var(--bad); font-weight: bold; } .good { color: var(--good); }
nav a { color: inherit; margin-right: 1.1rem; white-space: nowrap; }
table { border-collapse: collapse; margin: 0.6rem 0; font-size: 0.9rem; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.8rem 0.25rem 0;
  border-bottom: 1px solid var(--line); }
th { white-space: nowrap; } td.number, th.number { text-align: right; font-variant-numeric: tabular-nums;
  white-space: nowrap; }
.wide { overflow-x: auto; }
code, pre { font-family: ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace; font-size: 0.85rem; }
td code { overflow-wrap: anywhere; }
pre { background: var(--band); padding: 0.5rem 0.8rem; overflow-x: auto; margin: 0.4rem 0; }
details { margin: 0.5rem 0; } summary { cursor: pointer; }
.plot svg { max-width: 100%; height: auto; } .plot svg * { stroke-linejoin: round; stroke-linecap: butt; }
"""
PAGE = Template("""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>$style$diagrams</style>
</head>
<body>
<h1>$title</h1>
$body
</body>
</html>
""")


class Markup(str):
    """Text that is markup already, and is not escaped again."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Return a value as markup; numbers have separators, and markup stays what it is."""
    if isinstance(value, Markup):
        return value
    return Markup(escape(f"{value:,}" if isinstance(value, int) else str(value), quote=True))


def tag(name: str, value: object, css: str = "") -> Markup:
    """Return an element that holds a value."""
    return Markup(f"<{name}{f' class={chr(34)}{css}{chr(34)}' if css else ''}>{text(value)}</{name}>")


def joined(parts: Iterable[object], between: str = "\n") -> Markup:
    """Return several values as one."""
    return Markup(between.join(text(part) for part in parts))


def table(heads: Sequence[str], rows: Iterable[Sequence[object]]) -> Markup:
    """Return a table; a head that begins with `#` is that of numbers, and is shown without it."""
    css = ["number" if head.startswith("#") else "" for head in heads]
    lines = [joined((tag("th", head.removeprefix("#"), one) for head, one in zip(heads, css, strict=True)), "")]
    lines += [joined((tag("td", cell, one) for cell, one in zip(row, css, strict=True)), "") for row in rows]
    return Markup('<div class="wide"><table>\n' + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table></div>")


def section(name: str, title: str, parts: Iterable[object]) -> Markup:
    """Return a section with a heading that a link can lead to."""
    return Markup(f'<section id="{name}">\n<h2>{text(title)}</h2>\n{joined(parts)}\n</section>')


def details(title: str, *parts: object) -> Markup:
    """Return what is shown when it is asked for."""
    return Markup(f"<details><summary>{text(title)}</summary>\n{joined(parts)}\n</details>")


def page(title: str, body: Iterable[object]) -> str:
    """Return a whole page, which needs nothing from anywhere."""
    return PAGE.substitute(title=text(title), style=STYLE, diagrams=scoped(".diagram"), body=joined(body))


def percent(rate: float) -> str:
    """Return a rate in words."""
    return f"{100 * rate:.3g} %"


def interval(low: float, high: float) -> str:
    """Return an interval in words."""
    return f"{percent(low)} to {percent(high)}"
