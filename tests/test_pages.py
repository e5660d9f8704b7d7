"""The code of README.md and docs/ runs, and prints what stands below it."""

import contextlib
import io
import re
from pathlib import Path

import pytest
from contract import on_tensorflow

pytestmark = on_tensorflow
ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
# A block of Python, and the block without a language that may follow it.
BLOCK = re.compile(r"```python\n(.*?)```\n(?:```\n(.*?)```)?", re.DOTALL)
# A file or a folder that is named in code.
NAMED = re.compile(r"`((?:\.ci|compat|docs|examples|tests|tfpe)/[\w./]*)`")
# A link to a file of the repository.
LINK = re.compile(r"\]\((?!https?:|#)([^)#]+)")


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_code_prints_what_the_page_says(page):
    names = {"__name__": page.stem}
    for code, expected in BLOCK.findall(page.read_text()):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.name, "exec"), names)
        if expected:
            assert printed.getvalue().split() == expected.split()


@pytest.mark.parametrize(
    "page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name
)
def test_links_lead_to_files(page):
    # `contributing.md` is made of CONTRIBUTING.md when the site is built.
    links = [
        link for link in LINK.findall(page.read_text()) if link != "contributing.md"
    ]
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_readme_is_short():
    assert len(PAGES[0].read_text().splitlines()) < 120


def test_contributors_are_sent_to_files_that_exist():
    named = set(NAMED.findall((ROOT / "CONTRIBUTING.md").read_text()))
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []
