"""The short form of the generator of fault pairs; `make fault-pairs` is the long one."""

from __future__ import annotations

import itertools
import random
import re
import uuid
from collections.abc import Iterator

import pytest

from tests.execution_kit import PROCESS_TAG, tagged_processes, wait_until
from tests.faults.engine.fault_lab import FaultLab
from tests.faults.pair_forms import FORMS, JOBS, Pair, draw
from tests.faults.pairs import check


def test_a_seed_gives_the_same_pairs_of_every_form() -> None:
    first, again = (list(itertools.islice(draw(random.Random(3)), 400)) for _ in range(2))
    assert first == again
    assert {pair.form for pair in first} == {*FORMS, JOBS}
    for pair in first:
        if pair.form != JOBS:
            assert re.findall(r"^def (\w+)", pair.source, re.M)[-1] == "triton_relu"


@pytest.fixture(scope="module")
def faults(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FaultLab]:
    process_tag = uuid.uuid4().hex
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(PROCESS_TAG, process_tag)
        patch.setenv("TRITON_MAGICS_CACHE", str(tmp_path_factory.mktemp("cache")))
        folder = tmp_path_factory.mktemp("workspace")
        patch.chdir(folder)
        faults = FaultLab(folder, process_tag)
        yield faults
        faults.lab.close()
        wait_until(lambda: not tagged_processes(process_tag), within_s=5)


MENDED = (
    Pair(
        "makes_everything_an_instance", "on an alarm", "raises_an_error_that_causes_itself", "run"
    ),
    Pair("leaves_a_deaf_daemon", "before", "kills_the_nanny", "run"),
    Pair("raises_at_import", "on an alarm", "raises_the_unspeakable", "run"),
    Pair("opens_every_descriptor", "while it raises", "raises_half_a_character", "run"),
    Pair("prints_for_ever", "on an alarm", "raises_keyboard_interrupt", "run"),
)
EASY = (
    Pair("leaves_a_daemon", "at exit", "segfaults", "run"),
    Pair("segfaults", JOBS, "never_ends", "run"),
)


@pytest.mark.slow
@pytest.mark.parametrize("pair", [*MENDED, *EASY], ids=str)
def test_two_faults_at_a_time_hurt_nothing(pair: Pair, faults: FaultLab) -> None:
    assert check(faults, pair).wrong == ()
