"""The settings of a signal and the checks of plain arguments."""

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, fields
from numbers import Real

import numpy as np

ORDERS = {
    "interleaved": ("axis", "frequency", "function"),
    "concatenated": ("axis", "function", "frequency"),
}
SPECTRA = ("vaswani", "tensor2tensor", "geometric")
INT32_MIN, INT32_MAX = -(2**31), 2**31 - 1


@dataclass(frozen=True)
class Settings:
    """The settings of a signal, checked and turned into plain values.

    Their meaning is documented once, in `SinusoidalPositionalEncoding`.
    """

    layout: str | Sequence[str] = "interleaved"
    spectrum: str | Sequence[float] | None = None
    min_timescale: float = 1.0
    max_timescale: float = 10_000.0
    cosine_first: bool = False
    odd_channel: str = "zero"
    first_position: float = 0
    amplitude: float = 1.0

    def __post_init__(self):
        checked = {
            "layout": check_layout(self.layout, "layout"),
            "spectrum": _check_spectrum(self.spectrum),
            "min_timescale": _check_timescale(self.min_timescale, "min_timescale"),
            "max_timescale": _check_timescale(self.max_timescale, "max_timescale"),
            "cosine_first": check_bool(self.cosine_first, "cosine_first"),
            "odd_channel": _check_odd_channel(self.odd_channel),
            "first_position": _check_first_position(self.first_position),
            "amplitude": float(check_number(self.amplitude, "amplitude")),
        }
        for name, value in checked.items():
            object.__setattr__(self, name, value)
        if self.spectrum is None and not isinstance(self.layout, str):
            raise ValueError(
                "`spectrum` must be given when `layout` is an order of axis, "
                f"frequency and function. Received: layout={self.layout}, "
                "spectrum=None"
            )
        ends = (self.min_timescale, self.max_timescale)
        if isinstance(self.spectrum, tuple) and ends != (1.0, 10_000.0):
            raise ValueError(
                "`min_timescale` and `max_timescale` must stay at their defaults "
                "when `spectrum` is a sequence of timescales. Received: "
                f"min_timescale={ends[0]}, max_timescale={ends[1]}"
            )
        if self.odd_channel == "sine" and self.cosine_first:
            raise ValueError(
                "`odd_channel='sine'` cannot be combined with `cosine_first=True`: "
                "the unpaired channel is a sine. Received: odd_channel='sine', "
                "cosine_first=True"
            )

    @classmethod
    def of(cls, settings):
        """Returns the `Settings` of a function's `**settings`."""
        allowed = [field.name for field in fields(cls)]
        for name in settings:
            if name not in allowed:
                raise TypeError(
                    f"Unknown setting `{name}`. The settings must be among "
                    f"{', '.join(allowed)}. Received: {name}={settings[name]!r}"
                )
        return cls(**settings)


def check_integer(value, name, low, high, allowed):
    """Returns `value` as an int; refuses anything but an integer in the range."""
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


def check_channels(channels):
    return check_integer(channels, "channels", 1, INT32_MAX, "a positive integer")


def check_axes(axes):
    return check_integer(axes, "axes", 1, INT32_MAX, "a positive integer")


def check_bool(value, name):
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"`{name}` must be True or False. Received: {name}={value!r}")
    return bool(value)


def check_number(value, name, allowed="a finite number"):
    """Returns `value` as an int or a float; refuses all but finite real numbers."""
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


def _check_timescale(value, name):
    allowed = "a positive finite number"
    value = float(check_number(value, name, allowed))
    if value <= 0:
        raise ValueError(f"`{name}` must be {allowed}. Received: {name}={value}")
    return value


def check_layout(layout, name):
    if isinstance(layout, str) and layout in ORDERS:
        return layout
    if isinstance(layout, (tuple, list)):
        words = tuple(layout)
        if words in itertools.permutations(ORDERS["interleaved"]):
            return words
    raise ValueError(
        f"`{name}` must be 'interleaved', 'concatenated' or an order of the three "
        f"words 'axis', 'frequency' and 'function'. Received: {name}={layout!r}"
    )


def _check_spectrum(spectrum):
    if spectrum is None or (isinstance(spectrum, str) and spectrum in SPECTRA):
        return spectrum
    flat = isinstance(spectrum, (tuple, list)) and not any(
        isinstance(value, (tuple, list, np.ndarray)) for value in spectrum
    )
    if flat or (isinstance(spectrum, np.ndarray) and spectrum.ndim == 1):
        return tuple(_check_timescale(value, "spectrum") for value in spectrum)
    raise ValueError(
        f"`spectrum` must be None, one of {SPECTRA} or a sequence of timescales. "
        f"Received: spectrum={spectrum!r}"
    )


def _check_odd_channel(odd_channel):
    if not isinstance(odd_channel, str) or odd_channel not in ("zero", "sine"):
        raise ValueError(
            "`odd_channel` must be 'zero' or 'sine'. Received: "
            f"odd_channel={odd_channel!r}"
        )
    return odd_channel


def _check_first_position(value):
    allowed = "a finite number in the range of int32"
    value = check_number(value, "first_position", allowed)
    if not INT32_MIN <= value <= INT32_MAX:
        raise ValueError(
            f"`first_position` must be {allowed}. Received: first_position={value}"
        )
    return value
