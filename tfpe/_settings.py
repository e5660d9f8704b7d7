"""The settings of a signal, the same for the layers and the functions."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import TypedDict

from tfpe._arguments import (
    as_bool,
    as_first_position,
    as_layout,
    as_number,
    as_odd_channel,
    as_spectrum,
    as_timescale,
)


class SettingsDict(TypedDict, total=False):
    """What `**settings` may be, for editors and type checkers."""

    layout: str | Sequence[str]
    spectrum: str | Sequence[float] | None
    min_timescale: float
    max_timescale: float
    cosine_first: bool
    odd_channel: str
    first_position: float
    amplitude: float


@dataclass(frozen=True)
class Settings:
    """The settings of a signal as plain values that are valid together.

    `SinusoidalPositionalEncoding` documents what they mean.
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
        plain = {
            "layout": as_layout(self.layout),
            "spectrum": as_spectrum(self.spectrum),
            "min_timescale": as_timescale(self.min_timescale, "min_timescale"),
            "max_timescale": as_timescale(self.max_timescale, "max_timescale"),
            "cosine_first": as_bool(self.cosine_first, "cosine_first"),
            "odd_channel": as_odd_channel(self.odd_channel),
            "first_position": as_first_position(self.first_position),
            "amplitude": float(as_number(self.amplitude, "amplitude")),
        }
        for name, value in plain.items():
            object.__setattr__(self, name, value)
        self._require_consistency()

    def _require_consistency(self):
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

    def config(self):
        """Returns the settings as JSON gives them back, with lists for tuples."""
        found = asdict(self)
        return {k: list(v) if isinstance(v, tuple) else v for k, v in found.items()}

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
