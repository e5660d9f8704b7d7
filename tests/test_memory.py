"""What the layer holds is bounded, however long the calls, and is freed with it."""

import gc
import os
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf
from contract import dtypes, export, on_tensorflow

import tfpe

CHANNELS = 512
BOUND = 12 * 2**20 * CHANNELS // 512  # bytes that a layer of these channels may hold
CALLS = 10_000


def traced(layer, length, jit=False):
    """Returns a concrete function of the layer; a length may be `None`."""
    spec = tf.TensorSpec([None, length, CHANNELS], layer.compute_dtype)
    function = tf.function(layer, jit_compile=jit, autograph=False)
    return function.get_concrete_function(spec)


def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@on_tensorflow
@pytest.mark.parametrize("policy", dtypes("float32", "mixed_bfloat16", "float64"))
@pytest.mark.parametrize("length", [None, 300, 131_072])
def test_a_graph_captures_no_more_than_the_bound(length, policy):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=policy)
    concrete = traced(layer, length)
    captured = {
        id(t): t.dtype.size * t.shape.num_elements() for t in concrete.captured_inputs
    }
    assert 0 < sum(captured.values()) <= BOUND
    # Nothing is written into the graph instead.
    assert concrete.graph.as_graph_def().ByteSize() < 2**16


@on_tensorflow
def test_two_axes_hold_no_more_than_one():
    layer = tfpe.SinusoidalPositionalEncoding(axis=(1, 2))
    spec = tf.TensorSpec([None, None, None, CHANNELS])
    concrete = tf.function(layer, autograph=False).get_concrete_function(spec)
    captured = {id(t): t.shape.num_elements() for t in concrete.captured_inputs}
    assert 0 < 4 * sum(captured.values()) <= BOUND


@on_tensorflow
def test_saved_model_grows_by_no_more_than_the_bound(tmp_path):
    inputs = keras.Input((None, CHANNELS))
    model = keras.Model(inputs, tfpe.SinusoidalPositionalEncoding()(inputs))
    export(model, tmp_path)
    size = sum(f.stat().st_size for f in tmp_path.rglob("*") if f.is_file())
    assert size <= BOUND + 2**18
    model.save(tmp_path / "model.keras")
    assert (tmp_path / "model.keras").stat().st_size < 2**16  # no tables at all


@on_tensorflow
@pytest.mark.parametrize("jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_calls_of_varying_length_neither_trace_nor_grow(jit):
    channels, traces = 8, []
    layer = tfpe.SinusoidalPositionalEncoding()

    def call(x, start_index):
        traces.append(x.shape)
        return layer(x, start_index=start_index)

    signature = [tf.TensorSpec([None, None, channels]), tf.TensorSpec([], tf.int32)]
    function = tf.function(
        call, jit_compile=jit, autograph=False, input_signature=signature
    )
    # XLA compiles each length once, so there it has few of them.
    lengths = np.random.default_rng(0).integers(1, 6 if jit else 600, CALLS)
    for length in range(1, lengths.max() + 1):
        function(tf.zeros([1, length, channels]), tf.constant(0))
    gc.collect()
    before = resident()
    for number, length in enumerate(lengths.tolist()):
        function(tf.zeros([1, length, channels]), tf.constant(number))
    gc.collect()
    assert len(traces) == 1
    # A call that kept as little as 2 KiB would show.
    assert resident() - before < 2_000 * CALLS


@on_tensorflow
def test_a_deleted_layer_frees_its_tables():
    # Equal layers share tables, so these are no other test's settings.
    layer = tfpe.SinusoidalPositionalEncoding(amplitude=0.8125)
    layer(np.zeros((1, 3, 8), "float32"))
    traced_once = tf.function(layer, autograph=False)
    traced_once(tf.zeros([1, 3, 8]))
    tables = weakref.ref(layer._sinusoids)
    assert tables() is not None
    del layer, traced_once
    gc.collect()
    assert tables() is None
