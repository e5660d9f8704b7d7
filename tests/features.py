"""Inputs for the functions of tfpe.tensor2tensor."""

from types import SimpleNamespace

import numpy as np

RANDOM = np.random.default_rng(7)
X = RANDOM.normal(size=(2, 5, 10)).astype("float32")
IMAGE = RANDOM.normal(size=(2, 3, 5, 10)).astype("float32")
POSITIONS = np.array([[3, 0, 7, 1, 2], [40, 5, 6, 0, 1]], "int32")
SEGMENTS = np.array([[1, 1, 1, 2, 2], [1, 2, 2, 2, 0]], "int32")
TIMING = SimpleNamespace(pos="timing")
PACKED = {
    "inputs_segmentation": SEGMENTS,
    "inputs_position": POSITIONS,
    "targets_segmentation": SEGMENTS,
    "targets_position": POSITIONS,
}
