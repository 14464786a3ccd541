"""The neutral document and its three faces."""

import re
from html import unescape
from html.parser import HTMLParser

import pytest

from triton_magics.rendering.blocks import (
    Code,
    Details,
    Figure,
    Heading,
    Items,
    Line,
    Markdown,
    Table,
    Text,
    clean,
    code,
)
from triton_magics.rendering.markdown_parser import parse
from triton_magics.rendering.numbers import (
    count_text,
    duration_text,
    exact_text,
    join_with_and,
    list_text,
    number_text,
    percent_text,
    rate_text,
    ratio_text,
    share_text,
    time_text,
)
from triton_magics.rendering.render import to_html, to_markdown, to_text
from triton_magics.rendering.render_markdown import escape

TABLE = Table("times", ("Kernel", "small", "note"), (("v1", "1.9 us", "a|b"),), "lrl")


class Tags(HTMLParser):
    """Collects tags, attributes and text, and checks that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.open: list[str] = []
        self.attributes: set[str] = set()
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


@pytest.mark.parametrize(
    ("time_us", "text"),
    [
        (0.54, "0.54 us"),
        (1.9, "1.9 us"),
        (55.1, "55.1 us"),
        (312.4, "312 us"),
        (999.7, "1.00 ms"),
        (2680, "2.68 ms"),
        (199_400, "199 ms"),
        (4.1e6, "4.1 s"),
        (None, "—"),
        (float("nan"), "nan us"),
    ],
)
def test_time_text_has_a_fitting_unit(time_us: float | None, text: str) -> None:
    assert time_text(time_us) == text


def test_numbers_have_few_digits() -> None:
    assert [ratio_text(r) for r in (1.631, 12.34, 140.2, None)] == ["1.63x", "12.3x", "140x", "—"]
    assert [share_text(s) for s in (0.41, 0.999, 1.5, 31.2, 1e-5)] == [
        "0.4", "1", "1.5", "31", "0.001 or less",
    ]  # fmt: skip
    assert [percent_text(p) for p in (97.2, 99.8, 100.0, 0.4)] == [
        "97 %",
        "99.8 %",
        "100 %",
        "0.4 %",
    ]
    assert [rate_text(r) for r in (4051.2, 312.4, 8.34)] == ["4.05 TB/s", "312 GB/s", "8.34 GB/s"]
    assert [duration_text(s) for s in (0.03, 0.31, 24.2, 312)] == [
        "30 ms", "0.3 s", "24 s", "5 min 12 s",
    ]  # fmt: skip
    assert number_text(1e-5) == "1e-5"
    assert number_text(1.5e12) == "1.5e12"
    assert exact_text(0.000871) == "0.000871"
    assert exact_text(float("-inf")) == "-inf"
    assert share_text(float("nan")) == "nan"
    assert count_text(262911, "element") == "262,911 elements"
    assert list_text(["a", "b", "c"], most=2) == "a, b and 1 more"
    assert join_with_and(["a", "b", "c"]) == "a, b and c"


def test_text_aligns_columns_without_markup() -> None:
    assert to_text((TABLE,)) == (
        "times\n"
        "Kernel   small  note\n"
        "────────────────────\n"
        "v1      1.9 us  a|b"
    )  # fmt: skip


def test_text_wraps_sentences_and_cells_but_not_code() -> None:
    long = "word " * 40
    wide = Table("", ("a", "b"), (("x", long), ("y", "z")), "ll")
    text = to_text((Line(long), wide, Code("x" * 150)), 60)
    lines = text.splitlines()
    assert max(len(line) for line in lines if "xxx" not in line) <= 60
    assert "    " + "x" * 150 in lines


def test_text_folds_long_details() -> None:
    document = (Line("said"), Details("cases", (TABLE,)), Details("tips", (Text("x"),)))
    assert to_text(document, fold_over=0) == "said\n· folded: cases (4 lines), tips (2 lines)"
    assert to_text(document, fold_over=3) == "said\n· folded: cases (4 lines)\ntips:\n  x"
    assert "cases (times):\n  Kernel" in to_text(document)


def test_verdict_has_sign_and_word_in_every_format() -> None:
    line = (Line("softmax v1: 2 of 14", "bad", "WRONG"),)
    assert to_text(line) == "✗ WRONG  softmax v1: 2 of 14"
    assert to_markdown(line) == "**✗ WRONG** softmax v1: 2 of 14"
    assert ">✗ WRONG</strong> softmax v1: 2 of 14" in to_html(line)


def test_consecutive_lines_stay_separate_in_markdown() -> None:
    assert to_markdown((Line("a"), Line("b"), Text("c"))) == "a  \nb\n\nc"


HOSTILE = [
    "<script>alert(1)</script> & <b>bold</b> &lt;",
    "2*n*m and __init__ and *x*",
    "kernel[grid](x) and ![a](b)",
    "$x$ and ~~gone~~ and a\\*b",
    "# no heading",
    "- no item",
    "1. no list",
    "a lone ` backtick",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_markdown_shows_a_message_unchanged(text: str) -> None:
    markdown_it = pytest.importorskip("markdown_it")
    html = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(
        to_markdown((Text(text),))
    )  # fmt: skip
    parsed = Tags(html)
    assert parsed.tags == ["p"]
    shown = re.sub(r"<[^>]+>", "", html).strip()
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        shown = shown.replace(entity, character)
    assert shown == text


def test_markdown_escapes_dollar_signs() -> None:
    assert to_markdown((Text("$a$ costs $5"),)) == "\\$a\\$ costs \\$5"


def test_pipe_does_not_split_a_markdown_cell() -> None:
    assert "| v1 | 1.9 us | a\\|b |" in to_markdown((TABLE,))


def test_fence_is_longer_than_any_in_its_code() -> None:
    assert to_markdown((Code("```\nx\n```"),)) == "````python\n```\nx\n```\n````"


@pytest.mark.parametrize("text", HOSTILE)
def test_html_escapes_everything(text: str) -> None:
    document = (
        Line(text, "bad", text),
        Heading(text),
        Text(text),
        Items((text,)),
        Table(text, (text, "b"), ((text, text),)),
        Code(text),
        Figure(b"png", text + '" onerror="x'),
        Details(text, (Text(text),)),
    )
    tags = Tags(to_html(document))
    assert not {"script", "style", "b", "em"} & set(tags.tags)
    assert tags.attributes <= {"class", "scope", "style", "alt", "src", "tabindex"}


def test_html_tables_have_a_caption_and_scopes() -> None:
    html = to_html((TABLE,))
    assert "<caption>times</caption>" in html
    assert html.count('<th scope="col"') == 3
    assert html.count('<th scope="row"') == 1


def test_html_has_no_css_variable() -> None:
    html = to_html((TABLE, Line("x", "bad"), Code("y", "text")))
    assert not re.search(r"color|var\(|#[0-9a-f]{3,6}", html)


def test_python_code_is_highlighted_with_inline_colours() -> None:
    html = to_html((Code('def f(x):\n    return "<b>"  # why'),))
    assert 'color: #B31D28">def</span>' in html
    assert "&lt;b&gt;" in html
    assert "class=" not in html.removeprefix('<div class="triton-magics">')
    text = re.sub(r"<[^>]+>", "", html)
    assert unescape(text).strip() == 'def f(x):\n    return "<b>"  # why'


def test_picture_is_described_where_it_cannot_be_shown() -> None:
    figure = (Figure(b"x", "v2 is faster", "softmax_speedup.png"),)
    assert to_text(figure) == "[picture: v2 is faster]"
    assert to_markdown(figure) == "Picture: v2 is faster"
    assert to_markdown(figure, pictures=True) == "![v2 is faster](softmax_speedup.png)"
    assert '<img alt="v2 is faster" src="data:image/png;base64,eA==">' in to_html(figure)


def test_terminal_escapes_are_removed() -> None:
    assert clean("\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07x") == "red x"
    for render in (to_text, to_markdown, to_html):
        assert "\x1b" not in render((Code("\x1b[2Jgone"), Line("\x1b[2Jgone")))


def test_backtick_inside_code_becomes_a_quote() -> None:
    assert code("a `b`") == "`a 'b'`"


def test_table_with_wrong_row_length_is_an_error() -> None:
    with pytest.raises(ValueError, match="2 columns"):
        Table("t", ("a", "b"), (("1",),))
    with pytest.raises(ValueError, match="2 columns"):
        Table("t", ("a", "b"), (("1", "2"),), "l")


def test_markdown_is_parsed_into_blocks() -> None:
    text = (
        "# Title\n\nSome *em* and **strong** `x*y*z`\nwith [a link](http://x.y).\n\n"
        "1. one\n2. two\n   goes on\n\n| a | b |\n|:--|--:|\n| 1 | `x\\|y` |\n\n~~~py\ncode\n~~~\n"
    )
    assert parse(text) == (
        Heading("Title", 1),
        Text("Some em and strong `x*y*z` with a link (http://x.y)."),
        Items(("one", "two goes on"), ordered=True),
        Table("", ("a", "b"), (("1", "`x|y`"),), "lr"),
        Code("code", "py"),
    )


@pytest.mark.parametrize("text", ["", "```\nnever closed", "| a |\n", "- ", "#", "***", "> q"])
def test_odd_markdown_is_parsed_without_an_error(text: str) -> None:
    assert to_text((Markdown(text),)).count("\n") <= 2


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<script>alert(1)</script>", "\\<script>alert(1)\\</script>"),
        ("a <img src=x onerror=a()>", "a \\<img src=x onerror=a()>"),
        ("<!-- hides the rest", "\\<!-- hides the rest"),
        ("[x](JavaScript:a())", "[x\\](JavaScript:a())"),
        ("a ``` <b> no fence", "a ``` \\<b> no fence"),
        ("``a <b> `", "``a \\<b> `"),
        ("`\n\n<b>\n\n`", "`\n\n\\<b>\n\n`"),
        ("```html\n<b>\n```\n<b>", "```html\n<b>\n```\n\\<b>"),
        ("code `x<b>` and `` <i>` ``", "code `x<b>` and `` <i>` ``"),
        ("1 < 2, <https://x.y>, [a](https://x.y)", "1 < 2, <https://x.y>, [a](https://x.y)"),
    ],
)
def test_a_note_is_markdown_without_html(text: str, written: str) -> None:
    assert to_markdown((Markdown(text),)) == written


def test_an_escaped_text_is_read_as_it_was() -> None:
    written = "<b> *a* _b_ $x$ ~y~ [a](b) &amp;"
    assert parse(escape(written)) == (Text(written),)


def test_parser_preserves_underscores_in_names() -> None:
    assert parse("x_ptr + row_stride and 2*n*m")[0] == Text("x_ptr + row_stride and 2*n*m")
