"""The layer among Keras' own: models, policies, graphs, training."""

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import (
    MODES,
    POLICIES,
    SUM,
    assert_close,
    assert_same_in_dtype,
    dtype_of,
    dtypes,
    on_tensorflow,
    randoms,
    to_float64,
)

import tfpe


@pytest.mark.parametrize("policy", dtypes(*POLICIES))
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
    model.compile(keras.optimizers.SGD(0.1), "mse")
    ids = np.random.default_rng(0).integers(0, 11, (8, 5))
    targets = np.array(randoms(8, 5, 3))
    for batch_size in (3, 8):
        history = model.fit(ids, targets, batch_size=batch_size, epochs=3, verbose=0)
        assert np.all(np.diff(history.history["loss"]) < 0)


@pytest.mark.case("scaled-embedding")
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


@pytest.mark.parametrize("policy", dtypes(*POLICIES))
def test_symbolic_and_eager_outputs_have_the_compute_dtype(policy):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=policy)
    outputs = layer(keras.Input((None, 6), dtype="float32"))
    assert dtype_of(outputs) == dtype_of(layer(randoms(2, 5, 6))) == layer.compute_dtype


@on_tensorflow
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


@pytest.mark.case("shared-instance")
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


@on_tensorflow
def test_layer_works_inside_time_distributed_and_a_dataset():
    layer = tfpe.SinusoidalPositionalEncoding()
    inputs = np.array(randoms(2, 4, 5, 6))
    want = inputs + oracle.rows(range(5), 6)
    assert_close(keras.layers.TimeDistributed(layer)(inputs), want, SUM)
    mapped = tf.data.Dataset.from_tensor_slices(inputs).map(layer)
    assert_close(np.stack([np.array(x) for x in mapped]), want, SUM)


@pytest.mark.parametrize("old", dtypes(*POLICIES))
@pytest.mark.parametrize("new", dtypes(*POLICIES))
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
