"""Every argument of every public name, given what nobody should give."""

import inspect
import re
from types import SimpleNamespace

import keras
import numpy as np
import oracle
import pytest
from contract import assert_promised, to_float64
from hypothesis import given
from hypothesis import strategies as st

import tfpe
import tfpe.tensor2tensor as t2t

Layer = tfpe.SinusoidalPositionalEncoding
INPUTS = np.zeros((2, 3, 8), "float32")
SETTINGS = {
    "layout": "interleaved",
    "spectrum": None,
    "min_timescale": 1.0,
    "max_timescale": 1e4,
    "cosine_first": False,
    "odd_channel": "zero",
    "first_position": 0,
    "amplitude": 1.0,
}
MASK = np.array([[True, True, False]] * 2)
# Each public name with arguments that are right.
CALLS = {
    "SinusoidalPositionalEncoding": (
        Layer,
        {**SETTINGS, "axis": 1, "dtype": "float32"},
    ),
    "SinusoidalPositionalEncoding.call": (
        lambda inputs, mask, **steps: Layer(skip_masked=True)(
            inputs, mask=mask, **steps
        ),
        {"inputs": INPUTS, "start_index": 0, "positions": None, "mask": MASK},
    ),
    "SinusoidalEmbedding": (
        tfpe.SinusoidalEmbedding,
        {**SETTINGS, "channels": 8, "axes": 1, "dtype": "float32"},
    ),
    "SinusoidalEmbedding.call": (
        lambda positions: tfpe.SinusoidalEmbedding(8)(positions),
        {"positions": np.arange(3)},
    ),
    "timing_signal": (
        tfpe.timing_signal,
        {
            **{"length": 3, "channels": 8, "start_index": 0, "dtype": "float32"},
            **SETTINGS,
        },
    ),
    "timing_signal_at": (
        tfpe.timing_signal_at,
        {
            **{"positions": np.arange(3), "channels": 8, "dtype": "float32"},
            **SETTINGS,
        },
    ),
    "timescales": (tfpe.timescales, {"channels": 8, "axes": 1, **SETTINGS}),
    "shift_matrix": (tfpe.shift_matrix, {"offset": 3, "channels": 8, **SETTINGS}),
    "layout_permutation": (
        tfpe.layout_permutation,
        {
            **{"channels": 8, "source": "interleaved", "target": "concatenated"},
            **{"axes": 1, "odd_channel": "zero"},
        },
    ),
    "positions_from_mask": (tfpe.positions_from_mask, {"mask": MASK}),
    "positions_from_segments": (
        tfpe.positions_from_segments,
        {"segment_ids": np.array([[1, 1, 2]] * 2), "mask": MASK},
    ),
}
BAD = {
    **{"text": "x", "bytes": b"x", "complex": 1j, "dict": {"a": 1}, "object": object()},
    **{"NaN": float("nan"), "inf": float("inf"), "huge": 10**400, "minus": -(10**19)},
    **{"empty": [], "ragged": [[1, 2], [3]], "NaNs": np.full((2, 3), np.nan)},
    **{"shape": np.zeros((4, 1, 2), "int32"), "texts": np.array(["a", "b"])},
    **{"symbolic": keras.Input((5,)), "none": None, "bool": True, "fraction": 2.5},
}
ENDS = {"min_timescale": 1.0, "max_timescale": 1e4}
IDS = np.array([[1, 1, 2]] * 2)
PAD = np.zeros((2, 1, 8), "float32")
STEPS = np.array([[0, 1, 0]] * 2)
PACKED = {
    f"{kind}_{what}": array
    for kind in ("inputs", "targets")
    for what, array in (("segmentation", IDS), ("position", STEPS))
}
TIMING, EMB = SimpleNamespace(pos="timing"), SimpleNamespace(pos="emb")
IMAGE = np.zeros((2, 3, 4, 8), "float32")
TENSOR2TENSOR = {
    "get_timing_signal_1d": {"length": 3, "channels": 8, **ENDS, "start_index": 0},
    "add_timing_signal_1d": {"x": INPUTS, **ENDS, "start_index": 0},
    "add_timing_signal_1d_given_position": {"x": INPUTS, "position": STEPS, **ENDS},
    "add_timing_signals_given_positions": {"x": INPUTS, "positions": [STEPS], **ENDS},
    "add_timing_signals_from_features": {
        **{"x": INPUTS, "features": {"p": STEPS}, "position_features": "p"},
        **ENDS,
    },
    "add_timing_signal_nd": {"x": IMAGE, **ENDS},
    "get_layer_timing_signal_sinusoid_1d": {
        **{"channels": 8, "layer": 1, "num_layers": 2}
    },
    "add_layer_timing_signal_sinusoid_1d": {"x": INPUTS, "layer": 1, "num_layers": 2},
    "get_timing_signal": {"length": 3, **ENDS, "num_timescales": 4},
    "add_timing_signal": {"x": IMAGE, **ENDS, "num_timescales": 4},
    "shift_right_3d": {"x": INPUTS, "pad_value": PAD},
    "shift_left_3d": {"x": INPUTS, "pad_value": PAD},
    "embedding_to_padding": {"emb": INPUTS},
    "attention_bias_ignore_padding": {"memory_padding": np.zeros((2, 3), "float32")},
    "attention_bias_lower_triangle": {"length": 3},
    "attention_bias_same_segment": {"query_segment_id": IDS, "memory_segment_id": IDS},
    "transformer_prepare_encoder": {
        **{"inputs": INPUTS, "target_space": 1, "hparams": EMB, "features": PACKED},
        "positional_embedding": t2t.AddPositionalEmbedding(4),
        "target_space_embedding": keras.layers.Embedding(32, 8),
    },
    "transformer_prepare_decoder": {
        **{"targets": INPUTS, "hparams": EMB, "features": PACKED, "pad": PAD},
        "positional_embedding": t2t.AddPositionalEmbedding(4),
    },
    "AddPositionalEmbedding": {"max_length": 4},
    "AddPositionalEmbeddingNd": {"max_length": 4},
    "AddLayerTimingSignalLearned1d": {"num_layers": 2},
}
CALLS |= {name: (getattr(t2t, name), right) for name, right in TENSOR2TENSOR.items()}
CALLS |= {
    "AddPositionalEmbedding.call": (
        lambda **given: t2t.AddPositionalEmbedding(4)(**given),
        {"x": INPUTS, "positions": STEPS},
    ),
    "AddPositionalEmbeddingNd.call": (
        lambda **given: t2t.AddPositionalEmbeddingNd(4)(**given),
        {"x": IMAGE},
    ),
    "AddLayerTimingSignalLearned1d.call": (
        lambda **given: t2t.AddLayerTimingSignalLearned1d(2)(**given),
        {"x": INPUTS, "layer": 1},
    ),
}
# Keras sees these before the layer does, and refuses some of them in its own words.
KERAS = {
    ("SinusoidalEmbedding", "dtype"),
    ("SinusoidalPositionalEncoding", "dtype"),
    ("SinusoidalPositionalEncoding.call", "inputs"),
}
CASES = [
    (name, argument, bad)
    for name, (_, right) in CALLS.items()
    for argument in right
    for bad in BAD
]


def test_every_public_name_is_here():
    functions = {n for n in tfpe.__all__ if callable(getattr(tfpe, n))}
    others = {"identify"}  # takes a table, and has a suite of its own
    assert functions - others <= set(CALLS)
    assert set(t2t.__all__) <= set(CALLS)
    arguments = set(inspect.signature(Layer).parameters) - {"kwargs", "skip_masked"}
    assert arguments <= set(CALLS["SinusoidalPositionalEncoding"][1])


@pytest.mark.parametrize(("name", "argument", "bad"), CASES)
def test_bad_argument_is_named_or_the_call_succeeds(name, argument, bad):
    call, right = CALLS[name]
    try:
        call(**{**right, argument: BAD[bad]})
    except (TypeError, ValueError) as error:
        message = str(error)
        if (name, argument) in KERAS:
            assert message
            return
        assert re.search(rf"`{argument}\b", message), message
        assert "Received: " in message, message
    call(**right)


@given(
    channels=st.integers(1, 12),
    positions=st.lists(
        st.integers(-(2**31), 2**31 - 1) | st.floats(width=32), max_size=4
    ),
    settings=st.fixed_dictionaries(
        {},
        optional={
            "layout": st.sampled_from(["interleaved", "concatenated", "else"]),
            "spectrum": st.sampled_from(["vaswani", "geometric", None, 3])
            | st.lists(st.floats(1, 1e5), max_size=6),
            "max_timescale": st.floats(1e-3, 1e9) | st.just(-1.0),
            "cosine_first": st.booleans(),
            "odd_channel": st.sampled_from(["zero", "sine", "cosine"]),
        },
    ),
)
def test_any_call_gives_the_right_values_or_an_error_of_ours(
    channels, positions, settings
):
    try:
        if all(isinstance(p, int) for p in positions):
            positions = np.array(positions, "int32")
        got = tfpe.timing_signal_at(positions, channels, **settings)
    except (TypeError, ValueError) as error:
        if "Received: " not in str(error):
            raise
        return
    got = to_float64(got)
    assert got.shape == (len(positions), channels)
    if not got.size:
        return
    if np.asarray(positions).dtype.kind == "i":
        signal = tfpe.timing_signal_at(positions, channels, **settings)
        want = oracle.rows(positions.tolist(), channels, **settings)
        assert_promised(signal, want.reshape(got.shape))
    else:
        assert np.all(np.isnan(got) | (np.abs(got) <= 1 + 2**-22))
