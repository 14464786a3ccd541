"""What of a worker's output is kept, and what is told while it comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from triton_magics.engine.output import HEAD_BYTES, TAIL_BYTES, LiveOutput, Output


def fed(*pieces: bytes) -> Output:
    kept = Output()
    for piece in pieces:
        kept.feed(piece)
    return kept


def test_output_under_the_cap_is_kept_whole() -> None:
    data = b"a" * HEAD_BYTES + b"b" * TAIL_BYTES
    kept = fed(data[:10_000], data[10_000:])
    assert kept.text == data.decode()
    assert kept.dropped_bytes == 0


def test_over_the_cap_the_middle_is_dropped_and_counted() -> None:
    kept = fed(b"a" * HEAD_BYTES, b"m" * 1234, b"z" * TAIL_BYTES)
    head, gap, tail = kept.text.split("\n")
    assert (head, tail) == ("a" * HEAD_BYTES, "z" * TAIL_BYTES)
    assert gap == "[... 1,234 bytes dropped ...]"


@given(st.lists(st.binary(max_size=40_000), max_size=8))
def test_kept_and_dropped_bytes_add_up(pieces: list[bytes]) -> None:
    total = sum(map(len, pieces))
    assert fed(*pieces).dropped_bytes == max(0, total - HEAD_BYTES - TAIL_BYTES)


def test_bytes_that_are_no_utf8_are_written_out() -> None:
    assert fed(b"caf\xc3", b"\xa9 \xff").text == "café \\xff"


BITS = st.sampled_from([b"\xff", b"\xc3", b"\xa9", b"a\n", "é€𝄞".encode()])
PRINTED = st.builds(lambda bits, times: bits * times, BITS, st.sampled_from([1, 3, 9_000]))


@given(st.lists(PRINTED, max_size=8))
def test_what_is_told_joins_to_the_text(pieces: list[bytes]) -> None:
    kept, heard = Output(), []
    live = LiveOutput(kept, heard.append)
    for piece in pieces:
        kept.feed(piece)
        live._next = 0.0
        live.tell()
    live.finish()
    assert "".join(heard) == kept.text


def test_a_stream_of_small_prints_is_told_ten_times_a_second_at_most() -> None:
    kept, heard = Output(), []
    live = LiveOutput(kept, heard.append)
    for _ in range(1000):
        kept.feed(b".")
        live.tell()
    assert (
        len(heard) <= 2
    )  # a thousand turns take far less than 0.1 s, but for a pause of the machine
    live.finish()
    assert "".join(heard) == "." * 1000


def test_nothing_is_told_where_nothing_is_printed() -> None:
    heard: list[str] = []
    live = LiveOutput(Output(), heard.append)
    live.tell()
    live.finish()
    assert heard == []
