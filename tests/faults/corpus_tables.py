"""Tables of the corpus by class, by op and by principle; pure functions of the results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from tests.faults.class_kernels import CLASSES
from tests.faults.corpus_causes import GRADES
from tests.faults.corpus_principles import PRINCIPLES

Result = Mapping[str, Any]


def of_classes(results: Iterable[Result]) -> list[Result]:
    """Return the results of the kernels that belong to a class and were run."""
    return [r for r in results if r.get("class") and r["status"] != "skipped"]


def missed_of_classes(results: Iterable[Result]) -> list[Result]:
    """Return the wrong kernels that nothing caught, and the right ones that were refused."""
    own = of_classes(results)
    return [r for r in own if (not r["passed"] if r["right"] else not r["caught_by"])]


def counts(results: Sequence[Result]) -> dict[str, int]:
    """Count wrong kernels by what caught them, and right ones that were refused."""
    wrong = [r for r in results if not r["right"]]
    right = [r for r in results if r["right"]]
    return {
        "wrong": len(wrong),
        "by_validation": sum(r["caught_by"] == "validation" for r in wrong),
        "by_benchmark": sum(r["caught_by"] == "benchmark" for r in wrong),
        "right": len(right),
        "refused": sum(not r["passed"] for r in right),
    }


def table_by(
    results: Iterable[Result], field: str, order: Iterable[str]
) -> dict[str, dict[str, dict[str, int]]]:
    """Return the counts by the values of a field; held-out kernels apart."""
    own = of_classes(results)
    return {
        value: {
            "open": counts([r for r in own if r[field] == value and not r["held_out"]]),
            "held_out": counts([r for r in own if r[field] == value and r["held_out"]]),
        }
        for value in order
    }


def principles_table(results: Iterable[Result]) -> dict[str, dict[str, Any]]:
    """Return by principle the wrong kernels it catches in each class, and those it alone catches.

    A principle catches a kernel if one of the failed cases speaks for it.
    """
    wrong = [r for r in of_classes(results) if not r["right"]]
    table = {}
    for principle in PRINCIPLES:
        hit = [r for r in wrong if principle in r["principles"]]
        table[principle] = {
            "by_class": {name: sum(r["class"] == name for r in hit) for name in CLASSES},
            "caught": len(hit),
            "share": len(hit) / len(wrong) if wrong else 0.0,
            "alone": sorted(r["file"] for r in hit if len(set(r["principles"])) == 1),
        }
    return table


def explanations_table(results: Iterable[Result]) -> dict[str, int]:
    """Count the explanations of the wrong kernels that the validation caught, by grade."""
    grades = [r["explanation"] for r in caught_with_cause(results)]
    return {grade: grades.count(grade) for grade in GRADES}


def caught_with_cause(results: Iterable[Result]) -> list[Result]:
    """Return the results of the wrong kernels that the validation caught and that have a cause."""
    return [r for r in results if r.get("cause") and r.get("explanation") and not r["passed"]]


def explanation_lines(results: Sequence[Result]) -> list[str]:
    """Return the shares of the grades as text, then the misleading ones, less those held out."""
    graded = caught_with_cause(results)
    if not graded:
        return []
    counted = explanations_table(results)
    shares = (f"{grade} {n} ({n / len(graded):.0%})" for grade, n in counted.items())
    misled = [r for r in graded if r["explanation"] == "misleading" and not r.get("held_out")]
    return [
        "",
        f"explanations of {len(graded)}: " + ", ".join(shares),
        *(f"  misleading: {r['file']}: {r['cause_code']}, is {r['cause']}" for r in misled),
        *(f"  raised: {r['file']}: {r['message']}" for r in results if _search_raised(r)),
    ]


def _search_raised(result: Result) -> bool:
    """Return whether the search for the cause raised an error, which the verdict outlives."""
    return "the search for the cause raised" in (result.get("message") or "")


def class_figures(results: Sequence[Result]) -> dict[str, Any]:
    """Return every table as plain data, for JSON."""
    ops = sorted({r["op"] for r in of_classes(results)})
    return {
        "classes": table_by(results, "class", CLASSES),
        "ops": table_by(results, "op", ops),
        "principles": principles_table(results),
        "explanations": explanations_table(results),
        "skipped": sorted(r["file"] for r in results if r["status"] == "skipped"),
    }


# ------------------------------------------------------------------------------------- text


def _share(caught: int, number: int) -> str:
    return f"{caught} of {number}" if number else "-"


def _lines_by(
    table: Mapping[str, Mapping[str, Mapping[str, int]]], label: Callable[[str], str]
) -> Iterable[str]:
    yield f"{'':34}{'validation':>12}{'benchmark':>11}{'held out':>11}{'right, refused':>16}"
    for name, row in table.items():
        own, held_out = row["open"], row["held_out"]
        caught = held_out["by_validation"] + held_out["by_benchmark"]
        yield (
            f"{label(name):34}{_share(own['by_validation'], own['wrong']):>12}"
            f"{own['by_benchmark']:>11}{_share(caught, held_out['wrong']):>11}"
            f"{_share(own['refused'], own['right']):>16}"
        )


def _lines_of_principles(table: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    names = {name: name.replace("_", " ") for name in CLASSES}
    yield " " * 20 + "".join(f"{n:>{len(n) + 2}}" for n in names.values()) + "   share  alone"
    for principle, row in table.items():
        cells = "".join(f"{row['by_class'][c] or '.':>{len(n) + 2}}" for c, n in names.items())
        yield f"{principle:20}{cells}{row['share']:8.0%}{len(row['alone']):7}"


def class_text(results: Sequence[Result]) -> str:
    """Return the tables as text, empty without kernels of a class; held-out ones stay unnamed."""
    own = of_classes(results)
    if not own:
        return ""
    figures = class_figures(results)
    missed = [r for r in missed_of_classes(results) if not r["right"]]
    lines = ["", "wrong kernels caught, by class", *_lines_by(figures["classes"], CLASSES.get)]
    lines += ["", "by op", *_lines_by(figures["ops"], str)]
    lines += ["", "wrong kernels with a failed case, by principle and class"]
    lines += [*_lines_of_principles(figures["principles"])]
    lines += ["", f"missed: {sum(r['held_out'] for r in missed)} that are held out"]
    lines += [f"  {r['file']} ({r['cause']})" for r in missed if not r["held_out"]]
    refused = [r for r in own if r["right"] and not r["passed"]]
    lines += [f"refused: {len(refused)}"]
    lines += [f"  {r['file']}: {r['status']} {r['message'] or ''}" for r in refused]
    if figures["skipped"]:
        lines += [f"skipped without a GPU: {', '.join(figures['skipped'])}"]
    return "\n".join(lines)
