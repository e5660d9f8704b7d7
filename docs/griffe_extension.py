"""Lets the reference show docstrings as Keras writes them."""

import re

import griffe

EXAMPLE = re.compile(r"^>>> (?:.+(?:\n|\Z))+", re.MULTILINE)


class KerasDocstrings(griffe.Extension):
    """Gives "Call arguments" a heading that griffe parses, and examples a fence."""

    def on_instance(self, *, obj, **_):
        if obj.docstring:
            text = obj.docstring.value
            text = text.replace("Call arguments:", "Other Args: Call arguments")
            obj.docstring.value = EXAMPLE.sub(
                lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text
            )
