"""The channel table: every convention as one frequency and one phase a channel.

    signal[p, c] = amplitude * sin(frequency[c] * p + phase[c])

This module is the only one that knows a formula. It works on the host, in
exact or float64 arithmetic, and needs NumPy alone.
"""

import decimal
import itertools
import math
from decimal import Decimal
from typing import NamedTuple

import numpy as np

from tfpe.settings import (
    ORDERS,
    Settings,
    check_axes,
    check_channels,
    check_layout,
    check_number,
)

OWN_SPECTRUM = {"interleaved": "vaswani", "concatenated": "tensor2tensor"}


class ChannelTable(NamedTuple):
    """The channels of one axis' block, exact to `exact()`'s precision.

    `frequency` is in radian per position, `phase` in radian at step 0.
    """

    frequency: tuple[Decimal, ...]
    phase: tuple[Decimal, ...]
    amplitude: float

    def turns(self):
        """Returns the table of the same frequencies, phase 0 and amplitude 1."""
        return self._replace(phase=(Decimal(0),) * len(self.phase), amplitude=1.0)

    def sine_and_cosine(self, steps, stride=1):
        """Returns float64 sines and cosines at positions `steps * stride`.

        Args:
            steps: int64 array `(n,)`, `abs(steps) <= 2**13`.
            stride: an int, the distance of two steps.

        Returns:
            Two arrays `(n, len(frequency))`, right to 1.5e-15 times the
            amplitude.
        """
        with exact(self.frequency):
            turn = 2 * _pi()
            per_step = [_fixed_point(f * stride / turn) for f in self.frequency]
            start = [_fixed_point(p / turn) for p in self.phase]
        # A turn is 2**64 units, so that integer overflow is what takes whole
        # turns away and the angle of a large position loses no digit.
        turns = np.multiply.outer(steps.astype("uint64"), np.array(per_step, "uint64"))
        turns += np.array(start, "uint64")
        angle = turns.view("int64") * (2 * math.pi / 2**64)
        return self.amplitude * np.sin(angle), self.amplitude * np.cos(angle)


def channel_table(channels, axes, settings):
    """Returns the `ChannelTable` of one axis' block, which all axes share.

    With one axis the block is all `channels` wide, padding included; with
    several it is `2 * (channels // (2 * axes))` wide.
    """
    own = [entry for entry in arrangement(channels, axes, settings) if entry[0] == 0]
    scales = _timescales(channels, axes, settings)
    with exact(scales):
        frequency = [1 / scales[j] for _, j, _ in own]
        quarter = _pi() / 2
        first = Decimal(settings.first_position)
        phase = [
            first * f + (quarter if function else 0)
            for f, (_, _, function) in zip(frequency, own, strict=True)
        ]
    if axes == 1:
        padding = [Decimal(0)] * (channels - len(own))
        frequency, phase = frequency + padding, phase + padding
    return ChannelTable(tuple(frequency), tuple(phase), settings.amplitude)


def block_columns(channels, axes, axis, settings):
    """Returns, for each channel, its column in the block of `axis`.

    Channels of other axes and padding get the column behind the last one.
    """
    own = [entry[0] == axis for entry in arrangement(channels, axes, settings)]
    own += [False] * (channels - len(own))
    return np.where(own, np.cumsum(own) - 1, sum(own))


def arrangement(channels, axes, settings):
    """Returns `(axis, frequency, function)` of each channel in its order.

    The entries are indices, function 0 being the sine and 1 the cosine.
    Padding channels, which come last, are not listed.
    """
    pairs = number_of_pairs(channels, axes, settings.odd_channel)
    order = ORDERS.get(settings.layout, settings.layout)

    def place(entry):
        axis, frequency, function = entry
        function = function ^ settings.cosine_first
        index = {"axis": axis, "frequency": frequency, "function": function}
        return tuple(index[word] for word in order)

    entries = itertools.product(range(axes), range(pairs), range(2))
    # With an odd "sine" channel the last pair has a sine and no cosine.
    return sorted(
        (e for e in entries if 2 * pairs <= channels or e != (0, pairs - 1, 1)),
        key=place,
    )


def number_of_pairs(channels, axes, odd_channel):
    """Returns the number of timescales of each axis."""
    if odd_channel == "sine":
        if axes != 1:
            raise ValueError(
                "`odd_channel='sine'` is for one axis only. Received: "
                f"odd_channel='sine' with {axes} axes"
            )
        return (channels + 1) // 2 if channels > 1 else 0
    return channels // (2 * axes)


def timescales(channels, *, axes=1, **settings):
    """Returns the timescales of a signal, one for each pair of an axis.

    A timescale is the position per radian, `sin(position / timescale)`; the
    wavelength is `2 * pi` times as long. With `n = channels // (2 * axes)`
    pairs, `j = 0, ..., n - 1`:

    - "vaswani": `min * (max / min) ** (j / n)`, which never reaches `max`; on
      one axis the exponent is `2 * j / channels`, as the paper has it;
    - "tensor2tensor": `1 / (min * (max / min) ** (-j / max(n - 1, 1)))`;
    - "geometric": `min * (max / min) ** (j / max(n - 1, 1))`.

    Args:
        channels: int >= 1, the size of the last axis.
        axes: int >= 1, the number of positional axes.
        **settings: as in `SinusoidalPositionalEncoding`; those that do not
            touch the timescales are checked only.

    Returns:
        float64 array `(n,)`. With `odd_channel="sine"` and an odd number of
        channels, `n` is `(channels + 1) // 2`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    Example:

    >>> import tfpe
    >>> tfpe.timescales(4)
    array([  1., 100.])
    >>> tfpe.timescales(4, layout="concatenated")
    array([1.e+00, 1.e+04])

    References:
        - [Attention is all you need](https://arxiv.org/abs/1706.03762), 3.5
        - `get_timing_signal_1d` in tensor2tensor 1.15.7
    """
    channels, axes = check_channels(channels), check_axes(axes)
    exact_values = _timescales(channels, axes, Settings.of(settings))
    return np.array([float(t) for t in exact_values], "float64")


def _timescales(channels, axes, settings):
    pairs = number_of_pairs(channels, axes, settings.odd_channel)
    spectrum = settings.spectrum
    if spectrum is None:
        spectrum = OWN_SPECTRUM[settings.layout]
    if isinstance(spectrum, tuple):
        if len(spectrum) != pairs:
            raise ValueError(
                "`spectrum` must have one timescale for each pair of channels, "
                f"{pairs} for {channels} channels and {axes} axes. Received: "
                f"{len(spectrum)} timescales"
            )
        return [Decimal(timescale) for timescale in spectrum]
    low, high = Decimal(settings.min_timescale), Decimal(settings.max_timescale)
    # The smallest timescale is at least the square of either end or its inverse.
    with exact([low * low, high * high]):
        if spectrum == "vaswani":
            ends = Decimal(channels) / 2 if axes == 1 else pairs
        else:
            ends = max(pairs - 1, 1)
        ratios = [(high / low) ** (j / Decimal(ends)) for j in range(pairs)]
        if spectrum == "tensor2tensor":
            return [ratio / low for ratio in ratios]
        return [low * ratio for ratio in ratios]


def layout_permutation(channels, source, target, *, axes=1, odd_channel="zero"):
    """Returns the permutation `p` with `target_signal = source_signal[..., p]`.

    The two signals must have the same spectrum: a layout is the order of the
    channels, nothing more.

    Args:
        channels: int >= 1, the size of the last axis.
        source: the layout that there is: "interleaved", "concatenated" or an
            order of "axis", "frequency" and "function".
        target: the layout wanted.
        axes: int >= 1, the number of positional axes.
        odd_channel: "zero" or "sine", as in `SinusoidalPositionalEncoding`.

    Returns:
        int64 array `(channels,)`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    Example:

    >>> import tfpe
    >>> tfpe.layout_permutation(6, "interleaved", "concatenated")
    array([0, 2, 4, 1, 3, 5])
    """
    channels, axes = check_channels(channels), check_axes(axes)
    source, target = (
        arrangement(
            channels,
            axes,
            # The spectrum is of no account here, but an order wants one.
            Settings(layout=layout, spectrum="vaswani", odd_channel=odd_channel),
        )
        for layout in (
            check_layout(source, "source"),
            check_layout(target, "target"),
        )
    )
    index = {entry: channel for channel, entry in enumerate(source)}
    padding = range(len(source), channels)
    return np.array([index[entry] for entry in target] + list(padding), "int64")


def shift_matrix(offset, channels, **settings):
    """Returns the matrix that moves a signal by `offset` positions.

    `signal(p + offset) = signal(p) @ matrix`, for every position `p`: each
    pair of channels is turned by `offset / timescale` radian. The matrix is
    orthogonal, with 1 on the diagonal of padding.

    Args:
        offset: int or float, in positions; may be negative.
        channels: int >= 1, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`, on one axis.

    Returns:
        float64 array `(channels, channels)`.

    Raises:
        ValueError: for an odd number of channels with `odd_channel="sine"`,
            whose last sine has no cosine to turn with; or if an argument is
            not as described.

    Example:

    >>> import numpy as np
    >>> import tfpe
    >>> matrix = tfpe.shift_matrix(3, 4)
    >>> np.allclose(matrix @ tfpe.shift_matrix(-3, 4), np.eye(4))
    True
    """
    channels, settings = check_channels(channels), Settings.of(settings)
    offset = check_number(offset, "offset")
    if settings.odd_channel == "sine" and channels % 2 and channels > 1:
        raise ValueError(
            "`odd_channel` must be 'zero' for a shift matrix of an odd number of "
            "channels: the last sine has no cosine to turn with. Received: "
            f"odd_channel='sine', channels={channels}"
        )
    table = channel_table(channels, 1, settings)
    turned = ChannelTable(
        table.frequency, tuple(Decimal(offset) * f for f in table.frequency), 1.0
    )
    (sine,), (cosine,) = turned.sine_and_cosine(np.zeros(1, "int64"))
    matrix = np.diag(cosine)
    index = {e: c for c, e in enumerate(arrangement(channels, 1, settings))}
    for (axis, frequency, function), channel in index.items():
        partner = index[axis, frequency, 1 - function]
        # sin(p + k) = sin p cos k + cos p sin k; cos(p + k) has the other sign.
        matrix[partner, channel] = -sine[channel] if function else sine[channel]
    return matrix


def exact(values):
    """Returns a decimal context in which turns of `1 / value` keep 30 digits."""
    exponent = max((abs(v.adjusted()) for v in values if v), default=0)
    return decimal.localcontext(decimal.Context(prec=50 + exponent))


def _pi():
    """Returns pi to the precision of the context (Gauss and Legendre's means)."""
    a, b, t, power = Decimal(1), Decimal("0.5").sqrt(), Decimal("0.25"), 1
    while abs(a - b) > Decimal(10) ** (2 - decimal.getcontext().prec):
        mean = (a + b) / 2
        a, b, t = mean, (a * b).sqrt(), t - power * (a - mean) ** 2
        power *= 2
    return (a + b) ** 2 / (4 * t)


def _fixed_point(turns):
    """Returns the fraction of a turn in units of 2**-64."""
    return int((turns % 1 * 2**64).to_integral_value()) % 2**64
