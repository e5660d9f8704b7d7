"""What the site shows beyond the text of its pages.

A block of Python is run, with the blocks before it on its page. What it prints
takes the place of the block without a language that follows; a `figure` that it
makes is shown below. Tables get what narrow screens need, see `pages.css`.
"""

import base64
import contextlib
import io
import logging
import re
from pathlib import Path

from conventions_page import fill_in
from mkdocs.structure.files import File

import tfpe

# Tracing warns of the functions of these pages, whose source is in no file.
logging.getLogger("tensorflow").setLevel("ERROR")
ROOT = Path(__file__).parents[1]

BLOCK = re.compile(r"```python\n(.*?)```\n(?:```\n.*?```\n)?", re.DOTALL)
# A file of the repository, which is no page of the site.
ELSEWHERE = re.compile(r"\[[^\]]*\]\(\.\./([^)]*)\)")
TABLE = re.compile(r"<table>.*?</table>", re.DOTALL)
HEAD = re.compile(r"<th(?: [^>]*)?>(.*?)</th>", re.DOTALL)
ROW = re.compile(r"<tr>.*?</tr>", re.DOTALL)
CELL = re.compile(r"<td(?=[ >])")
# Code in a sentence, the places where its line may be broken, and options and names
# with hyphens, where browsers would.
INLINE = re.compile(r"<code>([^<]+)</code>")
BREAK = re.compile(r"(?<=\w[(/])(?=[\w*'])|(?<=\w\.)(?=[a-z_]{9,})|(?<=\))(?=\.)")
HYPHENS = re.compile(r"[\w.]*-[\w.-]+")


def on_config(config):
    """Shows the version beside the name."""
    config.site_name = f"tfpe {tfpe.__version__}"
    return config


def on_files(files, config):
    """Adds CONTRIBUTING.md, which stands where contributors look for it."""
    text = (ROOT / "CONTRIBUTING.md").read_text().replace("](docs/", "](")
    files.append(File.generated(config, "contributing.md", content=text))
    return files


def on_page_markdown(markdown, page, **_):
    """Returns a page with what its code prints and draws."""
    names = {"__name__": page.file.name}

    def run(block):
        code = block.group(1)
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, page.file.src_uri, "exec"), names)
        shown = f"```python\n{code}```\n"
        if printed.getvalue():
            shown += f"```\n{printed.getvalue().rstrip()}\n```\n"
        if "figure" in names:
            shown += f"\n{_picture(names.pop('figure'))}\n"
        return shown

    return fill_in(ELSEWHERE.sub(r"`\1`", BLOCK.sub(run, markdown)))


def on_page_content(html, **_):
    """Gives the cells of tables the names of their columns, and code its breaks."""
    return TABLE.sub(_label_cells, INLINE.sub(_set_breaks, html))


def _set_breaks(code):
    kept = HYPHENS.sub(r'<span class="name">\g<0></span>', code[1])
    return f"<code>{BREAK.sub('<wbr>', kept)}</code>"


def _label_cells(table):
    names = [re.sub(r"<[^>]*>", "", name).strip() for name in HEAD.findall(table[0])]

    def label(row):
        columns = iter(names)
        return CELL.sub(lambda _: f'<td data-column="{next(columns)}"', row[0])

    return ROW.sub(label, table[0])


def _picture(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    content = base64.b64encode(file.getvalue()).decode()
    titles = ", ".join(axes.get_title() for axes in figure.axes if axes.get_title())
    return f'<img alt="{titles}" src="data:image/png;base64,{content}">'
