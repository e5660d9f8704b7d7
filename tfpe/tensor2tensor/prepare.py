"""What goes into a Transformer's stacks: shifted inputs, biases, positions."""

import keras
from keras import ops

from tfpe.tensor2tensor.timing import (
    add_timing_signal_1d,
    add_timing_signal_1d_given_position,
    add_timing_signals_from_features,
    checked,
    int32,
)


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
    steps = ops.arange(int32(length, "length", low=0), dtype="int32")
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
    inputs, (_, length, _) = checked(inputs, 3)
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
    targets, (_, length, _) = checked(targets, 3)
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


def _large_negative(dtype="float32"):
    return -65504.0 if keras.backend.standardize_dtype(dtype) == "float16" else -1e9


def _cast_bias(bias, dtype):
    if keras.backend.standardize_dtype(dtype) == "float16":
        bias = ops.maximum(bias, _large_negative(dtype))
    return ops.cast(bias, dtype)
