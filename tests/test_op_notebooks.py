"""Tests of the ops' notebooks: texts and cells, shipped notebooks, and the table."""

from __future__ import annotations

import importlib
import json
import re
import sys
import types
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

import nbformat
import pytest
import torch

from scripts import op_texts
from tests import report_values
from triton_magics import languages, operators
from triton_magics.model import Badge, BadgeCode, Benchmark, Comparison

ROOT = Path(__file__).parents[1]
TEXTS = op_texts.known_ops()
MODULES = ("ops", "ops_table", "ops_accuracy", "ops_gradients", "ops_models", "ops_reading")
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
    """Import the modules as the script does, with its folder on the path."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        yield {name: importlib.import_module(name) for name in MODULES}
    finally:
        sys.path.remove(str(ROOT / "scripts"))
        for name in (*MODULES, "demo", "notebook_size", "op_texts"):
            sys.modules.pop(name, None)


@pytest.fixture(scope="module")
def builder(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["ops"]


@pytest.fixture(scope="module")
def table(scripts: dict[str, ModuleType]) -> ModuleType:
    return scripts["ops_table"]


# ------------------------------------------------------------------------------------ texts


def test_a_text_becomes_cells_in_reading_order(builder: ModuleType) -> None:
    cells = builder.cells("relu", TEXT)
    against = "%triton_bench relu --against torch.compile --budget 3"
    assert [(c.kind[0], c.text.splitlines()[0], c.measured) for c in cells] == [
        ("m", "# An op", ""),  # previews show the first cell
        ("c", "%load_ext triton_magics", ""),
        ("c", "%triton_op relu", ""),
        ("c", '%%triton_kernel relu v1 --technique "one row each"', ""),
        ("c", "%triton_validate relu v1", ""),
        ("c", "%triton_bench relu v1 --budget 1 --no-raise", ""),
        ("m", "*Measured when it is run.*", "v1"),
        ("m", "```python", ""),
        ("c", f"{against} --dtype bfloat16    # needs a GPU", ""),
        ("c", against, ""),
        ("m", "*Measured when it is run.*", "compare v1"),
        ("m", "The end.", ""),
        ("c", "%triton_best relu", ""),
        ("c", "%triton_status relu", ""),
        ("c", "%triton_log relu", ""),
    ]


def test_a_text_can_choose_the_best_by_hand(builder: ModuleType) -> None:
    cells = builder.cells("relu", f"{TEXT}\n<!-- best v1: the only one -->\n")
    texts = [c.text for c in cells]
    assert '%triton_best relu v1 --why "the only one"' in texts
    assert "%triton_best relu" not in texts
    assert not any("<!-- best" in text for text in texts)


def test_a_new_section_is_left_out_until_it_has_run(builder: ModuleType) -> None:
    new = "### v2\n\n```cpp v2 a warp a row\n__global__ void k() {}\n```\n\n"
    section = f"{op_texts.NEW}\n\n{new}{op_texts.NEW_END}\n\n"
    text = TEXT.replace("<!-- compare", f"{section}<!-- compare")
    assert builder.cells("relu", text) == builder.cells("relu", TEXT)
    ran = builder.cells("relu", op_texts.with_new(text))
    assert op_texts.with_new(text) == TEXT.replace("<!-- compare", f"{new}<!-- compare")
    assert [c.text for c in ran if "v2" in c.text][1:] == [
        '%%triton_kernel relu v2 --technique "a warp a row" --type cuda\n__global__ void k() {}',
        "%triton_validate relu v2",
        "%triton_bench relu v2 --budget 1 --no-raise",
    ]


def test_a_choice_by_hand_ends_where_new_versions_run() -> None:
    chosen = f"{TEXT}<!-- best v1: simpler -->\n\n"
    section = "```python{} v2 other\nimport torch\n```\n\n"
    own, gradients = (section.format(op) for op in ("", " relu_backward"))
    new = f"{op_texts.NEW}\n\n{{}}{op_texts.NEW_END}\n\n"
    assert op_texts.with_new(chosen + new.format(own)) == TEXT + own
    assert op_texts.with_new(chosen + new.format(gradients)) == chosen + gradients


def test_gradients_are_versions_of_their_own_op(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{TEXT}\n```python relu_backward v1 from x\nimport math\n```\n"
    assert [c.text for c in builder.cells("relu", text) if "backward" in c.text] == [
        '%%triton_kernel relu_backward v1 --technique "from x"\nimport math',
        "%triton_validate relu_backward v1",
        "%triton_bench relu_backward v1 --backward-only --budget 1 --no-raise",
    ]
    (tmp_path / "relu.md").write_text(text)
    monkeypatch.setattr(op_texts, "TEXTS", tmp_path)
    assert op_texts.kernels("relu") == {"v1": "import torch"}
    assert op_texts.kernels("relu_backward") == {"v1": "import math"}


def test_new_text_keeps_what_was_executed(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TARGET", "LOGS"):
        monkeypatch.setattr(builder, name, tmp_path)
    monkeypatch.setattr(sys.modules["op_texts"], "TEXTS", tmp_path)
    (tmp_path / "relu_log.jsonl").touch()
    before = TEXT.replace("\nThe end.\n", "")
    text, path = tmp_path / "relu.md", tmp_path / "relu.ipynb"
    executed = builder.notebook("relu", before)
    for count, cell in enumerate(c for c in executed.cells if c.cell_type == "code"):
        cell.execution_count = count
    nbformat.write(executed, path)

    text.write_text(TEXT.replace("compare v1", "compare v2"))  # and a new cell of text behind it
    builder.reword("relu")

    changed = nbformat.read(path, as_version=4)
    nbformat.validate(changed)  # among others that the ids differ
    assert [c.source for c in changed.cells][-4] == "The end."
    assert builder.has_same_code(changed, builder.cells("relu", text.read_text()))
    assert [c.metadata["measured"] for c in changed.cells if c.metadata] == ["v1", "compare v2"]
    counts = [c.execution_count for c in changed.cells if c.cell_type == "code"]
    assert counts == list(range(len(counts)))

    other_code = "%triton_op relu\n```\n\n```python\n%triton_ref relu"
    for old, new in (("import torch", "import triton"), ("%triton_op relu", other_code)):
        text.write_text(TEXT.replace(old, new))
        with pytest.raises(ValueError, match="run it again"):
            builder.reword("relu")


def test_what_passed_of_a_failed_run_is_taken(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = tmp_path / "run" / "work" / "logs"
    logs.mkdir(parents=True)
    for name in ("TARGET", "LOGS"):
        monkeypatch.setattr(builder, name, tmp_path)
    monkeypatch.setattr(sys.modules["op_texts"], "TEXTS", tmp_path)
    new = f"{op_texts.NEW}\n\n{{}}{op_texts.NEW_END}\n\n"
    second = "### v2\n\n```python v2 other\nimport re\n```\n\n"
    gradients = "### Gradients\n\n```python relu_backward v1 from x\nimport math\n```\n\n"
    text = TEXT.replace(
        "<!-- compare",
        f"{new.format(second)}{new.format(gradients)}<!-- best v1: old -->\n\n<!-- compare",
    )
    (tmp_path / "relu.md").write_text(text)
    executed = builder.notebook("relu", op_texts.with_new(text))
    code = [cell for cell in executed.cells if cell.cell_type == "code"]
    for count, cell in enumerate(code):
        cell.execution_count = count
    fails = next(cell for cell in code if cell.source == "%triton_validate relu_backward v1")
    fails.outputs = [nbformat.v4.new_output("error", ename="KernelFailure", evalue="wrong")]
    nbformat.write(executed, tmp_path / "run" / "work" / "relu.ipynb")
    (logs / "relu_log.jsonl").write_text("events")

    builder.take("relu", tmp_path / "run")

    rest = TEXT.replace("<!-- compare", f"{second}{new.format(gradients)}<!-- compare")
    assert (tmp_path / "relu.md").read_text() == rest
    assert (tmp_path / "relu_log.jsonl").read_text() == "events"
    shipped = nbformat.read(tmp_path / "relu.ipynb", as_version=4)
    nbformat.validate(shipped)
    assert [c.source for c in shipped.cells] == [c.text for c in builder.cells("relu", rest)]
    counts = {c.source: c.execution_count for c in shipped.cells if c.cell_type == "code"}
    assert counts == {c.source: c.execution_count for c in code if "backward" not in c.source}

    (tmp_path / "relu.md").write_text(text.replace("import re\n", "import sys\n"))
    with pytest.raises(ValueError, match="kernel relu v2 .* not in the run's notebook"):
        builder.take("relu", tmp_path / "run")
    (tmp_path / "relu.md").write_text(op_texts.with_new(text))
    with pytest.raises(builder.CellFailed, match="relu_backward v1: KernelFailure: wrong"):
        builder.take("relu", tmp_path / "run")


def test_incomplete_text_is_refused(builder: ModuleType) -> None:
    with pytest.raises(ValueError, match="not closed"):
        builder.cells("relu", "```python v1\nimport torch\n")
    with pytest.raises(ValueError, match="compare v4"):
        builder.cells("relu", "# relu\n")


def test_every_text_is_of_an_op_that_ships() -> None:
    assert set(TEXTS) <= set(operators.names())


@pytest.mark.parametrize("op", TEXTS)
def test_every_text_has_three_versions_with_techniques(builder: ModuleType, op: str) -> None:
    kernels = kernels_of(builder, op)
    assert [version for version, _, _ in kernels][:3] == ["v1", "v2", "v3"]
    for version, options, source in kernels:
        assert options.startswith('--technique "'), version
        language = options.partition(" --type ")[2] or "triton"
        entry, _ = languages.get(language).parse(source, op=op)
        assert entry == f"{language}_{op}"


def kernels_of(builder: ModuleType, op: str) -> list[tuple[str, str, str]]:
    """Return version, options and source of each kernel cell of a text."""
    kernels = []
    for cell in builder.cells(op, op_texts.text_of(op)):
        line, _, source = cell.text.partition("\n")
        if line.startswith(f"%%triton_kernel {op} "):
            _, _, version, options = line.split(" ", 3)
            kernels.append((version, options, source))
    return kernels


# ---------------------------------------------------------------------------------- shipped


@pytest.mark.parametrize("op", SHIPPED)
def test_shipped_notebook_matches_its_text_without_errors(builder: ModuleType, op: str) -> None:
    shipped = nbformat.read(ROOT / "notebooks" / f"{op}.ipynb", as_version=4)
    nbformat.validate(shipped)
    assert list(builder.errors(shipped)) == []
    written = builder.cells(op, op_texts.text_of(op))
    assert builder.has_same_code(shipped, written), f"python scripts/ops.py run {op}"
    executed = {c.execution_count is not None for c in shipped.cells if c.cell_type == "code"}
    assert len(executed) == 1
    for cell, now in zip(shipped.cells, written, strict=True):
        if now.measured:
            assert ("Measured when" not in cell.source) == executed.copy().pop()
        elif now.kind == "markdown":
            assert cell.source == now.text, f"python scripts/ops.py prose {op}"


def test_paths_of_the_machine_are_shortened(builder: ModuleType) -> None:
    text = f'File \\"{ROOT}/scripts/ops.py\\"\\n/opt/v-1.0/lib/site-packages/torch/a.py:3'
    short = 'File \\"scripts/ops.py\\"\\nsite-packages/torch/a.py:3'
    assert builder.shorten_paths(text) == short


CITED = re.compile(r"v\d+ (?:and v\d+ )?of the (\w+) notebook")


def test_cited_times_are_in_the_notebook(builder: ModuleType) -> None:
    """Check that each time in a clause that names a notebook is in its comparisons."""
    techniques = json.loads((ROOT / "knowledge" / "techniques.json").read_text())
    cited = 0
    for technique in techniques:
        for part in re.split(r"(?<=[\w)])[.;] ", technique["measured"]):
            if not (citation := CITED.search(part)):
                continue
            shipped = nbformat.read(ROOT / "notebooks" / f"{citation[1]}.ipynb", as_version=4)
            compared = measured_times(shipped)
            times = re.findall(r"\b[\d.]+ [um]s\b", part)
            assert len(times) >= 2, part
            assert [t for t in times if t not in compared] == [], technique["name"]
            cited += 1
    assert cited >= 5


def measured_times(shipped: nbformat.NotebookNode) -> set[str]:
    """Return the times of a notebook's comparison, and of its benchmarks of own shapes."""
    texts = [c.source for c in shipped.cells if c.metadata.get("measured", "")[:7] == "compare"]
    assert len(texts) == 1
    for cell in shipped.cells:
        if cell.source.startswith("%triton_bench") and " --sizes " in cell.source:
            texts += [o.data["text/plain"] for o in cell.outputs if "data" in o]
    return set(re.findall(r"\b[\d.]+ [um]s\b", "\n".join(texts)))


# -------------------------------------------------------------------------------- the table


def beside_compile(**changes: Any) -> Benchmark:
    """Return a benchmark of softmax v1, torch, and torch.compile with 10, 40 and 60 us."""
    own = report_values.benchmark(1)
    timings = [*own.timings]
    comparisons = [*own.comparisons]
    for size, us in (("small", 10.0), ("medium", 40.0), ("large", 60.0)):
        compiled = report_values.timing("torch.compile", size, us)
        own_timing = own.timing(own.versions[0], size)
        assert own_timing is not None
        timings.append(compiled)
        comparisons.append(report_values.comparison(own_timing, compiled))
    return own.evolve(
        providers=(*own.providers, "torch.compile"),
        timings=tuple(timings),
        comparisons=tuple(comparisons),
        **changes,
    )


def test_a_row_has_the_benchmarks_own_verdicts(table: ModuleType) -> None:
    benchmark = beside_compile()
    for row in table.rows(benchmark, "v1"):
        for name, against in (("torch", row.torch), ("torch.compile", row.compile)):
            comparison = benchmark.comparison("v1", row.size, name)
            assert isinstance(comparison, Comparison)
            assert against.verdict == comparison.verdict
            assert against.speedup == pytest.approx(against.us / row.us)
        assert row.copy_pct == pytest.approx(100 * row.gbps / 4180.0)


def test_a_version_is_found_by_either_of_its_names(table: ModuleType) -> None:
    benchmark = beside_compile()
    by_short, by_long = (list(table.rows(benchmark, name)) for name in ("v1", "v1_baseline"))
    assert len(by_short) == 3
    assert by_long == by_short
    assert not list(table.rows(benchmark, "v9_baseline"))


def test_summary_names_rows_below_the_goal(table: ModuleType) -> None:
    large = next(r for r in table.rows(beside_compile(), "v1") if r.size == "large")

    def summarize(**changes: Any) -> list[str]:
        return list(table._summary(list(table.rows(beside_compile(**changes), "v1"))))[1:]

    assert summarize(copy_gbps=large.gbps / 0.901) == []
    (short,) = summarize(copy_gbps=large.gbps / 0.896)
    assert "softmax float32 large reaches 89.6 %" in short


def test_summary_names_rows_slower_than_torch(table: ModuleType) -> None:
    benchmark = beside_compile()
    lost = benchmark.timing("torch.compile", "small")
    assert lost is not None
    own = benchmark.timing(benchmark.versions[0], "small")
    assert own is not None
    quicker = report_values.timing("torch.compile", "small", own.mean_us / 2)
    others = [t for t in benchmark.timings if t != lost]
    comparisons = [
        c for c in benchmark.comparisons if (c.baseline, c.size) != ("torch.compile", "small")
    ]
    changed = benchmark.evolve(
        timings=(*others, quicker),
        comparisons=(*comparisons, report_values.comparison(own, quicker)),
        copy_gbps=1.0,
    )
    _, line = table._summary(list(table.rows(changed, "v1")))
    assert "softmax float32 small takes 2.00 times the fastest" in line


def test_newest_comparison_is_chosen(table: ModuleType) -> None:
    alone, first, second = (
        report_values.benchmark(1),
        beside_compile(seed=1),
        beside_compile(seed=2),
    )
    assert table.newest_comparison([first, second, alone], "float32") == second
    assert table.newest_comparison([first, second, alone], "bfloat16") is None


def test_benchmark_of_an_own_shape_is_separate(table: ModuleType) -> None:
    benchmark = beside_compile()
    timing = benchmark.timing("v1", "large")
    own = benchmark.evolve(
        sizes=("64x96",),
        timings=tuple(
            t.evolve(size="64x96", shape=(64, 96)) for t in benchmark.timings if t.size == "large"
        ),
        comparisons=(),
    )
    assert table.newest_comparison([benchmark, own], "float32") == benchmark
    assert table.of_own_shapes([benchmark, own]) == [own]
    (row,) = table.rows(own, "v1")
    assert (row.size, row.us) == ("64x96", timing.mean_us)


def test_text_of_a_measured_cell(table: ModuleType) -> None:
    benchmarks = [report_values.benchmark(1), beside_compile()]
    text = table.cell_text("v1", benchmarks)
    assert text.startswith("**Measured**")
    assert "- float32: small 1.9" in text
    assert "| torch.compile |" in table.cell_text("compare v1", benchmarks)
    own = benchmarks[1].timing("v1", "small")
    line = next(
        n for n in table.cell_text("compare v1", benchmarks).splitlines() if n.startswith("| v1 |")
    )
    verdict = benchmarks[1].comparison("v1", "small", "torch").verdict
    assert line.split(" | ")[1] == f"{own.mean_us:.1f} us {verdict}"
    assert table.cell_text("compare v1", benchmarks[:1]) is None
    assert table.cell_text("v2", benchmarks) is None


def test_table_follows_from_the_logs(
    scripts: dict[str, ModuleType], builder: ModuleType, table: ModuleType
) -> None:
    measured = ROOT / "docs" / "measured"
    logs = measured / "ops_logs"
    best = {op: op_texts.best(op) for op in TEXTS}
    comparisons, when = table.comparisons_in(logs, best), table.dates(logs)
    if not comparisons:
        pytest.skip("no op's notebook is shipped yet")
    page = table.page(comparisons, when, best, builder.sections(measured))
    assert (measured / "ops.md").read_text(encoding="utf-8") == page
    stored = json.loads((measured / "ops.json").read_text(encoding="utf-8"))
    assert stored == json.loads(json.dumps(table.data(comparisons, when)))


def test_table_lists_the_badges_of_a_benchmark(table: ModuleType) -> None:
    quiet, badge = beside_compile(), "shared GPU: process 7 uses it too"
    shared = quiet.evolve(badges=(Badge.of(BadgeCode.SHARED_GPU, pids=(7,)),))
    best = {quiet.op: "v1"}
    assert badge not in table.page([(quiet, "v1")], "2026-01-01", best)
    page = table.page([(quiet, "v1"), (shared, "v1")], "2026-01-01", best)
    assert page.count(f"- {quiet.op} {quiet.dtype}: {badge}.") == 1


def test_errors_are_relative_to_the_outputs_scale(scripts: dict[str, ModuleType]) -> None:
    truth = torch.tensor([3.0, -3.0, 3.0, -3.0], dtype=torch.float64)
    output = torch.tensor([3.0, -3.0, 3.0, -2.4])
    largest, typical = scripts["ops_accuracy"].errors(output, truth)
    assert largest == pytest.approx(0.2)
    assert typical == pytest.approx(0.1)


def test_row_of_a_version_in_the_table_of_errors(
    scripts: dict[str, ModuleType],
) -> None:
    accuracy = scripts["ops_accuracy"]
    rows = [
        {"op": "matmul", "size": "large", "shape": [8, 8, 8], "provider": name,
         "largest": 5 * error, "typical": error}
        for name, error in (("torch", 1.2e-6), ("v5", 2.0e-7))
    ]  # fmt: skip
    data = {"command": "c", "date": "2026-01-01", "environment": "a GPU", "rows": rows}
    last = accuracy.section(data).splitlines()[-1]
    assert last == "| matmul v5 | large | 8x8x8 | 1.0e-06 | 6.0e-06 | 2.0e-07 | 1.2e-06 | 6.0 |"


def test_row_of_a_reading_kernel(
    scripts: dict[str, ModuleType],
) -> None:
    reading = scripts["ops_reading"]
    row = {
        "bytes": 2**25,
        "us": 8.9,
        "gbps": 3770.2,
        "copy_pct": 88.4,
        "block_size": 1024,
        "num_warps": 4,
    }
    data = {"command": "c", "date": "2026-01-01", "environment": "a GPU", "rows": [row]}
    last = reading.section(data).splitlines()[-1]
    assert last == "| 33.6 MB | 8.9 us | 3.77 TB/s | 88 % | blocks of 1024 words, 4 warps |"


def test_model_shapes_begin_with_the_least_speedup(
    scripts: dict[str, ModuleType], table: ModuleType
) -> None:
    models = scripts["ops_models"]
    timed = beside_compile()
    rows = [asdict(row) for row in table.rows(timed, "v1")]
    op = {"date": "2026-01-01", "environment": "a GPU", "rows": rows, "not_timed": ["relu 2: late"]}
    section = models.section({"command": "c", "ops": {timed.op: json.loads(json.dumps(op))}})
    assert "a GPU (2026-01-01); `c`" in section
    assert "- Not timed: relu 2: late." in section
    lines = [
        line.split(" | ") for line in section.splitlines() if line.startswith(f"| {timed.op} ")
    ]
    worst = {row.size: row.worst for row in table.rows(timed, "v1")}
    assert [line[2] for line in lines] == sorted(worst, key=worst.__getitem__)
    assert worst[lines[0][2]] < worst[lines[-1][2]]


def test_several_machines_are_named_with_their_ops(table: ModuleType) -> None:
    places = [("H200", "relu"), ("H100", "sum"), ("H200", "gelu"), ("H200", "relu")]
    assert table.machines_text(places[:1]) == "H200"
    assert table.machines_text(places) == "H100: sum; H200: gelu, relu"


def test_table_of_gradients_begins_with_the_least_speedup(scripts: dict[str, ModuleType]) -> None:
    def row(us: float, liger: float | None) -> dict[str, Any]:
        beside = {
            name: {"us": t, "speedup": t / us, "verdict": "faster" if t > us else "slower"}
            for name, t in (("torch", 40.0), ("torch.compile", 30.0), ("liger", liger))
            if t
        }
        names = {"op": "relu_backward", "version": "v1", "shape": [8, 8], "us": us}
        return {**names, "liger": None, **beside}

    rows = [row(20.0, None), row(25.0, 20.0)]
    op = {"date": "2026-01-01", "environment": "a GPU", "rows": rows, "not_timed": []}
    section = scripts["ops_gradients"].section({"command": "c", "ops": {"relu": op}})
    assert "Of 2 rows 1 are slower" in section
    first, last = section.splitlines()[-2:]
    assert first.startswith("| relu v1 | 8x8 | 25.0 us | 40.0 us | 30.0 us | 20.0 us |")
    assert first.endswith("| 0.80x slower |")
    assert last.endswith("| 2.00x faster | 1.50x faster | — |")


@pytest.mark.parametrize("module", ["ops_models", "ops_gradients"])
def test_every_model_shape_fits_its_op(scripts: dict[str, ModuleType], module: str) -> None:
    for op, shapes in scripts[module].SHAPES.items():
        module = operators.load(op)
        for shape in shapes:
            module.make_inputs(shape, torch.bfloat16, torch.device("meta"), torch.Generator())


def test_fastest_reading_kernel_is_chosen(scripts: dict[str, ModuleType]) -> None:
    reading = scripts["ops_reading"]
    times = {(1024, 4): 12.0, (2048, 8): 11.0}

    class Timer:
        """A timer that returns a call's own result as its time."""

        def settle(self) -> None: ...

        def sample(self, call: Any) -> Any:
            return types.SimpleNamespace(raw_us=call())

    calls = {form: (lambda us=us: us) for form, us in times.items()}
    fastest = reading._fastest(Timer(), calls, 2**25, 1.0, 4000.0)
    assert (fastest.block_size, fastest.num_warps, fastest.us) == (2048, 8, 10.0)
    assert fastest.gbps == pytest.approx(3355.4432)
    assert fastest.copy_pct == pytest.approx(83.88608)
