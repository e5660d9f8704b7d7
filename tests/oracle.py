"""The right values, from mpmath numbers of 60 digits.

Nested loops, one formula for each spectrum, as differently from `tfpe` as it goes.
`rows` is for few positions; `many_rows` is for very many integer ones.
"""

import functools
import itertools

import mpmath
import numpy as np

mpmath.mp.dps = 60
# The spectra that have a formula below.
SPECTRA = "vaswani", "tensor2tensor", "geometric"


def timescales(channels, axes=1, layout="interleaved", spectrum=None, **settings):
    """Returns the timescale of each pair of an axis, as mpmath numbers."""
    if spectrum is None:
        spectrum = {"interleaved": "vaswani", "concatenated": "tensor2tensor"}[layout]
    if not isinstance(spectrum, str):
        return [mpmath.mpf(float(t)) for t in spectrum]
    pairs = channels // (2 * axes)
    if settings.get("odd_channel") == "sine" and channels > 1:
        pairs = (channels + 1) // 2
    low = float(settings.get("min_timescale", 1.0))
    high = float(settings.get("max_timescale", 10000.0))
    return list(_timescales(channels, axes, pairs, spectrum, low, high))


@functools.cache
def _timescales(channels, axes, pairs, spectrum, low, high):
    low, high = mpmath.mpf(low), mpmath.mpf(high)
    found = []
    for j in range(pairs):
        if spectrum == "vaswani":
            part = mpmath.mpf(2 * j) / channels if axes == 1 else mpmath.mpf(j) / pairs
            found.append(low * (high / low) ** part)
        elif spectrum == "geometric":
            found.append(low * (high / low) ** (mpmath.mpf(j) / max(pairs - 1, 1)))
        elif spectrum == "tensor2tensor":
            step = mpmath.log(high / low) / max(pairs - 1, 1)
            found.append(1 / (low * mpmath.exp(-j * step)))
        else:
            raise ValueError(f"no formula here for the spectrum {spectrum!r}")
    return tuple(found)


def names(channels, axes=1, layout="interleaved", cosine_first=False, **settings):
    """Returns (axis, pair, "sin" or "cos") of each channel, `None` for padding."""
    sine_last = settings.get("odd_channel") == "sine" and channels % 2 and channels > 1
    pairs = (channels + 1) // 2 if sine_last else channels // (2 * axes)
    functions = ["cos", "sin"] if cosine_first else ["sin", "cos"]
    ranges = {"axis": range(axes), "frequency": range(pairs), "function": functions}
    order = {
        "interleaved": ["axis", "frequency", "function"],
        "concatenated": ["axis", "function", "frequency"],
    }.get(layout if isinstance(layout, str) else None, layout)
    found = []
    for values in itertools.product(*(ranges[word] for word in order)):
        named = dict(zip(order, values, strict=True))
        entry = (named["axis"], named["frequency"], named["function"])
        if not (sine_last and entry == (0, pairs - 1, "cos")):
            found.append(entry)
    return found + [None] * (channels - len(found))


@functools.cache
def waves(position, timescale):
    """Returns cosine and sine of `position / timescale`, as mpmath numbers."""
    return mpmath.cos_sin(position / timescale)


def row(position, channels, amplitude=1.0, first_position=0, **settings):
    """Returns the signal at one position, or one tuple of them, in float64."""
    position = position if isinstance(position, tuple) else (position,)
    scales = timescales(channels, axes=len(position), **settings)
    values = []
    for entry in names(channels, axes=len(position), **settings):
        if entry is None:
            values.append(0.0)
            continue
        axis, pair, function = entry
        where = _exact(position[axis]) + _exact(first_position)
        cosine, sine = waves(where, scales[pair])
        wave = sine if function == "sin" else cosine
        values.append(float(_exact(amplitude) * wave))
    return np.array(values)


def _exact(number):
    return mpmath.mpf(int(number) if int(number) == number else float(number))


def rows(positions, channels, **settings):
    """Returns `row` for each of several positions, `(len(positions), channels)`."""
    found = [row(p, channels, **settings) for p in positions]
    return np.array(found).reshape(len(found), channels)


def many_rows(positions, channels, **settings):
    """Returns what `rows` returns, to 1e-15, for any number of integers.

    A turn is `2**160` units and a position a Python integer, so that taking whole
    turns away is exact; only what is left of the angle becomes a float64.
    """
    turn = 2**160
    positions = np.array([int(p) for p in positions], object)
    waves = []
    for timescale in timescales(channels, **settings):
        per_step = int(mpmath.nint(turn / (2 * mpmath.pi * timescale)))
        left = (positions * per_step + turn // 2) % turn - turn // 2
        angle = (left / turn).astype("float64") * (2 * np.pi)
        waves.append({"sin": np.sin(angle), "cos": np.cos(angle)})
    found = np.zeros((len(positions), channels))
    for channel, entry in enumerate(names(channels, **settings)):
        if entry is not None:
            _, pair, function = entry
            found[:, channel] = waves[pair][function]
    return found
