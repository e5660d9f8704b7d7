"""The calls that are timed, and how long they may take."""

from typing import NamedTuple

import keras
import numpy as np
from keras import ops

from benchmarks.report import gpu

# Steps of a decoder, and positions up to these; floats among them have fractions.
STEPS = (5, 300, 1777, 4000)
POSITIONS = {
    "positions below 4,096": 4096,
    "positions below 65,536": 65_536,
    "positions below 2**31": 2**31,
    "positions with fractions": 4096.0,
}


class Case(NamedTuple):
    """Inputs `(batch, length, channels)`, and what is given with them."""

    batch: int
    length: int
    channels: int = 512
    dtype: str = "float32"
    given: str = ""  # "start_index", or one of `POSITIONS`
    modes: str = ""  # how the names of its modes begin; "jit" counts as XLA static
    everywhere: bool = False  # in a quick run too

    def __str__(self):
        dtype = "" if self.dtype == "float32" else f" {self.dtype}"
        given = f", {self.given}" if self.given else ""
        return f"({self.batch}, {self.length:,}, {self.channels:,}){dtype}{given}"

    @property
    def argument(self):
        """The name of the argument that is given with the inputs, or None."""
        return "positions" if self.given in POSITIONS else self.given or None

    def runs_in(self, mode):
        if not mode.static and self.given in POSITIONS:
            return False
        name = "XLA static" if mode.name == "jit" else mode.name
        return name.startswith(self.modes)

    def feeds(self):
        """Returns tuples of arguments, to be used one after the other."""
        shape = (self.batch, self.length, self.channels)
        inputs = keras.random.normal(shape, dtype=self.dtype)
        if self.argument is None:
            return [(inputs,)]
        if self.argument == "start_index":
            return [(inputs, ops.convert_to_tensor(s, "int32")) for s in STEPS]
        random, high = np.random.default_rng(0), POSITIONS[self.given]
        if isinstance(high, float):
            positions = random.uniform(0, high, (3, *shape[:2])).astype("float32")
        else:
            positions = random.integers(0, high, (3, *shape[:2])).astype("int32")
        return [(inputs, ops.convert_to_tensor(p)) for p in positions]

    def limit(self, mode):
        """Returns the largest allowed ratio in a mode, or None.

        It is the ratio to adding a constant, but for positions to float32
        sines of the same positions.
        """
        if gpu():
            limited = self[:5] == (32, 2048, 512, "bfloat16", "")
            return 1.1 if limited and mode.compiler == "XLA" else None
        if self.channels != 512 or self.dtype != "float32":
            return None
        if self.given in POSITIONS:
            with_fractions = isinstance(POSITIONS[self.given], float)
            far = self.given != "positions below 4,096"
            limits = {"graph": 3.3 if far else 1.25, "XLA": 0.25}
            return None if with_fractions else limits.get(mode.compiler)
        if self.given:
            return {None: 5.9, "graph": 1.5}.get(mode.compiler)
        if self.length > 32_768:
            return None
        if self.length > 4096:
            graph = 2.2 if mode.static else 3.0
            return {None: 3.8, "graph": graph, "XLA": 1.2}[mode.compiler]
        if mode.compiler is None:
            return 3.0 if self.length >= 512 else 2.6 if self.batch == 1 else None
        return 1.1 if mode.static else 1.2


def cases_for_this_machine(quick=False):
    """Returns the cases for this machine, fewer of them if it must be quick."""
    found = _on_gpu() if gpu() else _on_cpu()
    return [case for case in found if case.everywhere or not quick]


def _on_cpu():
    return [
        Case(1, 128),
        Case(1, 512, everywhere=True),
        Case(1, 2048),
        Case(1, 4096, everywhere=True),
        Case(32, 128),
        Case(32, 2048),
        Case(8, 4096),
        Case(1, 8192, modes="XLA static"),
        Case(1, 32_768, everywhere=True),
        Case(1, 131_072, modes="XLA"),
        Case(8, 1, given="start_index", everywhere=True),
        *(
            Case(8, 512, given=given, everywhere=given == "positions below 4,096")
            for given in POSITIONS
        ),
        *(Case(1, 2048, channels, modes="XLA static") for channels in (64, 256, 1024)),
        Case(1, 2048, 4096, modes="XLA static"),
    ]


def _on_gpu():
    """Sizes that keep a GPU busy for longer than it takes to call it."""
    return [
        *(
            Case(*size, dtype=dtype, everywhere=size == (32, 2048))
            for size in ((32, 512), (32, 2048), (8, 8192), (64, 8192), (1, 131_072))
            for dtype in ("float32", "bfloat16")
        ),
        Case(32, 1, given="start_index", everywhere=True),
        *(Case(32, 2048, given=given) for given in POSITIONS),
        *(Case(32, 2048, channels, modes="XLA") for channels in (64, 4096)),
    ]
