"""What tfpe.tensor2tensor refuses, and in which words."""

import re
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from features import IMAGE, PACKED, POSITIONS, SEGMENTS, TIMING, X
from keras import ops

import tfpe.tensor2tensor as t2t

ERRORS = [
    (
        lambda: t2t.add_timing_signal_1d(IMAGE),
        ValueError,
        r"`x` must have a rank of 3. Received: x.shape=\(2, 3, 5, 10\)",
    ),
    (
        lambda: t2t.add_timing_signal_nd(X[0]),
        ValueError,
        r"`x` must have a rank of 3 or more. Received: x.shape=\(5, 10\)",
    ),
    (
        lambda: t2t.add_timing_signal_1d(X.astype("int32")),
        ValueError,
        "`x.dtype` must be one of .* Received: x.dtype=.*int32",
    ),
    (
        lambda: t2t.add_timing_signal_1d(X, start_index=1.5),
        TypeError,
        "`start_index` must be integers. Received: start_index=",
    ),
    (
        lambda: t2t.add_timing_signal_1d(X, start_index=2**63),
        ValueError,
        "`start_index` must be an integer inside int.*9223372036854775808",
    ),
    (
        lambda: t2t.get_timing_signal_1d(3, 4, min_timescale=0),
        ValueError,
        "`min_timescale` must be a positive finite number. Received",
    ),
    (
        lambda: t2t.add_timing_signal(IMAGE, num_timescales=6),
        ValueError,
        "`num_timescales` must be an integer from 1 to 5, .* Received: .*=6",
    ),
    (
        lambda: t2t.AddPositionalEmbedding(0),
        ValueError,
        "`max_length` must be a positive integer. Received: max_length=0",
    ),
    (
        lambda: t2t.AddPositionalEmbeddingNd(4)(IMAGE),
        ValueError,
        r"`x` must not be longer than `max_length` .*\(2, 3, 5, 10\), max_length=4",
    ),
    (
        lambda: t2t.transformer_prepare_encoder(X, 0, TIMING),
        ValueError,
        "`target_space_embedding` must be a Keras layer.* Received: .*=None",
    ),
    (
        lambda: t2t.transformer_prepare_decoder(X, SimpleNamespace(pos="emb")),
        ValueError,
        "`positional_embedding` must be a Keras layer.* Received: .*=None",
    ),
    (
        lambda: t2t.transformer_prepare_decoder(X, SimpleNamespace(pos="time")),
        ValueError,
        "`hparams.pos` must be 'timing', .* Received: hparams.pos='time'",
    ),
    (
        lambda: t2t.transformer_prepare_encoder(
            X, None, SimpleNamespace(pos="timing", proximity_bias=True)
        ),
        ValueError,
        "`hparams.proximity_bias` must be False, .* Received: .*=True",
    ),
]


@pytest.mark.parametrize(
    ("call", "error", "message"), ERRORS, ids=[message for *_, message in ERRORS]
)
def test_an_error_says_what_was_wanted_and_what_came(call, error, message):
    with pytest.raises(error, match=message):
        call()


REFUSED = {
    "a negative length": (
        lambda: t2t.get_timing_signal_1d(-1, 8),
        "`length` must be an integer >= 0. Received: length=-1",
    ),
    "a start for each row": (
        lambda: t2t.add_timing_signal_1d(X, start_index=[1, 2]),
        "`start_index` must be a scalar",
    ),
    "positions of rank 3": (
        lambda: t2t.add_timing_signal_1d_given_position(X, np.zeros((3, 2, 5))),
        "`position` must have the shape (batch, length) of `x`, (2, 5)",
    ),
    "positions of another length": (
        lambda: t2t.add_timing_signals_given_positions(X, [None, np.zeros((2, 4))]),
        "`positions` must have the shape (batch, length) of `x`, (2, 5)",
    ),
    "no positions": (
        lambda: t2t.add_timing_signals_given_positions(X, []),
        "`positions` must be a list of tensors or None, at least one",
    ),
    "a layer past the last": (
        lambda: t2t.get_layer_timing_signal_sinusoid_1d(8, 4, 4),
        "`layer` must be an integer from -4 to 3. Received: layer=4",
    ),
    "no layers": (
        lambda: t2t.get_layer_timing_signal_sinusoid_1d(8, 0, 0),
        "`num_layers` must be a positive integer. Received: num_layers=0",
    ),
    "no encoding": (
        lambda: t2t.transformer_prepare_encoder(X, None, SimpleNamespace()),
        "`hparams.pos` must be 'timing', 'timing_from_features', 'emb' or 'none'.",
    ),
    "no names of positions": (
        lambda: t2t.transformer_prepare_encoder(
            X, None, SimpleNamespace(pos="timing_from_features")
        ),
        "`hparams.position_features` must be a str when",
    ),
    "packed inputs without positions": (
        lambda: t2t.transformer_prepare_encoder(
            X,
            None,
            TIMING,
            {"inputs_segmentation": SEGMENTS, "targets_segmentation": SEGMENTS},
        ),
        "`features` of packed examples must have 'inputs_position'; those that are not",
    ),
    "packed inputs without targets": (
        lambda: t2t.transformer_prepare_encoder(
            X,
            None,
            TIMING,
            {"inputs_segmentation": SEGMENTS, "inputs_position": POSITIONS},
        ),
        "`features` of packed examples must have 'targets_segmentation'; those that",
    ),
    "segments of another length": (
        lambda: t2t.transformer_prepare_decoder(
            X, TIMING, {**PACKED, "targets_segmentation": SEGMENTS[:, :3]}
        ),
        "`features['targets_segmentation']` must have the shape (batch, length) of "
        "`targets`, (2, 5). Received: features['targets_segmentation'].shape=(2, 3)",
    ),
    "positions between the rows": (
        lambda: t2t.AddPositionalEmbedding(4)(X, positions=POSITIONS + 0.5),
        "`positions` must be whole numbers. Received: ",
    ),
    "a row past the last": (
        lambda: t2t.AddLayerTimingSignalLearned1d(3)(X, layer=3),
        "`layer` must be an integer from -3 to 2. Received: layer=3",
    ),
    "a row past the last, as a tensor": (
        lambda: t2t.AddLayerTimingSignalLearned1d(3)(X, layer=ops.array(3)),
        "`layer` must be an integer from -3 to 2. Received: layer=3",
    ),
    "a row past the last of a functional model": (
        lambda: t2t.AddLayerTimingSignalLearned1d(3)(keras.Input((5, 8)), layer=3),
        "`layer` must be an integer from -3 to 2. Received: layer=3",
    ),
    "other channels than the layer was built for": (
        lambda: (layer := t2t.AddPositionalEmbedding(9))(X) + layer(X[..., :6]),
        "`x` must have 10 channels, as the layer was built for. Received: x.shape=",
    ),
    "a functional model longer than the table": (
        lambda: t2t.AddPositionalEmbeddingNd(4)(keras.Input((3, 5, 8))),
        "`x` must not be longer than `max_length` on any axis. Received: x.shape=",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals_say_what_is_allowed(case):
    call, message = REFUSED[case]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
