"""The statements of a version that no call has run, and those that are none."""

from __future__ import annotations

import importlib.util
import sys
import threading
from pathlib import Path
from types import ModuleType

import pytest

from tests.harness.kit import KERNELS, run_validation
from triton_magics.harness.correctness.line_record import LineRecord, codes_of
from triton_magics.model import Badge, BadgeCode, Validation

pytestmark = pytest.mark.in_turn

SOURCE = '''"""A module."""

import functools


def widths():
    return [narrow()]


def narrow():
    return 64


WIDTHS = widths()


def kernel_of(function):
    return function


@kernel_of
def kernel(x):
    return x + 1


def solve(x):
    """Compute."""
    if x < 0:
        message = "negative"
        raise ValueError(message)
    elif x > 100:
        y = large(
            x,
        )
    else:
        y = x
        for i in range(2):
            y += i
    while True:
        if y:
            break
        y = 1
    try:
        z = int(y)
    except TypeError:
        z = 0
    with functools.suppress() if x == 50 else open("/dev/null"):
        pass
    return [
        z,
        y,
    ]


def large(x):
    def inner(y):
        return y

    return inner(x)
'''


def load(folder: Path, source: str) -> tuple[ModuleType, LineRecord]:
    (path := folder / "version.py").write_text(source)
    spec = importlib.util.spec_from_file_location("version", path)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module, LineRecord(source, str(path))


def code_of(lines: tuple[int, ...]) -> list[str]:
    return [SOURCE.splitlines()[line - 1].strip() for line in lines]


LARGE = ["def inner(y):", "return y", "return inner(x)"]


def test_a_path_that_was_not_taken_is_named(tmp_path: Path) -> None:
    module, record = load(tmp_path, SOURCE)
    with record.during(module):
        module.solve(3)
    assert code_of(record.unreached_lines()) == ["y = large(", "y = 1", "z = 0", *LARGE]


def test_calls_add_up(tmp_path: Path) -> None:
    module, record = load(tmp_path, SOURCE)
    for x in (3, 101, -1):
        with record.during(module):
            try:
                module.solve(x)
            except ValueError:
                continue
    assert code_of(record.unreached_lines()) == ["y = 1", "z = 0"]


def test_what_runs_between_the_calls_does_not_count(tmp_path: Path) -> None:
    module, record = load(tmp_path, SOURCE)
    with record.during(module):
        module.solve(3)
    module.solve(101)
    assert set(LARGE) <= set(code_of(record.unreached_lines()))


def test_a_thread_of_the_version_counts(tmp_path: Path) -> None:
    module, record = load(tmp_path, SOURCE)
    with record.during(module):
        thread = threading.Thread(target=module.solve, args=(101,))
        thread.start()
        thread.join()
    assert "y = large(" not in code_of(record.unreached_lines())


def test_nothing_is_recorded_once_all_has_run(tmp_path: Path) -> None:
    module, record = load(tmp_path, "def solve(x):\n    return x\n")
    assert record.unreached_lines() == (2,)
    with record.during(module):
        module.solve(1)
    assert record.unreached_lines() == ()
    before = sys.gettrace()
    with record.during(module):
        assert sys.gettrace() is before


def test_functions_that_run_elsewhere_are_left_out(tmp_path: Path) -> None:
    source = "def allocate(n):\n    return bytearray(n)\n\n\ndef solve(x, use):\n    y: int\n"
    module, record = load(tmp_path, source + "    use(allocate)\n    return x\n")
    with record.during(module):
        module.solve(1, id)
    assert record.unreached_lines() == ()


def test_each_record_of_a_module_sees_its_lines(tmp_path: Path) -> None:
    module, first = load(tmp_path, SOURCE)
    second = LineRecord(SOURCE, str(tmp_path / "version.py"))
    for record in (first, second):
        with record.during(module):
            module.solve(3)
    assert first.unreached_lines() == second.unreached_lines()


def test_a_debugger_gets_its_trace_function_back(tmp_path: Path) -> None:
    module, record = load(tmp_path, SOURCE)
    before = sys.gettrace()

    def trace(frame: object, event: str, argument: object) -> None: ...

    sys.settrace(trace)
    try:
        with record.during(module):
            module.solve(3)
        assert sys.gettrace() is trace
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("source", ["", "x = 1", "__global__ void kernel() {}", "def f(:"])
def test_a_source_without_functions_has_no_lines(source: str) -> None:
    assert LineRecord(source, "version.py").unreached_lines() == ()


class Hostile:
    """Raises for each attribute, as `torch.classes` does for most."""

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


WRAPPED = """
import functools


def decorate(function):
    @functools.wraps(function)
    def call(*values):
        return function(*values)
    return call


@functools.lru_cache
@decorate
@decorate
def solve(x):
    def inner():
        return x
    return inner()


class Model:
    @staticmethod
    def forward(x):
        return x
"""


def test_the_code_of_decorated_functions_is_found(tmp_path: Path) -> None:
    module, _ = load(tmp_path, WRAPPED)
    module.hostile = Hostile()  # type: ignore[attr-defined]
    names = {code.co_name for code in codes_of(module, str(tmp_path / "version.py"))}
    assert names == {"decorate", "call", "solve", "inner", "forward"}


# ---------------------------------------------------------------------------- in a validation

PATH = "    BLOCK_SIZE = triton.next_power_of_2(n_cols)\n"
FAR = "    if n_rows > 10_000_000:\n        rows = rows * 2\n"
INSIDE = "    if n_cols == 10_000_001:\n        x = x * 2\n"


def validate(folder: Path, old: str, new: str, **options: object) -> Validation:
    text = (KERNELS / "softmax_right.py").read_text()
    assert text.count(old) == 1
    (path := folder / "softmax.py").write_text(text.replace(old, new))
    return run_validation(path, dtypes=("float32",), **options)


def test_a_verdict_names_the_lines_that_no_case_ran(tmp_path: Path) -> None:
    verdict = validate(tmp_path, PATH, PATH + FAR, budget_s=3.0)
    assert verdict.passed
    assert [line.code for line in verdict.unreached] == ["rows = rows * 2"]
    assert (
        Badge.of(BadgeCode.LINES_NOT_RUN, lines=(verdict.unreached[0].cell_line,)) in verdict.badges
    )
    line = verdict.unreached[0].file_line
    assert (tmp_path / "softmax.py").read_text().splitlines()[line - 1].endswith("rows = rows * 2")


def test_lines_of_kernels_are_not_seen(tmp_path: Path) -> None:
    exponent = "    numerator = tl.exp(x - tl.max(x, axis=0))\n"
    verdict = validate(tmp_path, exponent, INSIDE + exponent, budget_s=1.0)
    assert verdict.passed
    assert verdict.unreached == ()


def test_a_launch_is_not_traced(tmp_path: Path) -> None:
    module, record = load(tmp_path, SOURCE)
    with record.during(module), record.suspended():
        module.solve(3)
    assert len(record.unreached_lines()) > len(LARGE) + 3


def test_a_path_that_only_a_series_takes_has_run(tmp_path: Path) -> None:
    whole = "x.untyped_storage().nbytes() == x.numel() * x.element_size()"
    path = f"    if {whole}:\n        rows = rows * 1\n"
    assert validate(tmp_path, PATH, path + PATH, budget_s=2.0).unreached == ()


@pytest.mark.parametrize("options", [{"plan": "quick"}, {"shapes": ((4, 8),)}])
def test_a_part_of_a_plan_names_none(tmp_path: Path, options: dict[str, object]) -> None:
    assert validate(tmp_path, PATH, PATH + FAR, **options).unreached == ()
