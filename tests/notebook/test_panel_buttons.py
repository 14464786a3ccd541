"""Actions of a panel's buttons on the chosen version."""

from __future__ import annotations

import ipywidgets as widgets
import pytest

from tests.fake_executor import FakeExecutor
from tests.notebook.panels import buttons, choices, click, open_tab, results, text, within
from tests.notebook.shells import KERNEL
from triton_magics.execution import Outcome
from triton_magics.lab import Lab
from triton_magics.model import Benchmark, Status, Validation
from triton_magics.notebook.panel import Panel


def test_the_newest_version_is_chosen_until_a_person_chooses(panel: Panel, lab: Lab) -> None:
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert panel.wait_until_shown()
    assert choices(panel, "version").value == "v2_tiling"
    choices(panel, "version").value = "v1_baseline"
    lab.write("softmax", "v3", KERNEL.format("v3"))
    assert panel.wait_until_shown()
    assert choices(panel, "version").value == "v1_baseline"
    rows = [row for row, _ in choices(panel, "version").options]
    assert [row.split(" · ")[0] for row in rows] == ["v3_coalesced", "v2_tiling", "v1_baseline"]


def test_buttons_act_on_the_chosen_version(panel: Panel, lab: Lab, engine: FakeExecutor) -> None:
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert panel.wait_until_shown()
    choices(panel, "version").value = "v1_baseline"
    click(panel, "validate")
    assert engine.jobs[-1].version.version == "v1_baseline"


def test_the_profile_tab_profiles_and_shows_the_chosen_version(
    panel: Panel, lab: Lab, engine: FakeExecutor
) -> None:
    lab.write("softmax", "v2", KERNEL.format("v2"))
    open_tab(panel, "Profile")
    assert "v2 was not profiled since it was written" in text(panel)
    click(panel, "profile")
    assert engine.jobs[-1].version.version == "v2_tiling"
    assert "MEMORY-BOUND" in text(panel)
    assert "device memory works at 90 % of its peak" in text(panel)
    assert "MEMORY-BOUND" in results(panel)[0]["text/plain"]
    lab.write("softmax", "v2", KERNEL.format("again"))
    assert "v2 was not profiled since it was written" in text(panel)


def test_an_earlier_attempt_is_shown_compared_and_restored(panel: Panel, lab: Lab) -> None:
    assert "restore attempt 1" not in buttons(panel)
    lab.write("softmax", "v1", KERNEL.format("again"))
    assert panel.wait_until_shown()
    assert [name for name, _ in choices(panel, "attempt").options] == ["1", "2 (newest)"]
    choices(panel, "attempt").value = "1"
    click(panel, "diff with attempt 1")
    assert "+    return x  # again" in results(panel)[0]["text/plain"]
    click(panel, "code")
    assert "return x  # v1" in results(panel)[0]["text/plain"]
    click(panel, "restore attempt 1")
    assert lab.source("softmax", "v1").attempt == 3
    assert lab.source("softmax", "v1").source == KERNEL.format("v1")
    assert choices(panel, "attempt").value == "3"


def test_any_two_versions_are_compared(panel: Panel, lab: Lab) -> None:
    for n in (2, 3):
        lab.write("softmax", f"v{n}", KERNEL.format(f"v{n}"))
    assert "diff with v2" in buttons(panel)
    choices(panel, "compare with").value = "v1_baseline"
    click(panel, "diff with v1")
    assert "-    return x  # v1" in results(panel)[0]["text/plain"]
    assert "+    return x  # v3" in results(panel)[0]["text/plain"]


def test_the_best_is_marked(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    lab.bench("softmax")
    click(panel, "best so far")
    assert "v1_baseline" in results(panel)[0]["text/plain"]
    assert [e.verb for e in lab.events("softmax", limit=1)] == ["chosen"]


def test_one_is_chosen_by_hand(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    lab.write("softmax", "v2", KERNEL.format("v2"))
    lab.validate("softmax", "v2")
    assert panel.wait_until_shown()
    choices(panel, "version").value = "v1_baseline"
    click(panel, "mark best")
    assert "chosen by hand" in results(panel)[0]["text/plain"]
    assert [v.version for v in lab.status("softmax").versions if v.best] == ["v1_baseline"]


def test_a_click_shows_the_static_output_of_the_magic(panel: Panel, lab: Lab) -> None:
    click(panel, "validate")
    assert isinstance(lab.last, Validation)
    assert set(results(panel)[0]) == {"text/plain", "text/markdown", "text/html"}
    assert "RIGHT" in results(panel)[0]["text/plain"]
    assert lab.validation("softmax", "v1") == lab.last


def test_a_click_benches_and_the_picture_follows(panel: Panel, lab: Lab) -> None:
    lab.validate("softmax", "v1")
    click(panel, "bench")
    assert isinstance(lab.last, Benchmark)
    assert ["image/png" in result for result in results(panel)] == [False, True]


def test_the_result_of_a_click_replaces_the_one_before(panel: Panel) -> None:
    click(panel, "validate")
    click(panel, "code")
    assert len(results(panel)) == 1
    assert "def triton_softmax(x):" in results(panel)[0]["text/plain"]


def test_a_refused_click_shows_its_message(panel: Panel) -> None:
    click(panel, "bench")
    (bundle,) = results(panel)
    assert "IllegalStep" in bundle["text/plain"]
    assert "%triton_validate softmax v1" in bundle["text/plain"]
    assert not buttons(panel)["bench"].disabled


def test_a_failed_verdict_is_shown_and_nothing_is_raised(
    panel: Panel, lab: Lab, engine: FakeExecutor
) -> None:
    engine.verdicts[lab.source("softmax", "v1").sha256] = Status.FAILED
    click(panel, "validate")
    assert "WRONG" in results(panel)[0]["text/plain"]
    assert "✗ wrong" in text(panel)


def test_an_interrupted_click_shows_what_is_known(panel: Panel, engine: FakeExecutor) -> None:
    engine.answer = lambda _: Outcome(status="interrupted", detail="interrupted while small")
    click(panel, "validate")
    assert "INTERRUPTED" in results(panel)[0]["text/plain"]


def test_the_log_is_written(panel: Panel, lab: Lab) -> None:
    click(panel, "write the log")
    assert (lab.path / "logs" / "softmax_log.md").is_file()
    assert "logs/softmax_log.ipynb" in results(panel)[0]["text/plain"]


def test_a_search_shows_what_it_finds(panel: Panel) -> None:
    box = next(w for w in within(panel.widget) if isinstance(w, widgets.Text))
    box.value = "online reduction"
    assert "running maximum" in text(panel)


def test_what_else_a_search_finds_is_a_click_away(panel: Panel) -> None:
    box = next(w for w in within(panel.widget) if isinstance(w, widgets.Text))
    box.value = "mask"
    first, *_ = (b for b in buttons(panel).values() if b.tooltip.startswith("read "))
    before = text(panel)
    first.click()
    assert text(panel) != before
    assert f'aria-label="{first.description}"' not in before


def test_topics_are_read(panel: Panel) -> None:
    open_tab(panel, "References")
    assert "torch.softmax" in text(panel)
    names = dict(choices(panel, "read").options)
    assert {"softmax", "overview", "Triton syntax"} < set(names)
    choices(panel, "read").value = names["Triton syntax"]
    assert "tl.load" in text(panel)


def test_a_template_is_for_the_version_that_comes_next(panel: Panel, lab: Lab) -> None:
    assert "%%triton_kernel softmax v2_tiling" in text(panel)
    assert "(fits softmax)</button>" in text(panel)
    lab.write("softmax", "v2", KERNEL.format("v2"))
    assert "%%triton_kernel softmax v3_coalesced" in text(panel)


def test_what_a_kernel_prints_is_shown(panel: Panel, engine: FakeExecutor) -> None:
    engine.prints = "here I am\n"
    click(panel, "validate")
    output = next(w for w in within(panel.widget) if isinstance(w, widgets.Output))
    assert output.outputs[0]["text"] == "here I am\n"


def test_one_button_stands_out_and_it_is_the_next_step(panel: Panel, lab: Lab) -> None:
    def primary() -> list[str]:
        return [n for n, button in buttons(panel).items() if button.button_style == "primary"]

    assert primary() == ["validate"]
    lab.validate("softmax", "v1")
    assert primary() == ["bench all"]


def test_a_result_is_hidden_where_another_tab_is_open(panel: Panel) -> None:
    click(panel, "code")
    open_tab(panel, "References")
    output = panel._result
    assert output.layout.display == "none"
    open_tab(panel, "Versions")
    assert output.layout.display != "none"
    assert output.outputs


def test_speedups_of_versions_are_bars(lab: Lab, engine: FakeExecutor) -> None:
    for version, time_us in (("v1", 2.0), ("v2", 1.0)):
        lab.write("softmax", version, KERNEL.format(version))
        lab.validate("softmax", version)
        engine.times_us[version] = (time_us,) * 3
    lab.bench("softmax")
    panel = Panel(lab, "softmax")
    ratios = [v.speedup for v in lab.op_state("softmax").versions]
    assert ratios[1] == pytest.approx(2 * ratios[0])
    assert "speedup ▅█ v1 " in text(panel)
    panel.close()
