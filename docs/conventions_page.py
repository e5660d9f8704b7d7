"""The tables of the page of conventions, made from `tfpe.CONVENTIONS`."""

import math

import tfpe
from tfpe.conventions import OUTSIDE


def fill_in(markdown):
    """Returns the page with its index and its tables in their places."""
    for place, made in (
        ("{{ index }}", _index),
        ("{{ conventions }}", _conventions),
        ("{{ outside }}", _outside),
    ):
        if place in markdown:
            markdown = markdown.replace(place, made())
    return markdown


def _index():
    names = sorted([*tfpe.CONVENTIONS, *OUTSIDE])
    links = "\n".join(f"- [`{name}`](#{name})" for name in names)
    return f'<div class="index" markdown="1">\n\n{links}\n\n</div>'


def _conventions():
    groups = {}
    for entry in tfpe.CONVENTIONS.values():
        settings = dict(entry.settings)
        if entry.axes > 1:
            settings["axis"] = entry.axis
        call = ", ".join(f"{k}={_short(v)}" for k, v in settings.items())
        groups.setdefault(f"`{call}`" if call else "The defaults", []).append(entry)
    lines = []
    for call, entries in groups.items():
        lines += [f"### {call}", ""]
        lines += ["| name | what it is | not covered |", "|---|---|---|"]
        lines += [
            f"| {_name(e)} | {e.reproduces}<br>{_where(e)} | {e.beyond} |"
            for e in entries
        ]
        lines.append("")
    return "\n".join(lines)


def _short(value):
    """Returns a setting as code; a number with many digits as a formula, or rounded."""
    if not isinstance(value, float) or len(repr(value)) < 8:
        return repr(value)
    wavelength = 2 * math.pi * value
    if math.isclose(wavelength, float(f"{wavelength:.3g}"), rel_tol=1e-12):
        return f"{wavelength:g} / (2 * pi)"
    return f"{value:.4g}"


def _outside():
    lines = ["| name | where | why |", "|---|---|---|"]
    for entry in OUTSIDE.values():
        lines.append(f"| {_name(entry)} | {_where(entry)} | {entry.reason} |")
    return "\n".join(lines)


def _name(entry):
    return f'<code class="name" id="{entry.name}">{entry.name}</code>'


def _where(entry):
    revision = entry.revision
    short = revision[:10] if len(revision) == 40 else revision  # of a commit
    return f"{entry.project}, `{entry.file}`, {short}"
