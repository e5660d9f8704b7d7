"""Positions as digits: small integers, each of which has a table of its own.

A position is `low + 2**8 * middle + 2**32 * top`. No digit is rounded or wraps,
whatever the dtype of the position.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

from tfpe._backends import mode

LOW = 8  # bits of `low`, and so 256 rows in a block
MIDDLE = 24
FRACTION = 12  # bits of a fraction that have digits, too


class Parts(NamedTuple):
    """A position in parts, all of them integer tensors of one shape.

    `low` is in 0, ..., 255 and `middle` in -2**24, ..., 2**24 - 1. `top` is `None`
    if they hold all of the position. `fraction` is `None` for integers.
    """

    low: Any
    middle: Any
    top: Any = None
    fraction: Any = None


def parts_of_integers(signed, unsigned=False, steps=None):
    """Returns the `Parts` of a tensor of integers, plus `steps`.

    The sum is made by parts, so that it does not wrap where its terms do not.

    Args:
        signed: int32 or int64 tensor.
        unsigned: bool, whether it has the bits of unsigned integers.
        steps: `None` or an int32 tensor >= 0.
    """
    if keras.backend.standardize_dtype(signed.dtype) == "int64":
        parts = _parts_of_int64(signed, unsigned)
    else:
        low = _modulo(signed, 2**LOW)
        middle = (signed - low) // 2**LOW
        if unsigned:
            middle = middle + ops.cast(signed < 0, "int32") * 2 ** (32 - LOW)
        parts = Parts(low, middle)
    return parts if steps is None else _sum_of(parts, steps)


def _parts_of_int64(signed, unsigned):
    """Returns `Parts` by remainders and by quotients that float32 holds exactly.

    LiteRT divides no integers of 64 bits.
    """
    rest, above = _modulo(signed, 2**32), _modulo(signed, 2**48)
    low = _modulo(rest, 2**LOW)
    middle = _quotient(rest - low, 2**LOW)
    top = _quotient(above - rest, 2**32) + 2**16 * _quotient(signed - above, 2**48)
    if unsigned or mode() != "exported":
        top = ops.cast(top, "int64")  # one more bit, for a sum or no sign
    if unsigned:
        top = top + ops.cast(signed < 0, "int64") * 2**32
    return Parts(ops.cast(low, "int32"), middle, top)


def _sum_of(parts, steps):
    """Returns the `Parts` of a position plus int32 `steps` >= 0."""
    total = parts.low + steps
    low = total % 2**LOW
    middle, top = parts.middle + (total - low) // 2**LOW, parts.top
    if top is not None:
        total, middle = middle, _modulo(middle, 2**MIDDLE)
        top = top + ops.cast((total - middle) // 2**MIDDLE, top.dtype)
    return Parts(low, middle, top)


def parts_of_floats(positions, wide):
    """Returns the `Parts` of a tensor of floats.

    The fraction has the sign of the position, and alone carries the gradient.

    Args:
        positions: tensor of floats, smaller in size than 2**63, or than 2**31.
        wide: bool, whether they may be 2**31 or more.
    """
    dtype = keras.backend.standardize_dtype(positions.dtype)
    if wide and dtype != "float64":
        # JAX and LiteRT have no integers of 64 bits, or few operations on them.
        return _parts_of_wide_floats(positions)
    whole = ops.cast(positions, "int64" if wide else "int32")
    parts = parts_of_integers(whole)
    return parts._replace(fraction=positions - ops.cast(whole, positions.dtype))


def _parts_of_wide_floats(positions):
    """Returns `Parts` without integers of 64 bits.

    Powers of two scale floats exactly, so no step of this rounds.
    """
    whole = ops.sign(positions) * ops.floor(ops.abs(positions))
    top = ops.cast(whole / 2.0**32, "int32")
    rest = whole - ops.cast(top, whole.dtype) * 2.0**32
    middle = ops.floor(rest / 2.0**LOW)
    low = ops.cast(rest - middle * 2.0**LOW, "int32")
    return Parts(low, ops.cast(middle, "int32"), top, positions - whole)


def digits(number, bits, signed=True):
    """Returns the digits of an integer tensor, lowest first, as row numbers.

    Args:
        number: integer tensor, from `-2**sum(bits)` to `2**sum(bits)`.
        bits: tuple of ints, those of each digit.
        signed: bool, whether the number may be negative.

    Returns:
        List of int32 tensors, all at least 0: if signed, the last one has
        `2**bits[-1]` added to it.
    """
    most = 2 ** sum(bits)
    if mode() == "exported" and most < 2**31:
        # ONNX makes any integer of NaN, where others choose another value.
        number = ops.clip(number, *((-most, most) if signed else (0, most - 1)))
    found = []
    for count in bits[:-1]:
        digit = _modulo(number, 2**count)
        number = (number - digit) // 2**count
        found.append(digit)
    found.append(number + 2 ** bits[-1] if signed else number)
    return [ops.cast(digit, "int32") for digit in found]


def _quotient(x, base):
    """Returns a multiple of `base` divided by it; 24 bits of it or fewer are used."""
    return ops.cast(ops.cast(x, "float32") / float(base), "int32")


def _modulo(x, base):
    # ONNX takes the sign of the dividend.
    return (x % base + base) % base
