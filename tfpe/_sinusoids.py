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

from tfpe._arguments import INT32_MAX, INT32_MIN, INT64_MAX
from tfpe._backends import (
    either,
    fusion_barrier,
    has_quick_complex_numbers,
    mode,
    sine_and_cosine,
    slices_are_cheap,
    turned_pairs,
    untraced,
    visible,
)
from tfpe._digits import (
    FRACTION,
    LOW,
    MIDDLE,
    digits,
    parts_of_floats,
    parts_of_integers,
)
from tfpe._tables import Tables
from tfpe._tensor_arguments import as_dtype, as_tensor, is_symbolic_size

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
        self.channels, self.axes, self.dtype = channels, axes, dtype
        self._tables = Tables(channels, axes, settings, dtype)
        self._pairs = self._tables.pairs

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
        if self.dtype == "float64":
            as_dtype(self.dtype)  # JAX may have lost its 64 bits since
        return functools.reduce(operator.add, signals)

    def _one_axis(self, start, length, axis):
        if not self._pairs:
            return ops.zeros((length, self.channels), self.dtype)
        running = mode()
        if running == "eager" and not isinstance(start, int) and slices_are_cheap():
            seen = visible(start)
            start = start if seen is None or seen > INT64_MAX else int(seen)
        if not isinstance(start, int) or is_symbolic_size(length):
            # XLA recompiles a slice for every start value; a gather it compiles once.
            steps = ops.arange(length, dtype="int32")
            return self._at(as_tensor(start), steps, axis)
        if running == "exported":
            if isinstance(length, int) and length <= FEW_ROWS:
                return self._tables.rows(start, length, axis)
            return self._blocks(start, length, axis, SMALL)
        ready = self._tables.leading_rows - start  # a sum with `length` may wrap
        unknown = running == "compiled" and not isinstance(length, int)
        if start < 0 or ready < 0 or unknown:
            return self._blocks(start, length, axis, QUICK)
        return either(
            length <= ready,
            lambda: self._tables.placed(
                self._tables.leading_slice(start, start + length), axis
            ),
            lambda: self._blocks(start, length, axis, QUICK),
        )

    def _at(self, positions, steps, axis):
        dtype = keras.backend.standardize_dtype(positions.dtype)
        if not self._pairs:
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
            return self._tables.placed(
                ops.take(self._tables.leading(), row, axis=0), axis
            )

        return either(
            math.logical_and(low >= 0, high < self._tables.leading_rows),
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
        running = mode()
        bits = SMALL if running == "exported" else QUICK
        # XLA gathers whole rows fast, but puts pairs in order slowly.
        by_channel = running == "compiled"
        upper = self._upper_waves(parts, bits, by_channel)
        rows = 2 ** bits["low"][0]
        tables = self._tables.digit(0, np.arange(rows), by_channel)
        low = [_constant_rows(table, parts.low % rows) for table in tables]
        if by_channel:
            signal = self._tables.placed(_sine_of_sum(low, upper), axis)
        else:
            signal = self._tables.orders[axis].of_waves(*_of_sum(low, upper))
        return ops.cast(signal, self.dtype)

    def _waves_of_fraction(self, fraction, bits, by_channel):
        """Returns sine and cosine of a fraction of a position, as `_waves` does.

        A few bits of it have tables, so that the sine is of a small angle even for
        timescales far below 1.
        """
        number = ops.where(fraction == fraction, fraction, ops.zeros_like(fraction))
        tabled = ops.cast(ops.round(number * 2.0**FRACTION), "int32")
        rest = fraction - ops.cast(tabled, fraction.dtype) / 2.0**FRACTION
        frequency = self._tables.frequency()
        if by_channel:
            frequency = self._tables.ordered(frequency, frequency)
        angle = ops.expand_dims(ops.cast(rest, self._tables.wide), -1) * frequency
        waves = self._waves("fraction", tabled, bits, by_channel)
        return _of_sum(waves, sine_and_cosine(angle))

    def _blocks(self, start, length, axis, bits):
        """Blocks of steps, which differ in the upper digits alone."""
        rows = 2 ** bits["low"][0]
        skipped = start % rows
        blocks = (length + skipped + rows - 1) // rows
        first = rows * ops.arange(blocks, dtype="int32")
        parts = parts_of_integers(as_tensor(start - skipped), steps=first)
        running, order = mode(), self._tables.orders[axis]
        by_channel = running == "compiled"
        outer = self._upper_waves(parts, bits, by_channel)
        inner = self._tables.digit(0, np.arange(rows), by_channel)
        if order.is_pairs and has_quick_complex_numbers(running):
            signal = turned_pairs(inner, outer, order.cosine_first)
        else:
            signal = self._products(inner, outer, by_channel, rows)
        if not (isinstance(length, int) and skipped == 0 and length % rows == 0):
            signal = signal[skipped : skipped + length]
        return self._tables.placed(ops.cast(signal, self.dtype), axis)

    def _products(self, inner, outer, by_channel, rows):
        """Returns the sines of sums of an angle in a block and one of a block."""
        if by_channel:
            inner = [table[:rows] for table in inner]
        else:
            sine, cosine = inner
            inner = (
                self._tables.ordered(sine, cosine),
                self._tables.ordered(cosine, -sine),
            )
            outer = [self._tables.ordered(wave, wave) for wave in outer]
        # sin(a + b) = sin a cos b + cos a sin b, with b the same all over a block.
        outer = [fusion_barrier(wave)[:, None] for wave in outer]
        return ops.reshape(_sine_of_sum(inner, outer), (-1, inner[0].shape[-1]))

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

    def _waves(self, part, number, bits, by_channel, skip=0):
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
            tables = self._tables.digit(exponents[index], steps, kept)
            if by_channel and not kept:
                tables = [fusion_barrier(self._tables.ordered(t, t)) for t in tables]
            waves.append([_constant_rows(table, row) for table in tables])
        return functools.reduce(_of_sum, waves)


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


def _constant_rows(table, rows):
    """Returns rows of a table; only the rest of a fraction carries a gradient.

    TensorFlow would take one of the table, and fails at the second in a branch.
    """
    return ops.stop_gradient(ops.take(table, rows, axis=0))


def _of_sum(a, b):
    """Returns sine and cosine of the sum of two angles, given theirs."""
    return _sine_of_sum(a, b), a[1] * b[1] - a[0] * b[0]


def _sine_of_sum(a, b):
    return a[0] * b[1] + a[1] * b[0]
