"""A real Jupyter kernel: one whole pass, failing cells, an interrupt, completion."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.kernels import Kernel, Reply, started

KERNEL = """
import torch
import triton
import triton.language as tl


@triton.jit
def relu_kernel(x_ptr, out_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, tl.where(x < 0, 0.0, x), mask=mask)


def triton_relu(x):
    x = x.contiguous()
    out = torch.empty_like(x)
    n = out.numel()
    relu_kernel[(triton.cdiv(n, 1024),)](x, out, n, BLOCK_SIZE=1024)
    return out
"""
NEVER_ENDS = "import time\n\n\ndef triton_gelu(x):\n    print('here I am')\n    time.sleep(600)\n"


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("notebook")) as kernel:
        yield kernel


@pytest.fixture(scope="module")
def loaded(kernel: Kernel) -> Kernel:
    """A kernel with the magics; the interpreter spends little on a validation."""
    loading = kernel(
        "%load_ext triton_magics\n"
        "_heavy = {'torch', 'triton', 'matplotlib', 'ipywidgets'} & set(sys.modules)"
    )
    assert (loading.status, loading.outputs) == ("ok", [])
    kernel("%config TritonMagics.validate_budget_s = 4.0")
    kernel("%config TritonMagics.device = 'interpreter'")
    return kernel


@pytest.fixture(scope="module")
def written(loaded: Kernel) -> Reply:
    """The op's page was shown, and its first version written."""
    assert loaded("%triton_op relu").status == "ok"
    return loaded(f"%%triton_kernel relu v1 --technique 'one block per program'{KERNEL}")


@pytest.fixture(scope="module")
def validated(loaded: Kernel, written: Reply) -> Reply:
    return loaded("%triton_validate relu v1 --quick")


def test_loading_imports_nothing_heavy(loaded: Kernel) -> None:
    assert loaded("_heavy").text == "set()"


def test_a_kernel_is_saved_and_compiled(loaded: Kernel, written: Reply) -> None:
    assert written.status == "ok"
    assert "✓ relu v1 saved" in written.text
    assert "registers" in written.text
    module = loaded.folder / "kernels" / "relu" / "v1_baseline.py"
    assert module.read_text().endswith(KERNEL.lstrip("\n"))


def test_it_is_validated(validated: Reply) -> None:
    assert validated.status == "ok"
    assert validated.text.startswith("✓ RIGHT (interpreter)  relu v1")


def test_it_is_timed_and_the_picture_follows_the_table(loaded: Kernel, validated: Reply) -> None:
    reply = loaded("%triton_bench relu --sizes small --runs 1")
    assert reply.status == "ok"
    assert [k for k in reply.kinds if k != "update_display_data"][-2:] == [
        "execute_result",
        "display_data",
    ]
    assert "TIMED (interpreter)" in reply.text
    figure = reply.of("display_data")[-1]["data"]
    assert figure["image/png"]
    assert f'<img alt="{figure["text/plain"]}"' in figure["text/html"]


def test_status_reports_its_state(loaded: Kernel, validated: Reply) -> None:
    text = loaded("%triton_status relu").text
    assert "1 of 3 versions written" in text
    assert "✓ right (interpreter)" in text


def test_its_log_is_written_for_review(loaded: Kernel, validated: Reply) -> None:
    assert loaded("%triton_log relu").status == "ok"
    notebook = json.loads((loaded.folder / "logs" / "relu_log.ipynb").read_text())
    assert notebook["nbformat"] == 4


def test_no_torch_has_come_into_the_notebooks_process(loaded: Kernel, validated: Reply) -> None:
    assert loaded("sorted({'torch', 'triton'} & set(sys.modules))").text == "[]"


# ------------------------------------------------------------------------------- failing cells


def test_a_compile_error_fails_the_cell_at_its_line(loaded: Kernel) -> None:
    broken = KERNEL.replace("tl.where(x < 0, 0.0, x)", "tl.nosuch(x)")
    reply = loaded(f"%%triton_kernel relu v2{broken}")
    assert reply.status == "error"
    (error,) = reply.of("error")
    assert len(error["traceback"]) == 1
    displayed = [o["data"]["text/plain"] for o in reply.of("display_data")]
    shown = "\n".join([*displayed, *error["traceback"]])
    line = 1 + broken.splitlines().index("    tl.store(out_ptr + offsets, tl.nosuch(x), mask=mask)")
    assert error["ename"] == "KernelFailure"
    assert f"cell line {line} · kernels/relu/v2_tiling.py:" in shown
    assert "tl.nosuch" in shown
    assert "triton_magics/" not in shown
    assert "Traceback" not in shown


def test_what_the_user_can_mend_is_one_line(loaded: Kernel) -> None:
    reply = loaded("%triton_validate relu v9")
    (error,) = reply.of("error")
    assert error["ename"] == "UnknownVersion"
    assert len(error["traceback"]) == 1


def test_a_line_that_does_not_fit_fails_its_cell(loaded: Kernel) -> None:
    reply = loaded("%triton_bench relu --sizs small")
    assert reply.status == "error"
    assert "UsageError: unrecognized arguments: --sizs" in reply.stdout


def test_an_interrupt_ends_a_job(loaded: Kernel) -> None:
    loaded("%triton_op gelu")
    loaded(f"%%triton_kernel gelu v1 --no-compile\n{NEVER_ENDS}")
    sent: list[bool] = []

    def interrupt_once_it_runs(message: dict[str, Any]) -> None:
        if "here I am" in message["content"].get("text", "") and not sent:
            sent.append(True)
            loaded.interrupt()

    reply = loaded("%triton_run gelu v1", watch=interrupt_once_it_runs)
    assert sent
    assert reply.status == "error"
    (error,) = reply.of("error")
    assert error["evalue"].startswith("! INTERRUPTED")
    assert "KeyboardInterrupt" not in "".join(error["traceback"])


def test_the_job_after_an_interrupt_works(loaded: Kernel, validated: Reply) -> None:
    assert loaded("%triton_run relu v1 --shape 7").text.startswith("✓ RAN")


def test_a_slow_job_says_how_far_it_is(loaded: Kernel) -> None:
    names_itself = NEVER_ENDS.replace("'here I am'", "f'pid {__import__(\"os\").getpid()}'")
    loaded(f"%%triton_kernel gelu v2 --no-compile\n{names_itself}")
    pids: list[int] = []
    steps: list[str] = []

    def kill_after_three_seconds(message: dict[str, Any]) -> None:
        content = message["content"]
        pids.extend(map(int, re.findall(r"pid (\d+)", content.get("text", ""))))
        text = str(content.get("data", {}).get("text/plain"))
        steps.extend(re.findall(r"calling it .* · (?:[3-9]|\d\d+)\.\d s", text))
        if pids and steps:
            os.kill(pids.pop(), signal.SIGKILL)

    reply = loaded("%triton_run gelu v2", watch=kill_after_three_seconds)
    assert reply.status == "error"
    assert steps
    assert not pids
    line, *_ = reply.of("display_data")
    assert line["data"]["text/plain"].startswith("run gelu v2 · ")
    updates = reply.of("update_display_data")
    assert {u["transient"]["display_id"] for u in updates} == {line["transient"]["display_id"]}
    assert updates[-1]["data"]["text/plain"].startswith("run gelu v2 · ended after ")


# ---------------------------------------------------------------------------------- completion


def test_options_are_completed_and_nothing_else(loaded: Kernel) -> None:
    reply = loaded.complete("%triton_best relu --")
    assert reply["matches"] == [
        "--now", "--why", "--fastest", "--install", "--out", "--quiet", "--traceback", "--help",
    ]  # fmt: skip
    assert (reply["cursor_start"], reply["cursor_end"]) == (18, 20)


def test_versions_are_completed(loaded: Kernel, written: Reply) -> None:
    assert loaded.complete("%triton_inspect relu v")["matches"] == ["v1", "v2"]


def test_python_in_a_cell_of_ours_is_completed_as_ever(loaded: Kernel) -> None:
    reply = loaded.complete("%%triton_kernel relu v3\nimport os\nos.getcw")
    assert {"getcwd", "getcwdb"} <= set(reply["matches"])


# -------------------------------------------------------------------------------------- panels


def test_a_panel_is_a_static_state_and_a_widget(loaded: Kernel, validated: Reply) -> None:
    loaded(f"%%triton_kernel relu v2 --no-compile{KERNEL}")
    reply = loaded("panel = %triton_panel relu\npanel")
    state, widget = reply.of("display_data")
    assert "2 of 3 versions written" in state["data"]["text/plain"]
    assert "application/vnd.jupyter.widget-view+json" in widget["data"]


def test_a_panel_reacts_while_a_cell_runs(loaded: Kernel) -> None:
    loaded("%triton_op gelu")
    loaded(f"%%triton_kernel gelu v3 --no-compile\n{NEVER_ENDS}")
    (line,) = loaded("panel = %triton_panel gelu\nprint(panel._job_bar.cancel.model_id)").of(
        "stream"
    )
    click = {"method": "custom", "content": {"event": "click"}}
    subshell = loaded.subshell()
    clicked: list[bool] = []

    def cancel_once_it_runs(message: dict[str, Any]) -> None:
        if "here I am" in message["content"].get("text", "") and not clicked:
            clicked.append(True)
            loaded.send_to_comm(line["text"].strip(), click, subshell)

    reply = loaded("%triton_run gelu v3 --timeout 60", watch=cancel_once_it_runs)
    assert clicked
    assert reply.of("error")[0]["evalue"].startswith("! INTERRUPTED")


def test_a_panel_follows_another_process_without_a_cell(loaded: Kernel) -> None:
    loaded("panel = %triton_panel gelu\npanel")
    (loaded.folder / "cell.py").write_text("def triton_gelu(x):\n    return x\n")
    program = Path(sys.executable).with_name("triton-magics")
    command = [program, "write", "gelu", "v4", "cell.py", "--no-compile"]
    subprocess.run(command, cwd=loaded.folder, check=True, capture_output=True)
    update = loaded.next_display_update(
        lambda m: "v4_optimized" in m["content"]["data"].get("text/plain", "")
    )
    assert "<details>" in update["content"]["data"]["text/html"]


def test_a_click_after_the_engine_died_starts_it_anew(loaded: Kernel, validated: Reply) -> None:
    loaded(
        "import os, signal\nimport triton_magics as tm\npanel = %triton_panel relu\n"
        "engine = tm.default_lab().session.jobs.executor\n"
        "os.kill(engine.queue().pool.pids[0], signal.SIGKILL)\n"
        "while engine.state().workers: pass\n"
        "panel.refresh()\ndead = panel._tabs[5]._about.value\n"
        "panel._tabs[0]._version.value = 'v1_baseline'\n"
        "panel._tabs[0]._validate.click()\nok = panel.wait_until_shown()"
    )
    assert "none; the next job starts one" in loaded("print(dead)").stdout
    verdict = loaded("print(ok, panel._result.outputs[0]['data']['text/plain'])").stdout
    assert verdict.startswith("True ✓ RIGHT (interpreter)  relu v")


def test_unloading_ends_every_process(loaded: Kernel, validated: Reply) -> None:
    loaded("children = f'/proc/{os.getpid()}/task/{os.getpid()}/children'")
    assert loaded("open(children).read()").text != "''"
    assert loaded("%unload_ext triton_magics").status == "ok"
    assert loaded("while open(children).read(): pass").status == "ok"
    assert loaded("%load_ext triton_magics").status == "ok"
