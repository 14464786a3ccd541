"""The log as a page of HTML."""

import re
from itertools import pairwise

import report_values as rv
from test_rendering_formats import Tags

from triton_magics.rendering import html_log


def test_page_is_complete_and_loads_nothing() -> None:
    html = html_log(rv.log_input(2))
    body = html[html.index("<body>") : html.index("</body>") + len("</body>")]
    tags = Tags(body)
    assert html.startswith('<!DOCTYPE html>\n<html lang="en">')
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert not {"script", "style", "link", "iframe"} & set(tags.tags)
    assert "<title>torch.softmax Triton Kernel development log</title>" in html
    assert tags.tags.count("table") == body.count("<caption>")
    assert re.search(r'<img alt="softmax v1: 1.16x[^"]*" src="data:image/png;base64,', body)


def test_page_headings_skip_no_level() -> None:
    levels = [int(n) for n in re.findall(r"<h(\d)[ >]", html_log(rv.log_input(3)))]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(b <= a + 1 for a, b in pairwise(levels))


def test_page_escapes_user_text() -> None:
    facts = rv.FACTS.evolve(description="<script>x</script>", formula="a < b")
    html = html_log(rv.log_input(1, facts=facts))
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "a &lt; b" in html


def test_the_contents_list_names_every_heading_and_links_to_it() -> None:
    html = html_log(rv.log_input(3))
    headings = re.findall(r'<h[23] id="([\w-]+)">(.*?)</h', html)
    contents = re.findall(r'<li><a href="#([\w-]+)">(.*?)</a></li>', html)
    assert contents == headings
    assert "Phase 2: kernels" in [text for _, text in contents]
    assert len({anchor for anchor, _ in headings}) == len(headings) > 8


def test_the_difference_from_the_previous_version_is_shown() -> None:
    html = html_log(rv.log_input(2))
    assert "<summary>difference from v1</summary>" in html
    assert 'background-color: #d2f8da; color: #1f2328">+ ' in html
