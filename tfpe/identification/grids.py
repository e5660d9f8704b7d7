"""Grids whose positions stand one after the other in a table."""

import itertools

import numpy as np

from tfpe.identification.waves import LARGEST_NOISE

# The rows that are still taken for a flattened grid.
LARGEST_GRID = 2**14
# The channels that are looked at before all of them.
FEW_CHANNELS = 32


def folded(table):
    """Yields the grids whose positions may stand one after the other in a table."""
    # Rows of zeros in front of a grid are those of class tokens.
    rows = table[table.any(axis=-1).argmax() :] if table.ndim == 2 else table[:0]
    if len(rows) > LARGEST_GRID:
        return
    few = rows[:, :: max(1, rows.shape[1] // FEW_CHANNELS)]
    for axes in 2, 3:
        for lengths in _factors(len(rows), axes):
            if all(_is_grid(r.reshape(*lengths, -1)) for r in (few, rows)):
                yield rows.reshape(*lengths, -1)


def _factors(number, count):
    """Yields each way to write a number as a product of factors of 5 and more."""
    if count == 1:
        yield (number,)
        return
    for factor in range(5, number // 5 ** (count - 1) + 1):
        if number % factor == 0:
            yield from (
                (factor, *rest) for rest in _factors(number // factor, count - 1)
            )


def _is_grid(grid):
    """Returns whether each channel is the same along all axes but one."""
    axes = range(grid.ndim - 1)
    limit = LARGEST_NOISE * np.abs(grid).max()
    same = np.zeros(grid.shape[-1], bool)
    for others in itertools.combinations(axes, len(axes) - 1):
        same |= grid.std(axis=others).reshape(-1, grid.shape[-1]).max(axis=0) <= limit
    return same.all()
