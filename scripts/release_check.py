"""Check that this tree can be released: `make release-check`.

python scripts/release_check.py            build, metadata, an empty environment, the changelog
python scripts/release_check.py --lowest   the lowest versions that pyproject.toml accepts

Nothing is uploaded. Every check runs, and the exit code is 1 if one failed.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tomllib
import venv
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).parents[1]
BUILD = ROOT / "build" / "release"
MAX_WHEEL_BYTES = 3_000_000
SMOKE = ROOT / "scripts" / "smoke.py"


class Fault(Exception):
    """A check that failed, and what to do."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the checks; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--lowest", action="store_true", help="only the lowest versions")
    parser.add_argument("--extras", default="lab", help="of the environment (default: lab)")
    options = parser.parse_args(argv)
    checks: list[tuple[str, Callable[[], str]]]
    if options.lowest:
        checks = [("lowest versions", lambda: check_lowest(options.extras))]
    else:
        shutil.rmtree(BUILD, ignore_errors=True)
        checks = [
            ("version", check_version),
            ("changelog", check_changelog),
            ("repository URL", check_urls),
            ("build", build),
            ("metadata", check_metadata),
            ("wheel's size", check_size),
            ("empty environment", lambda: check_environment(options.extras)),
        ]
    failed = [name for name, check in checks if not _report(name, check)]
    return int(bool(failed))


def _report(name: str, check: Callable[[], str]) -> bool:
    try:
        print(f"✓ {name}: {check()}", flush=True)
    except Fault as fault:
        print(f"✗ {name}: {fault}", flush=True)
        return False
    return True


def _project() -> dict[str, object]:
    project: dict[str, object] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return project


def check_version() -> str:
    """Compare the version in every file that has it."""
    version = str(_project()["version"])
    texts = {
        "triton_magics/__init__.py": f'__version__ = "{version}"',
        "CITATION.cff": f"version: {version}",
    }
    for name, text in texts.items():
        if text not in (ROOT / name).read_text(encoding="utf-8"):
            raise Fault(f"{name} has another version than {version}")
    server = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))
    if {server["version"], *(p["version"] for p in server["packages"])} != {version}:
        raise Fault(f"server.json has another version than {version}")
    return version


def check_changelog() -> str:
    """Find the section of this version, or entries under Unreleased for a .dev version."""
    version = str(_project()["version"])
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    title = "Unreleased" if ".dev" in version else version
    section = re.search(rf"^## \[{re.escape(title)}\].*?$(.*?)(?=^## |\Z)", text, re.M | re.S)
    n = len(re.findall(r"^- ", section[1], re.MULTILINE)) if section else 0
    if not n:
        raise Fault(f"CHANGELOG.md has no entry under [{title}]")
    return f"{n} entries under [{title}]"


def check_urls() -> str:
    """Find the repository, without which the README's relative links are dead in an index."""
    urls = _project().get("urls")
    if not isinstance(urls, dict) or "Repository" not in urls:
        raise Fault(
            "add [project.urls] Repository; README's relative links are dead in an index. Its owner "
            "replaces the one of server.json's name, and of mcp-name in README.md"
        )
    check_owner(str(urls["Repository"]))
    relative = re.findall(r"\]\((?!https?:|#)([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    if relative:
        raise Fault(f"README.md has {len(relative)} relative links: {relative[0]}, ...")
    return str(urls["Repository"])


def check_owner(repository: str) -> None:
    """Compare the owner of the repository with the one that the registry's entry names.

    Raises:
        Fault: the registry would refuse the entry.
    """
    owner = urlsplit(repository).path.strip("/").split("/")[0].lower()
    name = json.loads((ROOT / "server.json").read_text(encoding="utf-8"))["name"]
    if name.partition("/")[0].lower() != f"io.github.{owner}":
        raise Fault(f"server.json's name is {name}; the repository's owner is {owner}")


def build() -> str:
    """Build the wheel and the source distribution."""
    _run([sys.executable, "-m", "hatchling", "build", "-d", str(BUILD)], cwd=ROOT)
    return ", ".join(sorted(path.name for path in BUILD.iterdir()))


def check_metadata() -> str:
    """Let twine check what an index would show."""
    _run([sys.executable, "-m", "pip", "install", "--quiet", "twine"])
    files = [str(path) for path in BUILD.iterdir() if path.suffix in (".whl", ".gz")]
    _run([sys.executable, "-m", "twine", "check", "--strict", *files])
    return "twine check --strict passed"


def check_size() -> str:
    """Compare the wheel's size with the limit."""
    size = _wheel().stat().st_size
    if size >= MAX_WHEEL_BYTES:
        raise Fault(f"{size / 1e6:.2f} MB; the limit is {MAX_WHEEL_BYTES / 1e6:.0f} MB")
    return f"{size / 1e6:.2f} MB"


def _wheel() -> Path:
    wheel = next(BUILD.glob("*.whl"), None)
    if wheel is None:
        raise Fault("there is no wheel: see build")
    return wheel


def check_environment(extras: str) -> str:
    """Install the wheel into an empty environment and try it there."""
    folder = BUILD / "environment"
    venv.create(folder, with_pip=True, clear=True)
    python = str(folder / "bin" / "python")
    _run([python, "-m", "pip", "install", "--quiet", f"{_wheel()}[{extras}]"])
    return _smoke(python)


def check_lowest(extras: str) -> str:
    """Install the lowest versions that are accepted, and try them."""
    _run([sys.executable, "-m", "pip", "install", "--quiet", "uv"])
    folder = ROOT / "build" / "lowest"
    uv = [sys.executable, "-m", "uv"]
    _run([*uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)])
    python = str(folder / "bin" / "python")
    install = [*uv, "pip", "install", "--quiet", "--python", python]
    _run([*install, "--resolution", "lowest-direct", f"{ROOT}[{extras}]"])
    names = ("pydantic", "ipython", "matplotlib", "traitlets", "torch", "triton")
    listed = json.loads(_run([*uv, "pip", "list", "--format", "json", "--python", python]))
    versions = [f"{p['name']} {p['version']}" for p in listed if p["name"] in names]
    return f"{', '.join(versions)}: {_smoke(python)}"


def _smoke(python: str) -> str:
    """Run `smoke.py` outside the repository."""
    output = _run([python, str(SMOKE)], cwd=Path("/"))
    return f"{len(output.splitlines())} steps passed"


def _run(command: list[str], cwd: Path | None = None) -> str:
    ran = subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)
    if ran.returncode:
        raise Fault(f"{' '.join(command)} ended with {ran.returncode}:\n{ran.stdout}{ran.stderr}")
    return ran.stdout


if __name__ == "__main__":
    sys.exit(main())
