"""Coverage-guided fuzzing of everything that reads what comes from outside.

    make fuzz                                        (each target for SECONDS=60)
    python tests/faults/fuzz.py --seconds 60 --into docs/measured/fuzz.json
    python tests/faults/fuzz.py --seconds 400 --only store frame --into docs/measured/fuzz.json
    python tests/faults/fuzz.py line SEEDS -runs=1000     one target, with libFuzzer's options

Needs atheris: `pip install 'triton-magics[fuzz]'`. A target may refuse its input in words; anything
else that it raises is a crash, and the input is kept in the folder that is named then.
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
    from tests.fake_engine import FakeEngine
    from triton_magics.engine.protocol import FrameReader, ProtocolError
    from triton_magics.errors import TritonMagicsError, UserError
    from triton_magics.lab import Lab
    from triton_magics.model.base import check_op_name, parse_version
    from triton_magics.notebook.comment_form import transformer
    from triton_magics.report.prose import parse as parse_prose
    from triton_magics.verbs import VERBS
    from triton_magics.verbs.arguments import Parser
    from triton_magics.workspace import inspect_source
    from triton_magics.workspace.journal import _contents, _event

SEEDS = Path(__file__).with_name("fuzz_seeds")
TRANSFORM = transformer(verb.name for verb in VERBS.values() if verb.sign.startswith("%%"))


def said(error: Exception) -> None:
    """An error is no use without words."""
    assert str(error)


def line(data: bytes) -> None:
    """The words after a magic; the first byte says which."""
    verb = list(VERBS.values())[(data or b"\0")[0] % len(VERBS)]
    try:
        Parser(verb.sign, verb.arguments).parse_line(text(data[1:]))
    except UserError as refused:
        said(refused)


def name(data: bytes) -> None:
    """Names of ops and versions: what is taken can be a file's name, and stays in its folder."""
    for check in (check_op_name, parse_version):
        try:
            check(text(data))
        except UserError as refused:
            said(refused)
        else:
            assert re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", text(data))


def frame(data: bytes) -> None:
    """What a worker sends, in whatever pieces."""
    reader = FrameReader()
    cut = (data or b"\1")[0] % 64 + 1
    try:
        for at in range(1, len(data), cut):
            list(reader.feed(data[at : at + cut]))
    except ProtocolError as broken:
        said(broken)


def event(data: bytes) -> None:
    """A log of events, line by line."""
    _contents(data)
    for row in text(data).split("\n"):
        found = _event(row, "relu")
        assert found is None or found.op == "relu"


def cell(data: bytes) -> None:
    """The code of a version, with or without the comment that makes it one."""
    TRANSFORM(text(data).splitlines(keepends=True))
    try:
        inspect_source("relu", (), text(data))
    except UserError as refused:
        said(refused)


def prose(data: bytes) -> None:
    """Markdown of the knowledge base and of the user's notes."""
    parse_prose(text(data))


MEMORY = Path("/dev/shm")  # a file system that waits for no disk
FOLDER = tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
OUTSIDE = Path(FOLDER.name)
HOME, WHOLE = OUTSIDE / "inside", OUTSIDE / "whole"
PATHS = (".triton_magics/lab.db", "logs/relu_log.jsonl", "kernels/relu/v1_baseline.py")


def store(data: bytes) -> None:
    """A file of a workspace, damaged: mended or said, and nothing outside is touched."""
    if not WHOLE.is_dir():  # laid out once, for it takes longer than a run
        (OUTSIDE / "canary").write_text("sings")
        with Lab(WHOLE, engine=FakeEngine()) as lab:
            lab.write("relu", "v1", "def triton_relu(x):\n    return x\n")
    shutil.rmtree(HOME, ignore_errors=True)
    shutil.copytree(WHOLE, HOME)
    path = HOME / PATHS[(data or b"\0")[0] % 3]
    whole = path.read_bytes()
    at = int.from_bytes(data[1:3], "big") % (len(whole) + 1)
    path.write_bytes(whole[:at] + data[3:] + whole[at + len(data) :])
    try:
        with Lab(HOME, engine=FakeEngine()) as lab:
            lab.status("relu")
    except TritonMagicsError as refused:
        said(refused)
    assert (OUTSIDE / "canary").read_text() == "sings"
    assert {found.name for found in OUTSIDE.iterdir()} == {"canary", "inside", "whole"}


TARGETS: dict[str, Callable[[bytes], None]] = {
    target.__name__: target for target in (line, name, frame, event, cell, prose, store)
}


def text(data: bytes) -> str:
    """Every text there is, lone surrogates too."""
    return data.decode("utf-8", "surrogateescape")


def run(targets: Iterable[str], seconds: int, into: Path | None) -> int:
    """Each target in a process of its own; a table of what came of it, beside that of others."""
    found = []
    for target in targets:
        with tempfile.TemporaryDirectory() as corpus:
            kept = Path(tempfile.mkdtemp(prefix=f"fuzz-{target}-"))
            options = [f"-max_total_time={seconds}", "-print_final_stats=1", "-max_len=4096"]
            argv = [sys.executable, __file__, target, corpus, str(SEEDS / target), *options]
            ended = subprocess.run(
                [*argv, f"-artifact_prefix={kept}/"], capture_output=True, text=True, check=False
            )
        crashes = [str(path) for path in kept.iterdir()]
        row = {"target": target, "seconds": seconds, "crashes": len(crashes)}
        row |= figures(ended.stderr)
        print(json.dumps(row), *crashes, flush=True)
        if crashes or ended.returncode:
            print(ended.stderr[-3000:], ended.stdout[-3000:])
        found.append(row)
        if into:
            note(row, into)
    return int(any(row["crashes"] for row in found))


def note(row: dict[str, object], into: Path) -> None:
    """Puts the figures of a target in the place of its earlier ones."""
    earlier = json.loads(into.read_text()) if into.exists() else []
    rows = {old["target"]: old for old in [*earlier, row]}
    into.write_text(json.dumps([rows[name] for name in TARGETS if name in rows], indent=1) + "\n")


def figures(said: str) -> dict[str, int]:
    """Executions, edges covered and inputs kept, from libFuzzer's words."""
    runs = re.findall(r"number_of_executed_units: (\d+)", said)
    last = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", said)
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
    parser.add_argument("--into", type=Path, help="a JSON file of what was found")
    given = parser.parse_args()
    return run(given.only, given.seconds, given.into)


if __name__ == "__main__":
    sys.exit(main())
