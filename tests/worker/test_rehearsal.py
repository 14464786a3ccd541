"""A worker rehearses step by step, and leaves off when a job waits."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from triton_magics.worker import rehearsal, resources


@pytest.mark.parametrize(
    ("wanted_at", "done", "n_asked"), [(1, False, 1), (2, False, 2), (9, True, 2)]
)
def test_a_rehearsal_ends_before_the_step_at_which_a_job_waits(
    wanted_at: int, done: bool, n_asked: int
) -> None:
    asked: list[int] = []

    def wanted() -> bool:
        asked.append(len(asked) + 1)
        return asked[-1] == wanted_at

    assert rehearsal.rehearse("interpreter", wanted) is done
    assert len(asked) == n_asked


@pytest.fixture
def four_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("four_threads")
def test_half_of_the_cpus_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    resources.leave_cpus_to_others()
    assert torch.get_num_threads() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "4")  # what the user has asked for stands
    resources.leave_cpus_to_others()
    assert torch.get_num_threads() == 2
