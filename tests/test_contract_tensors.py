"""Tensors of a contract: equal bits for equal seeds, the stated distributions, exact data."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys

import pytest
import torch

from triton_magics.io_contract import TensorSpec, create_tensor_spec, read_contract
from triton_magics.io_contract.tensor_spec import ITEM_BYTES
from triton_magics.io_contract.tensors import make_inputs, make_tensor

KINDS = ("randn", "uniform", "zeros", "ones", "full", "arange")


def spec_of(kind, dtype, n=257):
    more = {"full": {"fill_value": 1}, "arange": {"step": 0}}.get(kind, {})
    if kind in ("randn", "uniform"):
        more = {"seed": 7}
    return create_tensor_spec([n], dtype, kind, **more)


def digest(tensor):
    return hashlib.sha256(tensor.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest()


def every_digest():
    return "\n".join(digest(make_tensor(spec_of(k, d))) for k in KINDS for d in ITEM_BYTES)


@pytest.mark.parametrize("dtype", ITEM_BYTES)
@pytest.mark.parametrize("kind", KINDS)
def test_each_initialiser_makes_each_dtype(kind, dtype):
    tensor = make_tensor(spec_of(kind, dtype))
    assert tensor.dtype == getattr(torch, dtype)
    assert tensor.shape == (257,)
    assert torch.isfinite(tensor.double()).all()


@pytest.mark.slow
def test_equal_seeds_give_equal_bits_in_another_process():
    program = (
        "import sys; sys.path.insert(0, 'tests'); "
        "import test_contract_tensors as t; print(t.every_digest())"
    )
    other = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert other.stdout.strip() == every_digest()


@pytest.mark.parametrize(("mean", "std"), [(0.0, 1.0), (3.0, 0.5), (0.0, 0.0)])
def test_randn_has_its_mean_and_deviation(mean, std):
    n = 2**18
    x = make_tensor(
        create_tensor_spec([n], "float32", "randn", seed=1, mean=mean, std=std)
    ).double()
    assert abs(x.mean().item() - mean) <= 4 * std / math.sqrt(n)
    assert abs(x.std().item() - std) <= 4 * std / math.sqrt(n)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn"])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 0.0), (5.0, 6.0)])
def test_uniform_stays_below_high_after_rounding(dtype, low, high):
    x = make_tensor(create_tensor_spec([2**18], dtype, "uniform", seed=1, low=low, high=high))
    x = x.double()
    assert x.min() >= low
    assert x.max() < high
    spread = (high - low) / math.sqrt(12 * 2**18)
    rounding = torch.finfo(getattr(torch, dtype)).eps * max(abs(low), abs(high))
    assert abs(x.mean().item() - (low + high) / 2) <= 4 * spread + rounding


def test_whole_numbers_are_drawn_in_their_range():
    x = make_tensor(create_tensor_spec([4096], "int8", "uniform", seed=1, low=-3, high=4))
    assert sorted(set(x.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
    y = make_tensor(create_tensor_spec([4096], "int8", "randn", seed=1, std=1000.0))
    assert (y.min().item(), y.max().item()) == (-128, 127)
    bits = make_tensor(create_tensor_spec([2**16], "bool", "uniform", seed=1))
    assert abs(bits.double().mean().item() - 0.5) < 4 * 0.5 / 2**8


def test_arange_counts_over_all_elements():
    x = make_tensor(create_tensor_spec([2, 3], "float32", "arange", start=1.0, step=0.5))
    assert x.tolist() == [[1.0, 1.5, 2.0], [2.5, 3.0, 3.5]]


def test_data_is_taken_bit_for_bit():
    import base64
    import zlib

    original = torch.randn(3, 5, dtype=torch.bfloat16)
    raw = original.view(torch.uint8).numpy().tobytes()
    data = {
        "data_b64": base64.b64encode(zlib.compress(raw)).decode(),
        "dtype": "bfloat16",
        "shape": [3, 5],
        "compress": "zlib",
    }
    spec = TensorSpec.model_validate({"shape": [3, 5], "dtype": "bfloat16", "data": data})
    assert torch.equal(make_tensor(spec), original)


def test_each_trial_has_other_inputs_and_outputs_are_left_out():
    contract = read_contract(
        {
            "args": [
                {"name": "a", "type": "tensor", "tensor_spec": spec_of("randn", "float32")},
                {
                    "name": "b",
                    "type": "tensor",
                    "tensor_spec": create_tensor_spec([257], "float32", "randn"),
                },
                {"name": "c", "type": "float", "value": 2},
                {
                    "name": "y",
                    "type": "tensor",
                    "role": "output",
                    "tensor_spec": {"shape": [257]},
                },
            ]
        }
    )
    first = make_inputs(contract, seed=3)
    again = make_inputs(contract, seed=3)
    second = make_inputs(contract, seed=3, trial=1)
    assert len(first) == 3
    assert first[2] == 2.0
    assert torch.equal(first[0], make_tensor(spec_of("randn", "float32")))
    assert all(map(torch.equal, first[:2], again[:2]))
    assert not any(map(torch.equal, first[:2], second[:2]))
    assert not torch.equal(first[0], first[1])
