"""The conventions of public code, as settings of the one layer. Data, no formula.

The data is in `conventions.toml`: groups of equal settings, with where each
convention was read; and what the settings do not cover, with the reason.
"""

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType


@dataclass(frozen=True)
class Convention:
    """A convention of public code.

    `SinusoidalPositionalEncoding(axis=axis, **settings)` is its layer, and
    `timing_signal(length, channels, **settings)` its signal.

    Attributes:
        name: str, its key in `tfpe.CONVENTIONS`.
        settings: the settings that differ from the layer's defaults.
        axis: the positional axis of the inputs, or a tuple of them in the order
            of their blocks of channels.
        project: str, where it was read.
        file: str, the file in that project.
        revision: str, the commit or the release of that file.
        reproduces: str, the function or the class that it is.
        beyond: str, what the settings leave out; may be empty.
        step: int, -1 if its own code lists the positions downwards, else 1.
        framework: str, what the project is written with: "TensorFlow", "Keras",
            "JAX", "PyTorch" or another; may be empty.
    """

    name: str
    settings: Mapping
    axis: int | tuple[int, ...]
    project: str
    file: str
    revision: str
    reproduces: str
    beyond: str = ""
    step: int = 1
    framework: str = ""

    @property
    def axes(self) -> int:
        """The number of positional axes."""
        return 1 if isinstance(self.axis, int) else len(self.axis)


@dataclass(frozen=True)
class Outside:
    """A convention that no settings of the layer cover, and the reason."""

    name: str
    project: str
    file: str
    revision: str
    reason: str
    reproduces: str = ""


def _read():
    text = resources.files("tfpe").joinpath("conventions.toml").read_text("utf-8")
    data = tomllib.loads(text)
    frameworks = {
        project: framework
        for framework, projects in data["frameworks"].items()
        for project in projects
    }
    inside = {}
    for group in data["group"]:
        settings = MappingProxyType(_frozen(group["settings"]))
        axis = _frozen(group.get("axis", -2))
        for name, entry in group["entries"].items():
            framework = frameworks.get(entry["project"], "PyTorch")
            if name == "paper":
                framework = ""
            inside[name] = Convention(
                name, settings, axis, framework=framework, **entry
            )
    outside = {name: Outside(name, **entry) for name, entry in data["outside"].items()}
    return MappingProxyType(inside), MappingProxyType(outside)


def _frozen(value):
    if isinstance(value, dict):
        return {key: _frozen(entry) for key, entry in value.items()}
    return tuple(value) if isinstance(value, list) else value


CONVENTIONS, OUTSIDE = _read()


def convention(name: str) -> Convention:
    """Returns the entry of `CONVENTIONS` of a name.

    Args:
        name: str, a key of `CONVENTIONS`.

    Returns:
        A `Convention`.

    Raises:
        ValueError: if there is none, with the names that come close.

    Example:

    >>> import tfpe
    >>> dict(tfpe.CONVENTIONS["fairseq"].settings)
    {'layout': 'concatenated', 'first_position': 2}
    """
    is_text = isinstance(name, str)
    if is_text and name in CONVENTIONS:
        return CONVENTIONS[name]
    found = [OUTSIDE[name]] if is_text and name in OUTSIDE else _matching(name)
    if found and all(isinstance(entry, Outside) for entry in found):
        raise ValueError(
            f"`name` must be a convention that the layer covers. {found[0].reason}"
            f" Received: name={name!r}"
        )
    names = [entry.name for entry in found if isinstance(entry, Convention)]
    names = names[:4] or close_names(name)
    raise ValueError(
        "`name` must be one of `tfpe.CONVENTIONS`, such as "
        f"{' or '.join(map(repr, names))}. Received: name={name!r}"
    )


def lookup(word):
    """Returns the entries that somebody means by a word.

    Args:
        word: str, a name; or a project, a file, a function or a class, or a part of
            one. Case, hyphens and underscores make no difference.

    Returns:
        list of `Convention`s and `Outside`s, not empty: those with exactly this name
        if there are any, else those whose words contain it.

    Raises:
        ValueError: if there are none, with the names that come close.
    """
    every = {**CONVENTIONS, **OUTSIDE}
    if word in every:
        return [every[word]]
    found = _matching(word)
    return found or [convention(word)]


def _matching(word):
    """Returns the entries whose words contain a word, the closest kind of them."""
    wanted = _plain(word) if isinstance(word, str) else ""
    matches = [
        lambda e: wanted in map(_plain, re.findall(r"[\w-]+", e.reproduces)),
        lambda e: wanted in map(_plain, _names_of(e)),
        lambda e: wanted in map(_plain, re.split(r"/|[.]\w+$", e.file)),
        lambda e: wanted in _plain(f"{e.name} {e.project} {e.reproduces}"),
    ]
    every = [*CONVENTIONS.values(), *OUTSIDE.values()] if wanted else []
    for match in matches:
        found = [entry for entry in every if match(entry)]
        if found:
            return found
    return []


def _names_of(entry):
    project, file = entry.project, entry.file
    return entry.name, project, *project.split("/"), file, file.rpartition("/")[2]


def _plain(word):
    return re.sub(r"[\s_-]", "", word).lower()


def close_names(name):
    """Returns the names that somebody may have meant."""
    word = name.lower() if isinstance(name, str) else ""
    word = word.replace("-", "_").replace(" ", "_")
    found = [known for known in CONVENTIONS if word and word in known]
    found += difflib.get_close_matches(word, CONVENTIONS, cutoff=0.65)
    # A part of a name is a hint, too: "whispr" for "openai_whisper".
    parts = {part for known in CONVENTIONS for part in known.split("_")}
    for part in difflib.get_close_matches(word, parts, n=2, cutoff=0.8):
        found += [known for known in CONVENTIONS if part in known.split("_")]
    return list(dict.fromkeys(found))[:4] or list(CONVENTIONS)[:3]
