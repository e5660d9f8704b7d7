"""Spectra: how the timescales are spaced. The only module that knows a formula.

A named spectrum is a geometric progression: `first_timescale` says where it starts
and `steps_to_end` how fast it grows.
"""

import decimal
from decimal import Decimal
from typing import Unpack

import numpy as np

from tfpe._arguments import as_axes, as_channels
from tfpe._settings import Settings, SettingsDict
from tfpe.layouts import number_of_pairs

SPECTRUM_OF_LAYOUT = {"interleaved": "vaswani", "concatenated": "tensor2tensor"}


def timescales(
    channels: int, *, axes: int = 1, **settings: Unpack[SettingsDict]
) -> np.ndarray:
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
        axes: int >= 1, the number of positional axes. Defaults to 1.
        **settings: as in `SinusoidalPositionalEncoding`; those that do not
            affect the timescales are only checked.

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
    exact = exact_timescales(
        as_channels(channels), as_axes(axes), Settings.of(settings)
    )
    return np.array([float(t) for t in exact], "float64")


def exact_timescales(channels, axes, settings):
    """Returns the timescales of each axis as `Decimal`s, right to 70 digits."""
    pairs = number_of_pairs(channels, axes, settings.odd_channel)
    spectrum = settings.spectrum
    if spectrum is None:
        spectrum = SPECTRUM_OF_LAYOUT[settings.layout]
    if isinstance(spectrum, tuple):
        if len(spectrum) != pairs:
            raise ValueError(
                "`spectrum` must have one timescale for each pair of channels, "
                f"{pairs} for {channels} channels and {axes} axes. Received: "
                f"{len(spectrum)} timescales"
            )
        with high_precision():
            return [Decimal(timescale) for timescale in spectrum]
    if not pairs:
        return []
    with high_precision():
        low, high = Decimal(settings.min_timescale), Decimal(settings.max_timescale)
    with high_precision(low, high):
        ratio = (high / low) ** (1 / steps_to_end(spectrum, channels, axes, pairs))
        found = [first_timescale(spectrum, low)]
        while len(found) < pairs:
            found.append(found[-1] * ratio)
    return found


def first_timescale(spectrum, min_timescale):
    """Returns the timescale of pair 0.

    tensor2tensor multiplies by `min_timescale` where the others divide by it.
    """
    return 1 / min_timescale if spectrum == "tensor2tensor" else min_timescale


def steps_to_end(spectrum, channels, axes, pairs):
    """Returns how many equal ratios lead from pair 0 to its end, as a `Decimal`.

    Over as many, the timescale grows by `max_timescale / min_timescale`.
    """
    if spectrum == "vaswani":
        return Decimal(channels) / 2 if axes == 1 else Decimal(pairs)
    if spectrum in ("tensor2tensor", "geometric"):
        return Decimal(max(pairs - 1, 1))
    raise NotImplementedError(f"no formula for the spectrum {spectrum!r}")


def spaced(spectrum, min_timescale, max_timescale, channels, axes, pairs):
    """Returns the timescales of a named spectrum in float64, for any ends."""
    steps = float(steps_to_end(spectrum, channels, axes, pairs))
    growth = (max_timescale / min_timescale) ** (np.arange(pairs) / steps)
    return first_timescale(spectrum, min_timescale) * growth


def high_precision(*timescales):
    """A decimal context of 60 digits behind the point of any `1 / timescale`.

    The caller's own context has no say in it.
    """
    exponent = max((abs(t.adjusted()) for t in timescales), default=0)
    return decimal.localcontext(
        decimal.Context(
            # A spectrum may reach the third power of its ends, `max / min**2`;
            # products lose some digits.
            prec=80 + 3 * exponent,
            rounding=decimal.ROUND_HALF_EVEN,
            Emin=decimal.MIN_EMIN,
            Emax=decimal.MAX_EMAX,
            traps=[decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow],
        )
    )
