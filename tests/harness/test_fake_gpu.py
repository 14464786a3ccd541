"""The fake GPU: what a wrapper asks of a stream, an event or the device has an answer."""

from __future__ import annotations

import torch

from triton_magics.harness.process.fake_gpu import fake_gpu

CPU = torch.device("cpu")


def add_on_a_side_stream(x: torch.Tensor) -> torch.Tensor:
    """Compute on a second stream as a wrapper does, with waits in both directions."""
    main, side = torch.cuda.current_stream(x.device), torch.cuda.Stream(x.device, priority=-1)
    side.wait_stream(main)
    with torch.cuda.stream(side):
        out = x + 1
        done = side.record_event()
    main.wait_event(done)
    out.record_stream(main)
    main.synchronize()
    return out


def test_work_on_a_side_stream_is_done_in_order() -> None:
    x = torch.arange(3.0)
    with fake_gpu(CPU):
        assert x.device.type == "cuda"
        out = add_on_a_side_stream(x)
    assert out.tolist() == [1.0, 2.0, 3.0]


def test_streams_and_events_answer_as_idle_ones() -> None:
    with fake_gpu(CPU):
        stream = torch.cuda.current_stream()
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        end.record(stream)
        end.wait(stream)
        end.synchronize()
        assert start.elapsed_time(end) == 0.0
        assert stream.query()
        assert end.query()
        assert stream == torch.cuda.default_stream()
        assert stream != torch.cuda.Stream()
        assert stream.cuda_stream == 0
        assert stream.device == torch.device("cuda", 0)
        assert not torch.cuda.is_current_stream_capturing()
        free, total = torch.cuda.mem_get_info()
        assert 0 < free <= total


def test_a_stream_that_is_set_is_the_current_one() -> None:
    with fake_gpu(CPU):
        side, before = torch.cuda.Stream(), torch.cuda.current_stream()
        torch.cuda.set_stream(side)
        assert torch.cuda.current_stream() == side
        torch.cuda.set_stream(before)
        with torch.cuda.stream(side), torch.cuda.stream(None):
            assert torch.cuda.current_stream() == side
        assert torch.cuda.current_stream() == before


def test_what_was_replaced_is_put_back() -> None:
    before = {name: getattr(torch.cuda, name) for name in dir(torch.cuda)}
    with fake_gpu(CPU):
        assert torch.cuda.Stream is not before["Stream"]
    assert {name: getattr(torch.cuda, name) for name in dir(torch.cuda)} == before
