"""Checks of arguments that are tensors, or are about them."""

import keras
import numpy as np
from keras import ops

from tfpe.settings import INT32_MAX, INT32_MIN

FLOATS = ("float16", "bfloat16", "float32", "float64")


def check_dtype(dtype, name="dtype"):
    """Returns a floating dtype by name, if the backend has it."""
    try:
        standard = keras.backend.standardize_dtype(dtype)
    except Exception:  # Keras' own, or that of whatever it asks for a name
        standard = None
    if dtype is None or standard not in FLOATS:
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


def check_positions(x, name="positions", floats=True, length=1):
    """Returns positions as a tensor, or as they are if they are symbolic.

    Args:
        x: a tensor, an array, a number or nested lists of them.
        name: what an error calls it.
        floats: whether floats are allowed besides integers.
        length: how many steps follow from each.

    Returns:
        An int32 tensor or a tensor of floats.

    Raises:
        TypeError: if `x` is of another type.
        ValueError: if an integer that can be seen lies outside int32.
    """
    received, symbolic = x, keras.utils.is_keras_tensor(x)
    if not symbolic and not ops.is_tensor(x):
        x = _as_array(x, name, "integers or floats" if floats else "integers")
    dtype = _dtype_name(x)
    is_float = dtype.startswith(("float", "bfloat"))
    if not (is_float and floats) and not dtype.startswith(("int", "uint")):
        allowed = "integers or floats" if floats else "integers"
        raise TypeError(f"`{name}` must be {allowed}. Received: {name}={received!r}")
    if symbolic:
        return x
    if is_float:
        return ops.convert_to_tensor(x)
    if dtype in ("int64", "uint32", "uint64") or (dtype == "int32" and length > 1):
        x = _check_inside_int32(x, name, length)
    return ops.cast(x, "int32")


def check_array(x, name, floats=True):
    """Returns NumPy's arrays, in a sequence too, as `check_positions` does."""
    if isinstance(x, (list, tuple)):
        if any(isinstance(entry, np.generic) for entry in x):
            return check_positions(x, name, floats)  # Keras mixes no kinds in a list
        return [check_array(entry, name, floats) for entry in x]
    if isinstance(x, (np.ndarray, np.generic)):
        return check_positions(x, name, floats)
    return x


def check_ids(x, name):
    """Returns integers or bools as a tensor of at least one axis."""
    if not keras.utils.is_keras_tensor(x) and not ops.is_tensor(x):
        x = _as_array(x, name, "integers or bools")
    dtype = _dtype_name(x)
    if not dtype.startswith(("int", "uint", "bool")):
        raise TypeError(
            f"`{name}` must be integers or bools. Received: {name} of dtype {dtype}"
        )
    if len(x.shape) == 0:
        raise ValueError(
            f"`{name}` must have at least one axis. Received: a scalar, {name}={x}"
        )
    return x if keras.utils.is_keras_tensor(x) else ops.convert_to_tensor(x)


def _as_array(x, name, allowed):
    """Returns what is not a tensor as an array, if it can be one."""
    try:
        return np.asarray(x)
    except (TypeError, ValueError):  # lists of several lengths
        raise TypeError(f"`{name}` must be {allowed}. Received: {name}={x!r}") from None


def visible(x):
    """Returns the values of `x` as an array, or `None` before a graph knows them."""
    try:
        return x if isinstance(x, np.ndarray) else ops.convert_to_numpy(x)
    except Exception:  # each backend has its own error
        return None


def _check_inside_int32(x, name, length):
    seen = visible(x)
    if seen is None:
        return x
    if seen.size and not INT32_MIN <= seen.min() <= seen.max() <= INT32_MAX:
        raise ValueError(
            f"`{name}` must be integers inside int32. Received: {name} from "
            f"{seen.min()} to {seen.max()}"
        )
    check_steps(int(seen.max(initial=0)), length)
    return seen.astype("int32")


def _dtype_name(x):
    return getattr(x.dtype, "name", str(x.dtype)).removeprefix("torch.")
