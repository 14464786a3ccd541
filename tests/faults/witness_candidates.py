"""Inputs on which a kernel of a class may err: the candidates for a witness, by class and op."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.faults.class_kernels import ClassKernel
from tests.faults.witness_inputs import Witness

STRANGE = ("transposed", "padded", "every_second", "outer_swapped", "expanded", "offset")
TENSORS = {"vector_add": 2, "vector_mul": 2, "layer_norm": 3, "matmul": 2, "attention": 3,
           "mha": 3, "gqa": 3, "cross_entropy": 2, "rms_norm": 2, "rope": 3, "swiglu": 2,
           "quantized_matmul": 3, "linear_cross_entropy": 3, "fp8_matmul": 4}  # fmt: skip
# Those that no edit changes; torch has no arithmetic of float8 either.
INTEGERS = {("cross_entropy", 1), ("quantized_matmul", 1), ("linear_cross_entropy", 2),
            ("fp8_matmul", 0), ("fp8_matmul", 1)}  # fmt: skip
# Small shapes of the ops that have shapes of their own.
SHAPES = {
    "matmul": [5, 7, 6], "attention": [2, 3, 5, 16], "mha": [2, 3, 5, 16], "gqa": [2, 6, 3, 5, 16],
    "cross_entropy": [5, 7], "rope": [2, 3, 5, 4], "quantized_matmul": [5, 7, 6],
    "linear_cross_entropy": [5, 7, 6], "fp8_matmul": [5, 7, 6],
}  # fmt: skip


def small_shapes(op: str) -> list[list[int]]:
    """Return small shapes, some with an outer dimension."""
    return [SHAPES[op]] if op in SHAPES else [[5, 7], [2, 3, 6]]


def layout_candidates(op: str) -> Iterator[Witness]:
    """Yield one tensor after the other, then all of them, in each layout."""
    tensors = range(TENSORS.get(op, 1))
    for shape in small_shapes(op):
        yield {"shape": shape}
        for layout in STRANGE:
            for number in tensors:
                if not (_is_target(op, number) and layout == "expanded"):
                    yield {"shape": shape, "layouts": {str(number): layout}}
            if len(tensors) > 1:
                yield {"shape": shape, "layouts": {str(n): layout for n in tensors}}


COMBINED: dict[str, list[list[int]]] = {
    "matmul": [[5, 7, 13], [3, 5, 900]],
    "attention": [[1, 2, 37, 16], [1, 1, 70, 24]],
    "mha": [[1, 2, 37, 16], [1, 1, 70, 24]],
    "rms_norm": [[5, 13], [2, 1301]],
    "rope": [[1, 2, 37, 16], [1, 3, 21, 5]],
    "quantized_matmul": [[5, 7, 13], [3, 5, 901]],
    "linear_cross_entropy": [[40, 70, 9], [3, 1300, 9]],
    "gqa": [[1, 4, 2, 37, 16], [1, 2, 1, 70, 24]],
    "fp8_matmul": [[5, 7, 13], [3, 5, 900]],
}


def combined_shapes(op: str) -> list[list[int]]:
    """Return a short and a wide shape, no powers of two."""
    return COMBINED.get(op, [[3, 77], [2, 1301]])


EDITS: list[list[dict[str, Any]]] = [
    [],
    [{"scale": 100.0}],
    [{"add": 1000.0}],
    [{"absolute": True, "add": 60.0}],
    [{"cols": [-1, None], "add": 200.0}],
    [{"scale": 0.001}],
    [{"input": 0, "scale": 60.0}, {"input": 1, "scale": 60.0}],
    [{"input": 0, "absolute": True, "scale": 4.0}, {"input": 1, "absolute": True, "scale": 4.0}],
    [{"input": 0, "absolute": True, "scale": 2.0}, {"input": 1, "absolute": True, "scale": 2.0}],
    [{"rows": [-1, None], "cols": [-1, None], "set": -9.0}],
]


GATES: list[list[dict[str, Any]]] = [
    [{"absolute": True, "scale": -1.0}, {"add": -11.1}, {"input": 1, "scale": 100.0}]
]


def combined_candidates(op: str) -> Iterator[Witness]:
    """Yield pairs of a width, a dtype, an edit, scalars and a layout."""
    scalars: list[dict[str, Any]] = {
        "mha": [{"3": True}, {"3": False}],
        "layer_norm": [{"3": 1e-5}, {"3": 1e-3}],
        "rms_norm": [{"2": 1e-5}, {"2": 1e-3}],
        "vector_add": [{"2": 1.0}, {"2": -2.0}],
    }.get(op, [{}])
    for shape in combined_shapes(op):
        for dtype in ("float32", "float16"):
            for edits in (*EDITS, *(GATES if op == "swiglu" else ())):
                if not _can_edit(op, edits):
                    continue
                for some in scalars:
                    yield {"shape": shape, "dtype": dtype, "edits": edits, "scalars": some}
        for some in scalars:
            yield {"shape": shape, "layouts": {"0": "transposed"}, "scalars": some}


def _is_target(op: str, number: int) -> bool:
    return op.endswith("cross_entropy") and (op, number) in INTEGERS


def _can_edit(op: str, edits: list[dict[str, Any]]) -> bool:
    numbers = [e.get("input", 0) for e in edits]
    return all(n < TENSORS.get(op, 1) and (op, n) not in INTEGERS for n in numbers)


EXTENTS: dict[str, list[list[int]]] = {
    "sum": [[2, 20_000], [1, 140_001]],
    "mean": [[2, 20_000], [1, 140_001], [1, 270_001]],
    "softmax": [[2, 20_000], [1, 70_001], [1, 140_001]],
    "cross_entropy": [[2, 40_000], [1, 151_936], [1, 270_001]],
    "mha": [[1, 1, 20, 160], [1, 1, 20, 256], [1, 1, 530, 16]],
    "relu": [[33_000, 3]],
    "matmul": [[3, 5, 5_001]],
    "vector_add": [[600_001], [9_000_001]],
    "rms_norm": [[2, 20_000], [1, 70_001], [300, 5]],
    "rope": [[1, 1, 5, 80], [1, 1, 2100, 4]],
    "swiglu": [[600_001]],
    "quantized_matmul": [[1, 5, 5_001]],
    "linear_cross_entropy": [[2, 9_000, 5], [2, 5, 1_100]],
}


def extent_candidates(op: str) -> Iterator[Witness]:
    """Yield long extents, and rows so far apart that an offset needs more than 32 bits."""
    for shape in EXTENTS.get(op, []):
        yield {"shape": shape}
    if op in ("sum", "softmax", "mean", "relu"):
        yield {"shape": [3, 16], "dtype": "float16", "layouts": {"0": "far_rows"}}


NEGATIVE_SCORES: list[list[dict[str, Any]]] = [
    [
        {"input": 0, "absolute": True, "scale": 400.0},
        {"input": 1, "absolute": True, "scale": -400.0},
    ],
    [
        {"input": 0, "absolute": True, "scale": 400.0},
        {"input": 1, "rows": [0, 9], "absolute": True, "scale": -400.0},
    ],
]
SPECIAL: list[dict[str, Any]] = [
    {"add": -2e4},
    {"add": 2e4},
    {"set": 3.5},
    {"set": 0.0},
    {"cols": [0, 128], "set": "-inf"},
    {"cols": [128, 256], "set": "-inf"},
    {"cols": [-30, None], "set": "-inf"},
]
SPECIAL_ROW: list[dict[str, Any]] = [
    {"set": "-inf"},
    {"rows": [1, 2], "set": "-inf"},
    {"rows": [1, 2], "cols": [-1, None], "set": "nan"},
    {"rows": [1, 2], "cols": [0, 1], "set": "nan"},
    {"rows": [1, 2], "cols": [5, 6], "set": "inf"},
    {"rows": [1, 2], "cols": [7, 8], "set": "-inf"},
    {"rows": [1, 2], "cols": [9, 11], "set": "1e30"},
]


# For ops that are not defined beside an infinity.
FINITE: list[list[dict[str, Any]]] = [
    [{"scale": 0.001}],
    [{"add": 60.0}],
    [{"absolute": True, "scale": -1.0}],
    [{"input": 1, "scale": 0.5}],
    NEGATIVE_SCORES[0],
]


def special_candidates(op: str) -> Iterator[Witness]:
    """Yield whole blocks of -inf, rows far below zero, NaN at an end, constant rows."""
    if op in ("rms_norm", "rope", "swiglu", "quantized_matmul", "linear_cross_entropy",
              "fp8_matmul"):  # fmt: skip
        plain = plain_witness(op)
        yield from ({**plain, "edits": edits} for edits in FINITE if _can_edit(op, edits))
        return
    if op in ("attention", "mha"):
        for scalars in [{"3": True}, {"3": False}] if op == "mha" else [{}]:
            for shape in ([1, 1, 37, 16], [1, 2, 70, 16]):
                yield {"shape": shape, "scalars": scalars}
                for edits in NEGATIVE_SCORES:
                    yield {"shape": shape, "scalars": scalars, "edits": edits}
        return
    shape = [3, 300]
    for edit in (*SPECIAL, *(SPECIAL_ROW if op not in ("gelu", "cross_entropy") else ())):
        yield {"shape": shape, "edits": [edit]}
    if op in ("vector_add", "vector_mul"):
        yield {"shape": shape, "edits": [{"set": 0.0}, {"input": 1, "cols": [3, 5], "set": "inf"}]}


PLAIN = {"gqa": [1, 4, 2, 37, 32], "fp8_matmul": [5, 9, 300], "matmul": [9, 10, 1100],
         "attention": [1, 2, 37, 32], "mha": [1, 2, 37, 32],
         "rope": [1, 2, 37, 16], "quantized_matmul": [5, 9, 700],
         "linear_cross_entropy": [9, 700, 20]}  # fmt: skip


def plain_witness(op: str) -> Witness:
    """Return one input of moderate width."""
    return {"shape": PLAIN.get(op, [6, 2500])}


def call_candidates(op: str) -> Iterator[Witness]:
    """Yield few calls with changes in place or of one element; many with new inputs."""
    shapes = {"matmul": [4, 5, 6], "mha": [1, 1, 40, 16], "attention": [1, 1, 40, 16],
              "rope": [1, 2, 40, 8], "quantized_matmul": [4, 5, 6],
              "linear_cross_entropy": [4, 50, 6], "gqa": [1, 2, 1, 40, 16],
              "fp8_matmul": [4, 5, 6]}  # fmt: skip
    shape = shapes.get(op, [2, 700])
    for change in ("in_place", "one_element", "swapped"):
        yield {"shape": shape, "calls": 4, "change": change}
    for change in ("swapped_rows", "past_the_counter", "fewer_rows"):
        yield {"shape": shape, "calls": 4, "change": change}
    yield {"shape": shape, "calls": 30, "change": "new"}
    yield {"shape": shapes.get(op, [2, 5]), "calls": 320, "change": "new"}
    yield {"shape": shape, "calls": 4, "change": "in_place", "dtype": "float16"}


def statistic_candidates(op: str) -> Iterator[Witness]:
    """Yield two rates, matrices of a batch, and a tensor with long rows."""
    for shape in ([4, 24, 200], [24, 800]):
        for p in (0.5, 0.1):
            yield {"shape": shape, "p": p}


# Further candidates by class and op: how a fault is shown, and the inputs.
FURTHER: dict[tuple[str, str], list[tuple[str, Witness]]] = {
    ("layouts", "vector_mul"): [("values", {"shape": [6, 6], "one_memory": True})],
    ("combinations", "vector_add"): [("values", {"shape": [3, 77], "scalars": {"2": -1.0}})],
    ("combinations", "vector_mul"): [
        ("values", {"shape": [30, n], "layouts": {"0": "transposed"}}) for n in (41, 47, 55, 83)
    ],
    ("combinations", "relu"): [("values", {"shape": [2, 3, 129], "dtype": "float16"})],
    ("combinations", "softmax"): [
        ("values", {"shape": [40, 9], "edits": [{"rows": [1, 2], "add": -200.0}]}),
        ("values", {"shape": [2, 5000]}),
    ],
    ("combinations", "sum"): [
        (
            "values",
            {
                "shape": [2, 700],
                "dtype": "float16",
                "edits": [{"cols": [0, 2], "set": 4e4}, {"cols": [2, 4], "set": -4e4}],
            },
        )
    ],
    ("combinations", "rms_norm"): [("values", {"shape": [2, 5000]})],
    ("combinations", "matmul"): [("values", {"shape": [150, 70, 5]})],
    ("combinations", "attention"): [("values", {"shape": [1, 1, 257, 16]})],
    ("combinations", "gqa"): [
        ("values", {"shape": [1, 6, 2, 37, 16], "scalars": {"3": causal}})
        for causal in (True, False)
    ],
    ("combinations", "mha"): [("values", {"shape": [1, 1, 70, 16], "scalars": {"3": True}})],
    ("combinations", "fp8_matmul"): [
        (
            "values",
            {
                "shape": [5, 9, 300],
                "dtype": "float16",
                "edits": [{"input": 2, "scale": 0.02}, {"input": 3, "scale": 0.02}],
            },
        )
    ],
    ("combinations", "dropout"): [("values", {"shape": [24, 800], "scalars": {"1": 0.7}})],
    ("extents", "gelu"): [("values", {"shape": [300_001]})],
    ("extents", "mean"): [
        ("values", {"shape": [2, 140_001], "dtype": "float16", "edits": [{"add": 3.0}]})
    ],
    ("extents", "cross_entropy"): [("values", {"shape": [4, 9000], "dtype": "float16"})],
    ("special_values", "gelu"): [("values", {"shape": [6, 2500]})],
    ("special_values", "cross_entropy"): [("values", {"shape": [300, 2]})],
    ("special_values", "layer_norm"): [
        ("values", {"shape": [3, 300], "edits": [{"rows": [1, 2], "add": 3000.0}]})
    ],
    ("special_values", "quantized_matmul"): [
        ("values", {"shape": [5, 7, 6], "edits": [{"input": 1, "cols": [2, 3], "set": -128}]})
    ],
    ("special_values", "fp8_matmul"): [("values", {"shape": [5, 9, 300], "dtype": "float16"})],
    ("torch_work", "swiglu"): [("torch", {"shape": [6, 2500], "layouts": {"0": "transposed"}})],
    ("many_calls", "sum"): [
        ("calls", {"shape": [2, 5000], "calls": 3, "change": "half_the_columns"})
    ],
    ("many_calls", "quantized_matmul"): [
        ("calls", {"shape": [4, 5, 600], "calls": 3, "change": "half_the_columns"})
    ],
    ("leftovers", "linear_cross_entropy"): [("state", {"shape": [5, 40, 8]})],
}


def candidates(kernel: ClassKernel) -> Iterator[tuple[str, Witness]]:
    """Yield the kinds of fault and the inputs that a class looks for."""
    yield from FURTHER.get((kernel.class_name, kernel.op), ())
    by_values = {
        "layouts": layout_candidates,
        "combinations": combined_candidates,
        "extents": extent_candidates,
        "special_values": special_candidates,
    }
    if kernel.class_name in by_values:
        yield from (("values", w) for w in by_values[kernel.class_name](kernel.op))
    elif kernel.class_name == "torch_work":
        yield "torch", plain_witness(kernel.op)
        if kernel.op == "matmul":
            yield "torch", {"shape": [9, 10, 100]}
        yield "torch", {**plain_witness(kernel.op), "aten": "Tensor.numpy"}
    elif kernel.class_name == "judge":
        yield "tampering", plain_witness(kernel.op)
        yield "peeking", plain_witness(kernel.op)
    elif kernel.class_name == "many_calls":
        yield from (("calls", w) for w in call_candidates(kernel.op))
    elif kernel.class_name == "randomness":
        yield from (("statistic", w) for w in statistic_candidates(kernel.op))
    if kernel.class_name in ("leftovers", "randomness"):
        yield "state", plain_witness(kernel.op)
