"""A real JupyterLab, and a notebook in it that is worked in as a person does."""

from __future__ import annotations

import contextlib
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import nbformat
from PIL import Image

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = os.environ.get("TRITON_MAGICS_SCREENSHOTS")
PATIENCE_MS = 120_000
KERNELSPEC = {"name": "python3", "display_name": "Python 3", "language": "python"}
# The frontend's own promise ends with the last cell: it must not be waited for.
COMMAND = "([name, args]) => { window.jupyterapp.commands.execute(name, args) }"
# No news, and every cell in the page, in sight or not.
LAB_SETTINGS = {
    "@jupyterlab/apputils-extension/notification": {
        "fetchNews": "false", "checkForUpdates": False, "doNotDisturbMode": True,
    },
    "@jupyterlab/notebook-extension/tracker": {"windowingMode": "none"},
}  # fmt: skip
SOURCES = (
    "window.jupyterapp.shell.currentWidget.content.widgets"
    ".map(cell => cell.model.sharedModel.getSource())"
)
IDLE = "window.jupyterapp.shell.currentWidget?.sessionContext?.session?.kernel?.status === 'idle'"


def write_notebook(path: Path, cells: list[str]) -> None:
    """Write a notebook that was not executed."""
    notebook = nbformat.v4.new_notebook(metadata={"kernelspec": KERNELSPEC})
    notebook.cells = [nbformat.v4.new_code_cell(c, id=f"c{i}") for i, c in enumerate(cells)]
    nbformat.write(notebook, path)


@contextmanager
def jupyterlab(folder: Path) -> Iterator[str]:
    """Start a JupyterLab without a token on the loopback; yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    command = [
        sys.executable, "-m", "jupyter", "lab", "--no-browser", "--allow-root", f"--port={port}",
        "--ip=127.0.0.1", "--IdentityProvider.token=", "--LabApp.expose_app_in_browser=True",
        "--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
        f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    ours = {"CONFIG_DIR": ".jupyter", "DATA_DIR": ".data"}
    home = {f"JUPYTER_{name}": str(folder / place) for name, place in ours.items()}
    for plugin, values in LAB_SETTINGS.items():
        file = folder / ".jupyter" / "lab" / "user-settings" / f"{plugin}.jupyterlab-settings"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(values))
    with (folder / "server.log").open("w") as log:
        server = subprocess.Popen(
            command, stdout=log, stderr=log, start_new_session=True, env=os.environ | home
        )
    try:
        url = f"http://127.0.0.1:{port}"
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while time.monotonic() < deadline and server.poll() is None:
            with contextlib.suppress(OSError):
                urllib.request.urlopen(f"{url}/api", timeout=2).close()
                break
        yield url
    finally:
        server.terminate()
        server.wait(PATIENCE_MS / 1000)


@contextmanager
def chromium(sync_api: Any) -> Iterator[Any]:
    """Start a browser without a window."""
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM,
            args=["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
        )
        yield browser
        browser.close()


@dataclass
class Notebook:
    """An open notebook; `page` is its browser's."""

    page: Any
    url: str

    def open(self, path: str) -> None:
        """Open a notebook in a new kernel and wait until it is ready."""
        self.page.goto(f"{self.url}/lab/tree/{path}?reset")
        self.page.wait_for_function("window.jupyterapp !== undefined", timeout=PATIENCE_MS)
        self.page.wait_for_selector(".jp-Notebook .jp-CodeCell", timeout=PATIENCE_MS)
        self.page.wait_for_function(IDLE, timeout=PATIENCE_MS)

    def command(self, name: str, **arguments: object) -> None:
        """Run a command of JupyterLab."""
        self.page.evaluate(COMMAND, [name, arguments])

    def run(self, code: str) -> Any:
        """Add a cell at the end and run it; return its output area once it has ended."""
        number = self.start(code)
        self.page.wait_for_function(
            "n => { const p = [...document.querySelectorAll('.jp-Notebook .jp-CodeCell')][n]"
            "?.querySelector('.jp-InputPrompt')?.innerText; return /\\[\\d+\\]/.test(p) }",
            arg=number,
            timeout=PATIENCE_MS,
        )
        return self.cells.nth(number).locator(".jp-Cell-outputArea")

    def start(self, code: str) -> int:
        """Add a cell at the end and start it; return its number."""
        number = self.cells.count() - 1
        self.cells.nth(number).locator(".cm-content").click()
        self.cells.nth(number).locator(".cm-focused").wait_for()
        self.page.keyboard.insert_text(code)
        self.page.wait_for_function(f"{SOURCES}[{number}] === {json.dumps(code)}")
        self.page.keyboard.press("Shift+Enter")
        self.page.wait_for_function(f"{SOURCES}.length > {number + 1}")
        return number

    @property
    def cells(self) -> Any:
        return self.page.locator(".jp-Notebook .jp-CodeCell")

    @property
    def sources(self) -> list[str]:
        """The text of every cell, those out of sight too."""
        return list(self.page.evaluate(SOURCES))

    def button(self, name: str) -> Any:
        """Return the first visible button of that name."""
        buttons = self.page.get_by_role("button", name=name, exact=True)
        return buttons.filter(visible=True).first

    def tab(self, name: str) -> None:
        """Open a tab of the panel."""
        self.page.get_by_role("tab", name=name, exact=True).click()

    def wait_for(self, words: str, within: str = ".jp-Notebook") -> None:
        """Wait until a text is visible."""
        self.page.wait_for_function(
            "([where, words]) => [...document.querySelectorAll(where)]"
            ".some(e => e.innerText.includes(words))",
            arg=[within, words],
            timeout=PATIENCE_MS,
        )

    def text(self, within: str = ".jp-Notebook") -> str:
        return "\n".join(self.page.locator(within).all_inner_texts())

    def shot(self, name: str, part: Any = None) -> None:
        """Save a picture for docs/images, if TRITON_MAGICS_SCREENSHOTS is set."""
        save_shot(name, part or self.page)


def save_shot(name: str, part: Any, **options: Any) -> None:
    """Save a picture with a palette of 64 colours, if TRITON_MAGICS_SCREENSHOTS is set."""
    if not SCREENSHOTS:
        return
    picture = Image.open(io.BytesIO(part.screenshot(**options))).convert("RGB")
    picture.quantize(64).save(Path(SCREENSHOTS) / f"{name}.png", optimize=True)


def serious_faults(page: Any, where: str) -> list[str]:
    """Return axe-core's serious and critical findings in a part of a page."""
    from axe_playwright_python.sync_playwright import Axe

    violations = Axe().run(page, context=where).response["violations"]
    return [
        f"{fault['id']} ({fault['impact']}): {' '.join(node['html'].split())[:200]}"
        for fault in violations
        if fault["impact"] in ("serious", "critical")
        for node in fault["nodes"]
    ]
