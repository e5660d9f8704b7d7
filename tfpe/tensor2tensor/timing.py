"""The functions that return or add a timing signal."""

from keras import ops

from tfpe.arguments import check_dtype, check_steps
from tfpe.settings import INT32_MAX, Settings, check_channels, check_integer
from tfpe.signal import recent_sinusoids, sum_of_blocks
from tfpe.tensor2tensor.checks import (
    check_features,
    check_positive,
    checked,
    int32,
    layer_number,
    positions_of,
)


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
    return x + made.at(positions_of(position, "position", x))


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
    if not isinstance(positions, (list, tuple)) or not positions:
        raise ValueError(
            "`positions` must be a list of tensors or None, at least one. Received: "
            f"positions={positions!r}"
        )
    named = [("positions", entry) for entry in positions]
    return _add_signals(x, named, min_timescale, max_timescale)


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
    check_features(features)
    if not isinstance(position_features, str):
        raise TypeError(
            "`position_features` must be a str, names with commas between them. "
            f"Received: position_features={position_features!r}"
        )
    named = [
        (f"features[{name!r}]", features.get(name))
        for name in position_features.split(",")
    ]
    return _add_signals(x, named, min_timescale, max_timescale)


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
    num_layers = check_positive(num_layers, "num_layers")
    layer = layer_number(layer, num_layers)
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
    channels = 2 * check_positive(num_timescales, "num_timescales", INT32_MAX // 2)
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


def _add_signals(x, named, min_timescale, max_timescale):
    """Adds the signals of positions, each after what an error calls them."""
    x, (_, length, channels) = checked(x, 3)
    made = _sinusoids(channels, len(named), min_timescale, max_timescale, x.dtype)
    return x + sum_of_blocks(
        made.consecutive(0, length, block)
        if entry is None
        else made.at(positions_of(entry, name, x), block)
        for block, (name, entry) in enumerate(named)
    )


def _sinusoids(channels, axes, min_timescale, max_timescale, dtype):
    settings = Settings(
        layout="concatenated", min_timescale=min_timescale, max_timescale=max_timescale
    )
    return recent_sinusoids(
        check_channels(channels), axes, settings, check_dtype(dtype)
    )


def _start_index(start_index, length):
    length = length if isinstance(length, int) else 1
    start_index = int32(start_index, "start_index", length=length)
    if isinstance(start_index, int):
        check_steps(start_index, length)
    return start_index
