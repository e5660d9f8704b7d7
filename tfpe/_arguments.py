"""Plain arguments: `as_...` converts and returns, `require_...` refuses.

Python's and NumPy's values only, so this module needs no backend. Tensors are
the business of `_tensor_arguments`.
"""

import itertools
import math
import operator
from numbers import Real

import numpy as np

ORDERS = {
    "interleaved": ("axis", "frequency", "function"),
    "concatenated": ("axis", "function", "frequency"),
}
SPECTRA = ("vaswani", "tensor2tensor", "geometric")
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1
INT64_MAX = 2**63 - 1
# The widest signal. Far beyond any model, and its tables are still built in seconds.
MOST_CHANNELS = 2**17
# What arguments of other libraries' layers are called here.
ELSEWHERE = {
    **dict.fromkeys(("max_wavelength", "max_period", "temperature"), "`max_timescale`"),
    **dict.fromkeys(("flip_sin_to_cos",), "`cosine_first`"),
    **dict.fromkeys(("d_model", "dim", "embed_dim"), "`channels`, or the inputs' own"),
    **dict.fromkeys(("max_len", "max_length"), "unneeded, any length is right"),
}


def as_keras_arguments(kwargs):
    """Returns a layer's `kwargs` without `autocast`; other libraries' are refused."""
    for name, value in kwargs.items():
        if name in ELSEWHERE:
            raise TypeError(
                f"`{name}` must be left out: here it is {ELSEWHERE[name]}. Received: "
                f"{name}={value!r}"
            )
    return {name: value for name, value in kwargs.items() if name != "autocast"}


def as_integer(value, name, low, high, allowed):
    """Returns an int in a range; a bool or a float is refused."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be {allowed}. Received: {name}={value!r}")
    try:
        value = operator.index(value)
    except TypeError:
        raise TypeError(
            f"`{name}` must be {allowed}. Received: {name}={value!r} "
            f"(of type {type(value).__name__})"
        ) from None
    if not low <= value <= high:
        raise ValueError(f"`{name}` must be {allowed}. Received: {name}={value}")
    return value


def as_channels(channels):
    allowed = f"a positive integer, at most {MOST_CHANNELS:,}"
    return as_integer(channels, "channels", 1, MOST_CHANNELS, allowed)


def as_axes(axes):
    return as_integer(axes, "axes", 1, INT32_MAX, "a positive integer")


def as_axis(axis):
    """Returns a positional axis, or a tuple of several, as one or more ints."""
    allowed = "an int other than -1, the channels, or a tuple of different such ints"
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [as_integer(a, "axis", INT32_MIN, INT32_MAX, allowed) for a in axes]
    if not axes or -1 in axes or len(set(axes)) < len(axes):
        raise ValueError(f"`axis` must be {allowed}. Received: axis={axis}")
    return axes[0] if len(axes) == 1 else tuple(axes)


def as_bool(value, name):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False. Received: {name}={value!r}")
    return bool(value)


def as_number(value, name, allowed="a finite number"):
    """Returns an int or a float; anything but a finite real number is refused."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real):
        raise TypeError(
            f"`{name}` must be {allowed}. Received: {name}={value!r} "
            f"(of type {type(value).__name__})"
        )
    try:
        finite = math.isfinite(value)
    except OverflowError:  # an int beyond float64
        finite = False
    if not finite:
        raise ValueError(f"`{name}` must be {allowed}. Received: {name}={value}")
    return int(value) if isinstance(value, (int, np.integer)) else float(value)


def as_timescale(value, name):
    allowed = "a positive finite number"
    value = float(as_number(value, name, allowed))
    if value <= 0:
        raise ValueError(f"`{name}` must be {allowed}. Received: {name}={value}")
    return value


def as_layout(layout, name="layout"):
    """Returns the name of a layout, or an order of the channels as a tuple."""
    if isinstance(layout, str) and layout in ORDERS:
        return layout
    if isinstance(layout, (tuple, list)):
        words = tuple(layout)
        if words in itertools.permutations(ORDERS["interleaved"]):
            return words
    # People give the number of channels here, as layers with tables want it.
    hint = " Channels are those of the inputs." if isinstance(layout, int) else ""
    raise ValueError(
        f"`{name}` must be 'interleaved', 'concatenated' or an order of the three "
        f"words 'axis', 'frequency' and 'function'.{hint} Received: {name}={layout!r}"
    )


def as_spectrum(spectrum):
    """Returns `None`, the name of a spectrum or its timescales as a tuple."""
    if spectrum is None or (isinstance(spectrum, str) and spectrum in SPECTRA):
        return spectrum
    flat = isinstance(spectrum, (tuple, list)) and not any(
        isinstance(value, (tuple, list, np.ndarray)) for value in spectrum
    )
    if flat or (isinstance(spectrum, np.ndarray) and spectrum.ndim == 1):
        return tuple(as_timescale(value, "spectrum") for value in spectrum)
    raise ValueError(
        f"`spectrum` must be None, one of {SPECTRA} or a sequence of timescales. "
        f"Received: spectrum={spectrum!r}"
    )


def as_odd_channel(odd_channel):
    if not isinstance(odd_channel, str) or odd_channel not in ("zero", "sine"):
        raise ValueError(
            "`odd_channel` must be 'zero' or 'sine'. Received: "
            f"odd_channel={odd_channel!r}"
        )
    return odd_channel


def as_first_position(value):
    allowed = "a finite number in the range of int32"
    value = as_number(value, "first_position", allowed)
    if not INT32_MIN <= value <= INT32_MAX:
        raise ValueError(
            f"`first_position` must be {allowed}. Received: first_position={value}"
        )
    return value


def require_steps(start_index, length):
    """Refuses a range of steps that goes past int64."""
    if start_index + length - 1 > INT64_MAX:
        raise ValueError(
            "`start_index` + length must not go past 2**63 - 1. Received: "
            f"start_index={start_index}, length={length}"
        )
