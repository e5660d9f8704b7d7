"""The signal of a channel table on the device, at any positions.

A position is written in digits. Its phasor is the product of the phasors of its
digits, and each digit has a small table that is made in float64 on the host: so the
device needs no large angle, no wide float and no sine, and no digit of a large
position is lost.

    mode        consecutive steps            given positions
    eager       leading rows, or blocks      leading rows, or digits
    graph       a condition of the two       a condition of the two
    compiled    leading rows, or blocks      digits, with tables by channel
    exported    their rows, or blocks        digits, with small tables
"""

import functools
import operator
import weakref

import keras
import numpy as np
from keras import ops

from tfpe._arguments import INT32_MAX, INT32_MIN
from tfpe._backends import (
    Constants,
    either,
    fusion_barrier,
    mode,
    sine_and_cosine,
    slices_are_cheap,
    untraced,
    visible,
)
from tfpe._channel_order import ChannelOrder
from tfpe._digits import (
    FRACTION,
    LOW,
    MIDDLE,
    digits,
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
SMALL = {
    "low": (4, 4),
    "middle": (5, 5, 5, 5, 4),
    "top": (5, 5, 5, 5, 4, 4, 4),
    "fraction": (4, 4, 4),
}
QUICK = {**SMALL, "low": (8,), "middle": (8, 6, 5, 5)}
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
        running = mode()
        if running == "eager" and not isinstance(start, int) and slices_are_cheap():
            seen = visible(start)
            start = start if seen is None else int(seen)
        if not isinstance(start, int) or is_symbolic_size(length):
            # XLA recompiles a slice for every start value; a gather it compiles once.
            steps = ops.arange(length, dtype="int32")
            return self._at(as_tensor(start), steps, axis)
        stop = start + length
        if running == "exported":
            if isinstance(length, int) and length <= FEW_ROWS:
                return self._rows(start, length, axis)
            return self._blocks(start, length, axis, SMALL)
        if start < 0 or (running == "compiled" and not isinstance(length, int)):
            return self._blocks(start, length, axis, QUICK)
        return either(
            stop <= self.leading_rows,
            lambda: self._placed(self._leading()[start:stop], axis),
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

        def far(wide=wide):
            given = signed if wide else ops.cast(signed, "int32")
            return self._at_parts(parts_of_integers(given, unsigned, steps), axis)

        running = mode()
        if running in ("compiled", "exported"):
            return far()
        # Eager values are looked at on the host, which takes no time there.
        given = visible(signed) if running == "eager" else None
        math = ops if given is None else np
        if given is None:
            given, more = signed, 0 if steps is None else ops.cast(steps, signed.dtype)
        else:
            more = 0 if steps is None else visible(steps)
        # Where this sum wraps, the first term is not among the leading rows.
        last = given + more
        low = math.min(given, initial=0)
        high = math.maximum(math.max(given, initial=0), math.max(last, initial=0))
        narrow = math.logical_and(
            low >= (0 if unsigned else INT32_MIN), high <= INT32_MAX
        )

        def near():
            row = last.astype("int32") if math is np else ops.cast(last, "int32")
            return self._placed(ops.take(self._leading(), row, axis=0), axis)

        return either(
            math.logical_and(low >= 0, high < self.leading_rows),
            near,
            (lambda: either(narrow, lambda: far(False), far)) if wide else far,
        )

    def _at_floats(self, positions, axis):
        if keras.backend.standardize_dtype(positions.dtype) != "float64":
            positions = ops.cast(positions, "float32")
        inside = ops.abs(positions) < 2.0**63
        positions = ops.where(inside, positions, ops.zeros_like(positions))
        nothing = ops.cast(ops.where(inside, 0.0, float("nan")), positions.dtype)

        def signal(wide=True):
            parts = parts_of_floats(positions, wide)
            fraction = parts.fraction + nothing
            return self._at_parts(parts._replace(fraction=fraction), axis)

        if mode() in ("compiled", "exported"):
            return signal()
        return either(
            ops.max(ops.abs(positions), initial=0) < 2.0**31,
            lambda: signal(wide=False),
            signal,
        )

    def _at_parts(self, parts, axis):
        """Returns the signal at positions given as `Parts`."""
        bits = SMALL if mode() == "exported" else QUICK
        # XLA gathers whole rows fast, but puts pairs in order slowly.
        by_channel = mode() == "compiled"
        upper = self._upper_waves(parts, bits, by_channel)
        lowest = {"low": bits["low"][:1]}
        digit = parts.low % 2 ** lowest["low"][0]
        low = self._waves("low", digit, lowest, by_channel)
        if by_channel:
            signal = self._placed(_sine_of_sum(low, upper), axis)
        else:
            signal = self._orders[axis].of_waves(*_of_sum(low, upper))
        return ops.cast(signal, self.dtype)

    def _waves_of_fraction(self, fraction, bits, by_channel):
        """Returns sine and cosine of a fraction of a position, as `_waves` does.

        A few bits of it have tables, so that the sine is of a small angle even for
        timescales far below 1.
        """
        number = ops.where(fraction == fraction, fraction, ops.zeros_like(fraction))
        tabled = ops.cast(ops.round(number * 2.0**FRACTION), "int32")
        rest = fraction - ops.cast(tabled, fraction.dtype) / 2.0**FRACTION
        frequency = self._frequency()
        if by_channel:
            frequency = self._ordered(frequency, frequency)
        angle = ops.expand_dims(ops.cast(rest, self.wide), -1) * frequency
        waves = self._waves("fraction", tabled, bits, by_channel)
        return _of_sum(waves, sine_and_cosine(angle))

    def _blocks(self, start, length, axis, bits):
        """Blocks of steps, which differ in the upper digits alone."""
        rows = 2 ** bits["low"][0]
        skipped = start % rows
        blocks = (length + skipped + rows - 1) // rows
        first = rows * ops.arange(blocks, dtype="int32")
        parts = parts_of_integers(as_tensor(start - skipped), steps=first)
        by_channel = mode() == "compiled"
        outer = self._upper_waves(parts, bits, by_channel)
        inner = self._digit(0, np.arange(rows), by_channel)
        if by_channel:
            inner = [table[:rows] for table in inner]
        else:
            sine, cosine = inner
            inner = self._ordered(sine, cosine), self._ordered(cosine, -sine)
            outer = [self._ordered(wave, wave) for wave in outer]
        # sin(a + b) = sin a cos b + cos a sin b, with b the same all over a block.
        outer = [fusion_barrier(wave)[:, None] for wave in outer]
        signal = ops.reshape(_sine_of_sum(inner, outer), (-1, inner[0].shape[-1]))
        if not (isinstance(length, int) and skipped == 0 and length % rows == 0):
            signal = signal[skipped : skipped + length]
        return self._placed(ops.cast(signal, self.dtype), axis)

    def _upper_waves(self, parts, bits, by_channel):
        """Returns `_waves` of all digits but the lowest."""
        waves = [self._waves("middle", parts.middle, bits, by_channel)]
        if len(bits["low"]) > 1:
            waves.append(self._waves("low", parts.low, bits, by_channel, skip=1))
        if parts.top is not None:
            waves.append(self._waves("top", parts.top, bits, by_channel))
        if parts.fraction is not None:
            waves.append(self._waves_of_fraction(parts.fraction, bits, by_channel))
        return functools.reduce(_of_sum, waves)

    def _waves(self, part, number, bits, by_channel=False, skip=0):
        """Returns sine and cosine of a part of a position.

        They have an entry for each pair, or, for the channels of a block in order,
        what is to be multiplied with those of other parts by `_sine_of_sum`.
        """
        bits = bits[part]
        rows = digits(number, bits, signed=part != "low")
        exponents = np.cumsum((EXPONENT[part], *bits[:-1])).tolist()
        waves = []
        for index, row in list(enumerate(rows))[skip:]:
            count = bits[index]
            signed = part != "low" and index == len(bits) - 1
            steps = np.arange(-(2**count) * signed, 2**count + signed)
            # Wide tables are kept of the parts that all positions have.
            kept = by_channel and part in ("low", "middle")
            tables = self._digit(exponents[index], steps, kept)
            if by_channel and not kept:
                tables = [fusion_barrier(self._ordered(t, t)) for t in tables]
            waves.append([ops.take(table, row, axis=0) for table in tables])
        return functools.reduce(_of_sum, waves)

    def _digit(self, exponent, steps, by_channel):
        """Returns the tables of a digit, sine and cosine."""

        def make(which):
            # The lowest digit carries phase and amplitude.
            if exponent == 0:
                sine, cosine = self._table.sine_and_cosine(steps)
                ordered = ((sine, cosine), (cosine, -sine))[which]
            else:
                sine, cosine = self._table.digit(steps, exponent)
                ordered = ((sine, sine), (cosine, cosine))[which]
            if by_channel:
                return self._in_block(np.concatenate(ordered, 1)).astype(self.wide)
            return (sine, cosine)[which].astype(self.wide)

        key = exponent, len(steps), by_channel
        cosine = self._constants.get((*key, 1), functools.partial(make, 1))
        if by_channel and exponent == 0 and self.dtype == self.wide:
            return self._leading(), cosine  # its first rows are these sines
        return self._constants.get((*key, 0), functools.partial(make, 0)), cosine

    def _leading(self):
        """Returns the first rows of a block, of the only axis or of any."""

        def make():
            sine, cosine = self._table.sine_and_cosine(np.arange(BLOCK))
            outer = self._table.digit(np.arange(self.leading_rows // BLOCK), LOW)
            waves = (outer[1] + 1j * outer[0])[:, None] * (cosine + 1j * sine)
            waves = waves.reshape(self.leading_rows, -1)
            both = np.concatenate([waves.imag, waves.real], axis=1)
            return self._in_block(both).astype(self.wide)

        return self._constants.get("leading", make, self.dtype)

    def _in_block(self, both):
        """Returns `[sines, cosines]`, an array, as `_placed` wants it.

        Of one axis that is the order of all channels, of several what all share.
        """
        return self._orders[0].of_array(both) if self.axes == 1 else both

    def _placed(self, signal, axis):
        """Returns the signal of a block where it stands among all channels."""
        return signal if self.axes == 1 else self._orders[axis].of_both(signal)

    def _ordered(self, sine, cosine):
        """Returns waves of each pair as `_placed` wants them."""
        if self.axes > 1:
            return ops.concatenate([sine, cosine], axis=-1)
        return self._orders[0].of_waves(sine, cosine)

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


@untraced
def sinusoids(channels, axes, settings, dtype):
    """Returns the `Sinusoids` of these arguments, one for all who hold them."""
    key = channels, axes, settings, dtype
    found = _shared.get(key)
    if found is None:
        found = _shared[key] = Sinusoids(*key)
    return found


# Functions have no place of their own for tables.
kept_sinusoids = functools.lru_cache(maxsize=4)(sinusoids)
recent_sinusoids = untraced(kept_sinusoids)


def _of_sum(a, b):
    """Returns sine and cosine of the sum of two angles, given theirs."""
    return _sine_of_sum(a, b), a[1] * b[1] - a[0] * b[0]


def _sine_of_sum(a, b):
    return a[0] * b[1] + a[1] * b[0]
