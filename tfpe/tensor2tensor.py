"""The position functions of tensor2tensor, under its own names.

Names, arguments, their order and defaults are those of tensor2tensor 1.15.7
(`common_attention`, `common_layers` and `transformer`), so that

    from tfpe import tensor2tensor as common_attention

is a migration. The numbers are those of the layout "concatenated" with its own
spectrum: tensor2tensor's, without its rounding errors. Its learned variables, which
TensorFlow 1 kept in a scope, are Keras layers here. What "float32 only" says of a
function is true there, where it forgot a cast; here each keeps the dtype of `x`.

Shared arguments:
    x: float tensor `(batch, length, channels)` if nothing else is said. Its length
        may be unknown while a graph is traced; in a functional model with an unknown
        length take `tfpe.SinusoidalPositionalEncoding(layout="concatenated")`.
    length: int >= 0 or integer scalar tensor, the number of steps.
    channels: int >= 1. With an odd number the last channel is 0.
    min_timescale: float > 0, which multiplies the frequencies, as there: the
        timescales run from `1 / min_timescale` to `max_timescale / min_timescale**2`.
    max_timescale: float > 0.
    start_index: int or integer scalar tensor, the first position.
    layer: int or integer scalar tensor, the number of a layer, from 0.
    num_layers: int >= 1, the number of layers.

References:
    - [tensor2tensor](https://github.com/tensorflow/tensor2tensor) 1.15.7:
      `layers/common_attention.py`, `layers/common_layers.py`,
      `layers/transformer_layers.py` and `models/transformer.py`
"""

import keras
from keras import ops

from tfpe.arguments import check_dtype, check_positions, check_steps
from tfpe.learned import (
    AddLayerTimingSignalLearned1d,
    AddPositionalEmbedding,
    AddPositionalEmbeddingNd,
)
from tfpe.settings import (
    INT32_MAX,
    INT32_MIN,
    Settings,
    check_channels,
    check_integer,
)
from tfpe.signal import recent_sinusoids, sum_of_blocks

__all__ = [
    "AddLayerTimingSignalLearned1d",
    "AddPositionalEmbedding",
    "AddPositionalEmbeddingNd",
    "add_layer_timing_signal_sinusoid_1d",
    "add_timing_signal",
    "add_timing_signal_1d",
    "add_timing_signal_1d_given_position",
    "add_timing_signal_nd",
    "add_timing_signals_from_features",
    "add_timing_signals_given_positions",
    "attention_bias_ignore_padding",
    "attention_bias_lower_triangle",
    "attention_bias_same_segment",
    "embedding_to_padding",
    "get_layer_timing_signal_sinusoid_1d",
    "get_timing_signal",
    "get_timing_signal_1d",
    "shift_left_3d",
    "shift_right_3d",
    "transformer_prepare_decoder",
    "transformer_prepare_encoder",
]


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
    length = _int32(length, "length", low=0)
    return made.consecutive(_start_index(start_index, length), length)[None]


def add_timing_signal_1d(x, min_timescale=1.0, max_timescale=1.0e4, start_index=0):
    """Returns `x` plus the signal of consecutive positions."""
    x, (_, length, channels) = _checked(x, 3)
    made = _sinusoids(channels, 1, min_timescale, max_timescale, x.dtype)
    return x + made.consecutive(_start_index(start_index, length), length)


def add_timing_signal_1d_given_position(
    x, position, min_timescale=1.0, max_timescale=1.0e4
):
    """Returns `x` plus the signal at positions, numbers `(batch, length)`.

    Right also with 2 and 3 channels, where tensor2tensor gives NaN.
    """
    x, (*_, channels) = _checked(x, 3)
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
    x, (_, length, channels) = _checked(x, 3)
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
    x, (_, *lengths, channels) = _checked(x)
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
    x, (*_, channels) = _checked(x, 3)
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
    x, (_, length, _, depth) = _checked(x, 4)
    allowed = f"an integer from 1 to {depth // 2}, half the depth of `x`"
    num_timescales = check_integer(
        num_timescales, "num_timescales", 1, depth // 2, allowed
    )
    channels = 2 * num_timescales
    made = _sinusoids(channels, 1, min_timescale, max_timescale, x.dtype)
    padding = [(0, 0), (0, depth - channels)]
    return x + ops.pad(made.consecutive(0, length), padding)[:, None]


def shift_right_3d(x, pad_value=None):
    """Returns `x` one step later, after zeros or `pad_value`, `(batch, 1, depth)`."""
    if pad_value is None:
        return ops.pad(x, [(0, 0), (1, 0), (0, 0)])[:, :-1]
    return ops.concatenate([pad_value, x], axis=1)[:, :-1]


# The name of 2017, which lied: it shifted to the right.
shift_left_3d = shift_right_3d


def embedding_to_padding(emb):
    """Returns float32 `(...)`, 1 where a vector `(..., depth)` is 0, else 0."""
    return ops.cast(ops.all(ops.equal(emb, 0), axis=-1), "float32")


def attention_bias_ignore_padding(memory_padding):
    """Returns the bias that hides padding, `(batch, 1, 1, length)`.

    Args:
        memory_padding: float tensor `(batch, length)`, 1 for padding, else 0.
    """
    padding = ops.convert_to_tensor(memory_padding)
    return (padding * _large_negative(padding.dtype))[:, None, None]


def attention_bias_lower_triangle(length):
    """Returns the bias that hides later steps, float32 `(1, 1, length, length)`."""
    steps = ops.arange(_int32(length, "length", low=0), dtype="int32")
    return _large_negative() * ops.cast(steps[:, None] < steps, "float32")[None, None]


def attention_bias_same_segment(query_segment_id, memory_segment_id):
    """Returns the bias that hides other segments, float32 `(batch, 1, q, m)`.

    Args:
        query_segment_id: numbers `(batch, q)`.
        memory_segment_id: numbers `(batch, m)`.
    """
    query, memory = map(ops.convert_to_tensor, (query_segment_id, memory_segment_id))
    differs = ops.cast(query[:, None, :, None] != memory[:, None, None], "float32")
    return differs * _large_negative(memory.dtype)


def transformer_prepare_encoder(
    inputs,
    target_space,
    hparams,
    features=None,
    *,
    positional_embedding=None,
    target_space_embedding=None,
):
    """Returns the encoder's input and the biases of attention to it.

    The first bias is for the encoder, the second for the decoder. On float16 they
    are finite, where tensor2tensor's are not.

    Args:
        inputs: float tensor `(batch, length, channels)`, embedded, 0 at padding.
        target_space: integer, the target space's number, or `None`.
        hparams: an object with the attribute `pos`, which is "timing",
            "timing_from_features", "emb" or "none". Used too if there:
            `position_features`, `unidirectional_encoder`,
            `use_target_space_embedding`.
        features: dict. If it has `inputs_segmentation`, examples are packed, and
            `inputs_position` and `targets_segmentation` are used.
        positional_embedding: an `AddPositionalEmbedding`, for "emb".
        target_space_embedding: a `keras.layers.Embedding`, for `target_space`.

    Raises:
        ValueError: if a layer is missing or `hparams` ask for something else.
    """
    inputs, (_, length, _) = _checked(inputs, 3)
    features = features or {}
    if "inputs_segmentation" in features:
        own, positions = features["inputs_segmentation"], features["inputs_position"]
        bias = attention_bias_same_segment(own, own)
        cross_bias = attention_bias_same_segment(features["targets_segmentation"], own)
    else:
        positions = None
        bias = attention_bias_ignore_padding(embedding_to_padding(inputs))
        cross_bias = bias
    if getattr(hparams, "unidirectional_encoder", False):
        bias = attention_bias_lower_triangle(length)

    x = inputs
    wanted = getattr(hparams, "use_target_space_embedding", True)
    if wanted and target_space is not None:
        _check_given(target_space_embedding, "target_space_embedding")
        row = target_space_embedding(ops.convert_to_tensor(target_space))
        x = x + ops.cast(ops.reshape(row, (1, 1, -1)), x.dtype)
    x = _add_positions(x, positions, hparams, features, positional_embedding)
    return x, _cast_bias(bias, x.dtype), _cast_bias(cross_bias, x.dtype)


def transformer_prepare_decoder(
    targets, hparams, features=None, pad=None, *, positional_embedding=None
):
    """Returns the decoder's input, shifted right, and the bias of its attention.

    Args:
        targets: float tensor `(batch, length, channels)`, embedded.
        hparams: an object with the attribute `pos`, which is "timing",
            "timing_from_features", "emb" or "none". Used too if there:
            `position_features`, `causal_decoder_self_attention`.
        features: dict. If it has `targets_segmentation`, examples are packed, and
            `targets_position` is used.
        pad: as `pad_value` of `shift_right_3d`.
        positional_embedding: an `AddPositionalEmbedding`, for "emb".

    Raises:
        ValueError: if a layer is missing or `hparams` ask for something else.
    """
    targets, (_, length, _) = _checked(targets, 3)
    features = features or {}
    if getattr(hparams, "causal_decoder_self_attention", True):
        bias = attention_bias_lower_triangle(length)
    else:
        bias = attention_bias_ignore_padding(embedding_to_padding(targets))
    positions = None
    if "targets_segmentation" in features:
        own, positions = features["targets_segmentation"], features["targets_position"]
        bias = bias + attention_bias_same_segment(own, own)
    x = shift_right_3d(targets, pad)
    x = _add_positions(x, positions, hparams, features, positional_embedding)
    return x, _cast_bias(bias, x.dtype)


def _add_positions(x, positions, hparams, features, positional_embedding):
    """Returns `x` plus what `hparams.pos` says."""
    for name, usual in (("proximity_bias", False), ("prepend_mode", "none")):
        value = getattr(hparams, name, usual)
        if value != usual:
            raise ValueError(
                f"`hparams.{name}` must be {usual!r}, there is no other one here. "
                f"Received: hparams.{name}={value!r}"
            )
    if hparams.pos == "timing":
        if positions is None:
            return add_timing_signal_1d(x)
        return add_timing_signal_1d_given_position(x, positions)
    if hparams.pos == "timing_from_features":
        return add_timing_signals_from_features(x, features, hparams.position_features)
    if hparams.pos == "emb":
        _check_given(positional_embedding, "positional_embedding")
        return positional_embedding(x, positions=positions)
    if hparams.pos == "none":
        return x
    raise ValueError(
        "`hparams.pos` must be 'timing', 'timing_from_features', 'emb' or 'none'. "
        f"Received: hparams.pos={hparams.pos!r}"
    )


def _check_given(layer, name):
    if layer is None:
        raise ValueError(
            f"`{name}` must be a Keras layer, as these arguments want one. Received: "
            f"{name}=None"
        )


def _sinusoids(channels, axes, min_timescale, max_timescale, dtype):
    settings = Settings(
        layout="concatenated", min_timescale=min_timescale, max_timescale=max_timescale
    )
    return recent_sinusoids(
        check_channels(channels), axes, settings, check_dtype(dtype)
    )


def _int32(value, name, low=INT32_MIN, length=1):
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
    start_index = _int32(start_index, "start_index", length=length)
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


def _checked(x, rank=None):
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


def _large_negative(dtype="float32"):
    return -65504.0 if keras.backend.standardize_dtype(dtype) == "float16" else -1e9


def _cast_bias(bias, dtype):
    if keras.backend.standardize_dtype(dtype) == "float16":
        bias = ops.maximum(bias, _large_negative(dtype))
    return ops.cast(bias, dtype)
