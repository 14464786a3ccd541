"""Fuzz everything that reads input from outside, guided by coverage.

    make fuzz                                        (each target for SECONDS=60)
    python tests/faults/fuzz.py --seconds 60 --into docs/measured/fuzz.json
    python tests/faults/fuzz.py --seconds 400 --only store frame --into docs/measured/fuzz.json
    python tests/faults/fuzz.py line SEEDS -runs=1000     one target, with libFuzzer's options

Needs atheris: `pip install 'triton-magics[fuzz]'`. A target may reject its input with a message;
anything else that it raises is a crash. The output names the folder with that input.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).parents[2]))

with atheris.instrument_imports(include=["triton_magics"]):
    from tests.fake_executor import FakeExecutor
    from triton_magics import languages, verbs
    from triton_magics.errors import TritonMagicsError, UserError
    from triton_magics.execution.protocol import FrameReader, ProtocolError
    from triton_magics.lab import Lab
    from triton_magics.model.base import check_op_name, parse_version
    from triton_magics.notebook.comment_form import transformer
    from triton_magics.rendering.markdown_parser import parse as parse_prose
    from triton_magics.store.event_log import _checked_event, _parse_log
    from triton_magics.verbs._arguments import Parser

SEEDS = Path(__file__).with_name("fuzz_seeds")
TRANSFORM = transformer(f"triton_{name}" for name in verbs.cell_names())


def check_message(error: Exception) -> None:
    """Check that an error has a message."""
    assert str(error)


def line(data: bytes) -> None:
    """Fuzz the line of a magic; the first byte chooses the magic."""
    every = verbs.every()
    verb = every[(data or b"\0")[0] % len(every)]
    try:
        Parser(verb.sign, verb.arguments).parse_line(text(data[1:]))
    except UserError as refused:
        check_message(refused)


def name(data: bytes) -> None:
    """Fuzz names of ops and versions; an accepted name is a file name within its folder."""
    for check in (check_op_name, parse_version):
        try:
            check(text(data))
        except UserError as refused:
            check_message(refused)
        else:
            assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text(data))


def frame(data: bytes) -> None:
    """Fuzz the frames of a worker, cut into pieces."""
    reader = FrameReader()
    cut = (data or b"\1")[0] % 64 + 1
    try:
        for at in range(1, len(data), cut):
            list(reader.feed(data[at : at + cut]))
    except ProtocolError as broken:
        check_message(broken)


def event(data: bytes) -> None:
    """Fuzz a log of events, line by line."""
    _parse_log(data)
    for row in text(data).split("\n"):
        parsed = _checked_event(row, "relu")
        assert parsed is None or parsed.op == "relu"


def cell(data: bytes) -> None:
    """Fuzz the code of a version, with or without the comment form's first line."""
    TRANSFORM(text(data).splitlines(keepends=True))
    try:
        languages.get().parse(text(data), op="relu")
    except UserError as refused:
        check_message(refused)


def prose(data: bytes) -> None:
    """Fuzz the Markdown of the knowledge base and of the user's notes."""
    parse_prose(text(data))


MEMORY = Path("/dev/shm")  # a file system in memory
FOLDER = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
OUTSIDE = Path(FOLDER.name)
HOME, WHOLE = OUTSIDE / "inside", OUTSIDE / "whole"
PATHS = (".triton_magics/lab.db", "logs/relu_log.jsonl", "kernels/relu/v1_baseline.py")


def store(data: bytes) -> None:
    """Fuzz a file of a workspace: it is repaired or reported, and nothing outside changes."""
    if not WHOLE.is_dir():  # made once, for it takes longer than a run
        (OUTSIDE / "canary").write_text("sings")
        with Lab(WHOLE, engine=FakeExecutor()) as lab:
            lab.write("relu", "v1", "def triton_relu(x):\n    return x\n")
    shutil.rmtree(HOME, ignore_errors=True)
    shutil.copytree(WHOLE, HOME)
    path = HOME / PATHS[(data or b"\0")[0] % 3]
    whole = path.read_bytes()
    at = int.from_bytes(data[1:3], "big") % (len(whole) + 1)
    path.write_bytes(whole[:at] + data[3:] + whole[at + len(data) :])
    try:
        with Lab(HOME, engine=FakeExecutor()) as lab:
            lab.status("relu")
    except TritonMagicsError as refused:
        check_message(refused)
    assert (OUTSIDE / "canary").read_text() == "sings"
    assert {entry.name for entry in OUTSIDE.iterdir()} == {"canary", "inside", "whole"}


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (line, name, frame, event, cell, prose, store)
}


def text(data: bytes) -> str:
    """Decode any bytes, with lone surrogates where they are no UTF-8."""
    return data.decode("utf-8", "surrogateescape")


def run(targets: Iterable[str], seconds: int, into: Path | None) -> int:
    """Run each target in a process of its own, and print its figures; return 1 on a crash."""
    rows = []
    for target in targets:
        with tempfile.TemporaryDirectory() as corpus:
            artifacts = Path(tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
            options = [f"-max_total_time={seconds}", "-print_final_stats=1", "-max_len=4096"]
            argv = [sys.executable, __file__, target, corpus, str(SEEDS / target), *options]
            ended = subprocess.run(
                [*argv, f"-artifact_prefix={artifacts}/"],
                capture_output=True,
                text=True,
                check=False,
            )
        crashes = [str(path) for path in artifacts.iterdir()]
        row = {"target": target, "seconds": seconds, "crashes": len(crashes)}
        row |= figures(ended.stderr)
        print(json.dumps(row), *crashes, flush=True)
        if crashes or ended.returncode:
            print(ended.stderr[-3000:], ended.stdout[-3000:])
        rows.append(row)
        if into:
            store_figures(row, into)
    return int(any(row["crashes"] for row in rows))


def store_figures(row: dict[str, object], into: Path) -> None:
    """Replace the stored figures of a target."""
    earlier = json.loads(into.read_text()) if into.exists() else []
    rows = {old["target"]: old for old in [*earlier, row]}
    into.write_text(json.dumps([rows[name] for name in TARGETS if name in rows], indent=1) + "\n")


def figures(output: str) -> dict[str, int]:
    """Return executions, covered edges and corpus inputs from libFuzzer's output."""
    runs = re.findall(r"number_of_executed_units: (\d+)", output)
    last = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", output)
    return {
        "executions": int(runs[-1]) if runs else 0,
        "edges": int(last[-1][0]) if last else 0,
        "inputs": int(last[-1][2]) if last else 0,
    }


def main() -> int:
    if len(sys.argv) > 1 and sys.argv[1] in TARGETS:
        atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]])
        atheris.Fuzz()
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", nargs="+", choices=TARGETS, default=TARGETS, metavar="TARGET")
    parser.add_argument("--into", type=Path, help="a JSON file of the figures")
    options = parser.parse_args()
    return run(options.only, options.seconds, options.into)


if __name__ == "__main__":
    sys.exit(main())
