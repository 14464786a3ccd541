"""A type checker and an editor know the calls and results of the package."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import triton_magics
from triton_magics import verbs

PROGRAM = """import triton_magics as tm
from triton_magics.model import Benchmark

reveal_type(tm.validate("softmax", "v1"))
reveal_type(tm.validate("softmax", "all"))
tm.validate("softmax", "v1", nonsense=3)
tm.nothing()
lab = tm.Lab("x")
timed = lab.bench("softmax", "v1")  # with `again` another value
assert isinstance(timed, Benchmark)
reveal_type(timed.speedup("v1"))
lab.validat("softmax", "v1")
lab.bench("softmax", timer="graphh")
"""
EXPECTED = {
    4: 'Revealed type is "triton_magics.model.validation.Validation"',
    5: 'Revealed type is "triton_magics.model.validation.Validations"',
    6: "No overload variant",
    7: 'Module has no attribute "nothing"',
    11: 'Revealed type is "float | None"',
    12: '"Lab" has no attribute "validat"',
    13: "expected \"Literal['gated', 'graph', 'launch']\"",
}


def test_the_package_is_marked_as_typed() -> None:
    assert (Path(triton_magics.__file__).parent / "py.typed").is_file()


@pytest.mark.slow
def test_mypy_finds_wrong_calls_and_knows_results(tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--no-color-output", "user.py"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    messages: dict[int, str] = {}
    for line, message in re.findall(r"^user\.py:(\d+): (.*)$", ran.stdout, re.MULTILINE):
        messages[int(line)] = messages.get(int(line), "") + message
    assert set(messages) == set(EXPECTED)
    for line, text in EXPECTED.items():
        assert text in messages[line]


def test_an_editor_completes_names_and_shows_parameters() -> None:
    jedi = pytest.importorskip("jedi")  # of IPython; also of Jupyter's language server

    def complete(program: str) -> set[str]:
        lines = program.splitlines()
        return {c.name for c in jedi.Script(program).complete(len(lines), len(lines[-1]))}

    head = "import triton_magics as tm\n"
    assert {verbs.method_name(name) for name in verbs.names()} | {"Lab", "show"} <= complete(
        f"{head}tm."
    )
    assert {"validate", "validation"} <= complete(f"{head}lab = tm.Lab('x')\nlab.va")
    program = f"{head}tm.bench("
    (signature,) = jedi.Script(program).get_signatures(2, len("tm.bench("))
    assert [p.name for p in signature.params][:3] == ["op", "versions", "sizes"]
