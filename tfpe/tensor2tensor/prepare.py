"""What goes into a Transformer's stacks: shifted inputs, biases, positions."""

from typing import Any

import keras
from keras import ops

from tfpe._arguments import INT32_MAX
from tfpe._tensor_arguments import as_dtype, as_length, is_symbolic
from tfpe.tensor2tensor._arguments import (
    as_float_tensor,
    as_positions_of,
    as_row_number,
    as_tensor_of_numbers,
    require_features,
    require_shape,
    require_steps_of,
)
from tfpe.tensor2tensor.timing import (
    add_timing_signal_1d,
    add_timing_signal_1d_given_position,
    add_timing_signals_from_features,
    steps_of,
)

ENCODINGS = ("timing", "timing_from_features", "emb", "none")


def shift_right_3d(x: Any, pad_value: Any = None) -> Any:
    """Returns `x` one step later, after zeros or `pad_value`, `(batch, 1, depth)`."""
    return _shifted(as_tensor_of_numbers(x, "x", 3), pad_value, "pad_value", "x")


# The name of 2017, which lied: it shifted to the right.
shift_left_3d = shift_right_3d


def embedding_to_padding(emb: Any) -> Any:
    """Returns float32 `(...)`, 1 where a vector `(..., depth)` is 0, else 0."""
    emb = as_tensor_of_numbers(emb, "emb", at_least=1)
    return ops.cast(ops.all(ops.equal(emb, 0), axis=-1), "float32")


def attention_bias_ignore_padding(memory_padding: Any) -> Any:
    """Returns the bias that hides padding, `(batch, 1, 1, length)`.

    Args:
        memory_padding: float tensor `(batch, length)`, 1 for padding, else 0.
    """
    padding = as_tensor_of_numbers(memory_padding, "memory_padding", 2)
    as_dtype(padding.dtype, "memory_padding.dtype")
    return (padding * _large_negative(padding.dtype))[:, None, None]


def attention_bias_lower_triangle(length: Any) -> Any:
    """Returns the bias that hides later steps, float32 `(1, 1, length, length)`."""
    length = as_length(length, allowed="an integer >= 0")
    return _later_hidden(ops.arange(length, dtype="int32")[None])


def attention_bias_same_segment(query_segment_id: Any, memory_segment_id: Any) -> Any:
    """Returns the bias that hides other segments, float32 `(batch, 1, q, m)`.

    Args:
        query_segment_id: numbers `(batch, q)`.
        memory_segment_id: numbers `(batch, m)`.
    """
    query = as_tensor_of_numbers(query_segment_id, "query_segment_id", 2)
    memory = as_tensor_of_numbers(memory_segment_id, "memory_segment_id", 2)
    if 1 not in (query.shape[0], memory.shape[0]):
        wanted = (query.shape[0], memory.shape[1])
        meaning = "(batch, m), with the batch of `query_segment_id`"
        require_shape(memory, "memory_segment_id", wanted, meaning)
    return _other_segment(query, memory)


def transformer_prepare_encoder(
    inputs: Any,
    target_space: Any,
    hparams: Any,
    features: Any = None,
    *,
    positional_embedding: Any = None,
    target_space_embedding: Any = None,
) -> Any:
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
    inputs = as_float_tensor(inputs, "inputs", 3)
    features = {} if features is None else features
    require_features(features)
    positions = None
    if "inputs_segmentation" in features:
        own, positions = _packed(features, "inputs", inputs)
        targets = _feature(features, "targets_segmentation")
        require_shape(
            targets,
            "features['targets_segmentation']",
            (own.shape[0], targets.shape[-1]),
            "(batch, targets' length)",
        )
        bias = _other_segment(own, own)
        cross_bias = _other_segment(targets, own)
    else:
        bias = attention_bias_ignore_padding(embedding_to_padding(inputs))
        cross_bias = bias
    if getattr(hparams, "unidirectional_encoder", False):
        bias = _lower_triangle(inputs)

    x = inputs
    wanted = getattr(hparams, "use_target_space_embedding", True)
    wanted = wanted and target_space is not None
    kind = wanted and "a `keras.layers.Embedding`"
    _require_layer(target_space_embedding, "target_space_embedding", kind)
    if wanted:
        target_space = _target_space(target_space, target_space_embedding)
        row = target_space_embedding(ops.convert_to_tensor(target_space))
        x = x + ops.cast(ops.reshape(row, (1, 1, -1)), x.dtype)
    x = _add_positions(x, positions, hparams, features, positional_embedding)
    return x, _cast_bias(bias, x.dtype), _cast_bias(cross_bias, x.dtype)


def transformer_prepare_decoder(
    targets: Any,
    hparams: Any,
    features: Any = None,
    pad: Any = None,
    *,
    positional_embedding: Any = None,
) -> Any:
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
    targets = as_float_tensor(targets, "targets", 3)
    features = {} if features is None else features
    require_features(features)
    if getattr(hparams, "causal_decoder_self_attention", True):
        bias = _lower_triangle(targets)
    else:
        bias = attention_bias_ignore_padding(embedding_to_padding(targets))
    positions = None
    if "targets_segmentation" in features:
        own, positions = _packed(features, "targets", targets)
        bias = bias + _other_segment(own, own)
    x = _shifted(targets, pad, "pad", "targets")
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
    # tensor2tensor's relative models have `pos=None`, which adds nothing either.
    pos = getattr(hparams, "pos", "missing")
    pos = "none" if pos is None else pos
    if not isinstance(pos, str) or pos not in ENCODINGS:
        raise ValueError(
            "`hparams.pos` must be 'timing', 'timing_from_features', 'emb' or 'none'. "
            "Of a dict make `types.SimpleNamespace(**hparams)`. "
            f"Received: hparams.pos={pos!r}, hparams={hparams!r}"
        )
    kind = pos == "emb" and "an `AddPositionalEmbedding`, for `hparams.pos='emb'`"
    _require_layer(positional_embedding, "positional_embedding", kind)
    if pos == "timing":
        if positions is None:
            return add_timing_signal_1d(x)
        return add_timing_signal_1d_given_position(x, positions)
    if pos == "timing_from_features":
        names = getattr(hparams, "position_features", None)
        if not isinstance(names, str):
            raise ValueError(
                "`hparams.position_features` must be a str when `hparams.pos` is "
                f"'timing_from_features'. Received: hparams.position_features={names!r}"
            )
        return add_timing_signals_from_features(x, features, names)
    if pos == "emb":
        return positional_embedding(x, positions=positions)
    return x


def _feature(features, name):
    """Returns what packed examples must have as a tensor."""
    if name not in features:
        raise ValueError(
            f"`features` of packed examples must have {name!r}; those that are "
            f"not packed have no segmentation. Received: features with {list(features)}"
        )
    return as_tensor_of_numbers(features[name], f"features[{name!r}]")


def _packed(features, kind, x):
    """Returns the segment ids and the positions of packed examples."""
    own = _feature(features, f"{kind}_segmentation")
    require_steps_of(own, f"features['{kind}_segmentation']", x, kind)
    _feature(features, f"{kind}_position")
    name = f"{kind}_position"
    return own, as_positions_of(features[name], f"features[{name!r}]", x, kind)


def _shifted(x, pad, name, x_name):
    if pad is None:
        return ops.pad(x, [(0, 0), (1, 0), (0, 0)])[:, :-1]
    pad = as_tensor_of_numbers(pad, name)
    wanted = (x.shape[0], 1, x.shape[2])
    require_shape(pad, name, wanted, f"(batch, 1, depth) of `{x_name}`")
    return ops.concatenate([ops.cast(pad, x.dtype), x], axis=1)[:, :-1]


def _target_space(number, embedding):
    shape = getattr(number, "shape", ())
    if len(shape) and all(size == 1 for size in shape):
        number = ops.reshape(number, ())
    rows = getattr(embedding, "input_dim", INT32_MAX)
    return as_row_number(number, "target_space", 0, rows - 1)


def _lower_triangle(x):
    """Returns the bias that hides later steps of `x`, also of an unknown length."""
    if not is_symbolic(x):
        return attention_bias_lower_triangle(ops.shape(x)[1])
    # The steps are the same in all rows, of which a slice would not be symbolic.
    return _later_hidden(ops.max(steps_of(x), axis=0, keepdims=True))


def _later_hidden(steps):
    """Returns the bias that hides later ones of steps `(1, length)`."""
    later = steps[:, None, :, None] < steps[:, None, None]
    return _large_negative() * ops.cast(later, "float32")


def _other_segment(query, memory):
    differs = ops.not_equal(query[:, None, :, None], memory[:, None, None])
    return ops.cast(differs, "float32") * _large_negative(memory.dtype)


def _require_layer(layer, name, wanted):
    """Refuses what is no layer, and `None` if a kind of layer is wanted."""
    if not isinstance(layer, keras.layers.Layer) and (wanted or layer is not None):
        raise ValueError(
            f"`{name}` must be a Keras layer{f', {wanted}' if wanted else ''}. "
            f"Received: {name}={layer!r}"
        )


def _large_negative(dtype="float32"):
    return -65504.0 if keras.backend.standardize_dtype(dtype) == "float16" else -1e9


def _cast_bias(bias, dtype):
    if keras.backend.standardize_dtype(dtype) == "float16":
        bias = ops.maximum(bias, _large_negative(dtype))
    return ops.cast(bias, dtype)
