"""Arguments that are tensors: `as_...` converts and returns, `require_...` refuses."""

import sys
import warnings

import keras
import numpy as np
from keras import ops

from tfpe._arguments import INT32_MAX, INT32_MIN, as_integer
from tfpe._backends import has_64_bits, tensor_of_integers, visible

FLOATS = ("float16", "bfloat16", "float32", "float64")
HALF_TYPES = ("float16", "bfloat16")


def as_dtype(dtype, name="dtype"):
    """Returns a floating dtype by name, if the backend has it."""
    try:
        standard = keras.backend.standardize_dtype(dtype)
    except Exception:  # Keras' own, or that of whatever it asks for a name
        standard = None
    if dtype is None or standard not in FLOATS:
        raise ValueError(
            f"`{name}` must be one of {FLOATS}. Received: {name}={standard or dtype}"
        )
    if standard == "float64" and not has_64_bits():
        raise ValueError(
            f"`{name}` can be 'float64' on JAX only with `jax_enable_x64`; "
            f"without it JAX would compute in float32. Received: {name}={dtype}"
        )
    return standard


def is_symbolic(x):
    return keras.utils.is_keras_tensor(x)


def is_symbolic_size(n):
    """Whether a size is known neither now nor in a graph, but to an exporter."""
    return not isinstance(n, (int, np.integer)) and not ops.is_tensor(n)


def rank(x):
    """Returns the rank of a tensor, 0 for an int."""
    return len(getattr(x, "shape", ()))


def require_keras_3(x, name):
    """Refuses the symbolic tensors of Keras 2, on which operations of Keras 3 fail."""
    if type(x).__module__.startswith(("tf_keras", "keras.src.engine")):
        raise TypeError(
            f"`{name}` must be a tensor of Keras 3. Build the model with `import "
            "keras`, version 3, or wrap the call: `tf_keras.layers.Lambda(layer)`. "
            f"Received: {name}={x}, of tf_keras or Keras 2"
        )


def require_dense(x, name):
    """Refuses ragged and sparse tensors and those of an unknown rank."""
    if hasattr(x, "row_lengths"):
        raise TypeError(
            f"`{name}` must be dense. Pad a ragged tensor with `.to_tensor()` and tell "
            "the padding with `mask=tf.sequence_mask(x.row_lengths())`. Received: a "
            f"{type(x).__name__}"
        )
    if hasattr(x, "dense_shape"):
        raise TypeError(
            f"`{name}` must be dense, `tf.sparse.to_dense` makes it so. Received: a "
            f"{type(x).__name__}"
        )
    if getattr(x.shape, "rank", 0) is None:
        raise ValueError(
            f"`{name}` must have a known rank: set it with `x.set_shape(...)` or "
            f"`tf.ensure_shape`. Received: {name}={x}"
        )


def as_positions(x, name="positions", floats=True):
    """Returns positions as a tensor, or as they are if they are symbolic.

    Args:
        x: a tensor, an array, a number or nested lists of them.
        name: what an error calls it.
        floats: whether floats are allowed besides integers.

    Returns:
        A tensor of integers or floats.

    Raises:
        TypeError: if `x` is of another type.
        ValueError: if the backend has no integers as large as one that can be seen.
    """
    allowed = "integers or floats" if floats else "integers"
    require_keras_3(x, name)
    received, array = x, not is_symbolic(x) and not ops.is_tensor(x)
    if array:
        x = _as_array(x, name, allowed)
    dtype = dtype_name(x)
    is_float = dtype.startswith(("float", "bfloat"))
    if not (is_float and floats) and not dtype.startswith(("int", "uint")):
        if dtype.startswith("datetime"):
            allowed += ": `x.astype('datetime64[ms]').astype('int64')` are milliseconds"
        raise TypeError(f"`{name}` must be {allowed}. Received: {name}={received!r}")
    require_dense(x, name)
    if dtype in HALF_TYPES:
        _warn_of_half(name, dtype)
    if array:
        x = ops.convert_to_tensor(x) if is_float else _integers(x, name)
    return x


def received_positions(x):
    """Returns what a message says of positions for another number of axes."""
    if not hasattr(x, "shape"):
        return f"positions={x!r}"
    return f"positions.shape={tuple(x.shape)}; split a stacked array with `tuple(x)`"


def as_start_index(x):
    """Returns an int, or integers as a tensor of rank 0 or 1 (or symbolic)."""
    if isinstance(x, np.ndarray) and x.ndim == 0:
        x = x[()]
    if isinstance(x, (int, np.integer, np.bool_)):
        return as_plain_start_index(x)
    return as_positions(x, "start_index", floats=False)


def as_plain_start_index(x):
    """Returns an int that the backend has a type for."""
    bits = 64 if has_64_bits() else 32
    allowed = f"an integer inside int{bits}, a scalar or one for each batch row"
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return as_integer(x, "start_index", low, high, allowed)


def as_tensor(x):
    """Returns an int as a tensor wide enough for it, and tensors as they are."""
    if not isinstance(x, int):
        return x
    inside = INT32_MIN <= x <= INT32_MAX
    return ops.convert_to_tensor(x, "int32" if inside else "int64")


def require_inputs(inputs, name="inputs"):
    """Refuses anything but a dense tensor of floats."""
    require_keras_3(inputs, name)
    if not hasattr(inputs, "shape") or not hasattr(inputs, "dtype"):
        raise TypeError(
            f"`{name}` must be a tensor of floats, (batch, ..., channels). Make an "
            "array of nested lists, `np.array(x, 'float32')`, and call the layer once "
            f"for each of several tensors. Received: {name}={inputs!r}"
        )
    require_dense(inputs, name)
    dtype = dtype_name(inputs)
    if dtype not in FLOATS:
        raise TypeError(
            f"`{name}` must be of a floating dtype, one of {FLOATS}: token ids after "
            "`keras.layers.Embedding`. The signal at integers is that of "
            f"`tfpe.SinusoidalEmbedding`. Received: {name}.dtype={dtype}"
        )


def as_ids(x, name):
    """Returns integers or bools as a tensor of at least one axis."""
    if not is_symbolic(x) and not ops.is_tensor(x):
        x = _as_array(x, name, "integers or bools")
    dtype = dtype_name(x)
    if not dtype.startswith(("int", "uint", "bool")):
        raise TypeError(
            f"`{name}` must be integers or bools. Received: {name} of dtype {dtype}"
        )
    require_dense(x, name)
    if len(x.shape) == 0:
        raise ValueError(
            f"`{name}` must have at least one axis. Received: a scalar, {name}={x}"
        )
    return x if is_symbolic(x) else ops.convert_to_tensor(x)


def as_length(x, name="length", allowed="an integer >= 0, or a tuple of them"):
    """Returns a length as an int, or an integer scalar tensor as int32 >= 0."""
    if is_symbolic(x):
        raise TypeError(
            f"`{name}` must be {allowed}: a KerasTensor has no value yet. In a "
            "functional model take `tfpe.SinusoidalPositionalEncoding`, whose length "
            f"is that of its inputs. Received: {name}={x}"
        )
    if x is None:
        raise TypeError(
            f"`{name}` must be {allowed}. For a length that only a call knows take "
            f"`ops.shape(x)[1]`, or a layer. Received: {name}=None"
        )
    if not ops.is_tensor(x):
        return as_integer(x, name, 0, INT32_MAX, allowed)
    if not dtype_name(x).startswith(("int", "uint")) or rank(x):
        raise TypeError(
            f"`{name}` must be {allowed}, of tensors an integer scalar. Received: "
            f"{name}={x}"
        )
    value = visible(x)
    if value is not None:
        return as_integer(value, name, 0, INT32_MAX, allowed)
    return ops.maximum(ops.cast(x, "int32"), 0)


def require_sizes(x, name, wanted, received, hint=""):
    """Refuses a tensor whose sizes are not those wanted, as far as both are known."""
    if any(
        isinstance(got, int) and isinstance(want, int) and got != want
        for got, want in zip(x.shape, wanted, strict=True)
    ):
        raise ValueError(
            f"`{name}` must have the shape {shown(wanted)}, as the inputs have it."
            f"{hint} Received: {name}.shape={tuple(x.shape)}, {received}"
        )


def shown(sizes):
    """Returns sizes as a message shows them, `None` for those not known yet."""
    return tuple(n if isinstance(n, int) else None for n in sizes)


def _as_array(x, name, allowed):
    """Returns what is not a tensor as an array, if it can be one."""
    if hasattr(x, "row_lengths") or hasattr(x, "dense_shape"):
        require_dense(x, name)
    try:
        array = np.asarray(x)
    except (TypeError, ValueError):  # lists of several lengths
        raise TypeError(
            f"`{name}` must be {allowed}, nested lists padded to one length. Received: "
            f"{name}={x!r}"
        ) from None
    if array.dtype == "float64" and array.size and isinstance(x, (list, tuple)):
        # NumPy makes floats of integers on both sides of 2**63.
        values = np.array(x, dtype=object)
        if all(isinstance(value, (int, np.integer)) for value in values.flat):
            if values.min() < 0:
                raise TypeError(
                    f"`{name}` must fit int64 or uint64. Received: {name}={x!r}"
                )
            return values.astype("uint64")
    return array


def _integers(x, name):
    """Returns an array of integers as a tensor, int32 where it fits: the quickest."""
    low, high = (int(x.min()), int(x.max())) if x.size else (0, 0)
    if low >= INT32_MIN and high <= INT32_MAX:
        return ops.convert_to_tensor(x.astype("int32"))
    if has_64_bits():
        wide = "int64" if high < 2**63 else "uint64"
        return tensor_of_integers(x.astype(wide))
    if low >= 0 and high < 2**32:
        return ops.convert_to_tensor(x.astype("uint32"))
    raise ValueError(
        f"`{name}` must be integers inside int32 or uint32 on JAX without "
        "`jax_enable_x64`: set it, or take an origin away. "
        f"Received: {name} from {low} to {high}"
    )


def _warn_of_half(name, dtype):
    warnings.warn(
        f"`{name}` arrived in {dtype}, which cannot hold most positions: they were "
        "rounded before. If you did not make them so, Keras did, which casts the float "
        "inputs of an outer layer or model under a mixed policy (`autocast`). Give "
        "integers or float32, or build the outer layer with `autocast=False` or "
        "`dtype='float32'`.",
        stacklevel=_level_of_caller(),
    )


def _level_of_caller():
    """Returns the `stacklevel` of the user's code, for `_warn_of_half`."""
    level, frame = 1, sys._getframe(1)
    libraries = ("tfpe", "keras", "tensorflow", "jax", "torch")
    while frame.f_back and frame.f_globals["__name__"].split(".")[0] in libraries:
        level, frame = level + 1, frame.f_back
    return level


def dtype_name(x):
    """Returns the name of a tensor's dtype, or an array's, in any backend."""
    return getattr(x.dtype, "name", str(x.dtype)).removeprefix("torch.")
