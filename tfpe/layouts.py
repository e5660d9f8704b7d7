"""Layouts: the order in which the channels of a signal stand, nothing more."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from tfpe._arguments import ORDERS, as_axes, as_channels, as_layout, as_odd_channel

SINE, COSINE = 0, 1


class Arrangement(NamedTuple):
    """What each channel is, padding at the end left out: int64 arrays `(n,)`.

    `axis` and `pair` are indices of the positional axis and of its timescale;
    `function` is `SINE` or `COSINE`.
    """

    axis: np.ndarray
    pair: np.ndarray
    function: np.ndarray


def number_of_pairs(channels, axes, odd_channel):
    """Returns the number of timescales of each axis."""
    if odd_channel == "sine":
        if axes != 1:
            raise ValueError(
                "`odd_channel='sine'` is for one axis only. Received: "
                f"odd_channel='sine' with {axes} axes"
            )
        return (channels + 1) // 2 if channels > 1 else 0
    return channels // (2 * axes)


def require_pairs(channels, axes, odd_channel, received):
    """Refuses fewer channels than a pair for each axis."""
    if not number_of_pairs(channels, axes, odd_channel):
        name = received.split(".")[0].split("=")[0]
        raise ValueError(
            f"`{name}` must have at least {2 * axes} channels, a sine and a cosine for "
            f"each positional axis. Received: {received}"
        )


def arrangement(channels, axes, layout, cosine_first=False, odd_channel="zero"):
    """Returns the `Arrangement` of the channels of a layout."""
    pairs = number_of_pairs(channels, axes, odd_channel)
    sizes = {"axis": axes if pairs else 0, "frequency": pairs, "function": 2}
    order = ORDERS.get(layout, layout)
    indices = np.indices([sizes[word] for word in order]).reshape(3, -1)
    found = dict(zip(order, indices, strict=True))
    function = found["function"] ^ cosine_first
    # With an odd "sine" channel the last pair has a sine and no cosine.
    unpaired = 2 * pairs > channels
    keep = ~(unpaired & (found["frequency"] == pairs - 1) & (function == COSINE))
    return Arrangement(found["axis"][keep], found["frequency"][keep], function[keep])


def layout_permutation(
    channels: int,
    source: str | Sequence[str],
    target: str | Sequence[str],
    *,
    axes: int = 1,
    odd_channel: str = "zero",
) -> np.ndarray:
    """Returns the permutation `p` with `target_signal = source_signal[..., p]`.

    The two signals must have the same spectrum: a layout is the order of the
    channels, nothing more.

    Args:
        channels: int >= 1, the size of the last axis.
        source: the layout of the signal you have: "interleaved", "concatenated"
            or an order of "axis", "frequency" and "function".
        target: the layout you want.
        axes: int >= 1, the number of positional axes. Defaults to 1.
        odd_channel: "zero" or "sine", as in `SinusoidalPositionalEncoding`.
            Defaults to "zero".

    Returns:
        int64 array `(channels,)`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    Example:

    >>> import tfpe
    >>> tfpe.layout_permutation(6, "interleaved", "concatenated")
    array([0, 2, 4, 1, 3, 5])
    """
    channels, axes = as_channels(channels), as_axes(axes)
    odd_channel = as_odd_channel(odd_channel)
    source, target = (
        arrangement(channels, axes, as_layout(layout, name), odd_channel=odd_channel)
        for layout, name in ((source, "source"), (target, "target"))
    )
    # Sorted by what they are, the channels of both signals are the same.
    permutation = np.arange(channels)
    used = len(target.axis)
    permutation[:used][np.lexsort(target)] = np.lexsort(source)
    return permutation
