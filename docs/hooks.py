"""Runs the code of the pages when the site is built: what it prints and draws is shown.

A block of Python is run, with the blocks before it on its page. What it prints
takes the place of the block without a language that follows; a `figure` that it
makes is shown below.
"""

import base64
import contextlib
import io
import re

import tfpe
from tfpe.conventions import OUTSIDE

BLOCK = re.compile(r"```python\n(.*?)```\n(?:```\n.*?```\n)?", re.DOTALL)
# A file of the repository, which is no page of the site.
ELSEWHERE = re.compile(r"\[[^\]]*\]\(\.\./([^)]*)\)")


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

    markdown = ELSEWHERE.sub(r"`\1`", BLOCK.sub(run, markdown))
    if "{{ conventions }}" in markdown:
        markdown = markdown.replace("{{ conventions }}", _conventions())
        markdown = markdown.replace("{{ outside }}", _outside())
    return markdown


def _picture(figure):
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    content = base64.b64encode(file.getvalue()).decode()
    titles = ", ".join(axes.get_title() for axes in figure.axes if axes.get_title())
    return f'<img alt="{titles}" src="data:image/png;base64,{content}">'


def _conventions():
    groups = {}
    for entry in tfpe.CONVENTIONS.values():
        settings = dict(entry.settings)
        if entry.axes > 1:
            settings["axis"] = entry.axis
        call = ", ".join(f"{k}={v!r}" for k, v in settings.items()) or "the defaults"
        groups.setdefault(call, []).append(entry)
    lines = []
    for call, entries in groups.items():
        lines += [f"### `{call}`", ""]
        lines += [
            "| name | what it is | what these settings leave out |",
            "|---|---|---|",
        ]
        for entry in entries:
            what = f"{entry.reproduces}<br>{_where(entry)}"
            lines.append(f"| `{entry.name}` | {what} | {entry.beyond} |")
        lines.append("")
    return "\n".join(lines)


def _outside():
    lines = ["| name | where | why |", "|---|---|---|"]
    for entry in OUTSIDE.values():
        lines.append(f"| `{entry.name}` | {_where(entry)} | {entry.reason} |")
    return "\n".join(lines)


def _where(entry):
    revision = entry.revision
    short = revision[:10] if len(revision) == 40 else revision  # of a commit
    return f"{entry.project}, `{entry.file}`, {short}"
