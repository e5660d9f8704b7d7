"""The command `tfpe`, which starts without Keras.

`import tfpe` registers the layers with Keras, which takes seconds. What the command
does needs NumPy alone, so here the package `tfpe` is made without running its
`__init__`.
"""

import importlib.util
import sys


def main():
    # Models are Keras' business.
    if "tfpe" not in sys.modules and sys.argv[1:2] != ["migrate"]:
        spec = importlib.util.find_spec("tfpe")
        sys.modules["tfpe"] = importlib.util.module_from_spec(spec)
    from tfpe.tools.command_line import main

    main(prog_name="tfpe")
