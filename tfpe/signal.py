"""The signal itself, as a tensor of the backend."""

import functools
import operator
from typing import Any, Unpack

from keras import ops

from tfpe._arguments import as_channels, require_steps
from tfpe._settings import Settings, SettingsDict
from tfpe._sinusoids import recent_sinusoids
from tfpe._tensor_arguments import (
    as_dtype,
    as_length,
    as_plain_start_index,
    as_positions,
    is_symbolic,
)
from tfpe.embedding import SinusoidalEmbedding
from tfpe.layouts import number_of_pairs


def timing_signal(
    length: Any,
    channels: int,
    *,
    start_index: int = 0,
    dtype: str = "float32",
    **settings: Unpack[SettingsDict],
) -> Any:
    """Returns the signal of consecutive positions.

    It is what `SinusoidalPositionalEncoding(**settings)` adds to its inputs:
    `amplitude * sin(frequency * position + phase)` with a frequency and a
    phase for each channel. Too few channels for a pair on each axis give
    zeros.

    Args:
        length: int >= 0 or integer scalar tensor, the number of steps; or a
            tuple of them, one for each positional axis. XLA compiles only
            lengths that come from shapes.
        channels: int >= 1, the size of the last axis.
        start_index: int inside int64, the step of the first row, with one axis
            only. Defaults to 0.
        dtype: "float16", "bfloat16", "float32" or "float64". Defaults to
            "float32".
        **settings: as in `SinusoidalPositionalEncoding`, with its defaults.

    Returns:
        Tensor `(length, channels)`, or `(*lengths, channels)`.

    Raises:
        ValueError, TypeError: if an argument is not as described, or a step
            lies outside int64.

    Example:

    >>> import tfpe
    >>> print(tfpe.timing_signal(2, 4).numpy().round(3))
    [[0.    1.    0.    1.   ]
     [0.841 0.54  0.01  1.   ]]

    References:
        - [Attention is all you need](https://arxiv.org/abs/1706.03762), 3.5
        - `get_timing_signal_1d` in tensor2tensor 1.15.7
    """
    lengths = length if isinstance(length, (tuple, list)) else (length,)
    if not lengths:
        raise ValueError(f"`length` must not be empty. Received: length={length!r}")
    lengths = tuple(as_length(n) for n in lengths)
    start_index = as_plain_start_index(start_index)
    if start_index and len(lengths) > 1:
        raise ValueError(
            "`start_index` is for one axis only. Received: "
            f"start_index={start_index}, length={length}"
        )
    require_steps(start_index, max(n if isinstance(n, int) else 1 for n in lengths))
    made = recent_sinusoids(
        as_channels(channels), len(lengths), Settings.of(settings), as_dtype(dtype)
    )
    return made.consecutive(start_index, lengths)


def timing_signal_at(
    positions: Any,
    channels: int,
    *,
    dtype: str = "float32",
    **settings: Unpack[SettingsDict],
) -> Any:
    """Returns the signal at given positions.

    Args:
        positions: tensor of integers or floats, of any shape; or a tuple of
            tensors whose shapes broadcast, one for each positional axis.
            Any integer dtype is right over all its range. Negative and
            fractional positions are allowed. NaN, and a float outside int64,
            gives a row of NaN. The signal is differentiable with respect to
            float positions.
        channels: int >= 1, the size of the last axis.
        dtype: "float16", "bfloat16", "float32" or "float64". Defaults to
            "float32".
        **settings: as in `SinusoidalPositionalEncoding`, with its defaults.

    Returns:
        Tensor of shape `positions.shape + (channels,)`.

    Raises:
        ValueError, TypeError: if an argument is not as described.

    Example:

    >>> import tfpe
    >>> print(tfpe.timing_signal_at([-3, 0.5], 4).numpy().round(3))
    [[-0.141 -0.99  -0.03   1.   ]
     [ 0.479  0.878  0.005  1.   ]]
    """
    entries = positions if isinstance(positions, tuple) else (positions,)
    if not entries:
        raise ValueError("`positions` must not be empty. Received: positions=()")
    entries = tuple(as_positions(entry) for entry in entries)
    if any(map(is_symbolic, entries)):
        return _layer_of(entries, as_channels(channels), as_dtype(dtype), settings)
    made = recent_sinusoids(
        as_channels(channels), len(entries), Settings.of(settings), as_dtype(dtype)
    )
    return made.at(entries)


def _layer_of(positions, channels, dtype, settings):
    """Returns a symbolic signal, that of one layer with a config."""
    settings = Settings.of(settings)
    if not number_of_pairs(channels, len(positions), settings.odd_channel):
        shape = functools.reduce(operator.add, [ops.zeros_like(p) for p in positions])
        return ops.repeat(ops.cast(shape, dtype)[..., None], channels, axis=-1)
    layer = SinusoidalEmbedding(channels, **vars(settings), dtype=dtype)
    return layer(positions)
