"""The order of the channels, made of sines and cosines on the device."""

from typing import NamedTuple

import numpy as np
from keras import ops


class ChannelOrder(NamedTuple):
    """Where the sines and cosines of an axis stand among all channels.

    `columns` has, for each channel, its column in `[sines, cosines, zero]`. They are
    side by side, or in turn with each other, with channels before and after them;
    or in any other order, `kind` "any".
    """

    columns: np.ndarray
    kind: str
    cosine_first: bool = False
    before: int = 0
    after: int = 0

    @classmethod
    def of(cls, columns, pairs):
        used = np.flatnonzero(columns < 2 * pairs)
        before, after = int(used[0]), int(len(columns) - 1 - used[-1])
        block = columns[before : used[-1] + 1]
        halves = np.arange(2 * pairs).reshape(2, pairs)
        for cosine_first, rows in ((False, halves), (True, halves[::-1])):
            if np.array_equal(block, rows.ravel()):
                return cls(columns, "side by side", cosine_first, before, after)
            if np.array_equal(block, rows.T.ravel()):
                return cls(columns, "in turn", cosine_first, before, after)
        return cls(columns, "any")

    @property
    def is_pairs(self):
        """Whether all channels are pairs, of a sine and a cosine side by side."""
        return self.kind == "in turn" and not self.before and not self.after

    def of_array(self, both):
        """Returns `[sines, cosines]`, a NumPy array, in this order."""
        return np.pad(both, [(0, 0), (0, 1)])[:, self.columns]

    def of_both(self, both):
        """Returns `[sines, cosines]`, one tensor, in this order."""
        pairs = both.shape[-1] // 2
        return self.of_waves(both[..., :pairs], both[..., pairs:])

    def of_waves(self, sine, cosine):
        """Returns sines and cosines `(..., pairs)` in this order."""
        if self.kind == "any":
            both = _padded(ops.concatenate([sine, cosine], axis=-1), 0, 1)
            return ops.take(both, self.columns.astype("int32"), axis=-1)
        waves = (cosine, sine) if self.cosine_first else (sine, cosine)
        if self.kind == "side by side":
            signal = ops.concatenate(waves, axis=-1)
        else:
            shape = (*ops.shape(sine)[:-1], 2 * sine.shape[-1])
            signal = ops.reshape(ops.stack(waves, axis=-1), shape)
        return _padded(signal, self.before, self.after)


def _padded(signal, before, after):
    if not before and not after:
        return signal
    widths = [(0, 0)] * (len(signal.shape) - 1) + [(int(before), int(after))]
    return ops.pad(signal, widths)
