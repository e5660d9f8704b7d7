"""The settings behind a table that somebody else's code has made.

`waves` reads frequencies and phases off the rows, `hypotheses` tries all settings
on them, `fits` has the numbers that agree, and this module has the last word.
"""

import math
from dataclasses import dataclass

import numpy as np

from tfpe._arguments import as_number
from tfpe._settings import Settings
from tfpe.conventions import CONVENTIONS
from tfpe.identification.fits import MUCH
from tfpe.identification.hypotheses import Found, hypotheses
from tfpe.identification.waves import LARGEST_NOISE
from tfpe.table import signal_rows

# Rows that are rebuilt at a time.
BLOCK = 4096
# The rows that are still taken for a flattened grid.
LARGEST_GRID = 2**14


@dataclass(frozen=True)
class Identification:
    """What `identify` has found.

    Attributes:
        sinusoidal: bool, whether settings of the layer rebuild the table.
        settings: dict, the first of `candidates`, or `None`.
        residual: float, what `settings` leave of the table, or the whole of it
            if there are none: root mean square.
        names: tuple of str, the conventions that make this table, up to its
            amplitude: keys of `tfpe.CONVENTIONS`.
        candidates: tuple of dicts, all the settings that the rows cannot tell
            apart, the simplest first.
    """

    sinusoidal: bool
    settings: dict | None
    residual: float
    names: tuple[str, ...]
    candidates: tuple[dict, ...]


def identify(table, *, first_position=None):
    """Returns the settings that make a table of positional encodings.

    Each layout, order of sine and cosine, odd-channel rule and spectrum is
    tried: its frequencies and phases are compared with those that the rows
    show, as closely as the rounding or the noise of the table allows. Numbers
    are the roundest that the rows allow. A spectrum that is not geometric is
    given as a sequence of timescales. Of first positions that the rows cannot
    tell apart, the nearest few are given.

    Args:
        table: array `(length, channels)` of at least 8 rows and 2 channels; or
            that of a grid, `(height, width, channels)` or flattened row by row.
            Axes of size 1 are left out. Rows of zeros, which libraries put
            where padding is, are skipped but counted; in front of a flattened
            grid they are dropped. It may be rounded to float16 or have noise,
            up to 3 % of the amplitude.
        first_position: a number, the position of the first row, if it is
            known. Defaults to `None`: found. Positions beyond 4,096 are found
            up to three times the longest timescale.

    Returns:
        An `Identification`. If no settings rebuild the table, as with a learned
        one, `sinusoidal` is `False` and `settings` is `None`.

    Raises:
        ValueError, TypeError: if an argument is not as described, or the table
            is not finite.

    Example:

    >>> import numpy as np
    >>> import tfpe
    >>> table = tfpe.timing_signal(50, 16, layout="concatenated", first_position=2)
    >>> found = tfpe.identify(np.array(table))
    >>> found.settings
    {'layout': 'concatenated', 'first_position': 2}
    >>> found.names[:2]
    ('fairseq', 'transformers_fsmt')
    """
    table = _checked(table)
    if first_position is not None:
        first_position = as_number(first_position, "first_position")
    found, residuals = [], {}
    for grid in (table, *_folded(table)):
        if not found:
            found, residuals = _agreeing(grid, first_position)
    if not found:
        return Identification(False, None, float(np.sqrt(np.mean(table**2))), (), ())
    names = {name for f in found for name in f.names}
    return Identification(
        sinusoidal=True,
        settings=found[0].settings,
        residual=residuals[found[0].key],
        names=tuple(name for name in CONVENTIONS if name in names),
        candidates=tuple({f.key: f.settings for f in found}.values()),
    )


def _agreeing(table, first_position):
    """Returns what agrees with a table, the simplest first, and its residuals."""
    # A hypothesis that is far off may overflow; it is not taken.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = hypotheses(table, first_position)
    # Timescales that are all free to choose fit better by chance.
    bound = [f for f in found if not isinstance(f.settings.get("spectrum"), tuple)]
    best = np.min([f.misfits for f in bound or found], axis=0, initial=math.inf)
    found = sorted(
        (f for f in found if np.any(f.misfits <= best + MUCH)), key=Found.rank
    )
    # The last word has the table itself.
    residuals = {f.key: _residual(table, **f.settings) for f in found}
    least = min(residuals.values(), default=math.inf)
    return [
        f
        for f in found
        if residuals[f.key] <= 2 * (least + f.rounding)
        and least <= LARGEST_NOISE * abs(f.settings.get("amplitude", 1.0))
    ], residuals


def _folded(table):
    """Yields the grids whose positions may stand one after the other in a table."""
    # Rows of zeros in front of a grid are those of class tokens.
    rows = table[table.any(axis=-1).argmax() :] if table.ndim == 2 else table[:0]
    if len(rows) > LARGEST_GRID:
        return
    for height in range(5, len(rows) // 5 + 1):
        if len(rows) % height == 0:
            grid = rows.reshape(height, -1, rows.shape[1])
            # A channel belongs to one axis and is the same all along the other.
            down, across = (grid.std(axis=axis).max(axis=0) for axis in (0, 1))
            if np.minimum(down, across).max() <= LARGEST_NOISE * np.abs(rows).max():
                yield grid


def _checked(table):
    table = np.asarray(table)
    shape = table.shape
    if table.dtype.kind in "cbSUOmM":
        raise TypeError(
            f"`table` must be an array of real numbers. Received: dtype={table.dtype}"
        )
    if table.ndim > 2:
        table = table.squeeze()
    if not 2 <= table.ndim <= 4 or min(table.shape[:-1]) < 8 or table.shape[-1] < 2:
        raise ValueError(
            "`table` must have the shape (length, channels), or one length for each "
            "axis of a grid, with at least 8 rows along each and 2 channels. "
            f"Received: table.shape={shape}"
        )
    table = table.astype("float64")
    if not np.isfinite(table).all():
        raise ValueError(
            "`table` must be finite. Received: NaN or infinity in "
            f"{np.count_nonzero(~np.isfinite(table).all(axis=-1))} of its rows"
        )
    return table


def _residual(table, axis=-2, **settings):
    """Returns what settings leave of the rows that are not zero."""
    settings = Settings(**settings)
    *lengths, channels = table.shape
    axes = (axis,) if isinstance(axis, int) else axis
    blocks = [a + len(lengths) + 1 for a in axes]
    squares, count = 0.0, 0
    for start in range(0, lengths[0], BLOCK):
        rows = table[start : start + BLOCK]
        if len(lengths) == 1:
            rebuilt = signal_rows((len(rows),), channels, settings, start=start)
        else:
            sizes = [rows.shape[block] for block in blocks]
            rebuilt = signal_rows(tuple(sizes), channels, settings)
            rebuilt = np.moveaxis(rebuilt, range(len(blocks)), blocks)
        used = rows.any(axis=-1)
        squares += np.sum((rows - rebuilt)[used] ** 2)
        count += np.count_nonzero(used) * channels
    return float(np.sqrt(squares / count))
