"""Frames over 16 MiB go by a file, in both directions."""

from __future__ import annotations

from pathlib import Path

import pytest
from execution_kit import process_tag, run  # noqa: F401 (process_tag: a fixture)

from triton_magics.config import Settings
from triton_magics.execution import LocalExecutor
from triton_magics.execution.job_answers import OpDescription
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob
from triton_magics.execution.payloads import PAYLOADS
from triton_magics.execution.protocol import (
    MAX_FRAME_BYTES,
    FrameReader,
    Order,
    ProtocolError,
    encode,
)

LARGE = 20 * 2**20
OWN_OP = """
import torch

SIZES = {{"small": (4, 4), "medium": (8, 8), "large": (16, 16)}}
DTYPES = ("float32",)


def reference(x):
    '''{doc}'''
    return x + x


def make_inputs(shape, dtype, device, generator):
    return (torch.randn(shape, generator=generator, device=device).to(dtype),)
"""


def large_order() -> Order:
    return Order(nonce="n", job=DescribeJob(op=OpRef.own("double", "#" * LARGE)))


def test_a_large_frame_arrives_unchanged_and_leaves_no_file(tmp_path: Path) -> None:
    data = encode(large_order(), tmp_path)
    assert len(data) < 200
    assert list(FrameReader(tmp_path).feed(data)) == [large_order()]
    assert list((tmp_path / PAYLOADS).iterdir()) == []


def test_without_a_folder_a_large_frame_is_refused() -> None:
    with pytest.raises(ProtocolError, match=f"exceeds the cap of {MAX_FRAME_BYTES}"):
        encode(large_order())


@pytest.mark.parametrize("trick", ["link", "pipe", "gone", "garbage"])
def test_what_is_no_payload_breaks_the_protocol(tmp_path: Path, trick: str) -> None:
    data = encode(large_order(), tmp_path)
    (file,) = (tmp_path / PAYLOADS).iterdir()
    file.unlink()
    if trick == "link":
        (tmp_path / "elsewhere").write_text("x")
        file.symlink_to(tmp_path / "elsewhere")
    elif trick == "garbage":
        file.write_text("no frame")
    elif trick == "pipe":
        import os

        os.mkfifo(file)
    with pytest.raises(ProtocolError, match="not a frame"):
        list(FrameReader(tmp_path).feed(data))


@pytest.mark.in_turn
def test_a_source_and_an_answer_of_20_mib_go_through_a_worker() -> None:
    executor = LocalExecutor(Settings(device="interpreter", standbys=1))
    op = OpRef.own("double", OWN_OP.format(doc="d" * LARGE))
    outcome = run(executor, DescribeJob(op=op), timeout_s=100)
    executor.close()
    assert isinstance(outcome.answer, OpDescription), outcome.detail
    assert len(outcome.answer.doc) == LARGE
