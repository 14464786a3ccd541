"""Make the pages of the documentation site that are no files of docs/; a hook of mkdocs.

README.md is the site's first page; CHANGELOG.md, CONTRIBUTING.md and SECURITY.md are pages too.
Every page keeps the links that work where GitHub shows it. `on_page_markdown` maps each of them to
its place in the site. A link to a file that the site does not have becomes plain text.
"""

from __future__ import annotations

import os.path
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
PAGES = {
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
}
LISTINGS = {
    "docs/adr": ("adr/index.md", "Decisions"),
    "notebooks": ("notebooks/index.md", "Notebooks"),
}
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
CODE = re.compile(r"(```.*?```|`[^`\n]*`)", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages of the root, the notebooks, and a list of each folder in `LISTINGS`."""
    from mkdocs.structure.files import File

    for source, place in PAGES.items():
        files.append(File.generated(config, place, abs_src_path=str(ROOT / source)))
    for notebook in sorted((ROOT / "notebooks").glob("*.ipynb")):
        place = f"notebooks/{notebook.name}"
        files.append(File.generated(config, place, abs_src_path=str(notebook)))
    for folder, (place, title) in LISTINGS.items():
        files.append(File.generated(config, place, content=_listing(ROOT / folder, title)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Return the page with its links mapped, and its lists indented as mkdocs wants them."""
    place = page.file.src_uri
    listed = {where: folder for folder, (where, _title) in LISTINGS.items()}
    sources = {where: source for source, where in PAGES.items()}
    source = sources.get(place, f"docs/{place}")
    if place in listed:
        source = f"{listed[place]}/index.md"
    parts = CODE.split(markdown)
    parts[::2] = [
        LINK.sub(lambda link: map_link(link, source, place, files), text) for text in parts[::2]
    ]
    return indent_lists("".join(parts))


def map_link(link: re.Match[str], source: str, place: str, files: Files) -> str:
    """Return a link of the file `source` as the page `place` of the site must have it."""
    bang, text, aim = link.groups()
    path, _, anchor = aim.partition("#")
    if "://" in aim or not path:
        return link[0]
    target = os.path.normpath(os.path.join(os.path.dirname(source), path))
    if not (ROOT / target).exists():
        return link[0]  # mkdocs reports it
    inside = PAGES.get(target) or LISTINGS.get(target, ("",))[0] or target.removeprefix("docs/")
    if files.get_file_from_path(inside) is None:
        return str(text)
    there = os.path.relpath(inside, os.path.dirname(place) or ".")
    return f"{bang}[{text}]({there}{'#' * bool(anchor)}{anchor})"


def indent_lists(markdown: str) -> str:
    """Return the text with what belongs to a list's entry indented by four spaces or more.

    GitHub asks for as many spaces as the entry's mark is wide, Python-Markdown for four. It also
    needs an empty line before a list, and before an entry that follows one with paragraphs.
    """
    lines: list[str] = []
    width, fenced, is_deep = 0, False, False
    for line in markdown.split("\n"):
        mark = None if fenced else re.match(r"(\d+\. |- )\S", line)
        if re.match(r"\s*```", line):
            fenced = not fenced
        if mark:
            if (is_deep or not width) and lines and lines[-1].strip():
                lines.append("")
            width, is_deep = len(mark[1]), False
        elif line and not line.startswith(" ") and width:
            width, is_deep = 0, False
        inside = bool(width) and not mark and line.startswith(" " * width)
        is_deep |= bool(width) and (
            not line.strip() or re.match(r"\s+(\d+\.|-) ", line) is not None
        )
        lines.append(" " * (4 - width) + line if inside else line)
    return "\n".join(lines)


def _listing(folder: Path, title: str) -> str:
    """Return a page with a link to each document of the folder."""
    rows = [
        f"- [{_title(path)}]({path.name})" for path in sorted(folder.iterdir()) if _is_page(path)
    ]
    return f"# {title}\n\n" + "\n".join(rows) + "\n"


def _is_page(path: Path) -> bool:
    return path.suffix in {".md", ".ipynb"}


def _title(path: Path) -> str:
    if path.suffix == ".ipynb":
        return path.stem
    return path.read_text(encoding="utf-8").split("\n", 1)[0].lstrip("# ")
