"""Lets the reference show docstrings as Keras writes them."""

import re

import griffe

EXAMPLE = re.compile(r"^>>> (?:.+(?:\n|\Z))+", re.MULTILINE)


class KerasDocstrings(griffe.Extension):
    """Gives "Call arguments" a heading that griffe parses, and examples a fence.

    Types and defaults stand in the texts, and defaults in the signatures; so the
    lists do not repeat them.
    """

    def on_instance(self, *, obj, **_):
        if obj.docstring:
            text = obj.docstring.value
            for kind in ("Call", "Shared"):
                text = text.replace(
                    f"{kind} arguments:", f"Other Args: {kind} arguments"
                )
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text
            )

    def on_package(self, *, pkg, **_):
        _say_types_once(pkg)


def _say_types_once(obj):
    sections = obj.docstring.parsed if obj.docstring else []
    for number, section in enumerate(sections):
        if section.kind.value == "returns":
            text = section.value[0].description
            sections[number] = griffe.DocstringSectionText(f"**Returns:** {text}")
        elif section.kind.value in ("parameters", "other parameters", "attributes"):
            for item in section.value:
                item.annotation = item.value = None
    for member in obj.members.values():
        if not member.is_alias:
            _say_types_once(member)
