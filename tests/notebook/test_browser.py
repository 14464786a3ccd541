"""The panel and the results in a real JupyterLab, driven by Chromium as a person would."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = os.environ.get("TRITON_MAGICS_SCREENSHOTS")
KERNEL = (Path(__file__).parents[1] / "faults" / "kernels").rglob("sum_right.py")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here"),
]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with a notebook in it, not yet run."""
    made = tmp_path_factory.mktemp("browser")
    source = next(iter(KERNEL)).read_text()
    cells = [
        "%load_ext triton_magics\n%config TritonMagics.device = 'interpreter'",
        "%triton_op sum",
        f"%%triton_kernel sum v1\n{source}",
        "%triton_panel sum",
    ]
    notebook = nbformat.v4.new_notebook(
        metadata={
            "kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}
        }
    )
    notebook.cells = [nbformat.v4.new_code_cell(c, id=f"c{i}") for i, c in enumerate(cells)]
    nbformat.write(notebook, made / "work.ipynb")
    return made


@pytest.fixture(scope="module")
def lab_url(folder: Path) -> Iterator[str]:
    """A JupyterLab of our own, without a token, on the loopback."""
    port = _free_port()
    command = [
        sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}",
        "--ip=127.0.0.1", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and server.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/api", timeout=2).close()
                break
        yield url
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def page(lab_url: str) -> Iterator[Any]:
    """The notebook, opened and run to its end."""
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        opened = browser.new_page(viewport={"width": 1280, "height": 1500})
        opened.goto(f"{lab_url}/lab/tree/work.ipynb")
        opened.wait_for_function("window.jupyterapp !== undefined", timeout=60_000)
        opened.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=60_000)
        opened.wait_for_function(
            "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status"
            " === 'idle'",
            timeout=60_000,
        )
        opened.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        opened.wait_for_selector(
            ".jp-Cell:last-child .widget-button, .jp-Cell:last-child button", timeout=120_000
        )
        yield opened
        browser.close()


def shot(page: Any, name: str) -> None:
    """A picture for docs/images, where that was asked for."""
    if SCREENSHOTS:
        page.screenshot(path=str(Path(SCREENSHOTS) / f"{name}.png"))


def test_the_panel_shows_the_state_and_the_version(page: Any) -> None:
    text = page.locator(".jp-Notebook").inner_text()
    assert "v1_baseline" in text
    assert re.search(r"1 of 3 versions written", text)


def test_a_click_on_validate_gives_a_verdict_that_also_stands_in_the_output(page: Any) -> None:
    page.get_by_role("button", name=re.compile("^validate")).first.click()
    page.wait_for_function(
        "document.querySelector('.jp-Notebook').innerText.includes('RIGHT (interpreter)')",
        timeout=120_000,
    )
    shot(page, "panel")
    text = page.locator(".jp-Notebook").inner_text()
    assert re.search(r"✓ right", text)
    assert "next: %triton_bench sum v1" in text


def test_results_are_static_tables_and_not_widgets_only(page: Any) -> None:
    written = page.locator(".jp-Cell").nth(2)
    assert "saved" in written.locator(".jp-OutputArea").inner_text()
    assert written.locator(".jp-RenderedHTMLCommon").count() >= 1
