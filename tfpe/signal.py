"""The signal of a channel table at any positions.

A position is written in base 256. Its phasor is the product of the phasors of
its digits, and each digit has a table of 256 rows that is made in float64 on
the host: so the device needs no large angle, no wide integer and no sine, and
no digit of a large position is lost. The first rows are kept ready as a whole.
"""

import functools
import operator

import keras
import numpy as np
from keras import ops

from tfpe.arguments import check_dtype, check_positions, check_steps
from tfpe.backends import (
    computed_once,
    either,
    in_graph,
    outside_any_graph,
    sine_and_cosine,
    untraced,
)
from tfpe.channels import block_columns, channel_table
from tfpe.settings import (
    INT32_MAX,
    INT32_MIN,
    Settings,
    check_channels,
    check_integer,
)

BASE = 256
# 8 MiB at 512 channels of float32, the largest part of what is held.
LEADING_ROWS = {"float32": 4096, "float64": 1024}


def timing_signal(length, channels, *, start_index=0, dtype="float32", **settings):
    """Returns the signal of consecutive positions.

    It is what `SinusoidalPositionalEncoding(**settings)` adds to its inputs:
    `amplitude * sin(frequency * position + phase)` with a frequency and a
    phase for each channel. Too few channels for a pair on each axis give
    zeros.

    Args:
        length: int >= 0, the number of steps; or a tuple of them, one for
            each positional axis.
        channels: int >= 1, the size of the last axis.
        start_index: int, the step of the first row, with one axis only.
            Defaults to 0.
        dtype: "float16", "bfloat16", "float32" or "float64".
        **settings: as in `SinusoidalPositionalEncoding`, with its defaults.

    Returns:
        Tensor `(length, channels)`, or `(*lengths, channels)`.

    Raises:
        ValueError, TypeError: if an argument is not as described, or a step
            lies outside int32.

    Example:

    >>> import tfpe
    >>> print(tfpe.timing_signal(2, 4).numpy().round(3))
    [[0.    1.    0.    1.   ]
     [0.841 0.54  0.01  1.   ]]

    References:
        - [Attention is all you need](https://arxiv.org/abs/1706.03762), 3.5
        - `get_timing_signal_1d` in tensor2tensor 1.15.7
    """
    lengths = tuple(
        check_integer(n, "length", 0, INT32_MAX, "an integer >= 0, or a tuple of them")
        for n in (length if isinstance(length, (tuple, list)) else (length,))
    )
    if not lengths:
        raise ValueError(f"`length` must not be empty. Received: length={length!r}")
    start_index = check_integer(
        start_index, "start_index", INT32_MIN, INT32_MAX, "an integer inside int32"
    )
    if start_index and len(lengths) > 1:
        raise ValueError(
            "`start_index` is for one axis only. Received: "
            f"start_index={start_index}, length={length}"
        )
    check_steps(start_index, max(lengths))
    sinusoids = recent_sinusoids(
        check_channels(channels),
        len(lengths),
        Settings.of(settings),
        check_dtype(dtype),
    )
    return sum_of_blocks(
        ops.reshape(
            sinusoids.consecutive(start_index, n, axis),
            (n,) + (1,) * (len(lengths) - 1 - axis) + (channels,),
        )
        for axis, n in enumerate(lengths)
    )


def timing_signal_at(positions, channels, *, dtype="float32", **settings):
    """Returns the signal at given positions.

    Args:
        positions: tensor of integers or floats, of any shape; or a tuple of
            tensors whose shapes broadcast, one for each positional axis.
            Negative and fractional positions are allowed. A float outside
            int32 or NaN gives a row of NaN. The signal is differentiable with
            respect to float positions.
        channels: int >= 1, the size of the last axis.
        dtype: "float16", "bfloat16", "float32" or "float64".
        **settings: as in `SinusoidalPositionalEncoding`, with its defaults.

    Returns:
        Tensor of shape `positions.shape + (channels,)`.

    Raises:
        ValueError, TypeError: if an argument is not as described, or an
            integer that can be seen lies outside int32.

    Example:

    >>> import tfpe
    >>> print(tfpe.timing_signal_at([-3, 0.5], 4).numpy().round(3))
    [[-0.141 -0.99  -0.03   1.   ]
     [ 0.479  0.878  0.005  1.   ]]
    """
    entries = positions if isinstance(positions, tuple) else (positions,)
    if not entries:
        raise ValueError("`positions` must not be empty. Received: positions=()")
    sinusoids = recent_sinusoids(
        check_channels(channels),
        len(entries),
        Settings.of(settings),
        check_dtype(dtype),
    )
    return sum_of_blocks(
        sinusoids.at(check_positions(p, "positions"), axis)
        for axis, p in enumerate(entries)
    )


class Sinusoids:
    """The signal of fixed channels and settings, with its tables on the device.

    Args:
        channels: int, the size of the last axis.
        axes: int, the number of positional axes.
        settings: `Settings`.
        dtype: one of `FLOATS`, that of the results.
    """

    @untraced
    def __init__(self, channels, axes, settings, dtype):
        self.dtype = dtype
        self.wide = "float64" if dtype == "float64" else "float32"
        self.rows = LEADING_ROWS[self.wide]
        if abs(settings.amplitude) > float(np.finfo(self.wide).max):
            raise ValueError(
                f"`amplitude` must be in the range of {self.wide}. Received: "
                f"amplitude={settings.amplitude}"
            )
        table = channel_table(channels, axes, settings)
        self.width = len(table.frequency)
        digit = np.arange(BASE)

        leading, _ = table.sine_and_cosine(np.arange(self.rows))
        sine, cosine = table.sine_and_cosine(digit)
        self.leading = self._constant(leading, dtype)
        # The lowest digit carries phase and amplitude. Rows that are kept in
        # full width serve as its sines too.
        own = dtype != self.wide
        self.lowest = (
            self._constant(sine) if own else self.leading,
            self._constant(cosine),
        )
        # The top digit is signed, which is all that negative positions need.
        self.upper = [
            [self._constant(t) for t in table.turns().sine_and_cosine(digit - low, n)]
            for low, n in ((0, BASE), (0, BASE**2), (BASE // 2, BASE**3))
        ]
        self.frequency = self._constant(
            # Finite, so that a fraction of 0 turns by 0.
            np.minimum(np.array(table.frequency, "float64"), np.finfo(self.wide).max)
        )
        self.places = [
            self._constant(block_columns(channels, axes, axis, settings))
            for axis in range(axes)
        ]

    def consecutive(self, start, length, axis=0):
        """Returns the signal of `length` steps from `start` on.

        Args:
            start: an int, or an int32 scalar tensor.
            length: an int, or an int32 scalar tensor.
            axis: int, the index of the positional axis.

        Returns:
            Tensor `(length, channels)`.
        """
        if not isinstance(start, int):
            # A slice from a start that is data is compiled anew by XLA for
            # each value of it; rows taken by number are not.
            return self.at(start + ops.arange(length, dtype="int32"), axis)
        signal = either(
            start >= 0 and length <= self.rows - start,
            lambda: in_graph(self.leading)[start : start + length],
            lambda: self._blocks(start, length),
        )
        return self._placed(signal, axis)

    def at(self, positions, axis=0):
        """Returns the signal at a tensor of positions, int32 or floats."""
        if "float" in keras.backend.standardize_dtype(positions.dtype):
            return self._placed(self._at_floats(positions), axis)
        signal = either(
            ops.all(ops.logical_and(positions >= 0, positions < self.rows)),
            lambda: ops.take(in_graph(self.leading), positions, axis=0),
            lambda: self._narrow(_sine_of_sum(*self._digits(positions))),
        )
        return self._placed(signal, axis)

    def _blocks(self, start, length):
        """Blocks of 256 steps, which differ in the upper digits alone."""
        first = start // BASE
        blocks = (length + 2 * BASE - 2) // BASE
        turned = self._upper_digits(first + ops.arange(blocks, dtype="int32"))
        turned = [computed_once(t)[:, None] for t in turned]
        signal = _sine_of_sum([in_graph(t, BASE)[:BASE] for t in self.lowest], turned)
        signal = ops.reshape(signal, (-1, self.width))
        skipped = start % BASE
        return self._narrow(signal[skipped : skipped + length])

    def _at_floats(self, positions):
        if keras.backend.standardize_dtype(positions.dtype) != "float64":
            positions = ops.cast(positions, "float32")
        inside = ops.logical_and(positions >= -(2.0**31), positions < 2.0**31)
        whole = ops.cast(ops.where(inside, positions, 0), "int32")
        # The fraction alone carries the gradient, and NaN where there is none.
        fraction = ops.where(
            inside, positions - ops.cast(whole, positions.dtype), float("nan")
        )
        fraction = ops.expand_dims(ops.cast(fraction, self.wide), -1)
        angle = fraction * in_graph(self.frequency)
        turned = _sum_of_angles(*self._digits(whole))
        return self._narrow(_sine_of_sum(turned, sine_and_cosine(angle)))

    def _digits(self, positions):
        """Returns (sine, cosine) of the lowest digit, with phase, and of the rest."""
        # ONNX models round quotients towards 0, so that remainders may be negative.
        lowest = (positions % BASE + BASE) % BASE
        upper = (positions - lowest) // BASE  # exact, however it is rounded
        row = [ops.take(in_graph(t, BASE), lowest, axis=0) for t in self.lowest]
        return row, self._upper_digits(upper)

    def _upper_digits(self, upper):
        """Returns sine and cosine of `256 * upper`, for each channel."""
        upper = upper + BASE**3 // 2  # not negative; the top digit's table begins there
        digits = upper % BASE, upper // BASE % BASE, upper // BASE**2 % BASE
        rows = [
            [ops.take(in_graph(t), digit, axis=0) for t in tables]
            for tables, digit in zip(self.upper, digits, strict=True)
        ]
        return functools.reduce(_sum_of_angles, rows)

    def _placed(self, signal, axis):
        """Puts an axis' block where it stands among all channels."""
        if len(self.places) == 1:
            return signal
        padded = ops.pad(signal, [(0, 0)] * (len(signal.shape) - 1) + [(0, 1)])
        return ops.take(padded, in_graph(self.places[axis]), axis=-1)

    def _narrow(self, signal):
        return ops.cast(signal, self.dtype)

    def _constant(self, array, dtype=None):
        wide = "int32" if array.dtype.kind == "i" else self.wide
        with outside_any_graph():
            return ops.cast(ops.convert_to_tensor(array.astype(wide)), dtype or wide)


# Functions have no place of their own for tables, which take longer to make than
# to use. The key is all that the tables depend on.
kept_sinusoids = functools.lru_cache(maxsize=4)(Sinusoids)
recent_sinusoids = untraced(kept_sinusoids)


def _sum_of_angles(a, b):
    """Returns sine and cosine of the sum of two angles, given theirs."""
    return _sine_of_sum(a, b), a[1] * b[1] - a[0] * b[0]


def _sine_of_sum(a, b):
    return a[0] * b[1] + a[1] * b[0]


def sum_of_blocks(signals):
    """Returns the sum of signals whose blocks of channels are disjoint."""
    return functools.reduce(operator.add, signals)
