"""What comes in from outside may be anything: lines, names, frames, files. Nothing crashes."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fake_engine import FakeEngine
from triton_magics.engine.protocol import FrameReader, Progress, ProtocolError, encode
from triton_magics.errors import TritonMagicsError, UserError
from triton_magics.lab import Lab
from triton_magics.verbs import VERBS
from triton_magics.verbs.arguments import Parser

THOROUGH = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
FLAGS = sorted({flag for verb in VERBS.values() for a in verb.arguments for flag in a.flags})
WORDS = st.sampled_from(
    [
        *FLAGS,
        "softmax",
        "v1",
        "v2:1",
        "4x4",
        "0x0",
        "-1",
        "float32",
        "nan",
        "'",
        '"',
        "\\",
        "..",
        "%",
    ]
)
LINES = st.lists(WORDS | st.text(max_size=12), max_size=8).map(" ".join)
NAMES = st.sampled_from(
    [
        "../up",
        "..",
        "/etc/passwd",
        "a/b",
        "a\0b",
        "softmаx",
        "v1/..",
        "CON",
        "v1_../../x",
        "~",
        "%2e%2e",
    ]
) | st.text(max_size=80)
FRAME = encode(Progress(nonce="n", stage="compiling"))


def said(error: Exception) -> None:
    """An error is no use without words."""
    assert str(error)


@pytest.mark.parametrize("magic", sorted(VERBS))
@THOROUGH
@given(line=LINES)
def test_a_line_is_understood_or_refused_in_words(magic: str, line: str) -> None:
    verb = VERBS[magic]
    try:
        Parser(verb.sign, verb.arguments).parse_line(line)
    except UserError as refused:
        said(refused)


def everything_below(folder: Path) -> dict[str, int]:
    """Each file below a folder and its time of change."""
    return {
        os.path.join(at, name): os.lstat(os.path.join(at, name)).st_mtime_ns
        for at, _, names in os.walk(folder)
        for name in names
    }


CALLS: dict[str, Callable[[Lab, str], object]] = {
    "op": lambda lab, name: lab.op(name),
    "write op": lambda lab, name: lab.write(name, "v1", "def solve(x):\n    return x\n"),
    "write version": lambda lab, name: lab.write("relu", name, "def solve(x):\n    return x\n"),
    "source": lambda lab, name: lab.source("relu", name),
    "validate": lambda lab, name: lab.validate(name, "v1"),
    "export": lambda lab, name: lab.export(name),
    "template": lambda lab, name: lab.template(name, name, name),
    "ref": lambda lab, name: lab.ref(name),
    "inspect": lambda lab, name: lab.inspect("relu", "v1", target=name),
}


@pytest.mark.parametrize("call", sorted(CALLS))
def test_no_name_leads_out_of_the_workspace(call: str) -> None:
    with tempfile.TemporaryDirectory() as outside:
        inside = Path(outside) / "inside"
        (Path(outside) / "canary").write_text("sings")
        with Lab(inside, engine=FakeEngine()) as lab:

            @settings(THOROUGH, max_examples=60)
            @given(name=NAMES)
            @example(name="../canary")
            def try_name(name: str) -> None:
                try:
                    CALLS[call](lab, name)
                except TritonMagicsError as refused:
                    said(refused)

            try_name()
        out = {path for path in everything_below(Path(outside)) if not path.startswith(str(inside))}
        assert out == {str(Path(outside) / "canary")}


@THOROUGH
@given(
    before=st.integers(0, 3),
    garbage=st.binary(max_size=200),
    at=st.integers(0, len(FRAME)),
    cut=st.integers(1, 50),
)
def test_a_stream_gives_its_frames_and_then_an_error_in_words(
    before: int, garbage: bytes, at: int, cut: int
) -> None:
    stream = FRAME * before + FRAME[:at] + garbage
    reader, frames = FrameReader(), 0
    try:
        for i in range(0, len(stream), cut):
            frames += len(list(reader.feed(stream[i : i + cut])))
    except ProtocolError as error:
        said(error)
    assert frames <= before + 2


@THOROUGH
@given(body=st.binary(max_size=300))
def test_a_frame_of_any_bytes_is_refused_or_understood(body: bytes) -> None:
    try:
        list(FrameReader().feed(struct.pack(">I", len(body)) + body))
    except ProtocolError as error:
        said(error)


STORE_FILES = (".triton_magics/lab.db", "logs/relu_log.jsonl", "kernels/relu/v1_baseline.py")


@pytest.mark.parametrize("relative", STORE_FILES)
def test_a_damaged_file_of_the_store_is_said_or_mended(relative: str) -> None:
    @settings(THOROUGH, max_examples=25)
    @given(data=st.binary(max_size=400), at=st.integers(0, 5000))
    def damage(data: bytes, at: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with Lab(folder, engine=FakeEngine()) as lab:
                lab.op("relu")
                lab.write("relu", "v1", "def solve(x):\n    return x\n")
            path = Path(folder) / relative
            whole = path.read_bytes()
            path.write_bytes(whole[:at] + data + whole[at + len(data) :])
            try:
                with Lab(folder, engine=FakeEngine()) as lab:
                    lab.status("relu")
                    lab.write("relu", "v2", "def solve(x):\n    return x\n")
                    assert "v2_tiling" in lab.versions("relu")
            except TritonMagicsError as refused:
                said(refused)

    damage()
