"""Every result as a page: nothing is cut in a light, dark, medium and narrow window.

TRITON_MAGICS_SCREENSHOTS=docs/images writes the pictures `results-*.png`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import report_values as rv

from tests.notebook.browsers import CHROMIUM, chromium, save_shot, serious_faults
from triton_magics import rendering
from triton_magics.notebook.display import picture
from triton_magics.rendering.blocks import Changes, Details, Text
from triton_magics.verbs._phrase import as_magic

pytestmark = [pytest.mark.slow, pytest.mark.skipif(CHROMIUM is None, reason="no Chromium")]
THEMES = {"light": ("#ffffff", "#1f2328"), "dark": ("#111111", "#e6e6e6")}
WINDOWS = {
    "light": ("light", 1100), "dark": ("dark", 1100), "820": ("light", 820), "400": ("dark", 400),
}  # fmt: skip
# As JupyterLab shows an output: wide tables and code scroll, pictures shrink.
PAGE = """<!DOCTYPE html><html lang="en"><meta charset="utf-8"><title>results</title><style>
body {{ font: 13px/1.4 system-ui, sans-serif; margin: 12px; background: {0}; color: {1}; }}
section {{ overflow-x: auto; border-bottom: 1px solid #888; padding: 8px 0; }}
img {{ max-width: 100%; height: auto; }} pre {{ overflow-x: auto; font-size: 12px; }}
table {{ font-size: 12px; border-collapse: collapse; }} td, th {{ padding: 2px 6px; }}
</style><body><main><h1>Results</h1>{2}</main></body></html>"""
CUT = """() => [...document.querySelectorAll('section')].flatMap(section =>
  [...section.querySelectorAll('p, summary, li, strong, figure')]
    .filter(e => e.getClientRects().length
                 && e.getBoundingClientRect().right > section.getBoundingClientRect().right + 1)
    .map(e => `${section.id}: ${e.textContent.slice(0, 60)}`))"""
PICTURED = ["validation_wrong", "benchmark_four", "difference", "sweep", "best"]
KEEP = """names => document.querySelectorAll('section').forEach(
  section => names.includes(section.id) || section.remove())"""


def gallery() -> str:
    """Return one of each result, its picture below it."""
    parts = []
    for name, value in rv.every_value().items():
        shown = picture(value)
        image = shown["text/html"] if shown else ""
        html = rendering.bundle(value, as_magic)["text/html"]
        parts.append(f'<section id="{name}" tabindex="0">{html}{image}</section>')
    return "\n".join(parts)


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(pytest.importorskip("playwright.sync_api")) as browser:
        yield browser


@pytest.mark.parametrize("name", WINDOWS)
def test_every_result_fits_its_window(browser: Any, tmp_path: Path, name: str) -> None:
    theme, width = WINDOWS[name]
    file = tmp_path / "results.html"
    file.write_text(PAGE.format(*THEMES[theme], gallery()), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=theme)
    page.goto(file.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(CUT) == []
    assert serious_faults(page, "main") == []
    page.evaluate(KEEP, PICTURED)
    save_shot(f"results-{name}", page, full_page=True)
    page.close()


@pytest.mark.parametrize(("medium", "width"), [("screen", 1100), ("screen", 400), ("print", 794)])
def test_a_difference_in_a_row_of_folds_is_as_wide_as_the_page(
    browser: Any, tmp_path: Path, medium: str, width: int
) -> None:
    codes = ("a = 1\nb = 2\n", "a = 1\nb = 3\n")
    changes = Changes("changed lines", "v1", "v2", *codes, language="python")
    folds = (Details("code of attempt 1", (Text("a = 1"),)), Details("difference", (changes,)))
    file = tmp_path / "log.html"
    file.write_text(PAGE.format(*THEMES["light"], rendering.to_html(folds)), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.goto(file.as_uri())
    page.emulate_media(media=medium)
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    widths = [page.locator(part).bounding_box()["width"] for part in (".triton-diff", "main")]
    page.close()
    assert widths[0] > 0.9 * widths[1]
