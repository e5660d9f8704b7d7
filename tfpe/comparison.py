"""Whether two signals are equal, a permutation of each other, or different."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfpe._arguments import as_axis, as_channels, as_integer
from tfpe._settings import Settings
from tfpe.layouts import arrangement, require_pairs
from tfpe.spectra import timescales
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


def signal_of(
    length: int | Sequence[int], channels: int, **settings: Any
) -> np.ndarray:
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
    return signal_rows(lengths, channels, settings, blocks=blocks).astype("float32")


def compare(first: Any, second: Any) -> Comparison:
    """Compares two signals, number by number and channel by channel.

    Args:
        first: array `(..., channels)`.
        second: array of the same shape.

    Returns:
        A `Comparison`. Differences up to 1e-6 are taken for rounding.

    Raises:
        ValueError, TypeError: if the shapes differ, or the arrays are not of finite
            real numbers, or are empty.

    Example:

    >>> paper = signal_of(50, 6)
    >>> print(compare(paper, signal_of(50, 6, layout="concatenated")))
    different: from row 0 on, most at row 3, channel 3, by 2
    >>> other = signal_of(50, 6, layout="concatenated", spectrum="vaswani")
    >>> print(compare(paper, other))
    the same channels in another order, second = first[..., [0, 2, 4, 1, 3, 5]]
    """
    first, second = _as_signal(first, "first"), _as_signal(second, "second")
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


def in_words(channels: int, first: Mapping[str, Any], second: Mapping[str, Any]) -> str:
    """Returns what differs between the signals of two dicts of settings.

    Args:
        channels: int, the size of the last axis.
        first: dict, settings as in `SinusoidalPositionalEncoding`, `axis` included.
        second: dict, the others.

    Returns:
        list of str, one for each of order, spacing, first position and amplitude that
        differs; empty if the signals are equal.

    Example:

    >>> for line in in_words(8, {}, {"layout": "concatenated", "first_position": 2}):
    ...     print(line)
    order: sin cos sin cos ..., and sin sin ... cos cos ...
    spacing: timescales from 1 to 1000, and from 1 to 10000
    first position: 0, and 2
    """
    described = [_described(as_channels(channels), **s) for s in (first, second)]
    lines = []
    for part, (a, b) in zip(
        ("order", "spacing", "first position", "amplitude"),
        zip(*described, strict=True),
        strict=True,
    ):
        same = len(a[0]) == len(b[0]) and np.allclose(a[0], b[0], rtol=1e-9, atol=0)
        if not same:
            unit = "timescales " if part == "spacing" else ""
            lines.append(f"{part}: {unit}{a[1]}, and {b[1]}")
    return lines


def _described(channels, axis=-2, **settings):
    """Returns, for each of four parts, numbers to compare and words to show."""
    axes = np.atleast_1d(axis)
    timescale = timescales(channels, axes=len(axes), **settings)
    settings = Settings.of(settings)
    order = arrangement(
        channels,
        len(axes),
        settings.layout,
        settings.cosine_first,
        settings.odd_channel,
    )
    place = np.concatenate([axes[order.axis], order.pair, order.function])
    words = [("sin", "cos")[function] for function in order.function]
    if len(axes) > 1:
        names = {a: f"axis {a}" for a in axes.tolist()}
        words = [
            f"{w}({names[axes[a]]})" for w, a in zip(words, order.axis, strict=True)
        ]
    ends = f"from {timescale.min():.6g} to {timescale.max():.6g}"
    return (
        (place, _shortened(words)),
        (timescale, ends),
        ([settings.first_position], f"{settings.first_position:g}"),
        ([settings.amplitude], f"{settings.amplitude:.6g}"),
    )


def _shortened(words):
    """Returns words in their order, the repeating parts of it left out."""
    runs = [words[0]]
    for before, word in itertools.pairwise(words):
        if word != before and word not in runs:
            runs.append(word)
    if len(words) > 2 and words[0] != words[1]:
        period = words.index(words[0], 1) if words[0] in words[1:] else len(words)
        return " ".join([*(words[:period] * 2), "..."])
    return " ".join(f"{run} {run} ..." for run in runs)


def _as_signal(array, name):
    """Returns an array of finite numbers; anything else is refused."""
    try:
        array = np.asarray(array)
    except ValueError:
        raise ValueError(
            f"`{name}` must be an array (..., channels). Received: rows of different "
            "lengths"
        ) from None
    if array.dtype.kind not in "iufV":
        raise TypeError(
            f"`{name}` must be an array of real numbers. Received: dtype={array.dtype}"
        )
    if not array.ndim or not array.size:
        raise ValueError(
            f"`{name}` must have the shape (..., channels) and not be empty. Received: "
            f"{name}.shape={array.shape}"
        )
    array = array.astype("float64")
    if not np.isfinite(array).all():
        raise ValueError(
            f"`{name}` must be finite. Received: NaN or infinity in "
            f"{np.count_nonzero(~np.isfinite(array))} of its numbers"
        )
    return array


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
