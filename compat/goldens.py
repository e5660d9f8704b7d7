"""Calls of tensor2tensor 1.15.7, with what they returned on TensorFlow 2.13.1.

The files in `golden/` came out of the real library, in float32 on a CPU. So do those
that `make compat-live` makes anew, elsewhere.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

FOLDER = Path(os.environ.get("TFPE_GOLDENS", Path(__file__).parent / "golden"))
CASES = json.loads((FOLDER / "goldens.json").read_text())["cases"]
ARRAYS = np.load(FOLDER / "goldens.npz")
THEIRS = 2.0**-23  # tensor2tensor's own float32 error, for each radian


class Golden:
    """One call: `function(*arrays, **kwargs)` returned `out`.

    `finite` is false where tensor2tensor returned NaN.
    """

    def __init__(self, index):
        case = CASES[index]
        self.index = index
        self.function = case["function"]
        self.kwargs = case["kwargs"]
        self.finite = case["finite"]
        self.out = ARRAYS[case["out"]]
        self.arrays = {name: ARRAYS[key] for name, key in case["arrays"].items()}
        self.channels = self.out.shape[-1]

    def __str__(self):
        shape = "x".join(str(n) for n in self.out.shape)
        rest = {k: v for k, v in self.kwargs.items() if k not in ("length", "channels")}
        given = ",".join(f"{k}={v}".replace("_timescale", "") for k, v in rest.items())
        return f"{self.index}:{shape}:{given}".rstrip(":")


def goldens(*functions, finite=True, where=lambda golden: True):
    """Returns the calls of some functions, as parameters with readable ids."""
    found = [
        Golden(i)
        for i, case in enumerate(CASES)
        if case["function"] in functions and case["finite"] == finite
    ]
    return [pytest.param(g, id=str(g)) for g in found if where(g)]


def golden(function, **kwargs):
    """Returns the one call of `function` with just these arguments."""
    (index,) = (
        i
        for i, case in enumerate(CASES)
        if case["function"] == function and case["kwargs"] == kwargs
    )
    return Golden(index)
