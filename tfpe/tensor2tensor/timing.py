"""The functions that return or add a timing signal."""

import keras
from keras import ops

from tfpe.arguments import check_dtype, check_positions, check_steps
from tfpe.settings import (
    INT32_MAX,
    INT32_MIN,
    Settings,
    check_channels,
    check_integer,
)
from tfpe.signal import recent_sinusoids, sum_of_blocks


def get_timing_signal_1d(
    length, channels, min_timescale=1.0, max_timescale=1.0e4, start_index=0
):
    """Returns the signal of consecutive positions, `(1, length, channels)`.

    Example:

    >>> from tfpe import tensor2tensor as common_attention
    >>> print(common_attention.get_timing_signal_1d(2, 4).numpy().round(3))
    [[[0.    0.    1.    1.   ]
      [0.841 0.    0.54  1.   ]]]
    """
    made = _sinusoids(channels, 1, min_timescale, max_timescale, "float32")
    length = int32(length, "length", low=0)
    return made.consecutive(_start_index(start_index, length), length)[None]


def add_timing_signal_1d(x, min_timescale=1.0, max_timescale=1.0e4, start_index=0):
    """Returns `x` plus the signal of consecutive positions."""
    x, (_, length, channels) = checked(x, 3)
    made = _sinusoids(channels, 1, min_timescale, max_timescale, x.dtype)
    return x + made.consecutive(_start_index(start_index, length), length)


def add_timing_signal_1d_given_position(
    x, position, min_timescale=1.0, max_timescale=1.0e4
):
    """Returns `x` plus the signal at positions, numbers `(batch, length)`.

    Right also with 2 and 3 channels, where tensor2tensor gives NaN.
    """
    x, (*_, channels) = checked(x, 3)
    made = _sinusoids(channels, 1, min_timescale, max_timescale, x.dtype)
    return x + made.at(_positions(position, "position", x))


def add_timing_signals_given_positions(
    x, positions, min_timescale=1.0, max_timescale=1.0e4
):
    """Returns `x` plus the signals of several positions, side by side.

    Right also with one timescale for each, where tensor2tensor gives NaN.

    Args:
        x: float tensor `(batch, length, channels)`.
        positions: list of numbers `(batch, length)`, each with
            `2 * (channels // (2 * len(positions)))` channels of its own; `None`
            stands for 0, 1, 2, ...
        min_timescale: see above.
        max_timescale: see above.
    """
    x, (_, length, channels) = checked(x, 3)
    if not isinstance(positions, (list, tuple)) or not positions:
        raise ValueError(
            "`positions` must be a list of tensors or None, at least one. Received: "
            f"positions={positions!r}"
        )
    made = _sinusoids(channels, len(positions), min_timescale, max_timescale, x.dtype)
    return x + sum_of_blocks(
        made.consecutive(0, length, block)
        if entry is None
        else made.at(_positions(entry, "positions", x), block)
        for block, entry in enumerate(positions)
    )


def add_timing_signals_from_features(
    x, features, position_features, min_timescale=1.0, max_timescale=1.0e4
):
    """Returns `x` plus the signals of positions found among features.

    Right also with one timescale for each, where tensor2tensor gives NaN.

    Args:
        x: float tensor `(batch, length, channels)`.
        features: dict of tensors.
        position_features: str, names with commas between them. An empty name, or
            one that is not among the features, stands for 0, 1, 2, ...
        min_timescale: see above.
        max_timescale: see above.
    """
    positions = [features.get(name) for name in position_features.split(",")]
    return add_timing_signals_given_positions(
        x, positions, min_timescale, max_timescale
    )


def add_timing_signal_nd(x, min_timescale=1.0, max_timescale=1.0e4):
    """Returns `x`, `(batch, d1, ..., dn, channels)`, plus a signal for each axis.

    Each axis has `2 * (channels // (2 * n))` channels of its own. Right also with
    one timescale for each, where tensor2tensor gives NaN. Float32 only.
    """
    x, (_, *lengths, channels) = checked(x)
    made = _sinusoids(channels, len(lengths), min_timescale, max_timescale, x.dtype)
    return x + sum_of_blocks(
        ops.reshape(
            made.consecutive(0, length, axis),
            (length, *[1] * (len(lengths) - 1 - axis), channels),
        )
        for axis, length in enumerate(lengths)
    )


def get_layer_timing_signal_sinusoid_1d(channels, layer, num_layers):
    """Returns the signal of a layer's number, float32 `(1, 1, channels)`."""
    num_layers = check_integer(
        num_layers, "num_layers", 1, INT32_MAX, "a positive integer"
    )
    if not ops.is_tensor(layer):
        allowed = f"an integer from {-num_layers} to {num_layers - 1}"
        layer = check_integer(layer, "layer", -num_layers, num_layers - 1, allowed)
    return get_timing_signal_1d(num_layers, channels)[:, layer][:, None]


def add_layer_timing_signal_sinusoid_1d(x, layer, num_layers):
    """Returns `x` plus the signal of a layer's number. Float32 only."""
    x, (*_, channels) = checked(x, 3)
    signal = get_layer_timing_signal_sinusoid_1d(channels, layer, num_layers)
    return x + ops.cast(signal, x.dtype)


def get_timing_signal(length, min_timescale=1, max_timescale=1e4, num_timescales=16):
    """Returns the signal of consecutive positions, `(length, 2 * num_timescales)`.

    Right also with one timescale, where tensor2tensor's `common_layers` fails.
    """
    channels = 2 * num_timescales
    return get_timing_signal_1d(length, channels, min_timescale, max_timescale)[0]


def add_timing_signal(x, min_timescale=1, max_timescale=1e4, num_timescales=16):
    """Returns `x`, `(batch, length, width, depth)`, plus the signal of the length.

    It is added to the first `2 * num_timescales` channels. Right also with one
    timescale, where tensor2tensor's `common_layers` fails. Float32 only.
    """
    x, (_, length, _, depth) = checked(x, 4)
    allowed = f"an integer from 1 to {depth // 2}, half the depth of `x`"
    num_timescales = check_integer(
        num_timescales, "num_timescales", 1, depth // 2, allowed
    )
    channels = 2 * num_timescales
    made = _sinusoids(channels, 1, min_timescale, max_timescale, x.dtype)
    padding = [(0, 0), (0, depth - channels)]
    return x + ops.pad(made.consecutive(0, length), padding)[:, None]


def _sinusoids(channels, axes, min_timescale, max_timescale, dtype):
    settings = Settings(
        layout="concatenated", min_timescale=min_timescale, max_timescale=max_timescale
    )
    return recent_sinusoids(
        check_channels(channels), axes, settings, check_dtype(dtype)
    )


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
    return ops.maximum(value, 0) if low == 0 else value


def _start_index(start_index, length):
    length = length if isinstance(length, int) else 1
    start_index = int32(start_index, "start_index", length=length)
    if isinstance(start_index, int):
        check_steps(start_index, length)
    return start_index


def _positions(entry, name, x):
    """Returns positions `(batch, length)`, or `(1, length)`, as `x` has them."""
    entry = check_positions(entry, name)
    wanted = tuple(x.shape[:2])
    if (
        len(entry.shape) != 2
        or (entry.shape[0] not in (1, None, wanted[0]) and wanted[0] is not None)
        or (None not in (entry.shape[1], wanted[1]) and entry.shape[1] != wanted[1])
    ):
        raise ValueError(
            f"`{name}` must have the shape (batch, length) of `x`, {wanted}. Received: "
            f"{name}.shape={tuple(entry.shape)}"
        )
    return entry


def checked(x, rank=None):
    """Returns `x` as a tensor, and its shape."""
    x = x if keras.utils.is_keras_tensor(x) else ops.convert_to_tensor(x)
    check_dtype(x.dtype, "x.dtype")
    if len(x.shape) != (rank or max(len(x.shape), 3)):
        raise ValueError(
            f"`x` must have a rank of {rank or '3 or more'}. Received: "
            f"x.shape={tuple(x.shape)}"
        )
    shape = ops.shape(x)
    if None in shape[1:]:
        raise ValueError(
            "`x` must have known sizes in a functional model, but for the batch; where "
            "the length is unknown, take `tfpe.SinusoidalPositionalEncoding(layout="
            f"'concatenated')`. Received: x.shape={tuple(x.shape)}"
        )
    return x, shape
