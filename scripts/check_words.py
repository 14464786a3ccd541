"""Check names, docstrings, comments, messages and documents for plain technical English.

python scripts/check_words.py           check everything; end with 1 on a finding
python scripts/check_words.py PATH ...  check these files or folders

Each finding is one line: file:line, the word, the term to use instead.
"""

from __future__ import annotations

import argparse
import ast
import io
import re
import sys
import tokenize
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import word_lists as lists

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "triton_magics"

CLAUSE = re.compile(r"^(What|Whether|Who|Whose|Whom|Where|Whoever|Whatever)\b")
NOUN = re.compile(r"(A|An|The|All|Both|Each|Every|Everything|Its|No|Nothing|One|Two)\b")
POINTER = re.compile(CLAUSE.pattern + r"|^(How|Those|That)\b")  # in the first line of a docstring
MOST_WORDS = 25  # in a sentence of a document
FORM = re.compile(r"%triton_|\btriton-magics [a-z]")


class Finding(NamedTuple):
    """One word in one place, and the term to use instead."""

    path: str
    line: int
    word: str
    instead: str

    def __str__(self) -> str:
        """Return the line that is printed."""
        return f"{self.path}:{self.line}: {self.word!r}: use {self.instead}"


def main(argv: Sequence[str] | None = None) -> int:
    """Print the findings; return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("paths", nargs="*", help="files or folders, relative to the repository")
    options = parser.parse_args(argv)
    findings = [f for path in files(options.paths) for f in check(path)]
    if not options.paths:
        findings += same_modules() + same_classes()
    print(*findings, sep="\n", end="\n" if findings else "")
    return 1 if findings else 0


def files(paths: Iterable[str]) -> Iterator[Path]:
    """Yield the files to check: Python, Markdown, and the JSON pages of the knowledge."""
    for start in [ROOT / p for p in paths] or [ROOT]:
        for path in sorted(start.rglob("*")) if start.is_dir() else [start]:
            name = path.relative_to(ROOT).as_posix()
            wanted = path.suffix in {".py", ".md"} or re.match(r"knowledge/.*\.json$", name)
            if wanted and path.is_file() and not _is_in(name, lists.EXCLUDED):
                yield path


def _is_in(name: str, entries: Iterable[str]) -> bool:
    return any(name == e or name.startswith(e + "/") for e in entries)


def check(path: Path) -> list[Finding]:
    """Return the findings of one file, by line."""
    name, text = path.relative_to(ROOT).as_posix(), path.read_text(encoding="utf-8")
    if path.suffix == ".py":
        findings = [*check_python(name, text)]
    elif path.suffix == ".md":
        findings = [*check_document(name, text)]
    else:
        findings = [*_words(name, 1, text, lists.PROSE)]
    recorded = lists.RECORDED.get(name, ())
    return sorted({f for f in findings if f.word not in recorded}, key=lambda f: (f.line, f.word))


# Python


def check_python(name: str, text: str) -> Iterator[Finding]:
    """Yield the findings in the names, docstrings, comments and messages of a module."""
    tree = ast.parse(text)
    yield from _name(name, 1, Path(name).stem)
    docstrings = {id(d) for d in map(_docstring, ast.walk(tree)) if d is not None}
    for node in ast.walk(tree):
        for line, defined in _defined(node):
            yield from _name(name, line, defined)
        if isinstance(node, ast.FunctionDef) and _is_participle(node):
            yield Finding(name, node.lineno, node.name, "an imperative, or is_ and has_")
        if isinstance(node, ast.FunctionDef) and (noun := _noun_opening(node)):
            yield Finding(name, node.lineno, f"{noun} …", "an imperative: Return, Write, Check")
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if id(node) in docstrings:
                yield from _opening(name, node.lineno, node.value)
            else:
                yield from _form(name, node.lineno, node.value)
            if id(node) in docstrings or " " in node.value.strip():
                yield from _words(name, node.lineno, node.value, lists.PROSE)
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield from _words(name, token.start[0], token.string, lists.PROSE)


def _docstring(node: ast.AST) -> ast.Constant | None:
    body = getattr(node, "body", None)
    if (
        isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and body
    ):
        value = getattr(body[0], "value", None)
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value
    return None


def _defined(node: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the names that a node defines; names that are only used count where they are defined."""
    match node:
        case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
            yield node.lineno, node.name
        case ast.arg():
            yield node.lineno, node.arg
        case ast.Name(ctx=ast.Store()):
            yield node.lineno, node.id
        case ast.Attribute(ctx=ast.Store()):
            yield node.lineno, node.attr


def _name(path: str, line: int, name: str) -> Iterator[Finding]:
    words = re.findall(r"[a-z]+|[A-Z][a-z]*", name)
    for word in words:
        if instead := lists.NAME_PARTS.get(word.lower()):
            yield Finding(path, line, name, instead)
    if name.startswith("test_") and len(name) > lists.TEST_NAME:
        yield Finding(path, line, name, f"at most {lists.TEST_NAME} characters")
    if instead := lists.WHOLE_NAMES.get(name.strip("_").lower()):
        yield Finding(path, line, name, instead)


def _is_participle(node: ast.FunctionDef) -> bool:
    """Return True for a function, not a property or a fixture, that is named `compared`."""
    return not node.decorator_list and bool(re.fullmatch(r"_?[a-z]{3,}[^e]ed", node.name))


def _noun_opening(node: ast.FunctionDef) -> str | None:
    """Return the first word of a function's docstring if it is no verb.

    A property, a fixture or a test may have a noun phrase.
    """
    if node.decorator_list or node.name.startswith("test_"):
        return None
    docstring = _docstring(node)
    noun = docstring and NOUN.match(str(docstring.value))
    return noun[0] if noun else None


def _opening(path: str, line: int, text: str) -> Iterator[Finding]:
    first = text.strip().split("\n\n", 1)[0]
    opening = POINTER.match(first)
    if opening and not first.rstrip().endswith("?"):
        yield Finding(path, line, f"{opening[0]} …", "an imperative or a subject and a verb")


def _form(path: str, line: int, text: str) -> Iterator[Finding]:
    inside = path.startswith("triton_magics/") and not _is_in(path, lists.WRITES_FORMS)
    if inside and (form := FORM.search(text)):
        yield Finding(path, line, form[0], "a NextStep")


# Documents


def check_document(name: str, text: str) -> Iterator[Finding]:
    """Yield the findings in the prose of a Markdown page."""
    table = lists.PROSE if name == "CHANGELOG.md" else lists.PROSE | lists.DIARY
    for line, block in prose_blocks(text):
        yield from _words(name, line, block, table)
        for sentence in sentences(block):
            if CLAUSE.match(sentence) and not sentence.endswith(("?", ":")):
                yield Finding(name, line, sentence[:40], "an imperative or a subject and a verb")
            if (count := len(sentence.split())) > MOST_WORDS:
                yield Finding(name, line, sentence[:60], f"shorter sentences ({count} words)")
    if name == "CHANGELOG.md":
        yield from _changelog(name, text)


def prose_blocks(text: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph and list item with its line; leave out code, tables and headings."""
    block: list[str] = []
    start, fenced = 1, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        aside = fence or fenced or re.match(r"( {4}|\t|#|\||!\[|<)", line) or not line.strip()
        item = re.match(r"\s*([-*]|\d+\.) ", line)
        if block and (aside or item):
            yield start, _plain(" ".join(block))
            block = []
        if not aside:
            start = start if block else number
            block.append(line[item.end() :] if item else line.strip())


def _plain(text: str) -> str:
    """Return the words that a reader sees: no addresses of links, no code, no emphasis."""
    text = re.sub(r"!?\[([^]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"``[^`]+``|`[^`]+`", "CODE", text)
    text = re.sub(r"CODE(?:, CODE)+", "CODE", text)  # a list of names is one word
    return re.sub(r"[*_]{1,2}(?=\S)|(?<=\S)[*_]{1,2}", "", text)


def sentences(text: str) -> list[str]:
    """Split prose at the ends of sentences, at semicolons and at the dots between links."""
    return [s for s in re.split(r"(?<=[.!?:;])\s+(?=[\"(]?[A-Z0-9a-z])| · ", text) if s]


def _changelog(name: str, text: str) -> Iterator[Finding]:
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("### ") and line[4:] not in kinds:
            yield Finding(name, number, line[4:], "one of " + ", ".join(sorted(kinds)))
        if line.startswith("## ") and not re.match(r"## \[(Unreleased|\d[^]]*\] - \d{4}-)", line):
            yield Finding(name, number, line, "## [version] - date")
        if line.startswith("  "):
            yield Finding(name, number, line.strip()[:40], "one line for each change")


# Common


def _words(path: str, line: int, text: str, table: dict[str, str]) -> Iterator[Finding]:
    for pattern, instead in table.items():
        for hit in re.finditer(pattern, text, re.IGNORECASE):
            yield Finding(path, line + text[: hit.start()].count("\n"), hit[0], instead)


def same_modules() -> list[Finding]:
    """Return the modules whose name is not their own."""
    return _shared(shared_modules(PACKAGE), "module")


def same_classes() -> list[Finding]:
    """Return the public classes whose name is not their own."""
    return _shared(shared_classes(PACKAGE), "class")


def _modules(package: Path) -> Iterator[tuple[str, Path]]:
    for path in sorted(package.rglob("*.py")):
        if not path.stem.startswith("__"):
            yield path.parent.relative_to(package).as_posix(), path


def shared_modules(package: Path) -> dict[str, list[Path]]:
    """Return by name the modules that share it with one of a different subject."""
    places: dict[str, list[Path]] = defaultdict(list)
    subjects: dict[str, Path] = {}
    for folder, path in _modules(package):
        if folder in lists.BY_SUBJECT or re.match(r"languages/\w+", folder):
            subjects[path.stem] = path
        else:
            places[path.stem].append(path)
    for stem, path in subjects.items():
        if stem in places:
            places[stem].append(path)
    return {s: p for s, p in places.items() if len(p) > 1 and s not in lists.ROLES}


def shared_classes(package: Path) -> dict[str, list[Path]]:
    """Return by name the public classes that share it with another one."""
    places: dict[str, list[Path]] = defaultdict(list)
    for _, path in _modules(package):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path)
    return {n: p for n, p in places.items() if len(p) > 1}


def _shared(places: dict[str, list[Path]], kind: str) -> list[Finding]:
    return [
        Finding(where.relative_to(ROOT).as_posix(), 1, name, f"a {kind} name of its own")
        for name, paths in places.items()
        for where in paths
    ]


if __name__ == "__main__":
    sys.exit(main())
