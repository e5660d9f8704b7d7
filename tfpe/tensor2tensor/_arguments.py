"""Arguments of tensor2tensor's functions: `as_...` converts, `require_...` refuses."""

from keras import ops

from tfpe._arguments import INT32_MAX, as_integer, require_steps
from tfpe._backends import visible
from tfpe._tensor_arguments import (
    as_dtype,
    as_positions,
    as_start_index,
    dtype_name,
    is_symbolic,
    rank,
    require_dense,
    require_keras_3,
)

NUMBERS = ("int", "uint", "float", "bfloat", "bool")


def as_tensor_of_numbers(x, name, rank=None, at_least=0):
    """Returns numbers as a tensor, or as they are if they are symbolic."""
    received = x
    require_keras_3(x, name)
    if hasattr(x, "row_lengths") or hasattr(x, "dense_shape"):
        require_dense(x, name)
    if not is_symbolic(x):
        try:
            x = ops.convert_to_tensor(x)
        except Exception:  # each backend has its own
            x = None
    numbers = hasattr(x, "dtype") and dtype_name(x).startswith(NUMBERS)
    if not numbers:
        raise TypeError(
            f"`{name}` must be a dense tensor of numbers. Received: {name}={received!r}"
        )
    require_dense(x, name)
    if len(x.shape) != (rank or max(len(x.shape), at_least)):
        raise ValueError(
            f"`{name}` must have a rank of {rank or f'{at_least} or more'}. Received: "
            f"{name}.shape={tuple(x.shape)}"
        )
    return x


def as_float_tensor(x, name="x", rank=None):
    """Returns floats `(batch, ..., channels)` as a tensor, of rank 3 or more."""
    x = as_tensor_of_numbers(x, name, rank, at_least=3)
    as_dtype(x.dtype, f"{name}.dtype")
    if not x.shape[-1]:
        raise ValueError(
            f"`{name}` must have a known number of channels, at least 1. Received: "
            f"{name}.shape={tuple(x.shape)}"
        )
    return x


def as_start(value, length):
    """Returns a start as an int or an integer scalar tensor; refuses one too far."""
    value = as_start_index(value)
    if isinstance(value, int):
        require_steps(value, length if isinstance(length, int) else 1)
    elif rank(value):
        raise ValueError(
            "`start_index` must be a scalar. Received: "
            f"start_index.shape={tuple(value.shape)}"
        )
    return value


def as_row_number(value, name, low, high):
    """Returns the number of a row as an int, or as a tensor that a graph will know."""
    seen = value
    if ops.is_tensor(value) or is_symbolic(value):
        value = as_positions(value, name, floats=False)
        if rank(value):
            raise ValueError(
                f"`{name}` must be a scalar. Received: {name}.shape={value.shape}"
            )
        seen = visible(value)
        if seen is None:
            return value
    return as_integer(seen, name, low, high, f"an integer from {low} to {high}")


def as_layer_number(layer, num_layers):
    return as_row_number(layer, "layer", -num_layers, num_layers - 1)


def as_positive(value, name, high=INT32_MAX):
    return as_integer(value, name, 1, high, "a positive integer")


def require_shape(entry, name, wanted, meaning):
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


def require_steps_of(entry, name, x, x_name="x"):
    """Refuses what is not `(batch, length)`, or `(1, length)`, as `x` has them."""
    batch, length = x.shape[:2]
    wanted = (1 if tuple(entry.shape)[:1] == (1,) else batch, length)
    require_shape(entry, name, wanted, f"(batch, length) of `{x_name}`")


def as_positions_of(entry, name, x, x_name="x"):
    """Returns positions of the steps of `x` as a tensor."""
    entry = as_positions(entry, name)
    require_steps_of(entry, name, x, x_name)
    return entry


def require_features(features):
    if not hasattr(features, "keys"):
        raise TypeError(
            f"`features` must be a dict of tensors. Received: features={features!r}"
        )
