"""Tables for `tfpe.identify`, from plain loops, and settings to compare with."""

import functools

import numpy as np
import oracle

import tfpe._settings


@functools.cache
def _rows(length, channels, items):
    given = dict(items)
    amplitude, first = given.pop("amplitude", 1.0), given.pop("first_position", 0)
    if first != int(first):
        return oracle.rows(
            range(length),
            channels,
            amplitude=amplitude,
            first_position=first,
            **given,
        )
    return amplitude * oracle.many_rows(range(first, first + length), channels, **given)


def rows(length, channels, **given):
    return _rows(length, channels, tuple(given.items()))


def noise(shape, size=1e-3):
    return size * np.random.default_rng(7).normal(size=shape)


def with_defaults(given, channels):
    """Returns all the settings, as what makes no difference at this width."""
    plain = vars(tfpe._settings.Settings(**given)).copy()
    if channels % 2 == 0:
        plain["odd_channel"] = "zero"
    if plain["spectrum"] is None:
        own = {"interleaved": "vaswani", "concatenated": "tensor2tensor"}
        plain["spectrum"] = own[plain["layout"]]
    return plain
