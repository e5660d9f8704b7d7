"""The conventions by their settings."""

from dataclasses import replace

from tfpe._settings import Settings
from tfpe.conventions import CONVENTIONS

NAMED, COUNTED_DOWN = {}, {}
for _entry in CONVENTIONS.values():
    _key = Settings(**_entry.settings), _entry.axis
    NAMED.setdefault(_key, [])
    (NAMED if _entry.step == 1 else COUNTED_DOWN).setdefault(_key, []).append(
        _entry.name
    )
# The shortest and longest timescales that somebody has chosen.
ENDS = list(dict.fromkeys((s.min_timescale, s.max_timescale) for s, _ in NAMED))


def names_counted_down(settings):
    """Returns the conventions of settings wherever their rows start.

    Those whose own code counts down come first.
    """
    plain = {k: v for k, v in settings.items() if k not in ("first_position", "axis")}
    key = replace(Settings(**plain), amplitude=1.0), settings.get("axis", -2)
    return (*COUNTED_DOWN.get(key, ()), *NAMED.get(key, ()))


def names_from(settings, position):
    """Returns the conventions of settings that start at another position."""
    plain = {k: v for k, v in settings.items() if k != "axis"}
    plain = {**plain, "first_position": position, "amplitude": 1.0}
    return tuple(NAMED.get((Settings(**plain), settings.get("axis", -2)), ()))
