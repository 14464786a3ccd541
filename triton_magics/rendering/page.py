"""The development log as one HTML file: opens offline, in a light or a dark window, prints well."""

from __future__ import annotations

import html
import re

from triton_magics.rendering.log_document import LogInput, log_document
from triton_magics.rendering.log_phases import title
from triton_magics.rendering.render import to_html
from triton_magics.rendering.render_html import NARROW_DIFF

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.55 system-ui, sans-serif; margin: 0; background: Canvas; color: CanvasText; }
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { line-height: 1.2; margin: 0 0 1rem; }
h2 { margin: 2.5rem 0 0.75rem; padding-bottom: 0.25rem; border-bottom: 1px solid GrayText; }
h3 { margin: 2rem 0 0.5rem; }
pre, code { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: 0.86em; }
pre { overflow-x: auto; padding: 0.75rem 1rem; border: 1px solid GrayText; border-radius: 6px; }
pre { line-height: 1.35; }
pre code { font-size: inherit; }
.wide { overflow-x: auto; margin: 0.5rem 0 1rem; }
table { border-collapse: collapse; }
caption { text-align: left; padding: 0.35rem 0; font-style: italic; }
th, td { padding: 0.25rem 0.8rem 0.25rem 0; border-bottom: 1px solid GrayText; }
th, td { vertical-align: top; font-variant-numeric: tabular-nums; }
th[scope="row"] { font-weight: normal; white-space: nowrap; }
figure { margin: 1rem 0; }
img { max-width: 100%; height: auto; background: white; border-radius: 6px; }
details { margin: 0.5rem 0; }
summary { cursor: pointer; }
nav ul { columns: 16rem; padding-left: 1.25rem; }
@media print {
  details::details-content { content-visibility: visible; display: block; }
  pre { white-space: pre-wrap; }
  pre, tr, figure { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
}
"""


def html_log(log: LogInput) -> str:
    """Return the log as a self-contained HTML page that loads no other file."""
    body, contents = _with_anchors(to_html(log_document(log)))
    body = body.replace(f"<style>{NARROW_DIFF}</style>", "")
    body = body.replace("</h1>", f"</h1>\n{contents}", 1)
    body = body.replace("<table>", '<div class="wide"><table>')
    body = body.replace("</table>", "</table></div>")
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{html.escape(title(log))}</title>
<style>{_STYLE}{NARROW_DIFF}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""


def _with_anchors(body: str) -> tuple[str, str]:
    """Return the page with an anchor at each heading of levels 2 and 3, and its contents list."""
    items: list[str] = []

    def add(match: re.Match[str]) -> str:
        anchor = f"section-{len(items) + 1}"
        items.append(f'<li><a href="#{anchor}">{match[2]}</a></li>')
        return f'<h{match[1]} id="{anchor}">{match[2]}</h{match[1]}>'

    anchored = re.sub(r"<h([23])>(.*?)</h\1>", add, body)
    items_text = "\n".join(items)
    return anchored, f'<nav aria-label="contents">\n<ul>\n{items_text}\n</ul>\n</nav>'
