"""The tables of a signal: NumPy arrays on the host, tensors where a context asks.

All tables of a signal are made of its `PairTable` when they are first needed.
"""

import functools

import numpy as np
from keras import ops

from tfpe._backends import Constants, is_eager_tensorflow
from tfpe._channel_order import ChannelOrder
from tfpe._digits import LOW
from tfpe.table import columns, pair_table

BLOCK = 2**LOW
# 8 MiB at 512 channels of float32, the largest part of what is held.
LEADING_ROWS = {"float32": 4096, "float64": 1024}
# Of wide signals there are fewer, so that one step does not cost seconds.
LEADING_VALUES = 2**23


class Tables:
    """The tables of fixed channels and settings.

    A block is the channels of one axis. With one axis it has all channels in their
    order; several axes share `[sines, cosines]`, which `placed` puts in order.

    Args:
        channels: int, the size of the last axis.
        axes: int, the number of positional axes.
        settings: `Settings`.
        dtype: a floating dtype by name, that of finished rows.
    """

    def __init__(self, channels, axes, settings, dtype):
        self.axes, self.dtype = axes, dtype
        self.wide = "float64" if dtype == "float64" else "float32"
        rows = LEADING_VALUES // channels // BLOCK * BLOCK
        self.leading_rows = min(LEADING_ROWS[self.wide], max(rows, BLOCK))
        if abs(settings.amplitude) > float(np.finfo(self.wide).max):
            raise ValueError(
                f"`amplitude` must be in the range of {self.wide}. Received: "
                f"amplitude={settings.amplitude}"
            )
        self._table = pair_table(channels, axes, settings)
        self.pairs = len(self._table.turns)
        self._constants = Constants()
        self._last_view = None, None, None
        self.orders = [
            ChannelOrder.of(columns(channels, axes, axis, settings), self.pairs)
            for axis in range(axes if self.pairs else 0)
        ]

    def digit(self, exponent, steps, by_channel):
        """Returns the tables of a digit: sine and cosine at `steps * 2**exponent`.

        They are those of each pair, or `by_channel` those of a block.
        """

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
            return self.leading(), cosine  # its first rows are these sines
        return self._constants.get((*key, 0), functools.partial(make, 0)), cosine

    def leading(self):
        """Returns the first rows of a block, of the only axis or of any."""

        def make():
            sine, cosine = self._table.sine_and_cosine(np.arange(BLOCK))
            outer = self._table.digit(np.arange(self.leading_rows // BLOCK), LOW)
            waves = (outer[1] + 1j * outer[0])[:, None] * (cosine + 1j * sine)
            waves = waves.reshape(self.leading_rows, -1)
            both = np.concatenate([waves.imag, waves.real], axis=1)
            return self._in_block(both).astype(self.wide)

        return self._constants.get("leading", make, self.dtype)

    def leading_slice(self, start, stop):
        """Returns `leading()[start:stop]`, of eager calls the same view again.

        TensorFlow takes longer to make an eager slice than to add it. From row 0 it
        is a view, so keeping it holds no memory.
        """
        leading = self.leading()
        if start or not is_eager_tensorflow():
            return leading[start:stop]
        rows, whole, view = self._last_view
        if rows != stop or whole is not leading:
            view = leading[:stop]
            self._last_view = stop, leading, view
        return view

    def _in_block(self, both):
        """Returns `[sines, cosines]`, an array, as `placed` wants it.

        Of one axis that is the order of all channels, of several what all share.
        """
        return self.orders[0].of_array(both) if self.axes == 1 else both

    def placed(self, signal, axis):
        """Returns the signal of a block where it stands among all channels."""
        return signal if self.axes == 1 else self.orders[axis].of_both(signal)

    def ordered(self, sine, cosine):
        """Returns waves of each pair as `placed` wants them."""
        if self.axes > 1:
            return ops.concatenate([sine, cosine], axis=-1)
        return self.orders[0].of_waves(sine, cosine)

    def rows(self, start, length, axis):
        """Returns a few rows of a fixed length, for a file."""

        def make():
            waves = self._table.sine_and_cosine(np.arange(length), start)
            waves = self.orders[axis].of_array(np.concatenate(waves, axis=1))
            return waves.astype(self.wide)

        return self._constants.get(("rows", start, length, axis), make, self.dtype)

    def frequency(self):
        """Returns the frequency of each pair, in radian per position."""

        def make():
            frequency = self._table.frequency
            # Finite, so that a fraction of 0 turns by 0.
            return np.minimum(frequency, np.finfo(self.wide).max).astype(self.wide)

        return self._constants.get("frequency", make)
