"""The tool of `make mutants`: which changes it makes, and that they are valid Python."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.mutation import mutation_operators, targets

FOLDER = Path(__file__).parent / "mutation"
PACKAGE = FOLDER.parents[1] / "triton_magics"


@pytest.mark.parametrize(
    ("source", "mutants"),
    [
        ("a < b", ["a <= b", "a > b"]),
        ("a == b", ["a != b"]),
        ("x = a + b", ["x = (a) - (b)"]),
        ("x = a and b", ["x = ((a) or (b))"]),
        ("x = not a", ["x = (a)"]),
        ("x = 2.5", ["x = 25.0"]),
        ("x = True", ["x = False"]),
        ("x = min(a)", ["x = max(a)"]),
        ("x = t.any()", ["x = t.all()"]),
        ("f(a)", ["pass"]),
        ("if a: b", ["if not (a): b"]),
        ("x += y", ["x -= y"]),
        ("x: int = y", []),
        ("raise E(1 + 1)", []),
        ('"""text 1"""', []),
        ("zip(a, strict=True)", ["pass"]),
    ],
)
def test_changes_of_a_source(source: str, mutants: list[str]) -> None:
    mutants_of_it = mutation_operators.find_mutants(source)
    assert [mutant.apply(source) for mutant in mutants_of_it] == mutants


@pytest.mark.parametrize("target", targets.TARGETS, ids=lambda t: t.module)
def test_mutants_of_a_target_are_valid_and_its_tests_exist(target: targets.Target) -> None:
    source = (PACKAGE / target.module).read_text(encoding="utf-8")
    mutants_of_it = mutation_operators.find_mutants(source)
    assert len({mutant.label for mutant in mutants_of_it}) == len(mutants_of_it) > 10
    for mutant in mutants_of_it[:: max(len(mutants_of_it) // 10, 1)]:
        assert ast.dump(ast.parse(mutant.apply(source))) != ast.dump(ast.parse(source))
    assert all((FOLDER.parent / name).exists() for name in target.tests)
