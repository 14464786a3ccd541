"""Drafts of problems: read as text, never run; their dimensions; what is refused."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from triton_magics.errors import BadKernelSource, BadName, BadValue
from triton_magics.problems import read_problem
from triton_magics.problems.kernelbench import find_dims

MODEL = """
class Model: ...
{numbers}
def get_inputs():
    {inputs}
def get_init_inputs():
    return [channels]
"""


def dims(numbers: str, inputs: str) -> dict[str, int]:
    return find_dims(ast.parse(MODEL.format(numbers=numbers, inputs=inputs)))


def test_dims_are_the_numbers_that_only_get_inputs_reads():
    numbers = "batch = 4\nchannels = 3\nwidth = 2 * 8\nname = 'x'\nflag = True"
    assert dims(numbers, "return [rand(batch, channels, width, flag, 7)]") == {
        "batch": 4,
        "width": 16,
    }


@pytest.mark.parametrize(
    "numbers",
    ["n = 4\nm = n * 2", "n = 4\nn = 5", "n = 0", "n = -3", "n = 4.0", "n, m = 4, 5"],
)
def test_a_number_that_others_depend_on_is_no_dim(numbers):
    assert dims(f"channels = 3\n{numbers}", "return [rand(n)]") == {}


def test_at_most_five_dims_vary():
    numbers = "\n".join(f"d{i} = {i + 2}" for i in range(6))
    names = dims(f"channels = 3\n{numbers}", "return [rand(d0, d1, d2, d3, d4, d5)]")
    assert list(names) == ["d0", "d1", "d2", "d3", "d4"]


def problem(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


WHOLE = MODEL.format(numbers="batch_size = 4\nchannels = 3", inputs="return [rand(batch_size)]")


def test_the_name_of_an_op_is_a_word(tmp_path):
    assert read_problem(problem(tmp_path, "26_GELU_.py", WHOLE)).name == "gelu"
    assert read_problem(problem(tmp_path, "3_Conv2d+ReLU.py", WHOLE), "mine").name == "mine"
    with pytest.raises(BadName):
        read_problem(problem(tmp_path, "1_x.py", WHOLE), "not a name")


def test_a_problem_is_not_run_when_it_is_read(tmp_path):
    bomb = f"import sys\nsys.exit(open({str(tmp_path / 'ran')!r}, 'w'))\n"
    draft = read_problem(problem(tmp_path, "1_bomb.py", bomb + WHOLE))
    assert not (tmp_path / "ran").exists()
    assert draft.source == bomb + WHOLE
    assert draft.dims == {"batch_size": 4}


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.py", "x = (", BadKernelSource),
        ("a.py", "x = 3", BadValue),
        ("a.py", "x = '\0'", BadKernelSource),
        ("a.txt", "hello", BadValue),
    ],
)
def test_what_is_no_problem_is_refused(tmp_path, name, text, error):
    with pytest.raises(error):
        read_problem(problem(tmp_path, name, text))


def test_a_path_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadValue, match="there is no"):
        read_problem(tmp_path / "nowhere.py")
