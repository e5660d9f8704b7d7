"""tfpe.tensor2tensor beyond its numbers, which compat/ holds against the original."""

import inspect
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf
from contract import FLOAT32, dtype_of, dtypes, on_tensorflow, to_float64
from features import IMAGE, PACKED, POSITIONS, SEGMENTS, TIMING, X
from keras import ops

import tfpe
import tfpe.tensor2tensor as t2t
from tfpe._sinusoids import kept_sinusoids

ENDS = "min_timescale=1.0, max_timescale=10000.0"
OLD_ENDS = "min_timescale=1, max_timescale=10000.0, num_timescales=16"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("get_timing_signal_1d", f"length, channels, {ENDS}, start_index=0"),
        ("add_timing_signal_1d", f"x, {ENDS}, start_index=0"),
        ("add_timing_signal_1d_given_position", f"x, position, {ENDS}"),
        ("add_timing_signals_given_positions", f"x, positions, {ENDS}"),
        (
            "add_timing_signals_from_features",
            f"x, features, position_features, {ENDS}",
        ),
        ("add_timing_signal_nd", f"x, {ENDS}"),
        ("get_layer_timing_signal_sinusoid_1d", "channels, layer, num_layers"),
        ("add_layer_timing_signal_sinusoid_1d", "x, layer, num_layers"),
        ("get_timing_signal", f"length, {OLD_ENDS}"),
        ("add_timing_signal", f"x, {OLD_ENDS}"),
        ("shift_right_3d", "x, pad_value=None"),
        ("shift_left_3d", "x, pad_value=None"),
        ("embedding_to_padding", "emb"),
        ("attention_bias_lower_triangle", "length"),
        ("attention_bias_ignore_padding", "memory_padding"),
        ("attention_bias_same_segment", "query_segment_id, memory_segment_id"),
        ("transformer_prepare_encoder", "inputs, target_space, hparams, features=None"),
        ("transformer_prepare_decoder", "targets, hparams, features=None, pad=None"),
    ],
)
def test_arguments_order_and_defaults_are_those_of_tensor2tensor(name, arguments):
    signature = inspect.signature(getattr(t2t, name))
    own = [
        p.replace(annotation=p.empty)
        for p in signature.parameters.values()
        if p.kind is not p.KEYWORD_ONLY
    ]  # keyword-only ones are the layers that stand for variables
    assert str(inspect.Signature(own)) == f"({arguments})"
    assert name in t2t.__all__


CALLS = {
    "get_timing_signal_1d": lambda x: t2t.get_timing_signal_1d(tf.shape(x)[1], 9),
    "add_timing_signal_1d": t2t.add_timing_signal_1d,
    "given_position": lambda x: t2t.add_timing_signal_1d_given_position(x, POSITIONS),
    "given_positions": lambda x: t2t.add_timing_signals_given_positions(
        x, [POSITIONS, None]
    ),
    "from_features": lambda x: t2t.add_timing_signals_from_features(
        x, {"p": POSITIONS}, "p,,elsewhere"
    ),
    "nd": t2t.add_timing_signal_nd,
    "layer": lambda x: t2t.add_layer_timing_signal_sinusoid_1d(x, 1, 3),
    "lower_triangle": lambda x: t2t.attention_bias_lower_triangle(tf.shape(x)[1]),
    "encoder": lambda x: t2t.transformer_prepare_encoder(x, None, TIMING)[0],
    "decoder": lambda x: t2t.transformer_prepare_decoder(x, TIMING)[0],
    "decoder's bias": lambda x: t2t.transformer_prepare_decoder(x, TIMING, PACKED)[1],
}


@on_tensorflow
@pytest.mark.parametrize("jit_compile", [False, True], ids=["graph", "XLA"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_lengths_may_be_unknown_while_a_graph_is_traced(call, jit_compile):
    spec = tf.TensorSpec((None, None, 10))
    traced = tf.function(call, input_signature=[spec], jit_compile=jit_compile)
    np.testing.assert_allclose(traced(X), call(tf.constant(X)), rtol=0, atol=FLOAT32)


@on_tensorflow
def test_all_lengths_of_an_image_may_be_unknown_while_a_graph_is_traced():
    spec = tf.TensorSpec((None, None, None, 10))
    for call in (
        t2t.add_timing_signal_nd,
        lambda x: t2t.add_timing_signal(x, num_timescales=2),
        t2t.AddPositionalEmbeddingNd(5),
    ):
        traced = tf.function(call, input_signature=[spec])
        np.testing.assert_allclose(traced(IMAGE), call(IMAGE), rtol=0, atol=FLOAT32)


@on_tensorflow
@pytest.mark.parametrize("start", [-3, 0, 4090, 70_000])
def test_a_start_index_may_be_a_tensor(start):
    expected = tfpe.timing_signal(5, 10, start_index=start, layout="concatenated")
    traced = tf.function(t2t.add_timing_signal_1d)
    for call in (t2t.add_timing_signal_1d, traced):
        for given in (start, np.int64(start), tf.constant(start)):
            signal = call(np.zeros_like(X), start_index=given)
            for row in signal:
                np.testing.assert_allclose(row, expected, rtol=0, atol=FLOAT32)


@on_tensorflow
def test_a_layer_may_be_counted_from_the_end_or_be_a_tensor():
    expected = t2t.get_timing_signal_1d(6, 7)[:, 4:5]
    for layer in (4, -2, tf.constant(4)):
        signal = t2t.get_layer_timing_signal_sinusoid_1d(7, layer, 6)
        np.testing.assert_array_equal(signal, expected)


def test_the_last_signals_share_tables_and_no_more_are_kept():
    kept_sinusoids.cache_clear()
    for _ in range(3):
        t2t.add_timing_signal_1d(X)
        t2t.get_timing_signal_1d(2, 10, max_timescale=10**4)
    assert kept_sinusoids.cache_info().misses == 1
    for channels in range(1, 9):
        t2t.get_timing_signal_1d(2, channels)
    assert kept_sinusoids.cache_info().currsize == 4


def test_shifting_moves_one_step_to_the_right_under_either_name():
    pad = np.full((2, 1, 10), 0.5, "float32")
    for shift in (t2t.shift_right_3d, t2t.shift_left_3d):
        for given, first in ((None, np.zeros_like(pad)), (pad, pad)):
            expected = np.concatenate([first, X[:, :-1]], axis=1)
            np.testing.assert_array_equal(shift(X, given), expected)


def test_biases_hide_padding_later_steps_and_other_segments():
    padding = t2t.embedding_to_padding(X * (SEGMENTS > 0)[..., None])
    assert dtype_of(padding) == "float32"
    bias = to_float64(t2t.attention_bias_ignore_padding(padding))
    np.testing.assert_array_equal(bias, -1e9 * (SEGMENTS[:, None, None] == 0))
    bias = to_float64(t2t.attention_bias_lower_triangle(3))
    np.testing.assert_array_equal(bias[0, 0] < -1e8, np.triu(np.ones((3, 3)), 1) > 0)
    bias = to_float64(t2t.attention_bias_same_segment(SEGMENTS[:, :3], SEGMENTS))
    assert bias.shape == (2, 1, 3, 5)
    hidden = SEGMENTS[:, :3, None] != SEGMENTS[:, None]
    np.testing.assert_array_equal(bias[:, 0], -1e9 * hidden)


@pytest.mark.parametrize("dtype", dtypes("float16", "bfloat16", "float64"))
def test_biases_are_finite_and_of_the_inputs_dtype(dtype):
    x = ops.cast(X * (SEGMENTS > 0)[..., None], dtype)
    for features in (None, PACKED):
        made = t2t.transformer_prepare_encoder(x, None, TIMING, features)
        made += t2t.transformer_prepare_decoder(x, TIMING, features)
        for tensor in made:
            assert dtype_of(tensor) == dtype
            assert np.isfinite(to_float64(tensor)).all()
    bias = t2t.attention_bias_ignore_padding(ops.ones((2, 3), dtype))
    assert dtype_of(bias) == dtype


def test_an_encoder_may_see_earlier_steps_only_and_a_decoder_all():
    hparams = SimpleNamespace(pos="none", unidirectional_encoder=True)
    x, bias, cross = t2t.transformer_prepare_encoder(X, None, hparams)
    np.testing.assert_array_equal(x, X)
    np.testing.assert_array_equal(bias, t2t.attention_bias_lower_triangle(5))
    np.testing.assert_array_equal(cross, np.zeros((2, 1, 1, 5)))
    hparams = SimpleNamespace(pos="none", causal_decoder_self_attention=False)
    padded = X * (np.arange(5) < 3)[:, None]
    _, bias = t2t.transformer_prepare_decoder(padded, hparams)
    np.testing.assert_array_equal(bias[1, 0, 0], [0, 0, 0, -1e9, -1e9])


def test_the_target_space_is_added_to_the_inputs_of_the_encoder():
    layer = keras.layers.Embedding(32, 10)
    hparams = SimpleNamespace(pos="none")
    x, bias, _ = t2t.transformer_prepare_encoder(
        X, 3, hparams, target_space_embedding=layer
    )
    added = to_float64(layer(np.array(3))).astype("float32")
    np.testing.assert_array_equal(to_float64(x), X + added)
    np.testing.assert_array_equal(bias, np.zeros((2, 1, 1, 5)))
    hparams.use_target_space_embedding = False
    x, *_ = t2t.transformer_prepare_encoder(X, 3, hparams)
    np.testing.assert_array_equal(x, X)


LAYERS = [
    (t2t.AddPositionalEmbedding(4), X, {}),
    (t2t.AddPositionalEmbedding(4), X, {"positions": POSITIONS}),
    (t2t.AddPositionalEmbeddingNd(6), IMAGE, {}),
    (t2t.AddLayerTimingSignalLearned1d(3), X, {"layer": 2}),
]
NAMES = ["positions", "given positions", "axes", "layer"]


@pytest.mark.parametrize(("layer", "x", "arguments"), LAYERS, ids=NAMES)
def test_a_learned_layer_comes_back_from_its_config(layer, x, arguments):
    expected = layer(x, **arguments)
    again = type(layer).from_config(layer.get_config())
    again.build(x.shape)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(
        to_float64(again(x, **arguments)), to_float64(expected)
    )
    assert layer.get_config() == again.get_config()


@pytest.mark.parametrize(("layer", "x", "arguments"), LAYERS, ids=NAMES)
@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_a_learned_layer_keeps_the_dtype_of_its_inputs(layer, x, arguments, policy):
    keras.config.set_dtype_policy(policy)
    again = type(layer).from_config({**layer.get_config(), "dtype": policy})
    for dtype in ("float32", "float16", "bfloat16"):
        y = again(ops.cast(x, dtype), **arguments)
        assert dtype_of(y) == dtype
    assert {dtype_of(weight) for weight in again.weights} == {"float32"}


def test_positions_beyond_the_table_add_nothing():
    layer = t2t.AddPositionalEmbedding(4)
    np.testing.assert_array_equal(to_float64(layer(X))[:, 4:], X[:, 4:])
    (table,) = layer.get_weights()
    rows = np.vstack([table, np.zeros((40, 10))])[POSITIONS]
    moved = to_float64(layer(X, positions=POSITIONS))
    np.testing.assert_allclose(moved, X + rows, rtol=1e-6)
    outside = to_float64(layer(X, positions=POSITIONS - 41))
    np.testing.assert_array_equal(outside, X)


def test_positions_are_not_rounded_to_the_compute_dtype():
    layer = t2t.AddPositionalEmbedding(1000, dtype="mixed_bfloat16")
    x = ops.zeros((1, 2, 4), "bfloat16")
    y = to_float64(layer(x, positions=np.array([[937.0, 936.0]])))
    table = to_float64(ops.cast(layer.table, "bfloat16"))
    np.testing.assert_array_equal(y[0], table[[937, 936]])


def test_learned_rows_start_with_the_size_of_a_unit_in_each_channel():
    for layer, shape in (
        (t2t.AddPositionalEmbeddingNd(50), (1, 50, 3, 64)),
        (t2t.AddLayerTimingSignalLearned1d(50), (1, 1, 64)),
    ):
        layer.build(shape)
        for weight in layer.weights:
            assert np.std(weight) == pytest.approx(64**-0.5, rel=0.1)


def test_learned_layers_serve_a_functional_model_of_unknown_length(tmp_path):
    ids = keras.Input((None,), dtype="int32")
    x = keras.layers.Embedding(9, 10, mask_zero=True)(ids) * 8.0
    x = t2t.AddPositionalEmbedding(4)(x)
    x = t2t.AddPositionalEmbeddingNd(9)(x)
    x = t2t.AddLayerTimingSignalLearned1d(3)(x, layer=1)
    assert x.shape == (None, None, 10)
    model = keras.Model(ids, x)
    model.save(tmp_path / "model.keras")
    again = keras.models.load_model(tmp_path / "model.keras")
    want, got = to_float64(model(SEGMENTS)), to_float64(again(SEGMENTS))
    np.testing.assert_array_equal(got, want)
