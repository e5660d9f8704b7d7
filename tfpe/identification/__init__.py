"""The settings behind a table that somebody else's code has made.

`waves` reads frequencies and phases off the rows, `hypotheses` tries all settings
on them, `fits` has the numbers that agree, and this module has the last word: it
tries the table as a sequence, counted up and counted down, and as a flattened grid,
and compares the table with what the settings rebuild.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tfpe._arguments import as_first_position
from tfpe._settings import Settings
from tfpe.conventions import CONVENTIONS
from tfpe.identification.fits import MUCH, roundest
from tfpe.identification.grids import folded
from tfpe.identification.hypotheses import (
    Found,
    hypotheses,
    names_counted_down,
)
from tfpe.identification.waves import LARGEST_NOISE
from tfpe.table import signal_rows

# Rows that are rebuilt at a time.
BLOCK = 1024
# Numbers at either end of a table that tell which candidates are as good.
SAMPLE = 2**19
# Rows that tell whether any channels are a pair.
FEW_ROWS = 64
# Tables beyond this range are scaled, so that squares stay in float64.
SMALL, LARGE = 2.0**-300, 2.0**300


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
        step: int, 1, or -1 if the rows are counted down: row `r` is that of
            `first_position + step * r`, so the layer with `settings` adds the table
            with `positions=step * np.arange(length)`.
    """

    sinusoidal: bool
    settings: dict | None
    residual: float
    names: tuple[str, ...]
    candidates: tuple[dict, ...]
    step: int = 1

    def _counted(self, step, length):
        """Returns the same for rows that were counted down if `step` is -1."""
        if step == 1:
            return self

        def down(settings):
            first = settings.get("first_position", 0) + length - 1
            settings = {k: v for k, v in settings.items() if k != "first_position"}
            return {**settings, "first_position": first} if first else settings

        candidates = tuple(map(down, self.candidates))
        return replace(
            self,
            settings=candidates[0],
            candidates=candidates,
            names=names_counted_down(candidates[0]),
            step=-1,
        )


def identify(table: Any, *, first_position: float | None = None) -> Identification:
    """Returns the settings that make a table of positional encodings.

    Each layout, order of sine and cosine, odd-channel rule and spectrum is
    tried: its frequencies and phases are compared with those that the rows
    show, as closely as the rounding or the noise of the table allows. Numbers
    are the roundest that the rows allow. A spectrum that is not geometric is
    given as a sequence of timescales. Of first positions that the rows cannot
    tell apart, the nearest few are given. Rows that are counted down have the
    `step` -1.

    Args:
        table: array `(length, channels)` of at least 8 rows and 2 channels; or
            that of a grid, `(height, width, channels)`, or of a volume, also
            flattened row by row.
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
    table = _as_table(table)
    if first_position is not None:
        first_position = as_first_position(first_position)
    if not _has_a_pair(table):
        return Identification(False, None, _root_mean_square(table), (), ())
    table, scale = _scaled(table.astype("float64"))
    found = _sequence(table, first_position)
    for grid in [] if found else folded(table):
        found = found or _agreeing(grid, first_position)
    if not found:
        residual = scale * _root_mean_square(table)
        return Identification(False, None, residual, (), ())
    names = {name for f in found.fits for name in f.names}
    candidates = {f.key: _rescaled(f.settings, scale) for f in found.fits}
    return Identification(
        sinusoidal=True,
        settings=next(iter(candidates.values())),
        residual=scale * _residual(found.table, **found.fits[0].settings),
        names=tuple(name for name in CONVENTIONS if name in names),
        candidates=tuple(candidates.values()),
    )._counted(found.step, len(table))


@dataclass(frozen=True)
class _Agreeing:
    """What agrees with a table, the simplest first; the table counted up."""

    fits: list
    table: np.ndarray
    step: int = 1

    @property
    def bound(self):
        """Whether some have spaced timescales, not each free to choose."""
        return any(not isinstance(f.settings.get("spectrum"), tuple) for f in self.fits)


def _sequence(table, first_position):
    """Returns what agrees with a table, counted up or down, or `None`."""
    free = None
    for step in 1, -1:
        if step == -1 and table.ndim > 2:
            break
        first = first_position
        if step == -1 and first is not None:
            first -= len(table) - 1
        found = _agreeing(table[::step], first)
        if found is None:
            return None  # no pairs that turn evenly
        if found and found.bound:
            return replace(found, step=step)
        # Free timescales fit much; a spacing counted down is the likelier.
        free = free or (step == 1 and found) or None
    return free


def _agreeing(table, first_position):
    """Returns the `_Agreeing` of a table, `None` or, if pairs turn evenly, `False`."""
    # A hypothesis that is far off may overflow; it is not taken.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = hypotheses(table, first_position)
    if found is None:
        return None
    # Timescales that are all free to choose fit better by chance.
    bound = [f for f in found if not isinstance(f.settings.get("spectrum"), tuple)]
    best = np.min([f.misfits for f in bound or found], axis=0, initial=math.inf)
    found = sorted(
        (f for f in found if np.any(f.misfits <= best + MUCH)), key=Found.rank
    )
    # The last word has the table itself.
    ends = _ends(table)
    residuals = {f.key: _residual(*ends, **f.settings) for f in found}
    least = min(residuals.values(), default=math.inf)
    found = [
        f
        for f in found
        if residuals[f.key] <= 2 * (least + f.rounding)
        and least <= LARGEST_NOISE * abs(f.settings.get("amplitude", 1.0))
    ]
    return bool(found) and _Agreeing(found, table)


def _as_table(table):
    """Returns a table in float64, without axes of size 1; refuses what is none."""
    try:
        table = np.asarray(table)
    except ValueError:
        raise ValueError(
            "`table` must be an array (length, channels). Received: rows of different "
            "lengths"
        ) from None
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
    if table.dtype.kind != "f" or table.dtype.itemsize < 4:
        table = table.astype("float64")  # bfloat16, among others
    if not np.isfinite(table).all():
        raise ValueError(
            "`table` must be finite. Received: NaN or infinity in "
            f"{np.count_nonzero(~np.isfinite(table).all(axis=-1))} of its rows"
        )
    return table


def _has_a_pair(table):
    """Returns whether some channel may be the other half of the first one.

    The first channel is a sine or a cosine in every layout. So this tells most learned
    tables, at the cost of a few rows.
    """
    rows = table.reshape(-1, table.shape[-1])
    rows = rows[np.flatnonzero(rows[:BLOCK].any(axis=1))[:FEW_ROWS]]
    if not len(rows):
        return False
    rows = rows / np.abs(rows).max()
    squares = np.square(rows[:, :1].astype("float64")) + np.square(rows[:, 1:])
    return bool(np.any(squares.std(axis=0) <= 8 * LARGEST_NOISE * squares.mean(axis=0)))


def _root_mean_square(table):
    """Returns the root mean square of a table, without a copy of all of it."""
    largest = float(np.abs(table).max()) or 1.0
    rows = table.reshape(-1, table.shape[-1])
    squares = 0.0
    for start in range(0, len(rows), BLOCK):
        block = rows[start : start + BLOCK].astype("float64").ravel() / largest
        squares += block @ block
    return largest * float(np.sqrt(squares / table.size))


def _scaled(table):
    """Returns a table whose squares are finite, and what it was divided by."""
    largest = np.abs(table).max()
    if not largest or SMALL <= largest <= LARGE:
        return table, 1.0
    scale = 2.0 ** np.frexp(largest)[1]
    return table / scale, float(scale)


def _rescaled(settings, scale):
    if scale == 1.0:
        return settings
    amplitude = scale * settings.get("amplitude", 1.0)
    amplitude = roundest(amplitude, lambda v: abs(v - amplitude) <= 1e-9 * abs(v))
    return {**settings, "amplitude": amplitude}


def _ends(table):
    """Returns the first and the last rows of a long table, and their numbers."""
    rows = max(256, SAMPLE // table[0].size)
    if len(table) <= 2 * rows or table.ndim > 2:
        return (table,)
    return table[:rows], table[-rows:], len(table) - rows


def _residual(table, last=None, start_of_last=0, axis=-2, **settings):
    """Returns what settings leave of the rows that are not zero."""
    if last is not None:
        first = _residual(table, **settings)
        shifted = settings.get("first_position", 0) + start_of_last
        other = _residual(last, **{**settings, "first_position": shifted})
        return max(first, other)
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
            rebuilt = signal_rows(rows.shape[:-1], channels, settings, blocks=blocks)
        used = rows.any(axis=-1)
        squares += np.sum((rows - rebuilt)[used] ** 2)
        count += np.count_nonzero(used) * channels
    return float(np.sqrt(squares / count))
