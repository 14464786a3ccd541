"""A real kernel without ipywidgets, and one from which the extension was taken out again."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.kernels import Kernel, started
from tests.notebook.shells import KERNEL

WITH_A_FAKE_ENGINE = """
import triton_magics
from tests.fake_executor import FakeExecutor
triton_magics.use(triton_magics.Lab(".", engine=FakeExecutor()))
"""
TRACES = """
def _below(pid):
    own = [int(p) for p in open(f"/proc/{pid}/task/{pid}/children").read().split()]
    return [p for child in own for p in (child, *_below(child))]

def _widgets():
    import sys
    base = sys.modules.get("ipywidgets.widgets.widget")
    return sorted(base._instances) if base else []

def _traces():
    import os, sys, threading
    shell = get_ipython()
    formatter = shell.display_formatter
    return {
        "magics": sorted(n for kind in shell.magics_manager.magics.values() for n in kind),
        "matchers": len(shell.Completer.custom_matchers),
        "transformers": len(shell.input_transformers_cleanup),
        "hooks": {name: len(handlers) for name, handlers in shell.events.callbacks.items()},
        "configurables": sorted(type(c).__name__ for c in shell.configurables),
        "formatters": sorted(
            f"{kind}: {key}"
            for kind, one in (
                *formatter.formatters.items(),
                ("bundle", formatter.mimebundle_formatter),
                ("display", formatter.ipython_display_formatter),
            )
            for key in (*one.type_printers, *one.deferred_printers)
            if "triton_magics" in str(key)
        ),
        "threads": sorted(t.name for t in threading.enumerate() if "triton" in t.name),
        "processes": _below(os.getpid()),
        "widgets": _widgets(),
        "hook": sys.excepthook.__module__,
    }
"""


def traces(kernel: Kernel) -> dict[str, Any]:
    counts: dict[str, Any] = ast.literal_eval(kernel("_traces()").text)
    return counts


def write(kernel: Kernel, version: str) -> str:
    return kernel(f"%%triton_kernel softmax {version}\n{KERNEL.format(version)}").status


def test_without_ipywidgets_all_but_panels_works(tmp_path: Path) -> None:
    with started(tmp_path) as kernel:
        kernel("sys.modules['ipywidgets'] = None  # as if it were not installed")
        kernel("%load_ext triton_magics")
        kernel(WITH_A_FAKE_ENGINE)
        assert [write(kernel, v) for v in ("v1", "v2")] == ["ok", "ok"]
        lines = (
            "%triton_op softmax", "%triton_validate softmax all", "%triton_bench softmax",
            "%triton_diff softmax v1 v2", "%triton_best softmax --now", "%triton_status",
            "%triton_log softmax", "%triton_report", "%triton_summary", "%triton_ref overview",
            "%triton_plot softmax", "%triton_bench softmax --bg",
        )  # fmt: skip
        for line in lines:
            assert kernel(line).status == "ok", line
        panel = kernel("%triton_panel softmax")
        assert panel.status == "ok"
        text = "".join(d["data"]["text/plain"] for d in panel.of("display_data"))
        assert "a panel needs ipywidgets: pip install 'triton-magics[lab]'" in text
        assert "2 of 3 versions written" in panel.text


@pytest.mark.in_turn
def test_unloading_and_loading_again_leave_nothing_behind(tmp_path: Path) -> None:
    """After a panel, a job beside the notebook, settings, real workers."""
    with started(tmp_path) as kernel:
        kernel("import ipywidgets")
        kernel("%config")  # IPython makes some of its own magics only when one is used
        kernel("%unload_ext triton_magics")
        kernel(TRACES)
        before = traces(kernel)
        assert before["processes"] == []
        kernel("%load_ext triton_magics")
        once = traces(kernel)
        kernel("%config TritonMagics.device = 'interpreter'")
        kernel("%triton_op softmax")
        assert write(kernel, "v1") == "ok"
        kernel("panel = %triton_panel softmax\npanel")
        kernel("job = %triton_validate softmax v1 --quick --bg")
        busy = traces(kernel)
        for kind in ("magics", "matchers", "hooks", "processes", "threads", "widgets"):
            assert busy[kind] != before[kind], kind
        assert kernel("%unload_ext triton_magics").status == "ok"
        assert traces(kernel) == before
        assert kernel("%load_ext triton_magics\n%reload_ext triton_magics").status == "ok"
        again = traces(kernel)
        # Workers start in the background: whether they are there yet is chance.
        assert {**again, "processes": [], "threads": []} == {**once, "processes": [], "threads": []}
