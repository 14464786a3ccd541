"""The notebook as a place to work, in a real JupyterLab driven by Chromium.

    TRITON_MAGICS_SCREENSHOTS=docs/images python -m pytest tests/notebook/test_browser.py

writes the pictures of the docs.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.notebook.browsers import (
    CHROMIUM,
    PATIENCE_MS,
    Notebook,
    chromium,
    jupyterlab,
    save_shot,
    serious_faults,
    write_notebook,
)

FIXTURE = next((Path(__file__).parents[1] / "faults" / "kernels").rglob("sum_right.py"))
RIGHT = FIXTURE.read_text().split('"""')[2].lstrip()  # without its docstring
WRONG = RIGHT.replace("other=0.0", "other=1.0")
HANGS = "import time\n\n\ndef triton_gelu(x):\n    print('here I am')\n    time.sleep(600)\n"
START = (
    "%load_ext triton_magics\n%config TritonMagics.device = 'interpreter'\n"
    "%config TritonMagics.validate_budget_s = 2.0"
)
PANEL = ".jupyter-widgets.widget-tab"
RESULT = ".jupyter-widgets.widget-output"
SIDE = (
    "xpath=//*[@id='jp-main-dock-panel']//*[contains(@class, 'jp-OutputArea ')]"
    "[.//*[contains(@class, 'widget-tab')]][not(ancestor::*[contains(@class, 'jp-Notebook')])]"
)
CUT_TITLES = """() => [...document.querySelectorAll(
  '.triton-panel .lm-TabBar-tabLabel, .triton-panel button')]
  .filter(e => e.offsetParent && e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)"""
# Scrolls to the cell before one, and returns the height of both in pixels.
BOTH_CELLS = """cell => {
  const code = cell.previousElementSibling
  code.scrollIntoView({block: 'start'})
  return cell.getBoundingClientRect().bottom - code.getBoundingClientRect().top
}"""

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium here"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an empty notebook in it."""
    folder = tmp_path_factory.mktemp("browser")
    write_notebook(folder / "work.ipynb", [""])
    return folder


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium(pytest.importorskip("playwright.sync_api")) as launched:
        yield launched


@pytest.fixture(scope="module")
def empty(folder: Path, browser: Any) -> Iterator[Notebook]:
    """The empty notebook, opened."""
    with jupyterlab(folder) as url:
        page = browser.new_page(viewport={"width": 1280, "height": 1500})
        page.set_default_timeout(PATIENCE_MS)
        notebook = Notebook(page, url)
        notebook.open("work.ipynb")
        yield notebook


@pytest.fixture(scope="module")
def worked(empty: Notebook) -> Notebook:
    """A wrong version, its verdict, the right one, its verdict, its time: what a person types."""
    empty.run(START)
    assert "0 of 3 versions written" in empty.run("%triton_op sum").inner_text()
    empty.run(f"%%triton_kernel sum v1\n{WRONG}")
    failure = empty.run("%triton_validate sum v1")
    assert re.search(r"✗ WRONG.*sum v1", failure.inner_text())
    empty.shot("failure", failure)
    assert "saved" in empty.run(f"%%triton_kernel sum v1\n{RIGHT}").inner_text()
    result = empty.run("%triton_validate sum v1")
    assert "✓ RIGHT (interpreter)" in result.inner_text()
    empty.shot("result", result)
    timed = empty.run("%triton_bench sum --sizes small --runs 1")
    assert "TIMED (interpreter)" in timed.inner_text()
    timed.locator("img").first.wait_for()
    empty.shot("plots", timed)
    return empty


@pytest.fixture(scope="module")
def panel(worked: Notebook) -> Notebook:
    """The panel, below all that."""
    worked.run("%triton_panel sum")
    worked.page.locator(PANEL).wait_for()
    worked.page.locator(PANEL).scroll_into_view_if_needed()
    return worked


def shown(panel: Notebook) -> Any:
    """Return the output area of the panel: the state, the panel and the result."""
    areas = panel.page.locator(".jp-Cell-outputArea")
    return areas.filter(has=panel.page.locator(PANEL)).first


def test_a_wrong_kernel_and_its_verdict_are_on_one_screen(worked: Notebook) -> None:
    page = worked.page
    page.set_viewport_size({"width": 1280, "height": 1000})
    try:
        verdict = worked.cells.filter(has_text="KernelFailure").first
        height = page.evaluate(BOTH_CELLS, verdict.element_handle())
        room = page.locator(".jp-Notebook .jp-WindowedPanel-outer").first.bounding_box()["height"]
        worked.shot("one-screen")
    finally:
        page.set_viewport_size({"width": 1280, "height": 1500})
    assert height <= room


def test_from_an_empty_notebook_to_the_log(panel: Notebook, folder: Path) -> None:
    assert "v1_baseline" in panel.text(PANEL)
    assert "✓ right (interpreter)" in panel.text(PANEL)
    panel.button("best so far").click()
    panel.wait_for("the newest version that passed", RESULT)
    panel.tab("Log")
    panel.button("write the log").click()
    panel.wait_for("log written", RESULT)
    exported = json.loads((folder / "logs" / "sum_log.ipynb").read_text())
    assert exported["nbformat"] == 4
    assert "torch.sum Triton Kernel" in (folder / "logs" / "sum_log.md").read_text()


# ------------------------------------------------------------------------------ tabs and buttons


def test_the_plot_has_its_finding_in_words(panel: Notebook) -> None:
    panel.tab("Plots")
    alt = panel.page.locator(f"{PANEL} img").first.get_attribute("alt")
    assert alt.startswith("sum v1: ")


def test_a_search_and_a_template_that_becomes_a_cell(panel: Notebook) -> None:
    panel.tab("References")
    panel.wait_for("torch.sum", PANEL)
    panel.button("Triton syntax").click()
    panel.wait_for("tl.load", PANEL)
    panel.page.get_by_role("textbox", name="search").fill("online reduction")
    panel.button("search").click()
    panel.wait_for("running maximum", PANEL)
    panel.button("reduction (fits sum)").click()
    panel.page.wait_for_function(
        "window.jupyterapp.shell.currentWidget.content.widgets"
        ".some(c => c.model.sharedModel.getSource().startsWith('%%triton_kernel sum v2_tiling'))"
    )
    cell = next(s for s in panel.sources if s.startswith("%%triton_kernel sum v2"))
    assert "def triton_sum(" in cell
    panel.command("notebook:delete-cell")


def test_the_log_tab_tells_what_happened(panel: Notebook) -> None:
    panel.tab("Log")
    panel.wait_for("validated", PANEL)
    assert "attempt 2" in panel.text(PANEL)
    panel.button("with tests").click()
    panel.wait_for("tests/test_sum.py", RESULT)


def test_the_engine_tab_names_the_device_and_its_workers(panel: Notebook) -> None:
    panel.tab("Engine")
    panel.wait_for("CPU (Triton's interpreter)", PANEL)
    assert re.search(r"standby for the interpreter\s+(ready|warming up)", panel.text(PANEL))
    assert "no job is running" in panel.text(PANEL)


def test_an_attempt_is_compared_and_restored(panel: Notebook) -> None:
    panel.tab("Versions")
    panel.button("1").click()
    panel.button("diff with attempt 1").click()
    panel.wait_for("other=0.0", RESULT)
    panel.button("code").click()
    panel.wait_for("other=1.0", RESULT)
    panel.button("restore attempt 1").click()
    panel.wait_for("3 (newest)", PANEL)
    panel.wait_for("✗ wrong", PANEL)
    panel.button("bench").click()
    panel.wait_for("IllegalStep", RESULT)
    panel.button("validate").click()
    panel.wait_for("✗ WRONG", RESULT)
    panel.wait_for("✗ wrong", PANEL)
    panel.button("2").click()
    panel.button("restore attempt 2").click()
    panel.wait_for("4 (newest)", PANEL)
    panel.button("validate all").click()
    panel.wait_for("✓ right (interpreter)", PANEL)
    panel.button("mark best").click()
    panel.wait_for("chosen by hand", RESULT)


@pytest.mark.slow
def test_a_click_times_every_version(panel: Notebook) -> None:
    panel.tab("Versions")
    panel.button("validate all").click()
    panel.wait_for("✓ right (interpreter)", PANEL)
    panel.button("bench all").click()
    panel.wait_for("TIMED (interpreter)", RESULT)


# ------------------------------------------------------------------------------ live, and cancelled


def test_it_follows_another_process(panel: Notebook, folder: Path) -> None:
    (folder / "v2.py").write_text(RIGHT)
    program = Path(sys.executable).with_name("triton-magics")
    command = [program, "write", "sum", "v2", "v2.py", "--no-compile"]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    panel.wait_for("v2_tiling", PANEL)
    panel.wait_for("2 of 3 versions written", "details summary")


def test_cancel_ends_the_job_of_a_cell(panel: Notebook) -> None:
    panel.run(f"%%triton_kernel gelu v1 --no-compile\n{HANGS}")
    number = panel.start("%triton_run gelu v1 --timeout 100")
    output = panel.cells.nth(number).locator(".jp-Cell-outputArea")
    output.get_by_text("here I am").wait_for()
    panel.wait_for("running: run gelu v1_baseline", ".jupyter-widgets")
    panel.tab("Engine")
    panel.shot("engine", shown(panel))
    cancels = panel.page.get_by_role("button", name="Cancel", exact=True).filter(visible=True)
    assert cancels.count() == 1
    panel.button("Cancel").click()
    output.get_by_text("INTERRUPTED").first.wait_for()
    panel.button("Cancel").wait_for(state="hidden")


# ------------------------------------------------------------------------------ for everyone


def test_axe_finds_no_serious_fault_in_the_panel(panel: Notebook) -> None:
    for name in ("Versions", "Plots", "Profile", "References", "Log", "Engine"):
        panel.tab(name)
        assert serious_faults(panel.page, ".jp-Notebook .jupyter-widgets") == []


def test_the_keyboard_reaches_every_tab_and_every_button(panel: Notebook) -> None:
    panel.tab("Versions")
    panel.page.get_by_role("tab", name="Versions", exact=True).focus()
    reached = []
    for _ in range(14):
        panel.page.keyboard.press("Tab")
        reached.append(panel.page.evaluate("document.activeElement.innerText"))
    first_words = [text.split(" · ")[0] for text in reached]
    buttons = ["v1_baseline", "v2_tiling", "validate", "bench", "code", "validate all", "bench all"]
    assert [b for b in buttons if b in first_words] == buttons
    panel.page.get_by_role("tab", name="Versions", exact=True).focus()
    for key in ("ArrowRight", "Enter"):
        panel.page.keyboard.press(key)
    selected = panel.page.get_by_role("tab", name="Plots", exact=True)
    assert selected.get_attribute("aria-selected") == "true"
    panel.tab("Versions")
    for key in ("Enter", " "):
        panel.button("code").focus()
        panel.page.keyboard.press(key)
        panel.wait_for("def triton_sum", RESULT)


def test_the_exported_page_has_no_serious_fault(
    panel: Notebook, folder: Path, browser: Any
) -> None:
    for scheme in ("light", "dark"):
        page = browser.new_page(color_scheme=scheme, viewport={"width": 1000, "height": 900})
        page.goto((folder / "logs" / "sum_log.html").as_uri())
        assert serious_faults(page, "body") == []
        save_shot(f"log-{scheme}", page)
        page.set_viewport_size({"width": 400, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        if scheme == "light":
            save_shot("log-400", page)
        page.close()


def test_in_a_dark_theme_it_can_be_read(panel: Notebook) -> None:
    panel.command("apputils:change-theme", theme="JupyterLab Dark")
    panel.page.wait_for_selector("body[data-jp-theme-light='false']", state="attached")
    assert serious_faults(panel.page, ".jp-Notebook .jupyter-widgets") == []
    assert serious_faults(panel.page, ".jp-Notebook .triton-magics") == []
    failed = panel.page.locator(".jp-Cell-outputArea").filter(has_text="KernelFailure").first
    panel.shot("failure-dark", failed)
    panel.command("apputils:change-theme", theme="JupyterLab Light")
    panel.page.wait_for_selector("body[data-jp-theme-light='true']", state="attached")
    panel.button("diff with v1").click()
    panel.wait_for("SAME CODE", RESULT)
    panel.shot("panel", shown(panel))


def test_in_a_narrow_window_no_title_of_a_tab_is_cut(panel: Notebook) -> None:
    panel.page.set_viewport_size({"width": 820, "height": 1500})
    try:
        panel.page.wait_for_function(f"({CUT_TITLES})().length === 0")
        panel.shot("panel-820", shown(panel))
    finally:
        panel.page.set_viewport_size({"width": 1280, "height": 1500})


@pytest.mark.parametrize("width", [300, 360])
def test_in_a_narrow_dock_no_title_or_button_is_cut(panel: Notebook, width: int) -> None:
    page, resize = panel.page, "w => document.querySelector('.triton-panel').style.width = w"
    page.evaluate(resize, f"{width}px")
    try:
        for tab in ("Versions", "Plots", "Profile", "References", "Log", "Engine"):
            panel.tab(tab)
            page.wait_for_function(f"({CUT_TITLES})().length === 0")
    finally:
        page.evaluate(resize, "")


# ------------------------------------------------------------------------------ opened again


def test_after_a_restart_the_panel_shows_the_truth(panel: Notebook) -> None:
    panel.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.restartKernel()")
    panel.run(START)
    own = panel.run("%triton_panel sum").locator(PANEL)  # not the one from before the restart
    own.wait_for()
    assert "v2_tiling" in own.inner_text()
    assert "attempts" in own.inner_text()


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [True, False])
def test_a_saved_notebook_still_says_it_all(panel: Notebook, folder: Path, trusted: bool) -> None:
    """Opened in a kernel that knows nothing; one that was changed elsewhere is not trusted."""
    if trusted:
        panel.page.evaluate("window.jupyterapp.commands.execute('docmanager:save')")
        panel.page.evaluate("window.jupyterapp.serviceManager.sessions.shutdownAll()")
        panel.open("work.ipynb")
    else:
        saved = (folder / "work.ipynb").read_text()
        (folder / "copy.ipynb").write_text(saved.replace("✗ WRONG", "✗ WRONG, they say"))
        panel.open("copy.ipynb")
        panel.wait_for("✗ WRONG, they say")
    panel.wait_for("✗ WRONG")
    panel.wait_for("of 3 versions written", "details summary")
    assert panel.page.locator(".jp-OutputArea img").count() >= 1
    assert panel.page.locator(".jp-OutputArea table caption").count() >= 1
    if not trusted:
        panel.wait_for("run its cell again")


@pytest.mark.slow
def test_docked_it_is_at_the_side_and_works(panel: Notebook) -> None:
    panel.run(START)
    panel.run("%triton_panel sum --dock")
    side = panel.page.locator(SIDE).last
    side.locator(PANEL).wait_for()
    assert side.bounding_box()["width"] > 400
    side.get_by_role("button", name="code", exact=True).click()
    side.get_by_text("def triton_sum").first.wait_for()
    panel.shot("panel-docked")
