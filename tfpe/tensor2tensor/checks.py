"""What the functions and layers ask of their arguments."""

import keras
from keras import ops

from tfpe.arguments import check_dtype, check_positions, visible
from tfpe.settings import INT32_MAX, INT32_MIN, check_integer

NUMBERS = ("int", "uint", "float", "bfloat", "bool")


def tensor(x, name, rank=None, at_least=0):
    """Returns numbers as a tensor, or as they are if they are symbolic."""
    received = x
    if not keras.utils.is_keras_tensor(x):
        try:
            x = ops.convert_to_tensor(x)
        except Exception:  # each backend has its own
            x = None
    dtype = str(getattr(x, "dtype", None)).removeprefix("torch.")
    dtype = dtype.removeprefix("<dtype: '")  # TensorFlow's
    if not dtype.startswith(NUMBERS) or hasattr(x, "row_lengths"):
        raise TypeError(
            f"`{name}` must be a dense tensor of numbers. Received: {name}={received!r}"
        )
    if getattr(x.shape, "rank", 0) is None:
        raise ValueError(f"`{name}` must have a known rank. Received: {name}={x}")
    if len(x.shape) != (rank or max(len(x.shape), at_least)):
        raise ValueError(
            f"`{name}` must have a rank of {rank or f'{at_least} or more'}. Received: "
            f"{name}.shape={tuple(x.shape)}"
        )
    return x


def float_tensor(x, name="x", rank=None):
    """Returns floats `(batch, ..., channels)` as a tensor, of rank 3 or more."""
    x = tensor(x, name, rank, at_least=3)
    check_dtype(x.dtype, f"{name}.dtype")
    if not x.shape[-1]:
        raise ValueError(
            f"`{name}` must have a known number of channels, at least 1. Received: "
            f"{name}.shape={tuple(x.shape)}"
        )
    return x


def checked(x, rank=None, name="x"):
    """Returns `x` as a tensor, and its shape."""
    x = float_tensor(x, name, rank)
    shape = ops.shape(x)
    if None in shape[1:]:
        raise ValueError(
            f"`{name}` must have known sizes in a functional model, but for the batch; "
            "where the length is unknown, take `tfpe.SinusoidalPositionalEncoding("
            f"layout='concatenated')`. Received: {name}.shape={tuple(x.shape)}"
        )
    return x, shape


def int32(value, name, low=INT32_MIN, length=1):
    """Returns an int as it is, and a scalar integer tensor as int32."""
    if isinstance(value, int):
        allowed = "an integer >= 0" if low == 0 else "an integer inside int32"
        return check_integer(value, name, low, INT32_MAX, allowed)
    value = check_positions(value, name, floats=False, length=length)
    if len(value.shape):
        raise ValueError(
            f"`{name}` must be a scalar. Received: {name}.shape={tuple(value.shape)}"
        )
    if low == 0 and keras.utils.is_keras_tensor(value):
        raise ValueError(
            f"`{name}` must be known in a functional model. Received: {name}={value}"
        )
    return ops.maximum(value, 0) if low == 0 else value


def row_number(value, name, low, high):
    """Returns the number of a row as an int, or as a tensor that a graph will know."""
    seen = value
    if ops.is_tensor(value) or keras.utils.is_keras_tensor(value):
        value = int32(value, name)
        seen = visible(value)
        if seen is None:
            return value
    return check_integer(seen, name, low, high, f"an integer from {low} to {high}")


def layer_number(layer, num_layers):
    return row_number(layer, "layer", -num_layers, num_layers - 1)


def check_positive(value, name, high=INT32_MAX):
    return check_integer(value, name, 1, high, "a positive integer")


def check_shape(entry, name, wanted, meaning):
    """Refuses another shape than `wanted`, as far as both are known."""
    shape = tuple(entry.shape)
    if len(shape) != len(wanted) or any(
        None not in sizes and sizes[0] != sizes[1]
        for sizes in zip(shape, wanted, strict=True)
    ):
        raise ValueError(
            f"`{name}` must have the shape {meaning}, {wanted}. Received: "
            f"{name}.shape={shape}"
        )


def check_steps_of(entry, name, x, x_name="x"):
    """Refuses what is not `(batch, length)`, or `(1, length)`, as `x` has them."""
    batch, length = x.shape[:2]
    wanted = (1 if tuple(entry.shape)[:1] == (1,) else batch, length)
    check_shape(entry, name, wanted, f"(batch, length) of `{x_name}`")


def positions_of(entry, name, x, x_name="x"):
    """Returns positions of the steps of `x` as a tensor."""
    entry = check_positions(entry, name)
    check_steps_of(entry, name, x, x_name)
    return entry


def check_features(features):
    if not hasattr(features, "keys"):
        raise TypeError(
            f"`features` must be a dict of tensors. Received: features={features!r}"
        )
    return features
