"""Ops on recorded inputs, and the files that these come from."""

from __future__ import annotations

import base64
import inspect
import io
import json
import zlib
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from triton_magics.errors import BadValue
from triton_magics.model import FILE_SIZE
from triton_magics.operators._op import REGIMES, SPECIALS, ModuleOp
from triton_magics.operators._protocol import Inputs, Shape

_SAFETENSORS = {
    "F64": torch.float64, "F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16,
    "I64": torch.int64, "I32": torch.int32, "I16": torch.int16, "I8": torch.int8,
    "U8": torch.uint8, "BOOL": torch.bool, "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}  # fmt: skip


def read_tensors(name: str, content: bytes) -> dict[str, torch.Tensor]:
    """Return the tensors of a .safetensors, .npz, .npy or .pt file by their names.

    A tensor without a name has its number as name. Nothing in the file is executed.

    Raises:
        BadValue: it can't be read; the message says why.
    """
    suffix = name.rpartition(".")[2].lower()
    try:
        if suffix == "safetensors":
            return _read_safetensors(content)
        if suffix in ("npz", "npy"):
            value: Any = np.load(io.BytesIO(content), allow_pickle=False)
        else:
            value = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except Exception as error:
        first = str(error).partition("\n")[0]
        raise BadValue(f"--inputs {name}: {first or type(error).__name__}") from error
    if isinstance(value, (torch.Tensor, np.ndarray)):
        value = (value,)
    items = value.items() if hasattr(value, "items") else enumerate(value)
    tensors = {str(key): torch.as_tensor(item) for key, item in items}
    if not tensors:
        raise BadValue(f"--inputs {name}: it has no tensor")
    return tensors


def _read_safetensors(content: bytes) -> dict[str, torch.Tensor]:
    """Return the tensors of a file: 8 bytes with the header's length, JSON, then the data."""
    start = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:start])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        data = bytearray(content[start + begin : start + end])
        flat = (
            torch.frombuffer(data, dtype=_SAFETENSORS[entry["dtype"]]) if data else torch.empty(0)
        )
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def unpack(data: str) -> bytes:
    """Return the content that `pack` made a text of."""
    return zlib.decompress(base64.b64decode(data))


def on_recorded_inputs(op: ModuleOp, name: str, tensors: Mapping[str, torch.Tensor]) -> ModuleOp:
    """Return the op with one size, `file`, whose inputs are the tensors of a file.

    Tensors are taken by the names of the op's inputs, or in their order where no name fits. A
    tensor without dimensions is a number; an input with a default may be missing.

    Raises:
        BadValue: an input is missing, a tensor has no place, or the op declares no such dtype.
    """
    inputs = _arrange(op, name, tensors)
    shaped = [x for x in inputs if isinstance(x, torch.Tensor)]
    if not shaped:
        raise BadValue(f"--inputs {name}: no tensor with dimensions")
    first = next((x for x in shaped if x.is_floating_point()), shaped[0])
    dtype = str(first.dtype).removeprefix("torch.")
    if dtype not in op.dtypes:
        raise BadValue(
            f"--inputs {name}: {dtype} tensors; {op.name} declares {', '.join(op.dtypes)}"
        )

    def make_inputs(
        shape: Shape, dtype: torch.dtype, device: torch.device, generator: torch.Generator
    ) -> Inputs:
        return tuple(x.to(device, copy=True) if isinstance(x, torch.Tensor) else x for x in inputs)

    return replace(
        op, make_inputs=make_inputs, sizes={FILE_SIZE: tuple(shaped[0].shape)}, shapes=(),
        dtypes=(dtype,), scalars={}, skip_values=(*REGIMES, *SPECIALS), quick_regimes=(),
        extents={},
    )  # fmt: skip


def _arrange(op: ModuleOp, name: str, tensors: Mapping[str, torch.Tensor]) -> Inputs:
    parameters = inspect.signature(op.reference).parameters
    if not tensors.keys() & parameters.keys() and len(tensors) <= len(parameters):
        tensors = dict(zip(parameters, tensors.values(), strict=False))
    unknown = [key for key in tensors if key not in parameters]
    missing = [
        p.name for p in parameters.values() if p.name not in tensors and p.default is p.empty
    ]
    if unknown or missing:
        faults = [f"no tensor {', '.join(missing)}"] if missing else []
        faults += [f"{', '.join(unknown)} is no input"] if unknown else []
        raise BadValue(
            f"--inputs {name}: {'; '.join(faults)}. {op.name} takes {', '.join(parameters)}; the "
            f"file has {', '.join(tensors)}"
        )
    return tuple(
        _as_input(tensors[p.name]) if p.name in tensors else p.default for p in parameters.values()
    )


def _as_input(tensor: torch.Tensor) -> Any:
    return tensor.contiguous() if tensor.dim() else tensor.item()
