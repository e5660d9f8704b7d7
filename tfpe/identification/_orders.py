"""The orders in which the channels of a table may stand."""

import itertools
from dataclasses import dataclass

import numpy as np

from tfpe._arguments import ORDERS
from tfpe.identification._waves import joined, measure
from tfpe.layouts import COSINE, SINE, arrangement


@dataclass(frozen=True)
class Order:
    """Where sines and cosines stand, and the settings that say so."""

    settings: dict
    channels: int
    entries: list
    # For each axis' block of channels, the axis of the table that it is for.
    axes: tuple

    @property
    def index(self):
        """The index of the timescale of each pair, and of a single sine."""
        if len(self.axes) > 1:
            return np.tile(np.arange(self.pairs), len(self.axes))
        return np.arange(self.pairs + (self.settings["odd_channel"] == "sine"))

    @property
    def pairs(self):
        return self.channels // (2 * len(self.axes))

    def measure(self, table):
        """Returns the `Waves` of a table in this order, or `None`."""
        place = {entry: channel for channel, entry in enumerate(self.entries)}
        single = []
        if self.channels % 2 and len(self.axes) == 1:
            single = [place.get((0, self.pairs, SINE), self.channels - 1)]
        found = []
        for block, axis in enumerate(self.axes):
            line = np.moveaxis(table, axis, -2)
            line = line.reshape(-1, *line.shape[-2:])[0]
            sine = [place[block, j, SINE] for j in range(self.pairs)]
            cosine = [place[block, j, COSINE] for j in range(self.pairs)]
            found.append(measure(line, sine, cosine, single))
        return joined(found)


def orders(channels, lengths):
    """Yields each `Order` of the channels of a table."""
    axes = len(lengths)
    layouts = ["interleaved", "concatenated"]
    if axes > 1:
        every = itertools.permutations(ORDERS["interleaved"])
        layouts += [order for order in every if order not in ORDERS.values()]
    for layout, (cosine_first, odd), blocks in itertools.product(
        layouts,
        ((False, "zero"), (True, "zero"), (False, "sine")),
        itertools.permutations(range(axes)),
    ):
        if (odd == "sine" and (channels % 2 == 0 or axes > 1)) or channels < 2 * axes:
            continue
        own = {"layout": layout, "cosine_first": cosine_first, "odd_channel": odd}
        entries = entries_of(channels, axes, **own)
        if axes > 1:
            own["axis"] = tuple(block - axes - 1 for block in blocks)
        yield Order(own, channels, entries, blocks)


def entries_of(channels, axes, layout, cosine_first, odd_channel):
    """Returns `(axis, pair, function)` of each channel but padding."""
    found = arrangement(channels, axes, layout, cosine_first, odd_channel)
    return list(zip(*(part.tolist() for part in found), strict=True))
