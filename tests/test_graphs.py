"""Graphs in every order of calls, steps as data under XLA, and gradients."""

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import (
    COMPILED,
    FLOAT32,
    FLOAT64,
    FRACTION,
    MODES,
    POLICIES,
    SUM,
    assert_close,
    assert_promised,
    assert_same_in_dtype,
    dtypes,
    export,
    on_tensorflow,
    randoms,
)

import tfpe

pytestmark = on_tensorflow
WAYS = ("graph", "xla", "eager", "symbolic", "model graph", "dataset", "export")


def use(way, layer, inputs, folder):
    """Returns what the layer gives for inputs (2, length, 6), the given way."""
    if way == "eager":
        return layer(inputs)
    if way in ("graph", "xla"):
        return tf.function(layer, jit_compile=way == "xla")(inputs)
    if way == "dataset":
        (found,) = tf.data.Dataset.from_tensors(inputs).map(layer)
        return found
    given = keras.Input((None, 6))
    model = keras.Model(given, layer(given))
    if way == "symbolic":
        return model(inputs)
    if way == "model graph":
        return tf.function(model)(inputs)
    export(model, folder)
    return tf.saved_model.load(str(folder)).serve(inputs)


@pytest.mark.case("order-of-calls")
@pytest.mark.slow
@pytest.mark.parametrize("first", WAYS)
def test_ways_to_call_may_come_in_any_order(first, tmp_path):
    others = [way for way in WAYS if way != first]
    for number, second in enumerate(others):
        layer = tfpe.SinusoidalPositionalEncoding(layout="concatenated")
        # Each way comes second once, and each pair of ways both ways round.
        for length, way in zip((5, 5000, 3), (first, second, first), strict=True):
            inputs = randoms(2, length, 6)
            got = use(way, layer, inputs, tmp_path / f"{number} {length}")
            want = oracle.many_rows(range(length), 6, layout="concatenated")
            assert_close(got, np.array(inputs, "float64") + want, SUM)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize(
    "kind", ["start", "two starts", "starts", "positions", "floats"]
)
@pytest.mark.case("retrace")
def test_one_trace_serves_all_lengths_and_steps(kind, jit_compile):
    shapes = {"start": [], "two starts": [2], "starts": [None]}
    dtype = "float32" if kind == "floats" else "int32"
    name = "start_index" if kind in shapes else "positions"
    layer, traces = tfpe.SinusoidalPositionalEncoding(), []

    @tf.function(
        input_signature=[
            tf.TensorSpec([None, None, 6]),
            tf.TensorSpec(shapes.get(kind, [None, None]), dtype),
        ],
        jit_compile=jit_compile,
    )
    def call(inputs, steps):
        traces.append(inputs.shape)
        return layer(inputs, **{name: steps})

    edges = ((3, 0), (7, 4090), (3, 70000), (9, -4), (1, 2**24))
    # XLA compiles each length once, so there it has few of them.
    every = [(length, 50 - length) for length in range(1, 51, 10 if jit_compile else 1)]
    for length, start in (*edges, *every):
        starts = np.array([start, 5])
        if kind == "start":
            starts[1] = start
        where = starts[:, None] + np.arange(length)
        steps = starts if kind in shapes else where
        steps = starts[0] if kind == "start" else steps
        got = call(np.zeros((2, length, 6), "float32"), steps.astype(dtype))
        want = oracle.rows(where.ravel(), 6).reshape(2, length, 6)
        assert_promised(got, want)
    assert len(traces) == 1


def test_eager_calls_of_any_size_and_dtype_bring_no_warning_of_traces(caplog):
    for length, channels in ((5000, 6), (6000, 6), (6000, 8), (7000, 10)):
        for dtype in ("float32", "float64"):
            got = tfpe.timing_signal(length, channels, dtype=dtype)
            want = oracle.many_rows(range(length), channels)
            assert_close(got, want, FLOAT32 if dtype == "float32" else FLOAT64)
    assert not caplog.records


@pytest.mark.parametrize("spec", [[5, 6], [None, 6]], ids=str)
def test_dataset_of_batches_is_mapped(spec):
    inputs = np.array(randoms(7, 5, 6))
    data = tf.data.Dataset.from_generator(
        lambda: iter(inputs), output_signature=tf.TensorSpec(spec)
    )
    layer = tfpe.SinusoidalPositionalEncoding()
    mapped = data.batch(3).map(layer, num_parallel_calls=2)
    assert mapped.element_spec.shape.as_list() == [None, *spec]
    got = np.concatenate([np.array(batch) for batch in mapped])
    assert_close(got, inputs + oracle.rows(range(5), 6), SUM)


@pytest.mark.parametrize("jit_compile", [False, True])
@pytest.mark.parametrize("start", [0, 4094, 70000])
def test_gradient_of_inputs_is_what_came_in_for_it(start, jit_compile):
    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(2, 5, 6)
    weights = randoms(2, 5, 6, seed=1)

    @tf.function(
        input_signature=[tf.TensorSpec([None, None, 6])], jit_compile=jit_compile
    )
    def slope(inputs):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs, start_index=start) * weights
        return tape.gradient(outputs, inputs)

    np.testing.assert_array_equal(slope(inputs), weights)


@pytest.mark.parametrize("jit_compile", [False, True])
def test_gradient_of_positions_given_to_a_layer_is_right_by_row(jit_compile):
    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(2, 3, 4)
    where = np.array([[0.5, -1.25, 300.75], [2.0, 65537.5, -8.0]], "float32")

    @tf.function(jit_compile=jit_compile)
    def slope(positions):
        with tf.GradientTape() as tape:
            tape.watch(positions)
            outputs = layer(inputs, positions=positions)
        return tape.gradient(outputs, positions)

    # Each sine gives a cosine, each cosine minus a sine, over the timescale.
    rows = oracle.rows(where.ravel().astype("float64"), 4)
    factors = np.repeat(1 / tfpe.timescales(4), 2) * [-1, 1, -1, 1]
    want = (rows[:, [1, 0, 3, 2]] * -factors).sum(1).reshape(2, 3)
    assert_close(slope(tf.constant(where)), want, 4 * FRACTION)


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("far", [300.75, 2.0**31 + 512, 2.0**40])
@pytest.mark.parametrize("mode", ["eager", *COMPILED])
def test_second_derivative_of_positions_is_right(mode, far, persistent):
    where = np.array([0.5, -1.25, far], "float32")

    def second_derivative(positions):
        with tf.GradientTape(persistent) as outer:
            outer.watch(positions)
            with tf.GradientTape(persistent) as inner:
                inner.watch(positions)
                sine = tfpe.timing_signal_at(positions, 2)[:, 0]
            slope = inner.gradient(sine, positions)
        return outer.gradient(slope, positions)

    got = MODES[mode](second_derivative)(tf.constant(where))
    assert_close(got, -oracle.rows(where.astype("float64"), 2)[:, 0], 2 * FRACTION)


@pytest.mark.case("xla")
@pytest.mark.parametrize("policy", dtypes(*POLICIES))
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
    for length, start in ((5, 2047), (9, 70000), (3, 2), (300, 65500), (3, -1)):
        got = call(keras.ops.zeros((2, length, 8), dtype), start)
        where = np.arange(start, start + length)
        assert_promised(got[1], oracle.many_rows(where, 8), where)


@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("policy", dtypes(*POLICIES))
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
