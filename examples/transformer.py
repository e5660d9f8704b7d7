"""A Transformer to train, with any layer that adds positions.

It is tensor2tensor's `transformer_base` without dropout, of the same layer that a
migrated model has: `tfpe.migration.decode` decodes both.
"""

import keras
import numpy as np

from tfpe.migration.model import build
from tfpe.migration.settings import variable_names


def transformer(
    vocabulary, hidden=64, heads=4, blocks=2, filter_size=256, *, positions=None
):
    """Returns a model from `{"inputs": ids, "targets": ids}` to logits.

    Ids are int32 `(batch, length)`, 0 is padding, and the two lengths may differ.
    The model shifts the targets itself: its logits at a step, of shape
    `(batch, target length, vocabulary)`, depend on the targets before that step.

    Args:
        vocabulary: int, number of ids.
        hidden: int, width of the residual stream, a multiple of `heads`.
        heads: int, number of attention heads.
        blocks: int, number of blocks in the encoder, and in the decoder.
        filter_size: int, width inside the feed-forward sublayers.
        positions: layer that adds positions to `(batch, length, hidden)`, to decode
            with also at a `start_index=`; or `None` for no positions.
    """
    if hidden % heads:
        raise ValueError(
            "`hidden` must be a multiple of `heads`. Received: "
            f"hidden={hidden}, heads={heads}"
        )
    settings = {
        "heads": heads,
        "blocks": {"encoder": blocks, "decoder": blocks},
        "before": "n",
        "after": "a",
        "epsilon": 1e-6,
        "scaled": True,
        "positions": "none" if positions is None else "timing",
        "sinusoids": positions,
        "steps": None,
        "step_positions": False,
        "step_signal": "none",
        "drops_padding": True,
        "unidirectional": False,
    }
    embedding = keras.random.normal((vocabulary, hidden), stddev=hidden**-0.5)
    arrays = {"targets/embedding": keras.ops.convert_to_numpy(embedding)}
    for stack in ("encoder", "decoder"):
        for name in variable_names(stack, blocks, settings):
            arrays[name] = _initial(name.rpartition("/")[2], hidden, filter_size)
    return build(settings, arrays)


def _initial(name, hidden, filter_size):
    """Returns the value that the training of a variable starts with."""
    if name.endswith("_scale"):
        return np.ones(hidden, "float32")
    if name.endswith("_bias"):
        return np.zeros(filter_size if name == "in_bias" else hidden, "float32")
    rows = filter_size if name == "out" else hidden
    columns = filter_size if name == "in" else hidden
    value = keras.initializers.GlorotUniform()((rows, columns))
    return keras.ops.convert_to_numpy(value)
