"""A report as one self-contained HTML file: no script, and nothing from other hosts.

The file is well-formed XML, too. It looks like `kubectl tidb ui`, whose stylesheet it contains. All text is escaped.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

from cli.timeline import Timeline, as_html

_STYLESHEET = Path(__file__).parent / "tidb" / "ui" / "static" / "page.css"
_OWN = """
.drawing { display: block; width: 100%; }
main { max-width: 75rem; margin: 0 auto; }
main > section { margin-bottom: 2rem; }
"""
_ALLOWED = "default-src 'none'; style-src 'unsafe-inline'"
"""What a browser may load for the page: its own style. What a hostile text might smuggle in has no effect."""


def page(title: str, parts: Iterable[str]) -> str:
    """The file with these parts, which are HTML."""
    style = _STYLESHEET.read_text(encoding="utf-8") + _OWN
    lines = [
        "<!doctype html>",
        '<html lang="en">',
        "<head>",
        '<meta charset="utf-8"/>',
        f'<meta http-equiv="content-security-policy" content="{_ALLOWED}"/>',
        '<meta name="viewport" content="width=device-width, initial-scale=1"/>',
        '<meta name="color-scheme" content="light dark"/>',
        f"<title>{as_html(title)}</title>",
        f"<style>\n{style}</style>",
        "</head>",
        "<body>",
        "<main>",
        f"<h1>{as_html(title)}</h1>",
        *parts,
        "</main>",
        "</body>",
        "</html>",
    ]
    return "".join(f"{line}\n" for line in lines)


def section(title: str, parts: Iterable[str]) -> str:
    """Parts below a heading."""
    return "\n".join(["<section>", f"<h2>{as_html(title)}</h2>", *parts, "</section>"])


def verdict(text: str, *, is_good: bool) -> str:
    """The sentence that matters most."""
    return f'<p class="verdict {"good-edge" if is_good else "bad-edge"}">{as_html(text)}</p>'


def paragraph(text: str) -> str:
    """A paragraph."""
    return f"<p>{as_html(text)}</p>"


def warning(text: str) -> str:
    """A paragraph that stands out."""
    return f'<p class="bad">Warning: {as_html(text)}</p>'


def table(title: str, heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table below its title, or nothing without rows; on a phone it scrolls by itself."""
    bodies = [_row("td", row) for row in rows]
    if not bodies:
        return ""
    lines = [
        f"<h3>{as_html(title)}</h3>",
        f'<div class="wide" role="region" aria-label="{as_html(title)}" tabindex="0">',
        "<table>",
        f"<thead>{_row('th', heads)}</thead>",
        "<tbody>",
        *bodies,
        "</tbody>",
        "</table>",
        "</div>",
    ]
    return "\n".join(lines)


def listing(title: str, items: Iterable[str]) -> str:
    """A list below its title, or nothing without items."""
    shown = [f"<li>{as_html(item)}</li>" for item in items]
    return "\n".join([f"<h3>{as_html(title)}</h3>", "<ul>", *shown, "</ul>"]) if shown else ""


def _row(cell: str, texts: Iterable[str]) -> str:
    return f"<tr>{''.join(f'<{cell}>{as_html(text)}</{cell}>' for text in texts)}</tr>"


def timeline(drawn: Timeline, name: str) -> str:
    """A timeline below its title, or nothing without bars."""
    return f"<h3>Timeline</h3>\n{drawn.drawing(name)}" if drawn else ""
