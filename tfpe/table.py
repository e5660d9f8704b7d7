"""The channel table: every convention as one frequency and one phase a channel.

    signal[p, c] = amplitude * sin(frequency[c] * p + phase[c])

A layout and a spectrum make it. It is exact, lives on the host and needs NumPy
alone, as do its rows in float64, for whoever wants them without a backend.
"""

import decimal
import functools
import math
from decimal import Decimal
from typing import NamedTuple, Unpack

import numpy as np

from tfpe._arguments import as_channels, as_number
from tfpe._settings import Settings, SettingsDict
from tfpe.layouts import COSINE, arrangement
from tfpe.spectra import exact_timescales, high_precision

# Frequencies are integers in units of 2**-BITS turns per position, which leaves 2**-128
# turns at any 64-bit position.
BITS = 192
# Steps from a start whose angle is exact; each adds 2**-65 turns of error.
ROWS = 4096


class PairTable(NamedTuple):
    """One sine and one cosine for each timescale of an axis.

    Attributes:
        turns: tuple of ints, the frequencies in units of 2**-BITS turns.
        phase: tuple of ints, the angles at step 0 in the same unit.
        amplitude: float.
    """

    turns: tuple[int, ...]
    phase: tuple[int, ...]
    amplitude: float

    @property
    def frequency(self):
        """The frequencies in radian per position, float64 `(pairs,)`."""
        # A quotient of integers is right for any size, and so is infinity.
        turn = 2**BITS
        return np.array([2 * math.pi * _quotient(t, turn) for t in self.turns])

    def sine_and_cosine(self, steps, start=0):
        """Returns sines and cosines at the positions `start + steps`.

        Args:
            steps: int64 array `(n,)`, `abs(steps) <= 2**13`.
            start: an int of at most 64 bits.

        Returns:
            Two float64 arrays `(n, pairs)`, right to 1.5e-15 times the amplitude.
        """
        return self._waves(steps, 0, [p + start * t for p, t in self._both()])

    def digit(self, digits, exponent):
        """Returns the same at `digits * 2**exponent`, without phase and amplitude."""
        table = self._replace(amplitude=1.0)
        return table._waves(digits, exponent, [0] * len(self.turns))

    def _both(self):
        return zip(self.phase, self.turns, strict=True)

    def _waves(self, steps, exponent, phase):
        per_step = [_scaled(t, exponent) for t in self.turns]
        # A turn is 2**64 units, so integer overflow is what takes whole turns away
        # and the angle of a large position loses no digit.
        angle = np.multiply.outer(steps.astype("uint64"), _units(per_step))
        angle += _units(phase)
        angle = angle.view("int64") * (2 * math.pi / 2**64)
        return self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)


@functools.lru_cache(maxsize=16)
def pair_table(channels, axes, settings, bits=BITS):
    """Returns the `PairTable` of each axis, which all axes share."""
    timescales = exact_timescales(channels, axes, settings)
    with high_precision(*timescales, Decimal(2**bits)):
        turn = Decimal(2**bits) / (2 * _pi())
        turns = tuple(int((turn / t).to_integral_value()) for t in timescales)
    phase = tuple(_times(t, settings.first_position) for t in turns)
    return PairTable(turns, phase, settings.amplitude)


def columns(channels, axes, axis, settings):
    """Returns, for each channel, its column in `[sines, cosines, zero]` of an axis.

    Channels of other axes and padding get the column of the zero.
    """
    order = _arrangement(channels, axes, settings)
    pairs = len(pair_table(channels, axes, settings).turns)
    found = np.full(channels, 2 * pairs)
    column = order.pair + pairs * (order.function == COSINE)
    found[: len(column)] = np.where(order.axis == axis, column, 2 * pairs)
    return found


def signal_rows(lengths, channels, settings, *, start=0, blocks=None):
    """Returns the signal of consecutive positions in float64.

    Args:
        lengths: tuple of ints, one for each axis.
        channels: int, the size of the last axis.
        settings: `Settings`.
        start: int, the first step of each axis. Defaults to 0.
        blocks: the axes in the order of their blocks of channels. Defaults to
            `None`: as they come.

    Returns:
        float64 array `(*lengths, channels)`, right to 1.5e-15 times the amplitude.
    """
    axes = len(lengths)
    table = pair_table(channels, axes, settings)
    signal = np.zeros((*lengths, channels))
    for block, axis in enumerate(range(axes) if blocks is None else blocks):
        length = lengths[axis]
        own = columns(channels, axes, block, settings)
        used = own < 2 * len(table.turns)
        for first in range(0, length, ROWS):
            steps = np.arange(min(ROWS, length - first))
            waves = table.sine_and_cosine(steps, start + first)
            rows = np.concatenate(waves, axis=1)[:, own[used]]
            rows = rows.reshape(-1, *[1] * (axes - 1 - axis), rows.shape[1])
            where = (slice(None),) * axis + (slice(first, first + ROWS),)
            signal[where][..., used] = rows
    return signal


def shift_matrix(
    offset: float, channels: int, **settings: Unpack[SettingsDict]
) -> np.ndarray:
    """Returns the matrix that moves a signal by `offset` positions.

    `signal(p + offset) = signal(p) @ matrix` for every position `p`: each pair of
    channels is rotated by `offset / timescale` radian. The matrix is orthogonal,
    with 1 on the diagonal of padding.

    Args:
        offset: int or float, in positions; may be negative.
        channels: int >= 1, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`, on one axis.

    Returns:
        float64 array `(channels, channels)`, right to 1e-14.

    Raises:
        ValueError: for an odd number of channels with `odd_channel="sine"`,
            whose last sine has no cosine to rotate with; or if an argument is
            not as described.

    Example:

    >>> import numpy as np
    >>> import tfpe
    >>> matrix = tfpe.shift_matrix(3, 4)
    >>> np.allclose(matrix @ tfpe.shift_matrix(-3, 4), np.eye(4))
    True
    """
    channels, settings = as_channels(channels), Settings.of(settings)
    offset = as_number(offset, "offset")
    if settings.odd_channel == "sine" and channels % 2 and channels > 1:
        raise ValueError(
            "`odd_channel` must be 'zero' for a shift matrix of an odd number of "
            "channels: the last sine has no cosine to rotate with. Received: "
            f"odd_channel='sine', channels={channels}"
        )
    bits = BITS + max(0, int(offset).bit_length() - 64)
    turns = pair_table(channels, 1, settings, bits).turns
    phase = [_times(t, offset) >> (bits - BITS) for t in turns]
    table = PairTable((0,) * len(turns), tuple(phase), 1.0)
    (sine,), (cosine,) = table.sine_and_cosine(np.zeros(1, "int64"))

    matrix = np.eye(channels)
    order = _arrangement(channels, 1, settings)
    used = np.arange(len(order.pair))
    # Sorted by pair, each sine stands before its cosine.
    sines, cosines = np.lexsort((order.function, order.pair)).reshape(-1, 2).T
    matrix[used, used] = cosine[order.pair]
    # sin(p + k) = sin p cos k + cos p sin k; cos(p + k) has the other sign.
    matrix[cosines, sines], matrix[sines, cosines] = sine, -sine
    return matrix


def _arrangement(channels, axes, settings):
    return arrangement(
        channels, axes, settings.layout, settings.cosine_first, settings.odd_channel
    )


def _units(turns):
    """Returns fractions of a turn in units of 2**-64, as uint64."""
    half = 1 << (BITS - 65)
    units = [((t + half) >> (BITS - 64)) % 2**64 for t in turns]
    return np.array(units, "uint64")


def _scaled(value, exponent):
    return value << exponent if exponent >= 0 else value >> -exponent


def _times(value, number):
    """Returns the integer next to `value * number`, below it."""
    numerator, denominator = number.as_integer_ratio()
    return value * numerator // denominator


def _quotient(a, b):
    try:
        return a / b
    except OverflowError:
        return math.inf


@functools.cache
def _pi_of(precision):
    """Returns pi to a number of digits (Gauss and Legendre's means)."""
    a, b, t, power = Decimal(1), Decimal("0.5").sqrt(), Decimal("0.25"), 1
    while abs(a - b) > Decimal(10) ** (2 - precision):
        mean = (a + b) / 2
        a, b, t = mean, (a * b).sqrt(), t - power * (a - mean) ** 2
        power *= 2
    return (a + b) ** 2 / (4 * t)


def _pi():
    """Returns pi to the precision of the decimal context."""
    return _pi_of(decimal.getcontext().prec)
