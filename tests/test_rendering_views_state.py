"""The views of a lab's state, of a run, and of two versions side by side."""

import re

import report_values as rv

from triton_magics.model import Side, Status
from triton_magics.rendering import bundle, headline, to_html, to_text, view
from triton_magics.rendering.blocks import Changes
from triton_magics.verbs._phrase import as_magic


def test_version_before_a_reset_does_not_count() -> None:
    old = rv.version_state(1, counted=False)
    state = rv.op_state(0, versions=(old, rv.version_state(2)))
    assert "1 of 3 versions written" in headline(state)
    assert "before the reset" in bundle(state)["text/plain"]


def test_version_that_does_not_compile_is_not_called_unvalidated() -> None:
    broken = rv.version_state(2, validation=None, compilation=Status.COMPILE_ERROR)
    text = bundle(rv.op_state(0, versions=(broken,)))["text/plain"]
    assert "✗ does not compile" in text
    assert "not validated" not in text


def test_busy_engine_names_its_job() -> None:
    busy = rv.lab_state(engine=rv.ENGINE.evolve(busy="bench softmax v2"))
    assert "busy: bench softmax v2" in bundle(busy)["text/plain"]
    none = rv.ENGINE.evolve(missing="no GPU here")
    assert "! NVIDIA H200 · no GPU here" in bundle(rv.lab_state(engine=none))["text/plain"]


def test_provisional_choice_is_a_warning() -> None:
    value = rv.best(provisional="not ranked: no GPU times", final_us=None, speedup=None)
    assert headline(value).startswith("! BEST")
    assert "provisional: not ranked: no GPU times" in bundle(value)["text/markdown"]


def test_nan_mean_is_shown_as_nan() -> None:
    output = rv.run_result().outputs[0].evolve(mean=float("nan"), n_nan=12)
    assert re.search(r"nan\s+12$", to_text(view(rv.run_result(outputs=(output,)))), re.MULTILINE)


def test_attempts_at_one_version_are_named_by_number() -> None:
    old, new = (rv.source("v2_tiling", n, rv.SOURCE + f"# {n}\n") for n in (1, 3))
    value = rv.difference(before=Side(source=old), after=Side(source=new), benchmark=None)
    text = bundle(value)["text/plain"]
    assert text.startswith(
        "CHANGED  softmax v2:1 to v2:3: not timed together · lines: 1 added, 1 removed"
    )
    assert "v2:3     not validated" in text
    assert text.endswith("next: validate softmax v2")


def test_difference_without_a_verdict() -> None:
    value = rv.difference()
    swapped = rv.difference(before=value.after, after=value.before)
    assert headline(swapped).startswith(
        "CHANGED  softmax v2 to v1: 0.74x by their finals, without a verdict"
    )


def test_interpreter_times_have_no_ranking() -> None:
    shas = tuple(side.source.sha256 for side in rv.difference().sides)
    value = rv.difference(benchmark=rv.interpreter_benchmark(sha256s=shas))
    text = bundle(value)["text/plain"]
    assert "no GPU times" in text
    assert "199 ms" in text
    assert "speedup" not in text


def test_diff_pairs_lines_and_leaves_gaps() -> None:
    changes = Changes("x", "old", "new", "a\nb\nc\nd\n", "a\nB\nB2\nc\nd\ne\n")
    (hunk,) = changes.hunks
    assert hunk == (
        (1, "  a", 1, "  a"),
        (2, "- b", 2, "+ B"),
        (None, "", 3, "+ B2"),
        (3, "  c", 4, "  c"),
        (4, "  d", 5, "  d"),
        (None, "", 6, "+ e"),
    )
    assert (changes.n_added, changes.n_removed) == (3, 1)


def test_html_diff_has_one_row_per_line_pair() -> None:
    changes = Changes("x", "old", "new", "a\nb\nc\n", "a\nB\nB2\nc\n")
    html = to_html((changes,))
    rows = re.findall(r"<tr>(.*?)</tr>", html.partition("<tbody>")[2])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    assert cells == [
        ["1", "  a", "1", "  a"],
        ["2", "- b", "2", "+ B"],
        ["", "", "3", "+ B2"],
        ["3", "  c", "4", "  c"],
    ]
    assert all(row.count("vertical-align: top") == 4 for row in rows)
    removed, added = re.findall(r"background-color: #[0-9a-f]{6}; color: #[0-9a-f]{6}", rows[1])
    assert removed != added
    assert "color" not in rows[0]


def test_distant_changes_are_separated_by_a_gap_row() -> None:
    lines = [str(n) for n in range(20)]
    changed = ["x", *lines[1:-1], "y"]
    html = to_html((Changes("x", "old", "new", "\n".join(lines), "\n".join(changed)),))
    assert html.count(">  …</td>") == 2


def test_restore_is_suggested_for_an_older_attempt_only() -> None:
    between_versions = bundle(rv.difference(), as_magic)["text/plain"]
    assert "%triton_restore" not in between_versions
    before = rv.difference().before
    code = rv.SOURCE + "# new\n"
    right = rv.validation("v1_baseline", sha256=rv.sha256(code))
    after = Side(source=rv.source(attempt=3, code=code), validation=right)
    text = bundle(rv.difference(before=before, after=after, benchmark=None), as_magic)["text/plain"]
    assert "%triton_restore softmax v1 --attempt 1" in text
    unvalidated = Side(source=before.source)
    worse = before.evolve(validation=rv.wrong_validation())
    for side, is_suggested in ((worse, False), (unvalidated, False), (before, True)):
        value = rv.difference(before=side, after=after, benchmark=None)
        suggested = "%triton_restore" in bundle(value, as_magic)["text/plain"]
        assert suggested == is_suggested


def test_difference_of_equal_code() -> None:
    side = rv.difference().before
    faces = bundle(rv.difference(after=side))
    assert all("SAME CODE" in face and "CHANGED" not in face for face in faces.values())


def test_difference_escapes_user_code() -> None:
    odd = Side(source=rv.source(code=rv.SOURCE + "# <script>alert(1)</script>\n"))
    assert "<script>" not in bundle(rv.difference(after=odd))["text/html"]
