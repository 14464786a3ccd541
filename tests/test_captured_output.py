"""Limits of a worker's captured output, and how often new output is sent."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triton_magics.execution.local.captured_output import HEAD_BYTES, TAIL_BYTES, LiveOutput, Output


def feed_output(*pieces: bytes) -> Output:
    output = Output()
    for piece in pieces:
        output.feed(piece)
    return output


def test_output_under_the_cap_is_complete() -> None:
    data = b"a" * HEAD_BYTES + b"b" * TAIL_BYTES
    output = feed_output(data[:10_000], data[10_000:])
    assert output.text == data.decode()
    assert output.dropped_bytes == 0


def test_over_the_cap_the_middle_is_dropped_and_counted() -> None:
    output = feed_output(b"a" * HEAD_BYTES, b"m" * 1234, b"z" * TAIL_BYTES)
    head, gap, tail = output.text.split("\n")
    assert (head, tail) == ("a" * HEAD_BYTES, "z" * TAIL_BYTES)
    assert gap == "[... 1,234 bytes dropped ...]"


@given(st.lists(st.binary(max_size=40_000), max_size=8))
def test_captured_and_dropped_bytes_add_up(pieces: list[bytes]) -> None:
    total = sum(map(len, pieces))
    assert feed_output(*pieces).dropped_bytes == max(0, total - HEAD_BYTES - TAIL_BYTES)


def test_bytes_that_are_no_utf8_are_written_out() -> None:
    assert feed_output(b"caf\xc3", b"\xa9 \xff").text == "café \\xff"


BITS = st.sampled_from([b"\xff", b"\xc3", b"\xa9", b"a\n", "é€𝄞".encode()])
PRINTED = st.builds(lambda bits, times: bits * times, BITS, st.sampled_from([1, 3, 9_000]))


@given(st.lists(PRINTED, max_size=8))
def test_the_sent_pieces_join_to_the_text(pieces: list[bytes]) -> None:
    output, pieces_sent = Output(), []
    live = LiveOutput(output, pieces_sent.append)
    for piece in pieces:
        output.feed(piece)
        live._next = 0.0
        live.forward()
    live.finish()
    assert "".join(pieces_sent) == output.text


def test_small_prints_are_sent_at_most_ten_times_a_second() -> None:
    output, pieces_sent = Output(), []
    live = LiveOutput(output, pieces_sent.append)
    for _ in range(1000):
        output.feed(b".")
        live.forward()
    assert (
        len(pieces_sent) <= 2
    )  # a thousand turns take far less than 0.1 s, but for a pause of the machine
    live.finish()
    assert "".join(pieces_sent) == "." * 1000


def test_nothing_is_sent_when_nothing_is_printed() -> None:
    pieces_sent: list[str] = []
    live = LiveOutput(Output(), pieces_sent.append)
    live.forward()
    live.finish()
    assert pieces_sent == []
