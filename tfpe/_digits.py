"""Positions as digits: small integers, each of which has a table of its own.

A position is `low + 2**8 * middle + 2**32 * top`. No digit is rounded or wraps,
whatever the dtype of the position.
"""

from typing import Any, NamedTuple

import keras
from keras import ops

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
    wide = keras.backend.standardize_dtype(signed.dtype) == "int64"
    low = _modulo(signed, 2**LOW)
    upper = (signed - low) // 2**LOW
    if unsigned:
        bits = 64 if wide else 32
        upper = upper + ops.cast(signed < 0, upper.dtype) * 2 ** (bits - LOW)
    low = ops.cast(low, "int32")
    if steps is not None:
        total = low + steps
        low = total % 2**LOW
        upper = upper + ops.cast((total - low) // 2**LOW, upper.dtype)
    return parts_of_blocks(low, upper, wide)


def parts_of_blocks(low, upper, wide):
    """Returns the `Parts` of `low + 2**8 * upper`."""
    if not wide:
        return Parts(low, upper)
    middle = _modulo(upper, 2**MIDDLE)
    return Parts(low, ops.cast(middle, "int32"), (upper - middle) // 2**MIDDLE)


def parts_of_floats(positions, wide):
    """Returns the `Parts` of a tensor of floats whose size is below 2**63.

    Powers of two scale floats exactly, so no step of this rounds. The fraction has
    the sign of the position, and alone carries the gradient.
    """
    whole = _truncated(positions)
    fraction, rest, top = positions - whole, whole, None
    if wide:
        top = _truncated(whole / 2.0**32)
        rest = whole - top * 2.0**32
        top = ops.cast(top, "int32")
    middle = ops.floor(rest / 2.0**LOW)
    low = ops.cast(rest - middle * 2.0**LOW, "int32")
    return Parts(low, ops.cast(middle, "int32"), top, fraction)


def digits(number, bits):
    """Returns the digits of an integer tensor, lowest first, as row numbers.

    Args:
        number: integer tensor, from `-2**sum(bits)` to `2**sum(bits)`.
        bits: tuple of ints, those of each digit.

    Returns:
        List of int32 tensors. All but the last are at least 0; the last may be
        negative and has `2**bits[-1]` added to it.
    """
    found = []
    for count in bits[:-1]:
        digit = _modulo(number, 2**count)
        number = (number - digit) // 2**count
        found.append(digit)
    found.append(number + 2 ** bits[-1])
    return [ops.cast(digit, "int32") for digit in found]


def _modulo(x, base):
    # ONNX takes the sign of the dividend.
    return (x % base + base) % base


def _truncated(x):
    return ops.sign(x) * ops.floor(ops.abs(x))
