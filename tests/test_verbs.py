"""A verb is one module: everything that the front ends offer is derived from its request."""

from __future__ import annotations

import inspect
import json
import pkgutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

import triton_magics
from tests.fake_executor import FakeExecutor
from triton_magics import cli, verbs
from triton_magics.errors import BadValue, UnknownName, UserError
from triton_magics.lab import Lab
from triton_magics.next_step import NextStep
from triton_magics.notebook import tracebacks
from triton_magics.rendering.views import VIEWS
from triton_magics.session.notes import Note
from triton_magics.verbs._arguments import Parser
from triton_magics.verbs._base import Verb, args_of
from triton_magics.verbs._phrase import as_command, as_magic, as_python

TOY = '''"""Count the attempts at a version."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from triton_magics.model import Reference
from triton_magics.session import Session
from triton_magics.verbs._base import Request, Verb, option
from triton_magics.verbs._fields import Op


class TallyRequest(Request):
    """Which op."""

    op: Op
    at_most: Annotated[int, Field(ge=1, le=9), option("the most to count: 9", metavar="N")] = 9


def run(session: Session, request: TallyRequest) -> Reference:
    """Count the versions of an op."""
    n = min(request.at_most, len(session.workspace.versions(session.canonical(request.op))))
    return session.finish(Reference(query="tally", title="Tally", markdown=f"{n} versions"))


VERB = Verb(
    name="tally",
    request=TallyRequest,
    run=run,
    help="Counts the versions of an op.",
    example="%triton_tally softmax",
    rank=500,
)
'''
MODULES = """
import contextlib, io, sys
import triton_magics.verbs
triton_magics.verbs.__path__.append(sys.argv[1])
import triton_magics as tm
from triton_magics import cli, errors
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell

shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "triton_magics")
print(shell.run_line_magic("triton_tally", "softmax").markdown)
print(shell.find_line_magic("triton_tally").__doc__.splitlines()[0])
with provisionalcompleter():
    print([c.text for c in shell.Completer.completions("%triton_tally --at", 18)])
print(tm.tally("softmax", at_most=3).markdown, "tally" in dir(tm))
try:
    tm.tally("softmax", at_most=10)
except errors.UserError as error:
    print(error)
print(cli.main(["tally", "softmax"]))
with contextlib.suppress(SystemExit):
    cli.main(["--help"])
"""


def test_a_new_verb_is_one_module(tmp_path: Path) -> None:
    (tmp_path / "verbs").mkdir()
    (tmp_path / "verbs" / "tally.py").write_text(TOY)
    command = [sys.executable, "-c", MODULES, str(tmp_path / "verbs")]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    lines = ran.stdout.splitlines()
    assert lines[:5] == [
        "0 versions",
        "Counts the versions of an op.",
        "['--at-most']",
        "0 versions True",
        "at_most=10: write a whole number from 1 to 9",
    ]
    assert "tally" in ran.stdout.partition("usage: triton-magics")[2]


@pytest.mark.parametrize("verb", verbs.every(), ids=lambda verb: verb.name)
def test_every_parameter_reaches_every_front_end(verb: Verb) -> None:
    fields = verb.request.model_fields
    method = verbs.method_name(verb.name)
    assert list(inspect.signature(getattr(Lab, method)).parameters)[1:] == list(
        verb.signature.parameters
    )
    assert set(verb.signature.parameters) == set(fields)
    assert list(inspect.signature(getattr(triton_magics, method)).parameters) == list(
        verb.signature.parameters
    )
    schema = verb.request.model_json_schema()["properties"]
    for name, field in fields.items():
        assert schema[name]["description"]
        on_a_line = [arg for arg in args_of(field) if arg.kind in ("place", "option")]
        destinations = [a.options.get("dest", a.flags[0]) for a in verb.arguments]
        assert destinations.count(name) == len(on_a_line)


@pytest.mark.parametrize("verb", verbs.every(), ids=lambda verb: verb.name)
def test_every_result_can_be_shown(verb: Verb) -> None:
    shown = verb.page or verb.run
    result = get_type_hints(shown)["return"]
    missing = [kind.__name__ for kind in get_args(result) or [result] if kind not in VIEWS]
    assert missing == [], "add a view to VIEWS in rendering/views, or give the verb a page"


def test_names_are_read_without_importing_a_verb() -> None:
    code = (
        "import sys, triton_magics.verbs as v; v.names(); v.cell_names()\n"
        "print([m for m in sys.modules if m.startswith(('triton_magics.verbs.', 'pydantic'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "[]\n"


def test_cell_verbs_are_known_without_an_import() -> None:
    assert verbs.cell_names() == tuple(sorted(v.name for v in verbs.every() if v.takes_cell))


def test_no_module_of_the_package_hides_a_verb() -> None:
    modules = {module.name for module in pkgutil.iter_modules(triton_magics.__path__)}
    assert not modules & {*verbs.names(), *verbs.OLD_NAMES}


@pytest.mark.parametrize("name", [*map(verbs.method_name, verbs.names()), *verbs.OLD_NAMES])
def test_every_verb_is_a_function_and_a_lab_method(name: str) -> None:
    assert callable(getattr(triton_magics, name))
    assert callable(getattr(Lab, name))


def test_a_refused_call_lists_every_fault_and_records_nothing(tmp_path: Path) -> None:
    wrong: Any = "7 by 13"
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        with pytest.raises(UserError) as refused:
            lab.validate("softmax", "v1", shapes=[wrong], seed=-1, rtol=wrong)
        for fault in (
            "shapes[0]='7 by 13': write a shape such as '257x1023' or [257, 1023]",
            "seed=-1: write a whole number from 0 to 9007199254740991",
            "rtol='7 by 13': write a number from 0 to below 1",
        ):
            assert fault in str(refused.value)
        with pytest.raises(BadValue, match=r"shapes\[0\]='7 by 13'"):
            lab.op("softmax", shapes=[wrong])
        assert lab.events("softmax") == ()


@pytest.mark.parametrize(
    ("name", "values", "words"),
    [
        ("validate", {"op": "softmax"}, "version is missing"),
        ("validate", {"op": "softmax", "version": "v1", "dtype": "x"}, "Did you mean 'dtypes'?"),
        ("bench", {"op": "softmax", "timer": "gate"}, "Did you mean 'gated'?"),
        ("bench", {"op": "softmax", "sizes": "small"}, "sizes='small': write a list or a tuple"),
        ("bench", {"op": "softmax", "runs": 2.5}, "runs=2.5: write a whole number from 1"),
        ("doctor", {"repair": "yes"}, "repair='yes': write True or False"),
    ],
)
def test_a_request_from_outside_is_refused_in_words(
    name: str, values: dict[str, object], words: str
) -> None:
    with pytest.raises(UserError) as refused:
        verbs.load(name).request.checked(values)
    assert words in str(refused.value)


def test_the_callers_settings_stay_as_they_are(tmp_path: Path) -> None:
    from triton_magics.config import Settings

    settings = Settings(strict=False)
    with Lab(tmp_path, engine=FakeExecutor(), settings=settings, strict=True) as lab:
        assert settings.strict is False
        assert lab.session.is_strict


def test_each_reader_of_the_notes_has_its_own_place(tmp_path: Path) -> None:
    with Lab(tmp_path, engine=FakeExecutor()) as lab:
        first, second = lab.note_reader(), lab.note_reader()
        one, two = Note("one"), Note("two", NextStep("op", {"op": "softmax"}))
        lab.session.notes.add("one")
        assert first.new() == (one,)
        lab.session.notes.add("two", next_step=two.next_step)
        assert (first.new(), first.new(), second.new()) == ((two,), (), (one, two))
        assert lab.notes() == lab.notes() == ("one", "two Next: tm.op('softmax')")


STEP = NextStep(
    "validate", {"op": "softmax", "version": "v3", "dtypes": ("float16",), "shapes": ((2, 3),)}
)


@pytest.mark.parametrize(
    ("step", "magic", "command", "call"),
    [
        (
            STEP,
            "%triton_validate softmax v3 --dtype float16 --shape 2x3",
            "triton-magics validate softmax v3 --dtype float16 --shape 2x3",
            "tm.validate('softmax', 'v3', dtypes=('float16',), shapes=((2, 3),))",
        ),
        (
            NextStep("kernel", {"op": "softmax", "version": "v2"}),
            "%%triton_kernel softmax v2",
            "triton-magics kernel softmax v2 FILE",
            "tm.kernel('softmax', 'v2')",
        ),
        (
            NextStep("bench", {"op": "softmax", "versions": ("v1", "v2"), "hot": True}),
            "%triton_bench softmax v1 v2 --hot",
            "triton-magics bench softmax v1 v2 --hot",
            "tm.bench('softmax', 'v1', 'v2', hot=True)",
        ),
        (
            NextStep("sweep", {"op": "softmax", "version": "v1", "knobs": {"num_warps": (4, 8)}}),
            "%triton_sweep softmax v1 num_warps=4,8",
            "triton-magics sweep softmax v1 num_warps=4,8",
            "tm.sweep('softmax', 'v1', {'num_warps': (4, 8)})",
        ),
        (
            NextStep("best", {"op": "softmax", "version": "v1", "why": "it is short"}),
            "%triton_best softmax v1 --why 'it is short'",
            "triton-magics best softmax v1 --why 'it is short'",
            "tm.best('softmax', 'v1', why='it is short')",
        ),
    ],
    ids=lambda value: value.verb if isinstance(value, NextStep) else "",
)
def test_each_front_end_writes_a_next_step_in_its_own_form(
    step: NextStep, magic: str, command: str, call: str
) -> None:
    assert (as_magic(step), as_command(step), as_python(step)) == (magic, command, call)


def test_a_next_step_has_the_form_of_each_front_end(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Lab(tmp_path, engine=FakeExecutor()) as lab, pytest.raises(BadValue) as refused:
        lab.status(reset=True)
    assert refused.value.__notes__ == ["Next: tm.status('softmax', reset=True)"]
    shown = tracebacks.explain_error(refused.value)._render_traceback_()
    assert shown[-1].endswith("Next: %triton_status softmax --reset")
    where = ("--workspace", str(tmp_path))
    assert cli.main(["status", "--reset", *where]) == 2
    assert capsys.readouterr().err.endswith("Next: triton-magics status softmax --reset\n")
    assert cli.main(["status", "--reset", "--json", *where]) == 2
    step = {"verb": "status", "arguments": {"op": "softmax", "reset": True}}
    assert json.loads(capsys.readouterr().out)["next_step"] == step


def test_a_line_of_a_next_step_gives_the_request_again() -> None:
    verb = verbs.load("validate")
    words = as_magic(STEP).removeprefix("%triton_validate ")
    line = Parser(verb.sign, verb.arguments).parse_line(words)
    assert verb.read(line) == verb.request.checked({**STEP.arguments})


def test_a_setting_given_twice_is_refused_with_a_suggestion() -> None:
    verb = verbs.load("sweep")
    words = "softmax v1 num_warps=4 BLOCK_SIZE=256 num_warps=8,16"
    line = Parser(verb.sign, verb.arguments).parse_line(words)
    with pytest.raises(BadValue, match="num_warps is named twice: write num_warps=4,8,16$"):
        verb.read(line)


def test_error_of_an_unknown_verb_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="Did you mean 'bench'"):
        verbs.load("benhc")


def test_the_help_of_an_option_names_each_of_its_choices() -> None:
    for verb in verbs.every():
        for each in verb.arguments:
            for choice in each.options.get("choices", ()):
                assert choice in each.options["help"], (verb.name, each.flags)
