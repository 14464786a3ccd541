"""Tensors of a contract have the same bits on the GPU as on the CPU."""

from __future__ import annotations

import pytest
import torch

from triton_magics.execution.local import gpu_detection
from triton_magics.io_contract import create_tensor_spec
from triton_magics.io_contract.tensor_spec import ITEM_BYTES
from triton_magics.io_contract.tensors import make_tensor

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(
        gpu_detection.detect() != "gpu", reason="no NVIDIA GPU with a CUDA build of torch"
    ),
]
KINDS = {
    "randn": {"seed": 7},
    "uniform": {"seed": 7},
    "zeros": {},
    "ones": {},
    "full": {"fill_value": 1},
    "arange": {"step": 0},
}


@pytest.mark.parametrize("dtype", ITEM_BYTES)
@pytest.mark.parametrize("kind", KINDS)
def test_contract_tensors_are_bit_equal_on_cpu_and_gpu(kind: str, dtype: str) -> None:
    spec = create_tensor_spec([4097], dtype, kind, **KINDS[kind])
    here, there = make_tensor(spec), make_tensor(spec, device="cuda")
    assert there.device.type == "cuda"
    assert torch.equal(here.view(torch.uint8), there.cpu().view(torch.uint8))
