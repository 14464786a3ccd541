"""The verbs that write down what happened: log, report, summary."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from triton_magics import report
from triton_magics.errors import BadValue, UnknownName, UnknownVersion, did_you_mean
from triton_magics.lab import log, several
from triton_magics.lab.part import Part
from triton_magics.model import Export, Plot, PlotName, Report, Summary
from triton_magics.workspace import Workspace


class Record(Part):
    """Logs, reports, summaries."""

    def export(self, op: str, *, tests: bool = False) -> Export:
        """Writes the op's log as a notebook, Markdown and HTML; returns their paths.

        Args:
            op: its name or alias.
            tests: write tests/test_<op>.py too, which validates every version that passed.

        Raises:
            ExportError: a file could not be written, or is a person's own.
            UnknownVersion: tests of no version: none has passed.
        """
        name = self._desk.canonical(op)
        written = (
            log.write_tests(self._desk.workspace, self._desk.facts_of(name)) if tests else None
        )
        gathered = log.gather(
            self._desk.workspace,
            self._desk.facts_of(name),
            self._desk.state(name),
            budget_s=self.settings.validate_budget_s,
        )
        made = log.write(self._desk.workspace, name, gathered)
        made = made.model_copy(update={"tests": written})
        self._desk.changed(name)
        return self._remember(made)

    def plot(self, op: str, name: PlotName = "speedup", *, to: str | Path | None = None) -> Plot:
        """A picture of the newest benchmark, or of the newest sweep.

        Args:
            op: its name or alias.
            name: `speedup` over torch with verdicts; `times` against size, with floor and roofline;
                `runs`, each as a dot; `sweep`, a heat map.
            to: a file to write it into, as PNG.

        Raises:
            UnknownName: no such picture.
            UnknownVersion: nothing was timed, or swept, yet.
            BadValue: there is nothing to see in it; the file is to be no PNG, or can't be written.
        """
        canonical = self._desk.canonical(op)
        if name not in report.PICTURES:
            known = ", ".join(report.PICTURES)
            raise UnknownName(
                f"no picture {name!r}.{did_you_mean(name, report.PICTURES)} There is {known}"
            )
        if to is not None and Path(to).suffix.lower() != ".png":
            raise BadValue(f"{to}: a picture is written as PNG; name a file that ends in .png")
        made = Plot(op=canonical, name=name, **_newest(self._desk.workspace, canonical, name))
        if made.of is None:
            raise UnknownVersion(self._nothing_to_draw(canonical, name))
        picture = report.drawn(made.of, name)
        if picture is None:
            raise BadValue(
                f"{canonical}: {name} needs two sizes or more, and its newest benchmark timed "
                f"fewer. Next: %triton_bench {op}"
            )
        if to is not None:
            made = made.model_copy(update={"path": log.write_picture(Path(to), picture.png)})
        return self._remember(made)

    def _nothing_to_draw(self, op: str, name: PlotName) -> str:
        """Why there is no picture yet, and what gives one."""
        if name != "sweep":
            return f"{op} has nothing to draw yet. Next: %triton_bench {op}"
        if any(self._desk.workspace.events(op, verbs=log.SWEPT, limit=1)):
            return (
                f"{op} has been swept, but nothing was timed: without a GPU a sweep only compiles, "
                "and a heat map is one of times"
            )
        return f"{op} has nothing to draw yet. Next: %triton_sweep {op} v1 num_warps=4,8"

    def report(self, ops: Sequence[str] = ()) -> Report:
        """How far each op came, its best version, what failed and why; runs nothing.

        Args:
            ops: names or aliases; by default every op of the workspace.
        """
        return self._remember(self._over_all(self._named(ops), None))

    def summary(self, *, max_chars: int = 6000) -> Summary:
        """Writes docs/summarization.md: what a newcomer or a program needs to go on.

        State, next steps, how to go on, versions, what was tried and failed; what does not fit is
        cut from the end, and named.

        Args:
            max_chars: the longest that the text may be.

        Raises:
            BadValue: too short to say anything.
            ExportError: it could not be written, or is a person's own.
        """
        if max_chars < report.SHORTEST_SUMMARY:
            least = report.SHORTEST_SUMMARY
            raise BadValue(f"max_chars={max_chars}: nothing fits; write {least} or more")
        desk, names = self._desk, self._named(())
        histories = [
            log.gather(
                desk.workspace, desk.facts_of(name), desk.state(name),
                budget_s=self.settings.validate_budget_s,
            )
            for name in names
        ]  # fmt: skip
        made = report.summary(self._over_all(names, None), histories, max_chars=max_chars)
        path = log.write_summary(desk.workspace, made.markdown)
        return self._remember(
            Summary(path=path, markdown=made.markdown, max_chars=max_chars, left_out=made.left_out)
        )

    def _named(self, ops: Sequence[str]) -> tuple[str, ...]:
        """Each op once; all are known before anything is done."""
        named = tuple(dict.fromkeys(self._desk.canonical(op) for op in ops))
        return named or self._desk.workspace.open_ops()

    def _over_all(self, names: Sequence[str], paused_at: str | None) -> Report:
        states = [self._desk.state(name) for name in names]
        return several.over_all(self._desk.workspace, states, paused_at)


def _newest(workspace: Workspace, op: str, name: PlotName) -> dict[str, Any]:
    """What a picture is drawn of."""
    if name != "sweep":
        return {"benchmark": workspace.latest_benchmark(op)}
    events = workspace.events(op, verbs=log.SWEPT, newest_first=True)
    return {"sweep": next((e.result for e in events if getattr(e.result, "timed", ())), None)}
