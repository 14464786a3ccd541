"""Frames: what is taken for one, in whatever pieces it comes, and what is not."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from triton_magics.execution.job_answers import OpDescription, WorkerFault
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob
from triton_magics.execution.protocol import (
    HEADER,
    MAX_FRAME_BYTES,
    FrameReader,
    Order,
    Progress,
    ProtocolError,
    Ready,
    Reply,
    encode,
)
from triton_magics.model import Case, CaseResult, CaseStatus, Environment, Mismatch

ENVIRONMENT = Environment(
    device_kind="interpreter", device="CPU", python="3.11", torch="2.13", triton="3.7"
)
FRAMES = [
    Ready(environment=ENVIRONMENT, pid=4711, warm_s=3.5),
    Order(nonce="n", job=DescribeJob(op=OpRef(name="softmax"))),
    Progress(nonce="n", stage="validating é€𝄞"),
    Reply(nonce="n", answer=WorkerFault(user=True, message="no such size"), retire=True),
]


def raw(body: bytes) -> bytes:
    return HEADER.pack(len(body)) + body


@given(st.lists(st.integers(1, 60), max_size=30))
def test_frames_survive_any_cut(cuts: list[int]) -> None:
    stream = b"".join(map(encode, FRAMES))
    reader, got, at = FrameReader(), [], 0
    for cut in [*cuts, len(stream)]:
        got += reader.feed(stream[at : at + cut])
        at += cut
    assert got == FRAMES


def test_nan_and_infinities_survive() -> None:
    mismatch = Mismatch(
        index=(0,), got=math.nan, expected=math.inf, allowed=0.0, n_wrong=1, n_elements=1, where="x"
    )
    case = Case(shape=(1,), dtype="float32", seed=1)
    result = CaseResult(case=case, status=CaseStatus.WRONG_VALUES, mismatch=mismatch)
    (frame,) = FrameReader().feed(encode(Progress(nonce="n", stage="s", case_result=result)))
    assert isinstance(frame, Progress)
    assert frame.case_result is not None
    assert frame.case_result.mismatch is not None
    assert math.isnan(frame.case_result.mismatch.got)
    assert frame.case_result.mismatch.expected == math.inf


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"hello",
        b"\xff\xfe",
        b"NaN",
        b"[]",
        b'{"type": "reply"}',
        b'{"type": "pickle", "nonce": "n"}',
        b'{"type": "progress", "nonce": "n", "stage": "s", "extra": 1}',
        b'{"type": "progress", "nonce": "n", "stage": 3}',
        b"[" * 100_000,
        json.dumps({"type": "reply", "nonce": "n", "answer": {"kind": "passed"}}).encode(),
    ],
)
def test_what_is_no_frame_is_refused(body: bytes) -> None:
    with pytest.raises(ProtocolError):
        list(FrameReader().feed(raw(body)))


def test_a_length_over_the_cap_is_refused_before_the_body_comes() -> None:
    with pytest.raises(ProtocolError, match="exceeds the cap"):
        list(FrameReader().feed(HEADER.pack(MAX_FRAME_BYTES + 1)))


def test_a_frame_over_the_cap_is_not_sent() -> None:
    with pytest.raises(ProtocolError, match="exceeds the cap"):
        encode(Progress(nonce="n", stage="x" * MAX_FRAME_BYTES))


def test_frames_before_a_bad_one_are_given_first() -> None:
    frames = FrameReader().feed(encode(FRAMES[2]) + raw(b"hello"))
    assert next(frames) == FRAMES[2]
    with pytest.raises(ProtocolError):
        next(frames)


def test_a_half_frame_gives_nothing_yet() -> None:
    assert list(FrameReader().feed(encode(FRAMES[0])[:-1])) == []


def test_a_description_is_an_answer() -> None:
    answer = OpDescription(
        name="softmax",
        sizes={"small": (256, 256)},
        shapes=((1, 1),),
        dtypes=("float32",),
        signature="(x)",
        doc="",
        outputs=("[1, 1] float32",),
    )
    frame = Reply(nonce="n", answer=answer)
    assert list(FrameReader().feed(encode(frame))) == [frame]
