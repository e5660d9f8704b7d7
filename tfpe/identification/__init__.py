"""The settings behind a table that somebody else's code has made.

`_waves` reads frequencies and phases off the rows and measures what settings miss of
them, `_hypotheses` tries all settings, and this module has the last word: it reads the
table as a sequence, counted up and counted down, and as a flattened grid, and compares
it with what the settings rebuild.
"""

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from tfpe._arguments import as_first_position
from tfpe._settings import Settings
from tfpe.conventions import CONVENTIONS
from tfpe.identification._hypotheses import hypotheses
from tfpe.identification._names import names_counted_down
from tfpe.identification._waves import LARGEST_NOISE, MUCH
from tfpe.table import signal_rows

# Rows that are rebuilt at a time.
BLOCK = 256
# Rows that tell whether any channels are a pair, and channels that tell a grid.
FEW_ROWS, FEW_CHANNELS = 64, 32
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
        step: int, 1, or -1 if the rows are counted down: row `r` is that of
            `first_position + step * r`, so the layer with `settings` adds the table
            with `positions=step * np.arange(length)`.
        lengths: tuple of ints, the rows along each axis; those of a flattened
            grid do not count the rows of zeros in front of it.
    """

    sinusoidal: bool
    settings: dict | None
    residual: float
    names: tuple[str, ...]
    candidates: tuple[dict, ...]
    step: int = 1
    lengths: tuple[int, ...] = ()


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
    rows, step, found = _read(table, first_position)
    if not found:
        return Identification(False, None, _residual(table), (), ())
    residual = _residual(rows, found[0].settings)
    candidates = tuple({f.key: f.settings for f in found}.values())
    names = {name for f in found for name in f.names}
    names = tuple(name for name in CONVENTIONS if name in names)
    if step == -1:
        candidates = tuple(_counted_down(c, len(table)) for c in candidates)
        names = names_counted_down(candidates[0])
    lengths = rows.shape[:-1]
    return Identification(
        True, candidates[0], residual, names, candidates, step, lengths
    )


def _read(table, first_position):
    """Returns the rows of a table counted up, their step, and what agrees with them."""
    best = table, 1, []
    for rows, step in _readings(table) if _has_a_pair(table) else ():
        first = first_position
        if step == -1 and first is not None:
            first -= len(table) - 1
        found = _agreeing(rows, first)
        if not all(f.free for f in found):
            return rows, step, found
        # Free timescales fit much; a spacing counted down is the likelier.
        if found and not best[2]:
            best = rows, step, found
    return best


def _readings(table):
    """Yields the rows that a table may be, each with its step."""
    yield table, 1
    if table.ndim > 2:
        return
    yield table[::-1], -1
    # Rows of zeros in front of a grid are those of class tokens.
    rows = table[table.any(axis=-1).argmax() :]
    if len(rows) > LARGEST_GRID:
        return
    few = rows[:, :: max(1, rows.shape[1] // FEW_CHANNELS)]
    for axes in 2, 3:
        for lengths in _factors(len(rows), axes):
            if all(_is_grid(r.reshape(*lengths, -1)) for r in (few, rows)):
                yield rows.reshape(*lengths, -1), 1


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
    grid = grid / _largest(grid)
    same = np.zeros(grid.shape[-1], bool)
    for others in itertools.combinations(axes, len(axes) - 1):
        deviation = grid.std(axis=others).reshape(-1, grid.shape[-1])
        same |= deviation.max(axis=0) <= LARGEST_NOISE
    return same.all()


def _agreeing(table, first_position):
    """Returns the `Found`s that rebuild a table, the simplest first."""
    # A hypothesis that is far off may overflow; it is not taken.
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = hypotheses(table, first_position)
    bound = [f for f in found if not f.free] or found
    best = np.min([f.misfits for f in bound], axis=0, initial=np.inf)
    found = [f for f in found if np.any(f.misfits <= best + MUCH)]
    found.sort(key=lambda f: f.rank)
    # The last word has the table itself, or both of its ends if it is long.
    residuals = {f.key: _residual(table, f.settings, ends=True) for f in found}
    least = min(residuals.values(), default=0.0)
    return [
        f
        for f in found
        if residuals[f.key] <= 2 * (least + f.rounding)
        and least <= LARGEST_NOISE * abs(f.settings.get("amplitude", 1.0))
    ]


def _counted_down(settings, length):
    """Returns the same settings with the position of the last row as the first."""
    first = settings.get("first_position", 0) + length - 1
    settings = {k: v for k, v in settings.items() if k != "first_position"}
    return {**settings, "first_position": first} if first else settings


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


def _largest(table):
    """Returns the largest absolute value of a table, or 1.0 if all are 0."""
    return float(max(table.max(), -table.min())) or 1.0


def _residual(table, settings=None, ends=False):
    """Returns what settings leave of the rows that are not zero: root mean square.

    Args:
        table: array `(*lengths, channels)`.
        settings: dict with or without the axis, or `None`: all of the table is left.
        ends: whether the first and the last rows of a sequence are enough.
    """
    lengths = table.shape[:-1]
    size, squares, count = _largest(table), 0.0, 0
    # A grid is rebuilt at once.
    block = BLOCK if len(lengths) == 1 else lengths[0]
    starts = range(0, lengths[0], block)
    for start in {starts[0], starts[-1]} if ends else starts:
        rows = table[start : start + block].astype("float64")
        if settings is not None:
            rows = (rows - _rebuilt(rows.shape, settings, start))[rows.any(axis=-1)]
        squares += np.sum((rows / size) ** 2)
        count += rows.size
    return size * float(np.sqrt(squares / count))


def _rebuilt(shape, settings, start):
    """Returns the signal of settings from a row on."""
    *lengths, channels = shape
    plain = {name: value for name, value in settings.items() if name != "axis"}
    blocks = None
    if "axis" in settings:
        blocks = [axis + len(shape) for axis in settings["axis"]]
    return signal_rows(lengths, channels, Settings(**plain), start=start, blocks=blocks)
