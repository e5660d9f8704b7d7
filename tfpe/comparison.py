"""Whether two signals are equal, a permutation of each other, or different."""

from dataclasses import dataclass

import numpy as np

from tfpe._arguments import as_axis, as_channels, as_integer
from tfpe._settings import Settings
from tfpe.layouts import require_pairs
from tfpe.table import signal_rows

# Twice what a float32 signal may be off, and a little.
TOLERANCE = 1e-6


@dataclass(frozen=True)
class Comparison:
    """How two signals differ.

    Attributes:
        relation: "equal", "permutation" or "different".
        permutation: int64 array `p` with `second = first[..., p]` if `relation`
            is "equal" or "permutation", else `None`.
        largest: float, the largest difference, channel by channel.
        row: int, the row of that difference, in the flattened signals.
        channel: int, its channel.
        first_row: int, the first row with a difference; `None` if equal.

    As a string it says so in words.
    """

    relation: str
    permutation: np.ndarray | None
    largest: float
    row: int
    channel: int
    first_row: int | None

    def __str__(self):
        if self.relation == "equal":
            return "equal"
        if self.relation == "permutation":
            shown = np.array2string(self.permutation, threshold=16, separator=", ")
            return f"the same channels in another order, second = first[..., {shown}]"
        return (
            f"different: from row {self.first_row} on, most at row {self.row}, channel "
            f"{self.channel}, by {self.largest:.2g}"
        )


def signal_of(length, channels, **settings):
    """Returns what a layer adds, as a NumPy array `(*lengths, channels)`.

    Args:
        length: int, or a tuple of ints in the order of the inputs' axes.
        channels: int, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`, `axis` included.
    """
    axis = as_axis(settings.pop("axis", -2))
    lengths = length if isinstance(length, (tuple, list)) else (length,)
    lengths = tuple(
        as_integer(n, "length", 0, 2**31, "an integer >= 0") for n in lengths
    )
    rank = len(lengths) + 2
    axes = (axis,) if isinstance(axis, int) else axis
    # The axes of the array, in the order of their blocks of channels.
    blocks = [a + rank - 1 if a < 0 else a - 1 for a in axes]
    if sorted(blocks) != list(range(len(lengths))):
        raise ValueError(
            "`length` must have one entry for each positional axis. Received: "
            f"length={length}, axis={axis}"
        )
    channels, settings = as_channels(channels), Settings.of(settings)
    require_pairs(channels, len(axes), settings.odd_channel, f"channels={channels}")
    rows = signal_rows(tuple(lengths[b] for b in blocks), channels, settings)
    return np.moveaxis(rows, range(len(blocks)), blocks).astype("float32")


def compare(first, second):
    """Compares two signals, number by number and channel by channel.

    Args:
        first: array `(..., channels)`.
        second: array of the same shape.

    Returns:
        A `Comparison`. Differences up to 1e-6 are taken for rounding.

    Raises:
        ValueError: if the shapes differ.

    Example:

    >>> paper = signal_of(50, 6)
    >>> print(compare(paper, signal_of(50, 6, layout="concatenated")))
    different: from row 0 on, most at row 3, channel 3, by 2
    >>> other = signal_of(50, 6, layout="concatenated", spectrum="vaswani")
    >>> print(compare(paper, other))
    the same channels in another order, second = first[..., [0, 2, 4, 1, 3, 5]]
    """
    first, second = np.asarray(first), np.asarray(second)
    if first.shape != second.shape:
        raise ValueError(
            "`first` and `second` must have the same shape. Received: "
            f"first.shape={first.shape}, second.shape={second.shape}"
        )
    first = first.reshape(-1, first.shape[-1])
    second = second.reshape(first.shape)
    off = np.abs(first - second)
    row, channel = np.unravel_index(off.argmax(), off.shape)
    rows = np.flatnonzero(off.max(axis=1) > TOLERANCE)
    permutation = _match(first, second) if len(rows) else np.arange(first.shape[1])
    relation = "different" if permutation is None else "permutation"
    return Comparison(
        relation=relation if len(rows) else "equal",
        permutation=permutation,
        largest=float(off[row, channel]),
        row=int(row),
        channel=int(channel),
        first_row=int(rows[0]) if len(rows) else None,
    )


def _match(first, second):
    """Returns which channel of `first` each channel of `second` is, or `None`."""
    free = np.ones(first.shape[1], bool)
    found = []
    for column in second.T:
        off = np.abs(first - column[:, None]).max(axis=0)
        off[~free] = np.inf
        nearest = off.argmin()
        if off[nearest] > TOLERANCE:
            return None
        free[nearest] = False
        found.append(nearest)
    return np.array(found)
