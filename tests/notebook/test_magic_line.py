"""Comments and variables in the lines of magics, and every line that the documents print."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from IPython.core.error import UsageError

from tests.fake_executor import FakeExecutor
from tests.notebook.shells import KERNEL, Shell
from triton_magics import verbs
from triton_magics.config import check_setting
from triton_magics.lab import Lab
from triton_magics.model import RunResult
from triton_magics.notebook.magic_line import MagicLine, cut_comment, expand_variables
from triton_magics.notebook.magics import PANEL, form_of

ROOT = Path(__file__).parents[2]
PAGES = ("README.md", "docs/tutorial.md")


@pytest.mark.parametrize(
    ("line", "code"),
    [
        ("softmax  # the operation", "softmax  "),
        ("softmax v1 # don't", "softmax v1 "),
        ("# all of it", ""),
        ("softmax v1:2#x", "softmax v1:2#x"),
        ("softmax '# no comment'  # one", "softmax '# no comment'  "),
        ('v1 --technique "step # 2" # one', 'v1 --technique "step # 2" '),
        (r'v1 --technique "a \" # 2" # one', r'v1 --technique "a \" # 2" '),
        (r"softmax \# one", r"softmax \# one"),
        ("it's # open", "it's # open"),
    ],
)
def test_comment_ends_a_line_outside_quotes(line: str, code: str) -> None:
    assert cut_comment(line) == code


def test_semicolon_before_a_comment_hides_the_value() -> None:
    assert MagicLine.parse(" softmax;  # quiet", is_cell=False) == ("softmax", True)
    assert MagicLine.parse(" softmax v1;", is_cell=True) == ("softmax v1;", False)


VARIABLES = {"v": "v1", "n": 3, "words": "two rows", "quote": 'a "b" \\', "path": ROOT}


@pytest.mark.parametrize(
    ("line", "expanded"),
    [
        ("softmax {v}", "softmax v1"),
        ("softmax $v --runs $n", "softmax v1 --runs 3"),
        ("--shape {n * 2}x{n}", "--shape 6x3"),
        ("{v.upper()} $path.name", f"V1 {ROOT.name}"),
        ("--technique {words}", "--technique 'two rows'"),
        ("--technique 'as {v} $v'", "--technique 'as {v} $v'"),
        ('--technique "as {v} $v {w} $w {}"', '--technique "as v1 v1 {w} $w {}"'),
        ('--technique "{quote}"', '--technique "a \\"b\\" \\\\"'),
        ("$$v costs $5 {} {1, 2}", "'$v' costs $5 {} {1, 2}"),
        (r"\{v}", r"\{v}"),
    ],
)
def test_variables_are_expanded_as_one_word(line: str, expanded: str) -> None:
    assert expand_variables(line, VARIABLES) == expanded


@pytest.mark.parametrize(
    ("word", "reason"), [("{w}", "name 'w' is not defined"), ("{v + n}", "TypeError")]
)
def test_unknown_variable_is_a_usage_error(word: str, reason: str) -> None:
    with pytest.raises(UsageError, match=re.escape(word)) as error:
        expand_variables(f"softmax {word}", VARIABLES)
    assert reason in str(error.value)


def test_magics_accept_a_comment(shell: Shell) -> None:
    assert shell("%triton_op softmax   # its bounds, techniques that fit").error is None
    cell = shell(f"%%triton_kernel softmax v1  # the cell becomes a file\n{KERNEL}")
    assert cell.error is None
    assert shell("x = %triton_run softmax v1  # don't").error is None
    assert isinstance(shell.shell.user_ns["x"], RunResult)


def test_comment_does_not_ask_for_help(shell: Shell) -> None:
    assert shell("%triton_op softmax  # see --help").value is not None


def test_magic_in_a_loop_expands_its_variable(shell: Shell, engine: FakeExecutor) -> None:
    shell.write("v1")
    shell.write("v2")
    shell("for v, n in {'v1': 3, 'v2': 4}.items():\n    %triton_run softmax {v} --seed $n")
    assert [job.seed for job in engine.jobs[-2:]] == [3, 4]


def test_magic_in_a_function_expands_its_local_variable(shell: Shell, engine: FakeExecutor) -> None:
    shell.write("v1")
    code = "def run(number):\n    %triton_run softmax v1 --seed {number}\nrun(7)"
    assert shell(code).error is None
    assert engine.jobs[-1].seed == 7


def test_cell_magic_expands_its_first_line_only(shell: Shell, lab: Lab) -> None:
    shell("v = 'v1'")
    body = KERNEL.replace("{}", "{v} $v")
    assert shell(f"%%triton_kernel softmax {{v}} --no-compile\n{body}").error is None
    assert lab.source("softmax", "v1").source == body


# ------------------------------------------------------------------------------ documents


def printed_lines() -> list[str]:
    """Return every line with a magic of ours in the code of the documents and of the help."""
    lines = [line for page in PAGES for line in _code(ROOT / page)]
    lines += [line for name in (*verbs.names(), PANEL) for line in _example(name)]
    magic = re.compile(r"(?:In \[\d+\]: )?(?:\w+ = )?(%%?triton_.*|%config TritonMagics\..*)")
    matches = (magic.match(line.strip()) for line in lines)
    return [match[1] for match in matches if match]


def _code(page: Path) -> list[str]:
    """Return the indented and fenced lines, and the spans of code, of a page."""
    text = page.read_text(encoding="utf-8")
    spans = [" ".join(span.split()) for span in re.findall(r"(?<!`)`([^`]+)`(?!`)", text)]
    return [*text.splitlines(), *(span for span in spans if " " in span)]


def _example(name: str) -> list[str]:
    return form_of(name).verb.example.splitlines()


@pytest.mark.parametrize("line", printed_lines())
def test_printed_line_parses(line: str) -> None:
    if line.startswith("%config"):
        name, _, value = line.removeprefix("%config TritonMagics.").partition(" = ")
        assert not value or check_setting(name, eval(value), line) is not None
        return
    sign, _, arguments = line.partition(" ")
    form = form_of(sign.lstrip("%").removeprefix("triton_"))
    assert form.parser.parse_line(MagicLine.parse(arguments, is_cell="%%" in sign).text)


def test_documents_print_many_lines() -> None:
    assert len(printed_lines()) > 60
