"""MkDocs' hooks for the site: documents of the repository's root become pages, and links to other files become code.

Documents link each other by their paths in the repository, so that they also work without the site. README.md of the
root is the repository's front page only; links to it lead to the site's.
"""

import os
import posixpath
import re
from pathlib import PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = PurePosixPath(__file__).parents[2]
OF_ROOT = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md")

_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\(([^)\s:]+)\)")
_FOREIGN = re.compile(r"<(?:script|img|iframe|link|source)\b[^>]*(?:src|href)=\"https?://[^>]*>")
_FENCE = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the documents of the root below `project/`."""
    for name in OF_ROOT:
        files.append(File.generated(config, f"project/{name}", abs_src_path=str(ROOT / name)))
    return files


def on_page_markdown(markdown: str, page: Page, files: Files, **_: Any) -> str:
    """Point the links of a page at pages of the site; a link to any other file becomes the path of that file."""
    source = page.file.src_uri
    directory = "" if source.startswith("project/") else posixpath.join("docs", posixpath.dirname(source))

    def on_site(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        path, _, anchor = target.partition("#")
        if not path:
            return found[0]
        named = posixpath.normpath(posixpath.join(directory, path))
        uri = _page_of(named, files)
        if uri is None and not os.path.exists(ROOT / named):
            return found[0]  # MkDocs reports it
        if uri is None:
            return f"{label} (`{named}`)" if named not in label else label
        link = posixpath.relpath(uri, posixpath.dirname(source) or ".")
        return f"[{label}]({link}{'#' + anchor if anchor and named != 'README.md' else ''})"

    parts = _FENCE.split(markdown)
    return "".join(part if part.lstrip().startswith("```") else _LINK.sub(on_site, part) for part in parts)


def on_post_page(output: str, page: Page, **_: Any) -> str:
    """Refuse a page that loads anything from another host."""
    if found := _FOREIGN.search(output):
        raise PluginError(f"{page.file.src_uri} loads content from another host: {found[0]}")
    return output


def _page_of(named: str, files: Files) -> str | None:
    """The page that shows a file of the repository, or an index of a directory; None if there is no such page."""
    if named in OF_ROOT:
        return f"project/{named}"
    if named == "README.md":
        return "README.md"
    inside = named.removeprefix("docs/")
    if named == inside:
        return None
    candidates = (inside, f"{inside}/README.md")
    return next((each for each in candidates if files.get_file_from_path(each)), None)
