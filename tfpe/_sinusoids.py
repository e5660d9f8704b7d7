"""The signal of a channel table on the device, at any positions.

A position is written in digits. Its phasor is the product of the phasors of its
digits, and each digit has a small table that is made in float64 on the host: so the
device needs no large angle, no wide float and no sine, and no digit of a large
position is lost.

    mode        consecutive steps            given positions
    eager       leading rows, or blocks      leading rows, or digits
    graph       a condition of the two       a condition of the two
    compiled    blocks                       digits
    exported    their rows, or blocks        digits
"""

import functools
import operator
import weakref

import keras
import numpy as np
from keras import ops

from tfpe._arguments import INT32_MAX, INT32_MIN
from tfpe._backends import Constants, either, fusion_barrier, mode, sine_and_cosine
from tfpe._channel_order import ChannelOrder
from tfpe._digits import (
    FRACTION,
    LOW,
    MIDDLE,
    digits,
    parts_of_blocks,
    parts_of_floats,
    parts_of_integers,
)
from tfpe._tensor_arguments import as_tensor, is_symbolic_size
from tfpe.table import columns, pair_table

BLOCK = 2**LOW
# 8 MiB at 512 channels of float32, the largest part of what is held.
LEADING_ROWS = {"float32": 4096, "float64": 1024}
# The bits of the digits of each part of a position: few, to be exact and quick, or
# many with small tables, for files.
QUICK = {"low": (8,), "middle": (8, 6, 5, 5), "top": (8, 8, 8, 8), "fraction": (6, 6)}
SMALL = {
    "low": (4, 4),
    "middle": (5, 5, 5, 5, 4),
    "top": (5, 5, 5, 5, 4, 4, 4),
    "fraction": (4, 4, 4),
}
EXPONENT = {"low": 0, "middle": LOW, "top": LOW + MIDDLE, "fraction": -FRACTION}
# Rows of a fixed length that take less of a file than the small tables.
FEW_ROWS = 192


class Sinusoids:
    """The signal of fixed channels and settings.

    Args:
        channels: int, the size of the last axis.
        axes: int, the number of positional axes.
        settings: `Settings`.
        dtype: a floating dtype by name, that of the results.
    """

    def __init__(self, channels, axes, settings, dtype):
        self.channels, self.axes, self.settings = channels, axes, settings
        self.dtype = dtype
        self.wide = "float64" if dtype == "float64" else "float32"
        self.leading_rows = LEADING_ROWS[self.wide]
        if abs(settings.amplitude) > float(np.finfo(self.wide).max):
            raise ValueError(
                f"`amplitude` must be in the range of {self.wide}. Received: "
                f"amplitude={settings.amplitude}"
            )
        self.pairs = len(self._table.turns)
        self._constants = Constants()
        self._orders = [
            ChannelOrder.of(columns(channels, axes, axis, settings), self.pairs)
            for axis in range(axes if self.pairs else 0)
        ]

    @property
    def _table(self):
        return pair_table(self.channels, self.axes, self.settings)

    def consecutive(self, start, lengths):
        """Returns the signal of consecutive steps.

        Args:
            start: an int, or an integer scalar tensor; of the first axis.
            lengths: a tuple with an int or an int32 scalar tensor for each axis.

        Returns:
            Tensor `(*lengths, channels)`.
        """
        signals = [
            self._one_axis(start if axis == 0 else 0, length, axis)
            for axis, length in enumerate(lengths)
        ]
        return self._sum(
            ops.reshape(s, (n, *[1] * (len(lengths) - 1 - axis), self.channels))
            if len(lengths) > 1
            else s
            for axis, (s, n) in enumerate(zip(signals, lengths, strict=True))
        )

    def at(self, positions, steps=None):
        """Returns the signal at given positions.

        Args:
            positions: a tuple with a tensor of integers or floats for each axis,
                whose shapes broadcast.
            steps: `None`, or an int32 tensor >= 0 to be added to the one of one axis.

        Returns:
            Tensor of the broadcast shape and `(channels,)`.
        """
        return self._sum(self._at(p, steps, a) for a, p in enumerate(positions))

    def _sum(self, signals):
        """Returns the sum of the axes' signals, whose channels are disjoint."""
        return functools.reduce(operator.add, signals)

    def _one_axis(self, start, length, axis):
        if not self.pairs:
            return ops.zeros((length, self.channels), self.dtype)
        if not isinstance(start, int) or is_symbolic_size(length):
            # XLA recompiles a slice for every start value; a gather it compiles once.
            steps = ops.arange(length, dtype="int32")
            return self._at(as_tensor(start), steps, axis)
        running, stop = mode(), start + length
        if running == "exported":
            if isinstance(length, int) and length <= FEW_ROWS:
                return self._rows(start, length, axis)
            return self._blocks(start, length, axis, SMALL)
        if running == "compiled":
            return self._blocks(start, length, axis, QUICK)
        if start < 0:
            return self._blocks(start, length, axis, QUICK)
        return either(
            stop <= self.leading_rows,
            lambda: self._leading_at(slice(start, stop), axis),
            lambda: self._blocks(start, length, axis, QUICK),
        )

    def _at(self, positions, steps, axis):
        dtype = keras.backend.standardize_dtype(positions.dtype)
        if not self.pairs:
            shape = ops.shape(positions if steps is None else positions + steps)
            return ops.zeros((*shape, self.channels), self.dtype)
        if "float" in dtype:
            return self._at_floats(positions, axis)
        wide, unsigned = dtype in ("int64", "uint64"), dtype in ("uint32", "uint64")
        signed = ops.cast(positions, "int64" if wide else "int32")

        def far(wide=wide, bits=QUICK):
            given = signed if wide else ops.cast(signed, "int32")
            parts = parts_of_integers(given, unsigned, steps)
            return self._at_parts(parts, axis, bits)

        running = mode()
        if running in ("compiled", "exported"):
            return far(bits=SMALL if running == "exported" else QUICK)
        # Where this sum wraps, the first term is not among the leading rows.
        last = signed if steps is None else signed + ops.cast(steps, signed.dtype)
        low = ops.min(signed, initial=0)
        high = ops.maximum(ops.max(signed, initial=0), ops.max(last, initial=0))
        narrow = ops.logical_and(
            low >= (0 if unsigned else INT32_MIN), high <= INT32_MAX
        )
        return either(
            ops.logical_and(low >= 0, high < self.leading_rows),
            lambda: self._leading_at(ops.cast(last, "int32"), axis),
            (lambda: either(narrow, lambda: far(False), far)) if wide else far,
        )

    def _at_floats(self, positions, axis):
        if keras.backend.standardize_dtype(positions.dtype) != "float64":
            positions = ops.cast(positions, "float32")
        inside = ops.abs(positions) < 2.0**63
        positions = ops.where(inside, positions, ops.zeros_like(positions))
        nothing = ops.where(inside, 0.0, float("nan"))

        def signal(wide, bits):
            parts = parts_of_floats(positions, wide)
            fraction = parts.fraction + ops.cast(nothing, positions.dtype)
            return self._at_parts(parts._replace(fraction=fraction), axis, bits)

        running = mode()
        if running in ("compiled", "exported"):
            return signal(True, SMALL if running == "exported" else QUICK)
        return either(
            ops.max(ops.abs(positions), initial=0) < 2.0**31,
            lambda: signal(False, QUICK),
            lambda: signal(True, QUICK),
        )

    def _at_parts(self, parts, axis, bits):
        """Returns the signal at positions given as `Parts`."""
        waves = self._waves("low", parts.low, bits)
        for name in ("middle", "top"):
            if getattr(parts, name) is not None:
                waves = _of_sum(waves, self._waves(name, getattr(parts, name), bits))
        if parts.fraction is not None:
            waves = _of_sum(waves, self._waves_of_fraction(parts.fraction, bits))
        return ops.cast(self._orders[axis].of_waves(*waves), self.dtype)

    def _waves_of_fraction(self, fraction, bits):
        """Returns sine and cosine of a fraction of a position for each pair.

        A few bits of it have tables, so that the sine is of a small angle even for
        timescales far below 1.
        """
        scaled = ops.where(fraction == fraction, fraction, ops.zeros_like(fraction))
        tabled = ops.cast(ops.round(scaled * 2.0**FRACTION), "int32")
        rest = fraction - ops.cast(tabled, fraction.dtype) / 2.0**FRACTION
        angle = ops.expand_dims(ops.cast(rest, self.wide), -1) * self._frequency()
        return _of_sum(self._waves("fraction", tabled, bits), sine_and_cosine(angle))

    def _blocks(self, start, length, axis, bits):
        """Blocks of 256 steps, which differ in the upper digits alone."""
        first, skipped = start // BLOCK, start % BLOCK
        wide = not INT32_MIN <= start <= INT32_MAX
        blocks = (length + skipped + BLOCK - 1) // BLOCK
        number = ops.arange(blocks, dtype="int32")
        if wide:
            number = ops.cast(number, "int64") + ops.convert_to_tensor(first, "int64")
        else:
            number = number + first
        parts = parts_of_blocks(None, number, wide)
        turned = self._waves("middle", parts.middle, bits)
        if wide:
            turned = _of_sum(turned, self._waves("top", parts.top, bits))
        sine, cosine = self._waves("low", ops.arange(BLOCK, dtype="int32"), bits)

        # sin(a + b) = sin a cos b + cos a sin b, with b the same all over a block.
        order = self._orders[axis].of_waves
        inner = order(sine, cosine), order(cosine, -sine)
        outer = [order(t, t) for t in turned]
        signal = _sine_of_sum(
            [fusion_barrier(t) for t in inner],
            [fusion_barrier(t)[:, None] for t in outer],
        )
        signal = ops.reshape(signal, (-1, self.channels))
        if not (isinstance(length, int) and skipped == 0 and length % BLOCK == 0):
            signal = signal[skipped : skipped + length]
        return ops.cast(signal, self.dtype)

    def _waves(self, part, number, bits):
        """Returns sine and cosine, `(..., pairs)`, of a part of a position."""
        bits = bits[part]
        rows = digits(number, bits) if part != "low" else _low_digits(number, bits)
        exponents = np.cumsum((EXPONENT[part], *bits[:-1])).tolist()
        waves = [
            [ops.take(t, row, axis=0) for t in self._digit(part, exponent, count, last)]
            for row, exponent, count, last in zip(
                rows, exponents, bits, [False] * (len(bits) - 1) + [True], strict=True
            )
        ]
        return functools.reduce(_of_sum, waves)

    def _digit(self, part, exponent, count, last):
        """Returns the tables of a digit, sine and cosine `(rows, pairs)`."""

        def make(which):
            table = self._table
            if exponent == 0 and part == "low":
                # The lowest digit carries phase and amplitude.
                waves = table.sine_and_cosine(np.arange(2**count))
            elif last and part != "low":
                rows = np.arange(-(2**count), 2**count + 1)
                waves = table.digit(rows, exponent)
            else:
                waves = table.digit(np.arange(2**count), exponent)
            return waves[which].astype(self.wide)

        key = part, exponent, count
        return [
            self._constants.get((*key, which), functools.partial(make, which))
            for which in (0, 1)
        ]

    def _leading_at(self, rows, axis):
        """Returns the first rows at a slice, or at a tensor of row numbers."""
        leading = self._leading()
        if isinstance(rows, slice):
            signal = leading[rows]
        else:
            signal = ops.take(leading, rows, axis=0)
        if self.axes == 1:
            return signal
        return self._orders[axis].of_both(signal)

    def _leading(self):
        """Returns the first rows, ready to be added, or of each pair for all axes."""

        def make():
            sine, cosine = self._table.sine_and_cosine(np.arange(BLOCK))
            outer = self._table.digit(np.arange(self.leading_rows // BLOCK), LOW)
            waves = (outer[1] + 1j * outer[0])[:, None] * (cosine + 1j * sine)
            waves = waves.reshape(self.leading_rows, -1)
            waves = np.concatenate([waves.imag, waves.real], axis=1)
            if self.axes == 1:
                waves = self._orders[0].of_array(waves)
            return waves.astype(self.wide)

        return self._constants.get("leading", make, self.dtype)

    def _rows(self, start, length, axis):
        """Returns a few rows of a fixed length, for a file."""

        def make():
            waves = self._table.sine_and_cosine(np.arange(length), start)
            waves = self._orders[axis].of_array(np.concatenate(waves, axis=1))
            return waves.astype(self.wide)

        return self._constants.get(("rows", start, length, axis), make, self.dtype)

    def _frequency(self):
        def make():
            frequency = self._table.frequency
            # Finite, so that a fraction of 0 turns by 0.
            return np.minimum(frequency, np.finfo(self.wide).max).astype(self.wide)

        return self._constants.get("frequency", make)


_shared = weakref.WeakValueDictionary()


def sinusoids(channels, axes, settings, dtype):
    """Returns the `Sinusoids` of these arguments, one for all who hold them."""
    key = channels, axes, settings, dtype
    found = _shared.get(key)
    if found is None:
        found = _shared[key] = Sinusoids(*key)
    return found


# Functions have no place of their own for tables.
recent_sinusoids = functools.lru_cache(maxsize=4)(sinusoids)


def _of_sum(a, b):
    """Returns sine and cosine of the sum of two angles, given theirs."""
    return _sine_of_sum(a, b), a[1] * b[1] - a[0] * b[0]


def _sine_of_sum(a, b):
    return a[0] * b[1] + a[1] * b[0]


def _low_digits(number, bits):
    """Returns the digits of `low`, which is never negative."""
    *lower, last = digits(number, bits)
    return [*lower, last - 2 ** bits[-1]]
