"""Arbitrary lines, names, frames and files from outside never crash the code that reads them."""

from __future__ import annotations

import os
import struct
import tempfile
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.fake_executor import FakeExecutor
from triton_magics import verbs
from triton_magics.errors import TritonMagicsError, UserError
from triton_magics.execution.job_refs import OpRef
from triton_magics.execution.job_requests import DescribeJob
from triton_magics.execution.protocol import FrameReader, Order, Progress, ProtocolError, encode
from triton_magics.lab import Lab
from triton_magics.verbs._arguments import Parser

pytestmark = pytest.mark.in_turn

THOROUGH = settings(deadline=None, max_examples=150, suppress_health_check=list(HealthCheck))
FLAGS = sorted({flag for verb in verbs.every() for a in verb.arguments for flag in a.flags})
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


def check_message(error: Exception) -> None:
    """Check that an error has a message."""
    assert str(error)


@pytest.mark.parametrize("magic", sorted(verbs.names()))
@THOROUGH
@given(line=LINES)
def test_a_line_is_understood_or_refused_in_words(magic: str, line: str) -> None:
    verb = verbs.load(magic)
    try:
        Parser(verb.sign, verb.arguments).parse_line(line)
    except UserError as refused:
        check_message(refused)


def everything_below(folder: Path) -> dict[str, int]:
    """Return each file below a folder with its time of change."""
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
        with Lab(inside, engine=FakeExecutor()) as lab:

            @settings(THOROUGH, max_examples=60)
            @given(name=NAMES)
            @example(name="../canary")
            def try_name(name: str) -> None:
                try:
                    CALLS[call](lab, name)
                except TritonMagicsError as refused:
                    check_message(refused)

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
        check_message(error)
    assert frames <= before + 2


@THOROUGH
@given(body=st.binary(max_size=300))
def test_a_frame_of_any_bytes_is_refused_or_understood(body: bytes) -> None:
    try:
        list(FrameReader().feed(struct.pack(">I", len(body)) + body))
    except ProtocolError as error:
        check_message(error)


# Words that a sound reference has, so that some get far, and what does not belong there.
PYTHON = st.sampled_from(
    [
        "def reference(x):\n",
        "def make_inputs(shape, dtype, device, generator):\n",
        "    return x\n",
        "    return (torch.empty(shape),)\n",
        "import torch\n",
        "SIZES = {'small': (4, 4)}\n",
        "MUTATES = ('x',)\n",
        "reference = 1\n",
        "\x00",
        "(",
        "\ud800",
        "\f",
        "#",
    ]
)  # fmt: skip
SOURCES = st.lists(PYTHON | st.text(max_size=20), max_size=8).map("".join)


def test_a_reference_of_any_text_is_saved_or_refused() -> None:
    with tempfile.TemporaryDirectory() as outside:
        inside = Path(outside) / "inside"
        with Lab(inside, engine=FakeExecutor()) as lab:

            @settings(THOROUGH, max_examples=80)
            @given(name=NAMES | st.just("my_op"), source=SOURCES)
            def define(name: str, source: str) -> None:
                try:
                    lab.reference(name, source)
                except TritonMagicsError as refused:
                    check_message(refused)

            define()
        assert all(path.startswith(str(inside)) for path in everything_below(Path(outside)))


@settings(THOROUGH, max_examples=40)
@given(name=st.text(max_size=60), source=st.none() | st.text(max_size=60))
def test_an_op_reference_comes_out_of_a_frame_as_it_went_in(name: str, source: str | None) -> None:
    op = OpRef(name=name) if source is None else OpRef.own(name, source)
    order = Order(nonce="n", job=DescribeJob(op=op))
    (back,) = FrameReader().feed(encode(order))
    assert back == order


LINE_ENDS = "\r\n\f\v\x00\x1c\x1d\x1e\x85\u2028\u2029"


@settings(THOROUGH, max_examples=25)
@given(
    technique=st.text(max_size=40),
    comment=st.text(st.characters(exclude_characters=LINE_ENDS), max_size=40),
)
def test_a_log_notebook_is_valid_whatever_was_written(technique: str, comment: str) -> None:
    with tempfile.TemporaryDirectory() as folder, Lab(folder, engine=FakeExecutor()) as lab:
        try:
            lab.write(
                "relu", "v1", f"def solve(x):\n    return x  # {comment}\n", technique=technique
            )
        except TritonMagicsError as refused:
            check_message(refused)
            return
        path = Path(folder) / lab.export("relu").notebook
        notebook = nbformat.read(path, as_version=4)
        nbformat.validate(notebook)
        assert notebook.metadata.triton_magics.op == "relu"
        assert notebook.metadata.triton_magics.versions == ["v1_baseline"]


STORE_FILES = (".triton_magics/lab.db", "logs/relu_log.jsonl", "kernels/relu/v1_baseline.py")


@pytest.mark.parametrize("relative", STORE_FILES)
def test_a_damaged_file_of_the_store_is_reported_or_repaired(relative: str) -> None:
    @settings(THOROUGH, max_examples=25)
    @given(data=st.binary(max_size=400), at=st.integers(0, 5000))
    def damage(data: bytes, at: int) -> None:
        with tempfile.TemporaryDirectory() as folder:
            with Lab(folder, engine=FakeExecutor()) as lab:
                lab.op("relu")
                lab.write("relu", "v1", "def solve(x):\n    return x\n")
            path = Path(folder) / relative
            whole = path.read_bytes()
            path.write_bytes(whole[:at] + data + whole[at + len(data) :])
            try:
                with Lab(folder, engine=FakeExecutor()) as lab:
                    lab.status("relu")
                    lab.write("relu", "v2", "def solve(x):\n    return x\n")
                    assert "v2_tiling" in lab.versions("relu")
            except TritonMagicsError as refused:
                check_message(refused)

    damage()
