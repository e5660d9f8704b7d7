"""tfpe.tensor2tensor returns what tensor2tensor 1.15.7 returned, call by call.

On float16 and bfloat16 inputs it returns that of the rounded inputs, rounded; and
where tensor2tensor returned NaN it returns what mpmath does.
"""

from types import SimpleNamespace

import keras
import numpy as np
import oracle
import pytest
from contract import FLOAT32
from goldens import CASES, THEIRS, Golden
from keras import ops

import tfpe.tensor2tensor as t2t

# A number is rounded by this part of itself, and by no less than this in float16.
ROUNDING = {"float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}
SMALLEST = {"float32": 0.0, "float16": 2.0**-25, "bfloat16": 0.0}

GOLDENS = [Golden(index) for index in range(len(CASES))]
INPUTS = ("x", "inputs", "targets")


def plainly(name, *arrays):
    """Calls a function with its input, other arrays and the plain arguments."""

    def call(golden, x):
        given = {k: v for k, v in golden.kwargs.items() if k != "x_dtype"}
        given.update((array, golden.arrays[array]) for array in arrays)
        return getattr(t2t, name)(*([] if x is None else [x]), **given)

    return call


def at_positions(golden, x):
    positions = [n and golden.arrays[n] for n in golden.kwargs["positions"]]
    return t2t.add_timing_signals_given_positions(x, positions)


def from_features(golden, x):
    names = golden.kwargs["position_features"]
    return t2t.add_timing_signals_from_features(x, golden.arrays, names)


def with_tables(golden, x, layer):
    """Returns the layer with tensor2tensor's variables as its weights."""
    layer.build(x.shape)
    tables = sorted(name for name in golden.arrays if name.startswith("table"))
    layer.set_weights([golden.arrays[name] for name in tables])
    return layer


def learned(golden, x):
    layer = t2t.AddPositionalEmbedding(golden.kwargs["max_length"])
    layer = with_tables(golden, x, layer)
    return layer(x, positions=golden.arrays.get("positions"))


def learned_nd(golden, x):
    layer = t2t.AddPositionalEmbeddingNd(golden.kwargs["max_length"])
    return with_tables(golden, x, layer)(x)


def learned_layer(golden, x):
    layer = t2t.AddLayerTimingSignalLearned1d(golden.kwargs["num_layers"])
    return with_tables(golden, x, layer)(x, layer=golden.kwargs["layer"])


def prepare(golden, x):
    """Calls what prepares the encoder's or the decoder's input."""
    hparams = SimpleNamespace(**golden.kwargs)
    features, layers = None, {}
    if "packed" in golden.kwargs:
        kinds = ("_segmentation", "_position") if hparams.packed else ()
        names = [n for n in golden.arrays if n == "p" or n.endswith(kinds)]
        features = {name: golden.arrays[name] for name in names}
    if hparams.pos == "emb":
        layer = t2t.AddPositionalEmbedding(hparams.max_length)
        layers["positional_embedding"] = with_tables(golden, x, layer)
    if golden.function == "transformer_prepare_decoder":
        made = t2t.transformer_prepare_decoder(x, hparams, features, **layers)
    else:
        made = t2t.transformer_prepare_encoder(x, None, hparams, features, **layers)
    kinds = ("input", "self_attention_bias", "encoder_decoder_attention_bias")
    (found,) = (m for k, m in zip(kinds, made, strict=False) if k in hparams.returns)
    return found


CALLS = {
    "get_timing_signal_1d": plainly("get_timing_signal_1d"),
    "add_timing_signal_1d": plainly("add_timing_signal_1d"),
    "add_timing_signal_1d_given_position": plainly(
        "add_timing_signal_1d_given_position", "position"
    ),
    "add_timing_signals_given_positions": at_positions,
    "add_timing_signals_from_features": from_features,
    "add_timing_signal_nd": plainly("add_timing_signal_nd"),
    "get_layer_timing_signal_sinusoid_1d": plainly(
        "get_layer_timing_signal_sinusoid_1d"
    ),
    "add_layer_timing_signal_sinusoid_1d": plainly(
        "add_layer_timing_signal_sinusoid_1d"
    ),
    "common_layers.get_timing_signal": plainly("get_timing_signal"),
    "common_layers.add_timing_signal": plainly("add_timing_signal"),
    "add_positional_embedding": learned,
    "add_positional_embedding_nd": learned_nd,
    "add_layer_timing_signal_learned_1d": learned_layer,
    "transformer_prepare_encoder": prepare,
    "transformer_prepare_decoder": prepare,
}


def input_of(golden):
    """Returns the array whose dtype the result has, or `None`."""
    (found,) = [golden.arrays[n] for n in INPUTS if n in golden.arrays] or [None]
    return found


def is_bias(golden):
    return "bias" in golden.kwargs.get("returns", "")


def steps(golden):
    """Returns the position on each axis, broadcast to all of the result."""
    kwargs, arrays, shape = golden.kwargs, golden.arrays, golden.out.shape[:-1]
    length = shape[1 if golden.function == "common_layers.add_timing_signal" else -1]
    default = kwargs.get("start_index", 0) + np.arange(length)
    pos = kwargs.get("pos", "timing_from_features")
    if golden.function == "add_timing_signal_nd":
        found = np.ogrid[tuple(slice(n) for n in shape[1:])]
    elif golden.function == "common_layers.add_timing_signal":
        found = [default[:, None]]
    elif "table" in "".join(arrays) or pos == "none":
        found = [0]  # nothing that is computed from a position
    elif "layer" in kwargs:
        found = [kwargs["layer"]]
    elif "positions" in kwargs:
        found = [default if n is None else arrays[n] for n in kwargs["positions"]]
    elif "position_features" in kwargs and pos == "timing_from_features":
        names = kwargs["position_features"].split(",")
        found = [arrays.get(name, default) for name in names]
    else:
        own = [n for n in arrays if n.endswith("position")]
        packed = kwargs.get("packed", True) and own
        found = [arrays[own[0]] if packed else default]
    return [np.broadcast_to(p, shape) for p in found]


def base(golden, x):
    """Returns, in float64, what the signal is added to."""
    if x is None:
        return np.zeros(golden.out.shape)
    x = ops.convert_to_numpy(ops.cast(x, "float32")).astype("float64")
    if golden.function == "transformer_prepare_decoder":
        x = np.pad(x, [(0, 0), (1, 0), (0, 0)])[:, :-1]
    return x


def signal(golden, x):
    """Returns what tensor2tensor added to `x`, or what is right where it gave NaN."""
    if golden.finite:
        return golden.out - base(golden, x)
    places = zip(*(p.ravel().tolist() for p in steps(golden)), strict=True)
    rows = oracle.rows(list(places), golden.channels, layout="concatenated")
    return rows.reshape(golden.out.shape)


def dtypes(golden):
    """Returns the types of the input that a call is tried with."""
    if "x_dtype" in golden.kwargs:
        return [golden.kwargs["x_dtype"]]
    return ["float32"] if input_of(golden) is None else list(ROUNDING)


@pytest.mark.parametrize(
    ("golden", "dtype"),
    [
        pytest.param(g, d, id=f"{g.function}-{g}-{d}")
        for g in GOLDENS
        for d in dtypes(g)
    ],
)
def test_a_call_returns_what_it_returned_in_tensor2tensor(golden, dtype):
    x = input_of(golden)
    then = x if x is None else ops.cast(x, golden.kwargs.get("x_dtype", "float32"))
    now = x if x is None else ops.cast(x, dtype)
    result = CALLS[golden.function](golden, now)
    assert ops.shape(result) == golden.out.shape
    assert keras.backend.standardize_dtype(result.dtype) == dtype
    actual = ops.convert_to_numpy(ops.cast(result, "float32")).astype("float64")

    if is_bias(golden):
        # -1e9 is not a number of float16, whose lowest one does as well.
        wanted = np.maximum(golden.out, -65504) if dtype == "float16" else golden.out
        wanted = ops.cast(ops.cast(wanted, dtype), "float32")
        np.testing.assert_array_equal(actual, ops.convert_to_numpy(wanted))
        return

    added = signal(golden, then)
    expected = base(golden, now) + added
    fastest = golden.kwargs.get("min_timescale", 1.0)  # it multiplies frequencies
    furthest = np.max(steps(golden), axis=0)[..., None] if expected.size else 0
    # The signal is rounded, then the sum, by tensor2tensor and by us.
    size = np.abs(added) + np.abs(expected) + np.abs(golden.out if golden.finite else 0)
    tolerance = FLOAT32 + THEIRS * fastest * furthest + ROUNDING[dtype] * size
    error = np.abs(actual - expected)
    bound = np.broadcast_to(tolerance + 2 * SMALLEST[dtype], error.shape)
    np.testing.assert_array_less(error, bound)


def test_every_golden_is_tried():
    assert len(GOLDENS) == 339
    assert sum(not golden.finite for golden in GOLDENS) == 17
    (mark,) = test_a_call_returns_what_it_returned_in_tensor2tensor.pytestmark
    tried = {param.values[0].index for param in mark.args[1]}
    assert tried == set(range(339))
    assert sum(param.values[1] == "float32" for param in mark.args[1]) == 337


@pytest.mark.parametrize(
    "golden", [pytest.param(g, id=str(g)) for g in GOLDENS if not g.finite]
)
def test_where_tensor2tensor_gave_nan_it_did_so_in_all_channels_of_the_signal(golden):
    axes = len(steps(golden))
    used = golden.channels // (2 * axes) * 2 * axes
    assert np.isnan(golden.out[..., :used]).all()
    left = golden.out[..., used:]
    np.testing.assert_array_equal(left, base(golden, input_of(golden))[..., used:])
