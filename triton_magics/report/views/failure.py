"""One failed case explained: what came out, where it is wrong, why, how to see it again."""

from __future__ import annotations

from triton_magics.model import CaseResult, Mismatch, Validation, shape_text
from triton_magics.report.blocks import Code, Document, Line
from triton_magics.report.numbers import allowed_text, exact_text
from triton_magics.report.views.faults import error_view
from triton_magics.report.views.pictures import error_picture
from triton_magics.report.views.words import CASE_WORDS, subject


def case_words(result: CaseResult) -> str:
    """How the case ended, in words."""
    return CASE_WORDS[result.status]


def case_view(value: Validation, result: CaseResult, *, said: str = "") -> Document:
    """The first thing to know about a failed case, its picture, its cause, its replay line.

    Args:
        value: the validation that it belongs to.
        result: the failed case.
        said: what stands above; a message that is in it is not said again.
    """
    found = _finding(result, said)
    above = "\n".join([said, *(line.text for line in found)])
    error = error_view(result.error, said=above) if result.error else ()
    return (*found, *_explanation(result.mismatch), *error, replay_line(value, result))


def _finding(result: CaseResult, said: str) -> tuple[Line, ...]:
    if not result.mismatch:
        reason = result.reason if result.reason and result.reason not in said else None
        told = result.reason is not None and reason is None
        words = ": ".join(part for part in (case_words(result), reason) if part)
        return () if told else (Line(words),)
    lines = [Line(mismatch_text(result.mismatch))]
    if result.error_share is not None and result.error_share == result.error_share:
        lines.append(Line(f"the worst error is {allowed_text(result.error_share)}"))
    if result.reason:
        lines.append(Line(result.reason))
    return tuple(lines)


def mismatch_text(mismatch: Mismatch) -> str:
    """`out[0, 1022] = nan, should be 0.000871 · 257 of 262,911 elements wrong, the last column`."""
    name = "out" if mismatch.output == 0 else f"output {mismatch.output + 1}, out"
    at = f"[{', '.join(str(i) for i in mismatch.index)}]" if mismatch.index else ""
    values = f"{exact_text(mismatch.got)}, should be {exact_text(mismatch.expected)}"
    wrong = f"{mismatch.n_wrong:,} of {mismatch.n_elements:,} elements wrong"
    where = f", {mismatch.where}" if mismatch.where else ""
    return f"{name}{at} = {values} · {wrong}{where}"


def _explanation(mismatch: Mismatch | None) -> Document:
    if not mismatch:
        return ()
    picture = error_picture(mismatch.picture)
    found: list[Line | Code] = [Code(picture, "text")] if picture else []
    if mismatch.cause:
        found.append(Line(f"likely: {mismatch.cause}"))
    if mismatch.advice:
        found += _advice(mismatch.advice)
    return tuple(found)


def _advice(advice: str) -> list[Line | Code]:
    first, _, rest = advice.partition("\n")
    line = Line(f"try: {first}")
    return [line, Code(rest)] if rest.strip() else [line]


def replay_line(value: Validation, result: CaseResult) -> Line:
    """The command that runs this case again."""
    name = subject(value.op, value.version)
    flags = f"--seed {value.seed} --shape {shape_text(result.case.shape)}"
    return Line(f"replay: `%triton_validate {name} {flags}`")
