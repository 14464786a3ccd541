"""The likely cause of a wrong output, read from a version's source.

A line is named only if it is the only one that fits.
"""

from __future__ import annotations

import re

from triton_magics.languages.kernel_runtime import Symptom
from triton_magics.model import Cause, CauseCode, source_lines

_LOAD = re.compile(r"tl\.load\((?P<args>.*)\)")
_LANES = re.compile(r"^\s*(\w+)\s*=.*tl\.arange\(")
_EXTREMUM = re.compile(r"tl\.(max|min|softmax)\(")
_EXACT_PRODUCT = re.compile(r"""input_precision\s*=\s*["'](ieee|tf32x3)["']""")
_HALF_ACCUMULATOR = re.compile(r"(tl\.zeros\(.*|out_dtype\s*=\s*)tl\.b?float16")
_HALF = re.compile(r"\b(tl|torch)\.b?float16\b|\.half\(\)")
_SUM = re.compile(r"tl\.(sum|dot)\(|\+=")


def explain_symptom(symptom: Symptom, source: str) -> Cause | None:
    """Return the cause of the errors' pattern in the source, and the code to write instead."""
    if symptom == "not finite":
        return _missing_mask(source)
    if symptom == "last dimension is no power of two":
        return _wrong_fill(source)
    if symptom == "overflow":
        return _missing_maximum(source)
    if symptom == "low precision product":
        return _low_precision_product(source)
    if symptom == "half precision sum":
        return _half_precision_sum(source)
    if symptom == "half precision value":
        return _half_precision_value(source)
    return Cause(
        code=CauseCode.RACE,
        advice="tl.atomic_add(out_ptr + offsets, value, mask=mask), or one program a place",
    )


def _missing_mask(source: str) -> Cause | None:
    """Return the only load of several lanes that has no mask."""
    lanes = set(filter(None, (m and m[1] for m in map(_LANES.match, source_lines(source)))))
    bare = [
        (line, text)
        for line, text in _loads_without(source, "mask=")
        if "tl.arange" in text or lanes & set(re.findall(r"\w+", text))
    ]
    if len(bare) != 1:
        return None
    line, text = bare[0]
    advice = _with_argument(text, "mask=mask, other=0.0")
    return Cause(code=CauseCode.MISSING_MASK, advice=advice, file_line=line)


def _wrong_fill(source: str) -> Cause | None:
    """Return the only masked load without `other=`, where a maximum takes its lanes in."""
    unfilled = [hit for hit in _loads_without(source, "other=") if "mask=" in hit[1]]
    if len(unfilled) != 1 or "tl.where(" in source or not _EXTREMUM.search(source):
        return None
    line, text = unfilled[0]
    return Cause(code=CauseCode.WRONG_FILL, advice=_with_other(text), file_line=line)


def _missing_maximum(source: str) -> Cause | None:
    if not re.search(r"\bexp2?\(", source) or re.search(r"\b(max|maximum)\(", source):
        return None
    advice = "x = tl.exp(x - tl.max(x, axis=0))"
    return Cause(code=CauseCode.MISSING_MAXIMUM, advice=advice)


def _low_precision_product(source: str) -> Cause | None:
    if "tl.dot(" not in source or _EXACT_PRODUCT.search(source):
        return None
    advice = 'tl.dot(a, b, input_precision="tf32x3")  # or "ieee"'
    return Cause(code=CauseCode.LOWER_PRECISION, advice=advice, dtype="TF32")


def _half_precision_sum(source: str) -> Cause | None:
    accumulates = _HALF_ACCUMULATOR.search(source) or "tl.float32" not in source
    if not accumulates or not _SUM.search(source):
        return None
    advice = "load with .to(tl.float32), accumulate in float32, convert when storing"
    return Cause(code=CauseCode.LOWER_PRECISION, advice=advice, dtype="a sum in half precision")


def _half_precision_value(source: str) -> Cause | None:
    """Return the only line that converts to a half type, where the tensors are float32."""
    lines = [n for n, line in enumerate(source_lines(source), 1) if _HALF.search(line)]
    if not lines:
        return None
    line = lines[0] if len(lines) == 1 else None
    return Cause(code=CauseCode.LOWER_PRECISION, dtype="a value in half precision", file_line=line)


def _with_other(line: str) -> str:
    """Return the line with `other=` as the last argument of its `tl.load`."""
    changed = _with_argument(line, 'other=-float("inf")')
    return f"{changed}  # 0.0 for a sum" if changed != line else line


def _with_argument(line: str, argument: str) -> str:
    """Return the line with one more argument at the end of its `tl.load`."""
    start = line.index("tl.load(") + len("tl.load(")
    depth = 1
    for i in range(start, len(line)):
        depth += (line[i] == "(") - (line[i] == ")")
        if depth == 0:
            return f"{line[:i]}, {argument}{line[i:]}"
    return line


def _loads_without(source: str, word: str) -> list[tuple[int, str]]:
    """Return the lines with a `tl.load` that lacks a word: `(line, its text)`."""
    return [
        (number, line.strip())
        for number, line in enumerate(source_lines(source), 1)
        if (load := _LOAD.search(line)) and word not in load["args"] and "block_ptr" not in line
    ]
