"""The layer among Keras' own: models, policies, graphs, training."""

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import (
    COMPILED,
    FLOAT32,
    MODES,
    POLICIES,
    assert_close,
    assert_promised,
    assert_same_in_dtype,
    dtype_of,
    randoms,
    to_float64,
)

import tfpe

SUM = 2 * FLOAT32  # of float32 numbers below 4 in size: the signal and one rounding


@pytest.mark.parametrize("policy", POLICIES)
def test_model_trains_under_every_policy(policy):
    keras.config.set_dtype_policy(policy)
    model = keras.Sequential(
        [
            keras.Input((None,), dtype="int32"),
            keras.layers.Embedding(11, 6),
            tfpe.SinusoidalPositionalEncoding(layout="concatenated"),
            keras.layers.Dense(3),
        ]
    )
    model.compile("sgd", "mse")
    ids = np.random.default_rng(0).integers(0, 11, (8, 5))
    targets = np.array(randoms(8, 5, 3))
    losses = model.fit(ids, targets, batch_size=3, epochs=3, verbose=0).history["loss"]
    assert np.isfinite(losses).all()
    assert losses[-1] < losses[0]


def test_scaled_embedding_in_a_functional_model_trains():
    ids = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(67, 64)(ids) * 8.0
    encoded = tfpe.SinusoidalPositionalEncoding()(embedded)
    assert encoded.shape == (None, None, 64)
    assert not encoded.sparse
    model = keras.Model(ids, keras.layers.Dense(3)(encoded))
    model.compile("sgd", "mse")
    data = np.random.default_rng(0).integers(0, 67, (4, 7)), np.array(randoms(4, 7, 3))
    assert np.isfinite(model.fit(*data, verbose=0).history["loss"]).all()
    inner = keras.Model(ids, encoded)
    embedded = inner.get_weights()[0][data[0]] * 8
    assert_close(inner(data[0]), embedded + oracle.rows(range(7), 64), SUM)


@pytest.mark.parametrize(
    ("shape", "axis"), [((None, 8), -2), ((None, 5, 8), 1), ((None, None, 8), (1, 2))]
)
def test_symbolic_outputs_keep_what_is_known_of_the_shape(shape, axis):
    outputs = tfpe.SinusoidalPositionalEncoding(axis=axis)(keras.Input(shape))
    assert outputs.shape == (None, *shape)
    layer = tfpe.SinusoidalPositionalEncoding(axis=axis)
    assert layer.compute_output_shape((None, *shape)) == (None, *shape)


@pytest.mark.parametrize("policy", POLICIES)
def test_symbolic_and_eager_outputs_have_the_compute_dtype(policy):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=policy)
    outputs = layer(keras.Input((None, 6), dtype="float32"))
    assert dtype_of(outputs) == dtype_of(layer(randoms(2, 5, 6))) == layer.compute_dtype


@pytest.mark.parametrize("mode", MODES)
def test_static_channels_survive_a_graph(mode):
    layer, shapes = tfpe.SinusoidalPositionalEncoding(), []

    @MODES[mode]
    def call(inputs):
        outputs = layer(inputs)
        shapes.append(outputs.shape.as_list())
        return outputs

    call(randoms(2, 5, 6))
    assert shapes[0] == [2, 5, 6]
    unknown = tf.function(
        call, input_signature=[tf.TensorSpec([None, None, 6])], autograph=False
    )
    unknown(randoms(2, 5, 6))
    assert shapes[-1][-1] == 6


def test_steps_may_be_inputs_of_a_functional_model():
    inputs = keras.Input((None, 6))
    start = keras.Input((), dtype="int32")
    positions = keras.Input((None,), dtype="float32")
    layer = tfpe.SinusoidalPositionalEncoding()
    model = keras.Model(
        [inputs, start, positions],
        [layer(inputs, start_index=start), layer(inputs, positions=positions)],
    )
    x, starts = np.array(randoms(3, 5, 6)), np.array([0, 70000, -4], "int32")
    where = np.array(randoms(3, 5)) * 100
    for found in (
        model([x, starts, where]),
        model.predict([x, starts, where], verbose=0),
    ):
        want = np.stack([oracle.rows(range(s, s + 5), 6) for s in starts])
        assert_close(found[0], x + want, SUM)
        want = oracle.rows(where.ravel(), 6).reshape(3, 5, 6)
        assert_close(found[1], x + want, 2 * SUM)


def test_grids_and_their_positions_may_be_inputs_of_a_functional_model():
    inputs = keras.Input((None, 8))
    rows, columns = (keras.Input((None,), dtype="int32") for _ in range(2))
    layer = tfpe.SinusoidalPositionalEncoding(axis=(1, 2))
    encoded = layer(inputs, positions=(rows, columns))
    assert encoded.shape == (None, None, 8)
    model = keras.Model([inputs, rows, columns], encoded)
    x, where = np.array(randoms(3, 6, 8)), np.divmod(np.arange(18).reshape(3, 6), 4)
    want = oracle.rows(list(zip(*map(np.ravel, where), strict=True)), 8)
    assert_close(model([x, *where]), x + want.reshape(3, 6, 8), SUM)


def test_one_instance_serves_encoder_and_decoder():
    layer = tfpe.SinusoidalPositionalEncoding()
    source, target = keras.Input((7, 6)), keras.Input((5, 6))
    encoded, decoded = layer(source), layer(target)
    attended = keras.layers.MultiHeadAttention(2, 3)(decoded, encoded)
    model = keras.Model([source, target], [encoded, decoded, attended])
    x, y = np.array(randoms(2, 7, 6)), np.array(randoms(2, 5, 6, seed=1))
    found = model([x, y])
    assert_close(found[0], x + oracle.rows(range(7), 6), SUM)
    assert_close(found[1], y + oracle.rows(range(5), 6), SUM)


@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("policy", POLICIES)
def test_layer_may_be_first_called_in_a_graph(policy, mode):
    keras.config.set_dtype_policy(policy)
    layer = tfpe.SinusoidalPositionalEncoding()
    inputs = randoms(2, 5, 6, dtype=layer.compute_dtype)
    zeros = keras.ops.zeros_like(inputs)
    call = MODES[mode](layer)
    first = call(inputs)
    eager = layer(inputs)
    assert_same_in_dtype(first, eager)
    assert_same_in_dtype(tf.function(lambda x: layer(x))(inputs), eager)
    assert_promised(call(zeros)[1], oracle.rows(range(5), 6), range(5))
    assert_promised(layer(zeros, start_index=9)[0], oracle.rows(range(9, 14), 6))


@pytest.mark.parametrize("mode", MODES)
def test_lengths_and_start_indices_in_any_order_give_the_same_values(mode):
    layer = tfpe.SinusoidalPositionalEncoding()
    call = MODES[mode](lambda x, start: layer(x, start_index=start))
    for length, start in ((3, 0), (5001, 0), (3, 5), (3, 0), (7, 70000), (5001, 0)):
        where = np.arange(start, start + length)
        got = call(np.zeros((1, length, 6), "float32"), np.int32(start))
        assert_promised(got[0], oracle.many_rows(where, 6), where)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("start_shape", [(), (2,)])
def test_one_trace_serves_all_lengths_and_start_indices(start_shape, jit_compile):
    layer, traces = tfpe.SinusoidalPositionalEncoding(), []

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 6]),
            tf.TensorSpec(start_shape, "int32"),
        ],
        jit_compile=jit_compile,
    )
    def call(inputs, start_index):
        traces.append(inputs.shape)
        return layer(inputs, start_index=start_index)

    every = 10 if jit_compile else 1
    for length in range(1, 51, every):
        start = 50 - length
        starts = np.full(start_shape, start, "int32")
        got = call(np.zeros((2, length, 6), "float32"), starts)
        want = oracle.many_rows(range(start, start + length), 6)
        assert_promised(got[1], want, np.arange(start, start + length))
    assert len(traces) == 1


@pytest.mark.parametrize("policy", POLICIES)
def test_xla_takes_unknown_lengths_and_start_indices_as_data(policy):
    keras.config.set_dtype_policy(policy)
    layer = tfpe.SinusoidalPositionalEncoding()
    dtype = layer.compute_dtype
    call = tf.function(
        lambda x, start: layer(x, start_index=start),
        input_signature=[
            tf.TensorSpec([None, None, 8], dtype),
            tf.TensorSpec([], "int32"),
        ],
        jit_compile=True,
    )
    for length, start in ((3, 2), (300, 65500), (3, -1)):
        got = call(keras.ops.zeros((2, length, 8), dtype), start)
        where = np.arange(start, start + length)
        assert_promised(got[1], oracle.many_rows(where, 8), where)


@pytest.mark.parametrize("policy", ["float32", "mixed_bfloat16"])
def test_eager_graph_and_xla_agree(policy):
    keras.config.set_dtype_policy(policy)
    layer = tfpe.SinusoidalPositionalEncoding(layout="concatenated")
    inputs = randoms(2, 600, 6, dtype=layer.compute_dtype)
    where = keras.ops.convert_to_tensor(
        np.random.default_rng(0).integers(-(2**31), 2**31, 600).astype("int32")
    )

    def calls(inputs, where):
        yield layer(inputs)
        yield layer(inputs, start_index=-300)
        yield layer(inputs, start_index=2**24)
        yield layer(inputs, positions=where)

    found = {name: mode(lambda *a: list(calls(*a))) for name, mode in MODES.items()}
    eager, *others = [call(inputs, where) for call in found.values()]
    for other in others:
        for got, want in zip(other, eager, strict=True):
            assert_same_in_dtype(got, want)


def test_layer_works_inside_time_distributed_and_a_dataset():
    layer = tfpe.SinusoidalPositionalEncoding()
    inputs = np.array(randoms(2, 4, 5, 6))
    want = inputs + oracle.rows(range(5), 6)
    assert_close(keras.layers.TimeDistributed(layer)(inputs), want, SUM)
    mapped = tf.data.Dataset.from_tensor_slices(inputs).map(layer)
    assert_close(np.stack([np.array(x) for x in mapped]), want, SUM)


@pytest.mark.parametrize("old", POLICIES)
@pytest.mark.parametrize("new", POLICIES)
def test_a_built_layer_follows_a_change_of_policy(old, new):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=old)
    inputs = randoms(3, 5, 6)
    layer(inputs)
    layer.dtype_policy = new
    fresh = tfpe.SinusoidalPositionalEncoding(dtype=new)(inputs)
    np.testing.assert_array_equal(to_float64(layer(inputs)), to_float64(fresh))


def test_a_policy_without_floats_is_refused_and_changes_nothing():
    layer = tfpe.SinusoidalPositionalEncoding()
    with pytest.raises(ValueError, match="`dtype` must be one of"):
        layer.dtype_policy = "int32"
    assert layer.compute_dtype == "float32"
