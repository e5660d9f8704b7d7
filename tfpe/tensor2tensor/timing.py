"""The functions that return or add a timing signal.

On tensors they compute, on a `KerasTensor` they are one layer of the functional model
that is being built, whose length may be unknown.
"""

from typing import Any

from keras import ops

from tfpe._arguments import INT32_MAX, as_channels, as_integer
from tfpe._settings import Settings
from tfpe._sinusoids import recent_sinusoids
from tfpe._tensor_arguments import as_dtype, as_length, is_symbolic
from tfpe.layer import SinusoidalPositionalEncoding
from tfpe.layouts import number_of_pairs
from tfpe.signal import timing_signal_at
from tfpe.tensor2tensor._arguments import (
    as_float_tensor,
    as_layer_number,
    as_positions_of,
    as_positive,
    as_start,
    require_features,
)


def get_timing_signal_1d(
    length: Any,
    channels: int,
    min_timescale: float = 1.0,
    max_timescale: float = 1.0e4,
    start_index: Any = 0,
) -> Any:
    """Returns the signal of consecutive positions, `(1, length, channels)`.

    Example:

    >>> from tfpe import tensor2tensor as common_attention
    >>> print(common_attention.get_timing_signal_1d(2, 4).numpy().round(3))
    [[[0.    0.    1.    1.   ]
      [0.841 0.    0.54  1.   ]]]
    """
    length = as_length(length, allowed="an integer >= 0")
    start_index = as_start(start_index, length)
    settings = _settings(min_timescale, max_timescale)
    if is_symbolic(start_index):
        steps = start_index + ops.arange(length, dtype="int32")
        return timing_signal_at(steps, channels, **vars(settings))[None]
    made = recent_sinusoids(as_channels(channels), 1, settings, "float32")
    return made.consecutive(start_index, (length,))[None]


def add_timing_signal_1d(
    x: Any,
    min_timescale: float = 1.0,
    max_timescale: float = 1.0e4,
    start_index: Any = 0,
) -> Any:
    """Returns `x` plus the signal of consecutive positions."""
    x = as_float_tensor(x, "x", 3)
    start_index = as_start(start_index, x.shape[1])
    settings = _settings(min_timescale, max_timescale)
    if is_symbolic(x) or is_symbolic(start_index):
        return _layer(x, settings, start_index=start_index)
    return x + _made(x, 1, settings).consecutive(start_index, ops.shape(x)[1:2])


def add_timing_signal_1d_given_position(
    x: Any, position: Any, min_timescale: float = 1.0, max_timescale: float = 1.0e4
) -> Any:
    """Returns `x` plus the signal at positions, numbers `(batch, length)`.

    Right also with 2 and 3 channels, where tensor2tensor gives NaN.
    """
    x = as_float_tensor(x, "x", 3)
    return _add_at(x, [("position", position)], min_timescale, max_timescale)


def add_timing_signals_given_positions(
    x: Any, positions: Any, min_timescale: float = 1.0, max_timescale: float = 1.0e4
) -> Any:
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
    x = as_float_tensor(x, "x", 3)
    return _add_at(x, named, min_timescale, max_timescale)


def add_timing_signals_from_features(
    x: Any,
    features: Any,
    position_features: str,
    min_timescale: float = 1.0,
    max_timescale: float = 1.0e4,
) -> Any:
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
    require_features(features)
    if not isinstance(position_features, str):
        raise TypeError(
            "`position_features` must be a str, names with commas between them. "
            f"Received: position_features={position_features!r}"
        )
    named = [
        (f"features[{name!r}]", features.get(name))
        for name in position_features.split(",")
    ]
    x = as_float_tensor(x, "x", 3)
    return _add_at(x, named, min_timescale, max_timescale)


def add_timing_signal_nd(
    x: Any, min_timescale: float = 1.0, max_timescale: float = 1.0e4
) -> Any:
    """Returns `x`, `(batch, d1, ..., dn, channels)`, plus a signal for each axis.

    Each axis has `2 * (channels // (2 * n))` channels of its own. Right also with
    one timescale for each, where tensor2tensor gives NaN. Float32 only.
    """
    x = as_float_tensor(x)
    settings = _settings(min_timescale, max_timescale)
    axes = tuple(range(1, len(x.shape) - 1))
    if is_symbolic(x):
        return _layer(x, settings, axis=axes)
    lengths = ops.shape(x)[1:-1]
    return x + _made(x, len(axes), settings).consecutive(0, lengths)


def get_layer_timing_signal_sinusoid_1d(
    channels: int, layer: Any, num_layers: int
) -> Any:
    """Returns the signal of a layer's number, float32 `(1, 1, channels)`."""
    layer = as_layer_number(layer, as_positive(num_layers, "num_layers"))
    if isinstance(layer, int):
        layer = layer % num_layers  # counted from the end if negative
    else:
        layer = ops.where(layer < 0, layer + num_layers, layer)
    signal = timing_signal_at(layer, channels, layout="concatenated")
    return ops.reshape(signal, (1, 1, channels))


def add_layer_timing_signal_sinusoid_1d(x: Any, layer: Any, num_layers: int) -> Any:
    """Returns `x` plus the signal of a layer's number. Float32 only."""
    x = as_float_tensor(x, "x", 3)
    signal = get_layer_timing_signal_sinusoid_1d(int(x.shape[-1]), layer, num_layers)
    return x + ops.cast(signal, x.dtype)


def get_timing_signal(
    length: Any,
    min_timescale: float = 1,
    max_timescale: float = 1e4,
    num_timescales: int = 16,
) -> Any:
    """Returns the signal of consecutive positions, `(length, 2 * num_timescales)`.

    Right also with one timescale, where tensor2tensor's `common_layers` fails.
    """
    channels = 2 * as_positive(num_timescales, "num_timescales", INT32_MAX // 2)
    return get_timing_signal_1d(length, channels, min_timescale, max_timescale)[0]


def add_timing_signal(
    x: Any,
    min_timescale: float = 1,
    max_timescale: float = 1e4,
    num_timescales: int = 16,
) -> Any:
    """Returns `x`, `(batch, length, width, depth)`, plus the signal of the length.

    It is added to the first `2 * num_timescales` channels. Right also with one
    timescale, where tensor2tensor's `common_layers` fails. Float32 only.
    """
    x = as_float_tensor(x, "x", 4)
    depth = int(x.shape[-1])
    allowed = f"an integer from 1 to {depth // 2}, half the depth of `x`"
    num_timescales = as_integer(
        num_timescales, "num_timescales", 1, depth // 2, allowed
    )
    settings = _settings(min_timescale, max_timescale)
    channels = 2 * num_timescales
    if is_symbolic(x):
        first = _layer(x[..., :channels], settings, axis=1)
        if channels == depth:
            return first
        return ops.concatenate([first, x[..., channels:]], axis=-1)
    made = recent_sinusoids(channels, 1, settings, as_dtype(x.dtype))
    padding = [(0, 0), (0, depth - channels)]
    signal = ops.pad(made.consecutive(0, ops.shape(x)[1:2]), padding)
    return x + signal[:, None]


def steps_of(x: Any) -> Any:
    """Returns 0, 1, 2, ... along axis 1 of `x`, int32 `(batch, length)`.

    Made of `x`, so that it has the length of each call in a functional model, too.
    """
    return ops.cumsum(ops.ones_like(x[:, :, 0], dtype="int32"), axis=1) - 1


def _add_at(x, named, min_timescale, max_timescale):
    """Adds the signals of positions, each after what an error calls it.

    `None` stands for 0, 1, 2, ...
    """
    settings = _settings(min_timescale, max_timescale)
    positions = tuple(
        None if entry is None else as_positions_of(entry, name, x)
        for name, entry in named
    )
    if is_symbolic(x) or any(map(is_symbolic, positions)):
        # The layer wants a row for each of the batch, or one for all.
        positions = tuple(
            steps_of(x) if p is None else (p[0] if p.shape[0] == 1 else p)
            for p in positions
        )
        axis = tuple(range(1, len(positions) + 1)) if len(positions) > 1 else 1
        positions = positions if len(positions) > 1 else positions[0]
        return _layer(x, settings, axis=axis, positions=positions)
    steps = ops.arange(ops.shape(x)[1], dtype="int32")
    positions = tuple(steps if p is None else p for p in positions)
    return x + _made(x, len(positions), settings).at(positions)


def _layer(x, settings, axis=1, **steps):
    """Adds to a `KerasTensor`, by a layer with a config."""
    axes = 1 if isinstance(axis, int) else len(axis)
    if not number_of_pairs(x.shape[-1], axes, settings.odd_channel):
        return x  # too few channels for a signal
    dtype = as_dtype(x.dtype)
    layer = SinusoidalPositionalEncoding(**vars(settings), axis=axis, dtype=dtype)
    return layer(x, **steps)


def _made(x, axes, settings):
    return recent_sinusoids(int(x.shape[-1]), axes, settings, as_dtype(x.dtype))


def _settings(min_timescale, max_timescale):
    return Settings(
        layout="concatenated", min_timescale=min_timescale, max_timescale=max_timescale
    )
