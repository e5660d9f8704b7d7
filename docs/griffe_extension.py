"""Lets the reference show "Call arguments" as it shows other arguments."""

import griffe


class CallArguments(griffe.Extension):
    """Renames that section of Keras' docstrings to one that griffe parses."""

    def on_instance(self, *, obj, **_):
        if obj.docstring and "Call arguments:" in obj.docstring.value:
            obj.docstring.value = obj.docstring.value.replace(
                "Call arguments:", "Other Args: Call arguments"
            )
