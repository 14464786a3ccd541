"""The ops' notebooks: how their texts become cells, what is shipped, and what the table says."""

from __future__ import annotations

import importlib
import json
import re
import sys
import types
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
import torch

from tests import report_values
from triton_magics import ops
from triton_magics.model import Benchmark, Comparison, short
from triton_magics.workspace import inspect_source

ROOT = Path(__file__).parents[1]
TEXTS = sorted(path.stem for path in (ROOT / "scripts" / "notebooks").glob("*.md"))
MODULES = ("ops", "ops_table", "ops_accuracy", "ops_reading")
SHIPPED = [op for op in TEXTS if (ROOT / "notebooks" / f"{op}.ipynb").is_file()]
TEXT = """\
# An op

```python
%triton_op relu
```

```python v1 one row each
import torch
```

    ```python
an indented fence is text

<!-- compare v1 -->

The end.
"""


@pytest.fixture(scope="module")
def scripts() -> Any:
    """The modules, imported as the script imports them: its folder is on the path."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(ROOT / "scripts"))
        for name in (*MODULES, "demo"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def builder(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["ops"]


@pytest.fixture(scope="module")
def table(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["ops_table"]


# ------------------------------------------------------------------------------------ texts


def test_a_text_becomes_cells_in_reading_order(builder: ModuleType) -> None:
    made = builder.cells("relu", TEXT)
    assert [(c.kind[0], c.text.splitlines()[0], c.measured) for c in made] == [
        ("c", "%load_ext triton_magics", ""),
        ("m", "# An op", ""),
        ("c", "%triton_op relu", ""),
        ("c", '%%triton_kernel relu v1 --technique "one row each"', ""),
        ("c", "%triton_validate relu v1", ""),
        ("c", "%triton_bench relu v1 --budget 1 --no-raise", ""),
        ("m", "*Measured when it is run.*", "v1"),
        ("m", "```python", ""),
        ("c", "%triton_bench relu --against torch.compile --budget 3 --dtype bfloat16", ""),
        ("c", "%triton_bench relu --against torch.compile --budget 3", ""),
        ("m", "*Measured when it is run.*", "compare v1"),
        ("m", "The end.", ""),
        ("c", "%triton_best relu", ""),
        ("c", "%triton_status relu", ""),
        ("c", "%triton_log relu", ""),
    ]


def test_a_text_can_choose_the_best_by_hand(builder: ModuleType) -> None:
    made = builder.cells("relu", f"{TEXT}\n<!-- best v1: the only one -->\n")
    texts = [c.text for c in made]
    assert '%triton_best relu v1 --why "the only one"' in texts
    assert "%triton_best relu" not in texts
    assert not any("<!-- best" in text for text in texts)


def test_a_text_that_is_not_whole_is_refused(builder: ModuleType) -> None:
    with pytest.raises(ValueError, match="not closed"):
        builder.cells("relu", "```python v1\nimport torch\n")
    with pytest.raises(ValueError, match="compare v4"):
        builder.cells("relu", "# relu\n")


def test_every_text_is_of_an_op_that_ships() -> None:
    assert set(TEXTS) <= set(ops.BUILTIN)


@pytest.mark.parametrize("op", TEXTS)
def test_every_text_has_four_versions_each_with_its_technique(builder: ModuleType, op: str) -> None:
    kernels = kernels_of(builder, op)
    assert [version for version, _, _ in kernels][:4] == ["v1", "v2", "v3", "v4"]
    for version, options, source in kernels:
        assert options.startswith('--technique "'), version
        entry, _ = inspect_source(op, (), source, None)
        assert entry == f"triton_{op}"


def kernels_of(builder: ModuleType, op: str) -> list[tuple[str, str, str]]:
    """Version, options and source of each kernel cell of a text."""
    found = []
    for cell in builder.cells(op, builder.text_of(op)):
        line, _, source = cell.text.partition("\n")
        if line.startswith("%%triton_kernel"):
            _, _, version, options = line.split(" ", 3)
            found.append((version, options, source))
    return found


# ---------------------------------------------------------------------------------- shipped


@pytest.mark.parametrize("op", SHIPPED)
def test_a_shipped_notebook_is_its_text_and_was_executed_without_an_error_or_not_at_all(
    builder: ModuleType, op: str
) -> None:
    shipped = nbformat.read(ROOT / "notebooks" / f"{op}.ipynb", as_version=4)
    nbformat.validate(shipped)
    assert list(builder.errors(shipped)) == []
    written = builder.cells(op, builder.text_of(op))
    assert builder.same_code(shipped, written), f"python scripts/ops.py run {op}"
    executed = {c.execution_count is not None for c in shipped.cells if c.cell_type == "code"}
    assert len(executed) == 1
    for cell, now in zip(shipped.cells, written, strict=True):
        if now.measured:
            assert ("Measured when" not in cell.source) == executed.copy().pop()
        elif now.kind == "markdown":
            assert cell.source == now.text, f"python scripts/ops.py prose {op}"


@pytest.mark.parametrize("op", SHIPPED)
def test_the_shipped_kernels_are_the_notebooks_cells(builder: ModuleType, op: str) -> None:
    folder = ROOT / "notebooks" / "kernels" / op
    if not folder.is_dir():
        pytest.skip(f"{op} has not been run yet")
    files = {short(path.stem): path for path in folder.glob("v*.py")}
    kernels = kernels_of(builder, op)
    assert sorted(files) == sorted(short(version) for version, _, _ in kernels)
    for version, _, source in kernels:
        written = files[short(version)].read_text(encoding="utf-8")
        assert written.rstrip("\n").endswith(f"\n{source}"), version


CITED = re.compile(r"v\d+ (?:and v\d+ )?of the (\w+) notebook")


def test_what_a_technique_cites_is_in_the_notebook(builder: ModuleType) -> None:
    """Every time in the part of a sentence that names a notebook stands in its comparison."""
    techniques = json.loads((ROOT / "knowledge" / "techniques.json").read_text())
    cited = 0
    for technique in techniques:
        for part in re.split(r"(?<=[\w)])[.;] ", technique["measured"]):
            if not (found := CITED.search(part)):
                continue
            shipped = nbformat.read(ROOT / "notebooks" / f"{found[1]}.ipynb", as_version=4)
            (told,) = (
                c.source
                for c in shipped.cells
                if c.metadata.get("measured", "").startswith("compare")
            )
            times = re.findall(r"\b[\d.]+ [um]s\b", part)
            assert len(times) >= 2, part
            assert [t for t in times if t not in told] == [], technique["name"]
            cited += 1
    assert cited >= 5


# -------------------------------------------------------------------------------- the table


def beside_compile(**changes: Any) -> Benchmark:
    """One version of softmax, torch and torch.compile, which has 10, 40 and 60 us."""
    own = report_values.benchmark(1)
    timings = [*own.timings]
    comparisons = [*own.comparisons]
    for size, us in (("small", 10.0), ("medium", 40.0), ("large", 60.0)):
        made = report_values.timing("torch.compile", size, us)
        mine = own.timing(own.versions[0], size)
        assert mine is not None
        timings.append(made)
        comparisons.append(report_values.comparison(mine, made))
    return own.model_copy(
        update={
            "providers": (*own.providers, "torch.compile"),
            "timings": tuple(timings),
            "comparisons": tuple(comparisons),
            **changes,
        }
    )


def test_a_row_has_the_benchmarks_own_verdicts(table: ModuleType) -> None:
    made = beside_compile()
    for row in table.rows(made, "v1"):
        for name, against in (("torch", row.torch), ("torch.compile", row.compile)):
            told = made.comparison("v1", row.size, name)
            assert isinstance(told, Comparison)
            assert against.verdict == told.verdict
            assert against.speedup == pytest.approx(against.us / row.us)
        assert row.copy_pct == pytest.approx(100 * row.gbps / 4180.0)


def test_a_version_is_found_by_either_of_its_names(table: ModuleType) -> None:
    made = beside_compile()
    by_short, by_long = (list(table.rows(made, name)) for name in ("v1", "v1_baseline"))
    assert len(by_short) == 3
    assert by_long == by_short
    assert not list(table.rows(made, "v9_baseline"))


def test_what_falls_short_is_said_with_its_figure(table: ModuleType) -> None:
    large = next(r for r in table.rows(beside_compile(), "v1") if r.size == "large")

    def said(**changes: Any) -> list[str]:
        return list(table._summary(list(table.rows(beside_compile(**changes), "v1"))))[1:]

    assert said(copy_gbps=large.gbps / 0.901) == []
    (short,) = said(copy_gbps=large.gbps / 0.896)
    assert "softmax float32 large reaches 89.6 %" in short


def test_a_loss_is_said_with_its_size(table: ModuleType) -> None:
    made = beside_compile()
    lost = made.timing("torch.compile", "small")
    assert lost is not None
    mine = made.timing(made.versions[0], "small")
    assert mine is not None
    quicker = report_values.timing("torch.compile", "small", mine.mean_us / 2)
    others = [t for t in made.timings if t != lost]
    told = [c for c in made.comparisons if (c.baseline, c.size) != ("torch.compile", "small")]
    changed = made.model_copy(
        update={
            "timings": (*others, quicker),
            "comparisons": (*told, report_values.comparison(mine, quicker)),
            "copy_gbps": 1.0,
        }
    )
    _, said = table._summary(list(table.rows(changed, "v1")))
    assert "softmax float32 small takes 2.00 times the fastest" in said


def test_the_newest_comparison_counts_and_one_alone_does_not(table: ModuleType) -> None:
    alone, first, second = (
        report_values.benchmark(1),
        beside_compile(seed=1),
        beside_compile(seed=2),
    )
    assert table.compared([first, second, alone], "float32") == second
    assert table.compared([first, second, alone], "bfloat16") is None


def test_a_shape_of_its_own_is_told_apart(table: ModuleType) -> None:
    made = beside_compile()
    timing = made.timing("v1", "large")
    own = made.model_copy(
        update={
            "sizes": ("64x96",),
            "timings": tuple(
                t.model_copy(update={"size": "64x96", "shape": (64, 96)})
                for t in made.timings
                if t.size == "large"
            ),
            "comparisons": (),
        }
    )
    assert table.compared([made, own], "float32") == made
    assert table.of_own_shapes([made, own]) == [own]
    (row,) = table.rows(own, "v1")
    assert (row.size, row.us) == ("64x96", timing.mean_us)


def test_a_cell_says_what_was_measured(table: ModuleType) -> None:
    made = [report_values.benchmark(1), beside_compile()]
    told = table.told("v1", made)
    assert told.startswith("**Measured**")
    assert "- float32: small 1.9" in told
    assert "| torch.compile |" in table.told("compare v1", made)
    own = made[1].timing("v1", "small")
    told = next(n for n in table.told("compare v1", made).splitlines() if n.startswith("| v1 |"))
    verdict = made[1].comparison("v1", "small", "torch").verdict
    assert told.split(" | ")[1] == f"{own.mean_us:.1f} us {verdict}"
    assert table.told("compare v1", made[:1]) is None
    assert table.told("v2", made) is None


def test_the_table_is_what_the_logs_say(
    scripts: dict[str, ModuleType], builder: ModuleType, table: ModuleType
) -> None:
    logs, measured = ROOT / "notebooks" / "logs", ROOT / "docs" / "measured"
    best = {op: builder.best(op) for op in TEXTS}
    found, when = table.found_in(logs, best), table.dates(logs)
    if not found:
        pytest.skip("no op's notebook is shipped yet")
    accuracy = scripts["ops_accuracy"].read(measured)
    reading = scripts["ops_reading"].read(measured)
    page = table.page(found, when, best, accuracy, reading)
    assert (measured / "ops.md").read_text(encoding="utf-8") == page
    told = json.loads((measured / "ops.json").read_text(encoding="utf-8"))
    assert told == json.loads(json.dumps(table.data(found, when)))


def test_the_table_tells_what_a_benchmark_says_against_itself(table: ModuleType) -> None:
    quiet, badge = beside_compile(), "shared GPU: process 7 uses it too"
    shared = quiet.model_copy(update={"badges": (badge,)})
    best = {quiet.op: "v1"}
    assert badge not in table.page([(quiet, "v1")], "2026-01-01", best)
    page = table.page([(quiet, "v1"), (shared, "v1")], "2026-01-01", best)
    assert page.count(f"- {quiet.op} {quiet.dtype}: {badge}.") == 1


def test_errors_are_told_as_shares_of_the_outputs_scale(scripts: dict[str, ModuleType]) -> None:
    truth = torch.tensor([3.0, -3.0, 3.0, -3.0], dtype=torch.float64)
    output = torch.tensor([3.0, -3.0, 3.0, -2.4])
    largest, typical = scripts["ops_accuracy"].errors(output, truth)
    assert largest == pytest.approx(0.2)
    assert typical == pytest.approx(0.1)


def test_a_version_stands_beside_torch_in_the_table_of_errors(
    scripts: dict[str, ModuleType],
) -> None:
    made = scripts["ops_accuracy"]
    rows = [
        {"op": "matmul", "size": "large", "shape": [8, 8, 8], "provider": name,
         "largest": 5 * error, "typical": error}
        for name, error in (("torch", 1.2e-6), ("v5", 2.0e-7))
    ]  # fmt: skip
    told = {"command": "c", "date": "2026-01-01", "environment": "a GPU", "rows": rows}
    last = made.section(told).splitlines()[-1]
    assert last == "| matmul v5 | large | 8x8x8 | 1.0e-06 | 6.0e-06 | 2.0e-07 | 1.2e-06 | 6.0 |"


def test_what_reading_takes_is_told_with_its_share_of_a_copy(
    scripts: dict[str, ModuleType],
) -> None:
    made = scripts["ops_reading"]
    row = {
        "bytes": 2**25,
        "us": 8.9,
        "gbps": 3770.2,
        "copy_pct": 88.4,
        "block_size": 1024,
        "num_warps": 4,
    }
    told = {"command": "c", "date": "2026-01-01", "environment": "a GPU", "rows": [row]}
    last = made.section(told).splitlines()[-1]
    assert last == "| 33.6 MB | 8.9 us | 3.77 TB/s | 88 % | blocks of 1024 words, 4 warps |"


def test_the_quickest_form_of_a_reading_counts(scripts: dict[str, ModuleType]) -> None:
    made = scripts["ops_reading"]
    times = {(1024, 4): 12.0, (2048, 8): 11.0}

    class Timer:
        """Answers a call's own time."""

        def settle(self) -> None: ...

        def sample(self, call: Any) -> Any:
            return types.SimpleNamespace(raw_us=call())

    calls = {form: (lambda us=us: us) for form, us in times.items()}
    found = made._quickest(Timer(), calls, 2**25, 1.0, 4000.0)
    assert (found.block_size, found.num_warps, found.us) == (2048, 8, 10.0)
    assert found.gbps == pytest.approx(3355.4432)
    assert found.copy_pct == pytest.approx(83.88608)
