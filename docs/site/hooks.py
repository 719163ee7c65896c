"""MkDocs hooks: add the generated pages to the site, and write `llms.txt` next to them.

`docs/generate.py` makes the pages. The pages exist only in the build, except for those in `generate.checked_in()`,
which can also be read in the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mkdocs.structure.files import File, InclusionLevel

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

ROOT = Path(__file__).resolve().parent.parent.parent
# MkDocs restores sys.path after loading this file, so modules that the hooks need later are imported here.
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "python")]

import api_summary  # noqa: E402 (found through the path above)
import generate  # noqa: E402 (found through the path above)
import streamweld.cli  # noqa: E402, F401


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every generated page. The page of each code is not in the navigation; the overview links to it."""
    for path, text in generate.pages().items():
        old = files.get_file_from_path(path)
        if old is not None:
            files.remove(old)
        page = File.generated(config, path, content=text)
        if path.startswith("rules/"):
            page.inclusion = InclusionLevel.NOT_IN_NAV
        files.append(page)
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Remove the summaries for readers of the repository, because mkdocstrings writes the reference itself."""
    return api_summary.without_summary(markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write `llms.txt`: a description of the project, and one line for each page."""
    (Path(config.site_dir) / "llms.txt").write_text(generate.llms_txt(config.nav, config.site_url), "utf-8")
