"""Ops of the package liger-kernel, as functions of the inputs that our ops have."""

from __future__ import annotations

import importlib
from typing import Any

import torch


def _function(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"liger_kernel.ops.{module}"), name)


def softmax(x: torch.Tensor) -> Any:
    """Return the softmax over the last dimension, of up to 65,536 columns."""
    return _function("softmax", "LigerSoftmaxFunction").apply(x)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float = 1e-5) -> Any:
    """Return x over its root mean square, times weight, computed as llama does."""
    function = _function("rms_norm", "LigerRMSNormFunction")
    return function.apply(x, weight, eps, 0.0, "llama", False)


def layer_norm(x: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor, eps: float = 1e-5) -> Any:
    """Return the layer norm over the last dimension."""
    return _function("layer_norm", "LigerLayerNormFunction").apply(x, weight, bias, eps)
