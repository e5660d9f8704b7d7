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
        may be unknown. In a functional model each call is a layer without weights.
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

from typing import Any

from tfpe.tensor2tensor.learned import (
    AddLayerTimingSignalLearned1d,
    AddPositionalEmbedding,
    AddPositionalEmbeddingNd,
)
from tfpe.tensor2tensor.prepare import (
    attention_bias_ignore_padding,
    attention_bias_lower_triangle,
    attention_bias_same_segment,
    embedding_to_padding,
    shift_left_3d,
    shift_right_3d,
    transformer_prepare_decoder,
    transformer_prepare_encoder,
)
from tfpe.tensor2tensor.timing import (
    add_layer_timing_signal_sinusoid_1d,
    add_timing_signal,
    add_timing_signal_1d,
    add_timing_signal_1d_given_position,
    add_timing_signal_nd,
    add_timing_signals_from_features,
    add_timing_signals_given_positions,
    get_layer_timing_signal_sinusoid_1d,
    get_timing_signal,
    get_timing_signal_1d,
)

# Functions that make variables there.
_LAYERS = {
    "add_positional_embedding": AddPositionalEmbedding,
    "add_positional_embedding_nd": AddPositionalEmbeddingNd,
    "add_layer_timing_signal_learned_1d": AddLayerTimingSignalLearned1d,
    "get_layer_timing_signal_learned_1d": AddLayerTimingSignalLearned1d,
}


def __getattr__(name: str) -> Any:
    if name in _LAYERS:
        layer = f"{__name__}.{_LAYERS[name].__name__}"
        raise AttributeError(
            f"`{name}` makes a variable there; here it is a weight of the layer "
            f"`{layer}`: make it once, then call it."
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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
