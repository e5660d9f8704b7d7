"""Checks of arguments that are tensors, or are about them."""

import keras
import numpy as np
from keras import ops

from tfpe.settings import INT32_MAX, INT32_MIN

FLOATS = ("float16", "bfloat16", "float32", "float64")


def check_dtype(dtype, name="dtype"):
    """Returns a floating dtype by name, if the backend has it."""
    standard = keras.backend.standardize_dtype(dtype)
    if standard not in FLOATS:
        raise ValueError(f"`{name}` must be one of {FLOATS}. Received: {name}={dtype}")
    if standard == "float64" and keras.backend.backend() == "jax":
        import jax

        if not jax.config.jax_enable_x64:
            raise ValueError(
                f"`{name}` can be 'float64' on JAX only with `jax_enable_x64`; "
                f"without it JAX would compute in float32. Received: {name}={dtype}"
            )
    return standard


def check_steps(start_index, length):
    """Refuses steps that leave int32."""
    if start_index + length > INT32_MAX + 1:
        raise ValueError(
            "`start_index` + length must not go past 2**31 - 1. Received: "
            f"start_index={start_index}, length={length}"
        )


def check_positions(x, name="positions", floats=True):
    """Returns positions as a tensor, or as they are if they are symbolic.

    Args:
        x: a tensor, an array, a number or nested lists of them.
        name: what an error calls it.
        floats: whether floats are allowed besides integers.

    Raises:
        TypeError: if `x` is of another type.
        ValueError: if an integer that can be seen lies outside int32.
    """
    if not (ops.is_tensor(x) or keras.utils.is_keras_tensor(x)):
        x = np.asarray(x)
    dtype = str(x.dtype).removeprefix("torch.").removeprefix("<dtype: '")
    if not dtype.startswith(("int", "uint", "float", "bfloat")[: 4 if floats else 2]):
        allowed = "integers or floats" if floats else "integers"
        raise TypeError(f"`{name}` must be {allowed}. Received: {name}={x!r}")
    if dtype.startswith(("int64", "uint32", "uint64")):
        seen = _value_of(x)
        if seen is not None and seen.size:
            low, high = int(seen.min()), int(seen.max())
            if low < INT32_MIN or high > INT32_MAX:
                raise ValueError(
                    f"`{name}` must be integers inside int32. Received: {name} "
                    f"from {low} to {high}"
                )
            x = seen.astype("int32")
    return x if keras.utils.is_keras_tensor(x) else ops.convert_to_tensor(x)


def _value_of(x):
    """Returns the NumPy array of `x`, or None where only a graph will know it."""
    try:
        return ops.convert_to_numpy(x)
    except Exception:  # each backend has its own error for a symbolic tensor
        return None


def check_ids(x, name):
    x = ops.convert_to_tensor(x)
    dtype = str(x.dtype)
    if "int" not in dtype and "bool" not in dtype:
        raise TypeError(
            f"`{name}` must be a tensor of integers or bools. Received: "
            f"{name} of dtype {dtype}"
        )
    if len(x.shape) == 0:
        raise ValueError(
            f"`{name}` must have at least one axis. Received: a scalar, {name}={x}"
        )
    return x


def check_sizes(x, dims, shape, name):
    """Refuses sizes that differ from those of the inputs where both are known."""
    wanted = tuple(shape[d] for d in dims)
    if any(
        None not in (got, want) and got != want
        for got, want in zip(x.shape, wanted, strict=True)
    ):
        raise ValueError(
            f"`{name}` must have the shape {wanted}, after the inputs. Received: "
            f"{name}.shape={tuple(x.shape)}, inputs.shape={tuple(shape)}"
        )
