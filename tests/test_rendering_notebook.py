"""The log as a notebook: valid, run from the top, and free of what a machine adds."""

import base64
import dataclasses
import json
import re
from typing import Any

import nbformat
import pytest
import report_values as rv

from triton_magics.errors import ExportError
from triton_magics.model import Census, Status
from triton_magics.rendering import (
    LogInput,
    VersionLog,
    html_log,
    log_figures,
    log_notebook,
    markdown_log,
    write_notebook,
)
from triton_magics.rendering.log_input import shorten_paths, strip_machine_details
from triton_magics.rendering.notebook import cell_id
from triton_magics.rendering.replay import Parameters, bench_line, kernel_cell
from triton_magics.verbs._phrase import as_magic


def cells_of(log: LogInput) -> dict[str, dict[str, Any]]:
    cells = json.loads(write_notebook(log_notebook(log)))["cells"]
    return {cell["id"]: cell for cell in cells}


def source_of(cell: dict[str, Any]) -> str:
    return "".join(cell["source"])


def test_own_shape_is_a_column_and_part_of_the_replay() -> None:
    log = rv.log_input(2)
    versions = tuple(
        dataclasses.replace(v, benchmark=rv.with_own_shape(v.benchmark))  # type: ignore[arg-type]
        for v in log.versions
    )
    log = dataclasses.replace(log, versions=versions)
    text = markdown_log(log)
    assert "| Kernel | Small | Medium | Large | 8192x151936 | Final | Speedup |" in text
    assert "| v2_tiling | 1.9 us | 3.9 us | 33.1 us | 600 us | 13.0 us | 1.63x |" in text
    assert 'sizes = "small,medium,large,8192x151936"' in "".join(
        map(source_of, cells_of(log).values())
    )


def test_notebook_contains_code_byte_for_byte() -> None:
    odd = 'def triton_softmax(x):\n\t# "/home/me/x.py" & <b> `tick`\n\treturn x  \n'
    versions = (VersionLog("v1_baseline", (rv.source(code=odd),)),)
    log = rv.log_input(versions=versions, best=None)
    assert odd.strip("\n") in markdown_log(log)
    cell = cells_of(log)["softmax-v1-code"]
    assert source_of(cell) == "%%triton_kernel softmax v1 --replay\n" + odd


def test_benchmarks_are_separate_cells() -> None:
    log = rv.log_input(2)
    own = rv.benchmark(1, seed=9, sha256s=(rv.sha256(rv.SOURCES["v1_baseline"]),))
    first = dataclasses.replace(log.versions[0], benchmark=own)
    both = dataclasses.replace(log, versions=(first, log.versions[1]))
    assert [len(b.versions) for b in both.benchmarks] == [2, 1]
    assert markdown_log(both).count("| Kernel | Small |") == 2
    assert list(cells_of(both))[-5:-2] == ["softmax-bench", "softmax-bench-2", "softmax-choice"]
    assert source_of(cells_of(both)["softmax-bench-2"]) == (
        "%triton_bench softmax v1 --sizes {sizes} --runs {runs} --seed 9"
    )


def test_notebook_is_valid_and_deterministic() -> None:
    notebook = log_notebook(rv.log_input(3))
    nbformat.validate(notebook)
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    text = write_notebook(notebook)
    assert text == write_notebook(log_notebook(rv.log_input(3)))
    assert text.endswith("}\n")
    assert nbformat.reads(text, as_version=4) == notebook
    assert text == nbformat.writes(nbformat.from_dict(notebook)) + "\n"


def test_notebook_cells_can_be_run_in_order() -> None:
    code = [source_of(c) for c in cells_of(rv.log_input(2)).values() if c["cell_type"] == "code"]
    technique = "--technique 'no optimisation'"
    assert code == [
        (
            'plan = "full"  # plan of the validations: full, or quick (fewer cases)\n'
            'sizes = "small,medium,large"  # sizes of the benchmarks\n'
            "runs = 10  # timed runs at each size\n"
            "budget_s = 20  # seconds for a validation without a GPU"
        ),
        (
            "%load_ext triton_magics\n"
            "%config TritonMagics.validate_budget_s = budget_s\n"
            "%triton_op softmax -q"
        ),
        f"%%triton_kernel softmax v1 {technique} --replay --no-raise\n" + rv.BROKEN,
        "%triton_validate softmax v1 --cases {plan} --seed 83114 --no-raise",
        f"%%triton_kernel softmax v1 {technique} --replay\n" + rv.SOURCE,
        "%triton_validate softmax v1 --cases {plan} --seed 83114",
        "%%triton_kernel softmax v2 --technique Tiling --replay\n" + rv.SOURCES["v2_tiling"],
        "%triton_validate softmax v2 --cases {plan} --seed 83114",
        "%triton_bench softmax --sizes {sizes} --runs {runs} --seed 5",
    ]


def test_steps_that_differ_from_parameters_have_own_values() -> None:
    log = rv.log_input(2)
    odd = rv.validation("v2_tiling", sha256=rv.sha256(rv.SOURCES["v2_tiling"]))
    odd = odd.evolve(
        request=odd.request.evolve(
            plan="quick", dtypes=("float16",), rtol=0.01, shapes=((7, 13), (2,))
        )
    )
    second = dataclasses.replace(log.versions[1], validations=(odd,))
    cells = cells_of(dataclasses.replace(log, versions=(log.versions[0], second)))
    assert source_of(cells["softmax-v2-validate"]) == (
        "%triton_validate softmax v2 --dtype float16 --quick --shape 7x13 --shape 2 --seed 83114"
        " --rtol 0.01"
    )


def test_bench_line_has_all_requested_options() -> None:
    value = rv.benchmark(1, sizes=("small",), runs=3, dtype="float16", cold=False)
    value = value.evolve(providers=(*value.providers, "torch.compile"))
    options = Parameters("full", "small", 10, 20.0)
    assert bench_line(value, rv.log_input(2), options) == (
        "%triton_bench softmax v1 --sizes {sizes} --runs 3 --dtype float16 "
        "--against torch.compile --hot --seed 5"
    )
    counted = (Census(provider="torch", size="small", note="CUPTI refused"),)
    value = value.evolve(clock="graph", census=counted)
    assert bench_line(value, rv.log_input(2), options).endswith(
        " --hot --timer graph --census --seed 5"
    )


def test_user_defined_op_has_a_reference_cell() -> None:
    cell = cells_of(rv.log_input(1, reference="def reference(x):\n    return x\n"))
    assert source_of(cell["softmax-reference"]).startswith("%%triton_reference softmax\ndef ref")


def test_new_version_changes_only_tagged_cells() -> None:
    two, three = cells_of(rv.log_input(2)), cells_of(rv.log_input(3))
    inserted = [i for i in three if i not in two]
    assert inserted == ["softmax-v3-about", "softmax-v3-code", "softmax-v3-validate"]
    assert [i for i in three if i in two] == list(two)
    changed = {i for i in two if two[i] != three[i]}
    assert changed
    for cell in changed:
        assert "summary" in two[cell]["metadata"]["tags"]


def test_failed_attempt_is_explained_before_its_cell() -> None:
    ids = list(cells_of(rv.log_input(1)))
    at = ids.index("softmax-v1-attempt-1-code")
    assert ids[at - 1] == "softmax-v1-attempt-1-why"
    assert ids[at + 1 : at + 3] == ["softmax-v1-attempt-1-validate", "softmax-v1-code"]


def test_failed_version_does_not_stop_run_all() -> None:
    wrong = rv.wrong_validation(sha256=rv.sha256(rv.SOURCE))
    version = VersionLog("v1_baseline", (rv.source(),), (wrong,))
    cells = cells_of(rv.log_input(versions=(version,), best=None))
    assert source_of(cells["softmax-v1-validate"]).endswith("--no-raise")
    assert "WRONG" in "".join(cells["softmax-v1-validate"]["outputs"][0]["data"]["text/markdown"])


def test_outputs_are_text_and_pictures_only() -> None:
    cells = cells_of(rv.log_input(2))
    for cell in cells.values():
        for output in cell.get("outputs", []):
            assert output["output_type"] == "display_data"
            assert set(output["data"]) in (
                {"text/plain", "text/markdown"},
                {"text/plain", "image/png"},
            )
    table, plot, times = (o["data"] for o in cells["softmax-bench"]["outputs"])
    assert "".join(times["text/plain"]).startswith("softmax, torch: 2.2 us / 6.1 us / 55.1 us")
    assert "1.63x" in "".join(table["text/markdown"])
    assert "".join(plot["text/plain"]).startswith("softmax v1: 1.16x / 1.52x / 1.17x; v2: 1.16x")
    assert base64.b64decode(plot["image/png"]).startswith(b"\x89PNG")


def test_metadata_and_outputs_have_no_paths_or_durations() -> None:
    error = rv.compile_error(message="in /home/someone/ws/kernels/softmax/v1_baseline.py")
    refused = rv.validation(
        "v1_baseline", status=Status.COMPILE_ERROR, cases=(), error=error, output="/tmp/secret/x"
    )
    version = VersionLog("v1_baseline", (rv.source(),), (refused,))
    log = rv.log_input(versions=(version,), best=None, notes=("forced: see /opt/secret/why.md",))
    for text in (write_notebook(log_notebook(log)), markdown_log(log), html_log(log)):
        assert not re.search(r"/home/|/tmp/|/opt/|secret", text)
        assert "in kernels/softmax/v1_baseline.py" in text
    notebook = log_notebook(rv.log_input(2))
    assert set(notebook["metadata"]) == {"kernelspec", "language_info", "triton_magics"}
    assert notebook["metadata"]["triton_magics"]["versions"] == ["v1_baseline", "v2_tiling"]
    assert all(set(c["metadata"]) <= {"tags"} for c in notebook["cells"])
    assert "1.2 s" not in write_notebook(notebook)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("at /home/a/ws/kernels/softmax/v1.py:3", "at kernels/softmax/v1.py:3"),
        ('File "/usr/lib/python3/x.py"', 'File "x.py"'),
        ("(/tmp/x/y.py)", "(y.py)"),
        ("exp(x)/sum(x)/n and a/b/c", "exp(x)/sum(x)/n and a/b/c"),
        ("see https://a.b/c/d", "see https://a.b/c/d"),
        ("1.16x / 1.56x / 1.66x", "1.16x / 1.56x / 1.66x"),
        ("error:/home/a/b", "error:b"),
    ],
)
def test_paths_are_shortened_and_formulas_are_not(text: str, expected: str) -> None:
    assert shorten_paths(text) == expected


def test_clean_values_stay_unchanged() -> None:
    timeless = [c.evolve(duration_s=None) for c in rv.wrong_validation().cases]
    value = rv.wrong_validation(duration_s=None, cases=tuple(timeless))
    assert strip_machine_details(value).model_dump_json() == value.model_dump_json()
    assert strip_machine_details(rv.source()).source == rv.SOURCE


def test_cell_ids_are_valid_unique_and_stable() -> None:
    ids = list(cells_of(rv.log_input(3)))
    assert len(set(ids)) == len(ids)
    assert all(re.fullmatch(r"[a-zA-Z0-9-_]{1,64}", i) for i in ids)
    long = "a" * 64
    assert len(cell_id(long, "v1-attempt-12-code")) == 64
    assert cell_id(long, "x") != cell_id("a" * 63 + "b", "x")


def test_duplicate_cell_ids_are_an_error() -> None:
    version = rv.log_input(1).versions[0]
    with pytest.raises(ExportError, match="softmax-v1-about"):
        log_notebook(rv.log_input(versions=(version, version)))


def test_kernel_cell_names_entry_and_technique() -> None:
    def first_line(**changes: Any) -> str:
        return kernel_cell(rv.source().evolve(**changes), as_magic).splitlines()[0]

    assert first_line() == "%%triton_kernel softmax v1 --replay"
    assert first_line(version="v2_online") == "%%triton_kernel softmax v2_online --replay"
    assert first_line(version="v5") == "%%triton_kernel softmax v5 --replay"
    assert first_line(entry="solve") == "%%triton_kernel softmax v1 --entry solve --replay"


def test_profile_follows_its_version_and_can_be_repeated() -> None:
    log = rv.log_input(2)
    first, second = log.versions
    profiled = dataclasses.replace(second, profile=rv.profile())
    log = dataclasses.replace(log, versions=(first, profiled))
    cell = cells_of(log)["softmax-v2-profile"]
    assert "".join(cell["source"]) == (
        "%triton_profile softmax v2 --size large --dtype float32 --against v1 --seed 1 --no-raise"
    )
    table, plot = (o["data"] for o in cell["outputs"])
    assert "MEMORY-BOUND" in "".join(table["text/markdown"])
    assert base64.b64decode(plot["image/png"]).startswith(b"\x89PNG")
    text = markdown_log(log)
    assert "device memory works at 77 % of its peak" in text
    assert "tl.load(x_ptr + offsets, mask=mask)" in text
    assert [f.name for f in log_figures(log)][-1] == "softmax_profile.png"


def test_sweep_follows_its_version_and_can_be_repeated() -> None:
    log = rv.log_input(2)
    first, second = log.versions
    swept = dataclasses.replace(second, sweep=rv.sweep())
    log = dataclasses.replace(log, versions=(first, swept))
    cell = cells_of(log)["softmax-v2-sweep"]
    assert "".join(cell["source"]) == (
        "%triton_sweep softmax v2 BLOCK_SIZE=256,500,1024,2048 num_warps=2,4,8 --size large "
        "--seed 7 --no-raise"
    )
    table, plot = (o["data"] for o in cell["outputs"])
    assert "1024" in "".join(table["text/markdown"])
    assert base64.b64decode(plot["image/png"]).startswith(b"\x89PNG")
    text = markdown_log(log)
    assert "BLOCK_SIZE=1024 num_warps=4 takes 30.0 us" in text
    assert [f.name for f in log_figures(log)][-1] == "softmax_sweep.png"
