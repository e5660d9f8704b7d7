"""Inputs and positions of the wrong kind are refused with a way out."""

import types

import keras
import numpy as np
import pytest
from contract import on_tensorflow, randoms, refuses

import tfpe

Layer = tfpe.SinusoidalPositionalEncoding


@pytest.mark.case("ragged-positions")
@on_tensorflow
def test_ragged_positions_and_masks_are_refused_by_name():
    import tensorflow as tf

    ragged = tf.ragged.constant([[1, 2], [3]])
    for call, name in (
        (lambda: Layer()(tf.zeros((2, 2, 6)), positions=ragged), "positions"),
        (lambda: tfpe.timing_signal_at(ragged, 6), "positions"),
        (lambda: tfpe.SinusoidalEmbedding(6)(ragged), "positions"),
        (
            lambda: Layer(skip_masked=True)(tf.zeros((2, 2, 6)), mask=ragged),
            "mask",
        ),
    ):
        with refuses(TypeError, f"`{name}` must be dense", "to_tensor"):
            call()


@on_tensorflow
def test_sparse_tensors_and_unknown_ranks_are_refused():
    import tensorflow as tf

    with refuses(TypeError, "`inputs` must be dense", "SparseTensor"):
        Layer()(tf.sparse.from_dense(tf.ones((1, 2, 6))))
    call = tf.function(Layer(), input_signature=[tf.TensorSpec(None)])
    with refuses(ValueError, "`inputs` must have a known rank"):
        call.get_concrete_function()


@pytest.mark.parametrize("inputs", [None, [[[0.0] * 6] * 3], "text"])
def test_what_is_no_tensor_is_refused(inputs):
    with refuses(TypeError, "`inputs` must be a tensor of floats", "Received"):
        Layer()(inputs)


def test_a_sequence_without_a_batch_is_told_how_to_get_one():
    for inputs in (randoms(5, 6), keras.Input((6,))):
        with refuses(ValueError, "rank of at least 3", "x[None]", "timing_signal"):
            Layer()(inputs)


def test_a_tensor_of_keras_2_is_told_that_this_is_for_keras_3():
    foreign = types.SimpleNamespace(shape=(None, 3, 6), dtype="float32")
    kind = type("KerasTensor", (), {"__module__": "tf_keras.src.engine.keras_tensor"})
    tensor = kind()
    tensor.__dict__.update(vars(foreign))
    with refuses(TypeError, "`inputs` must be a tensor of Keras 3", "tf_keras"):
        Layer()(tensor)


def test_nothing_is_remembered_of_a_refused_call():
    layer = Layer()
    with refuses(TypeError, "`inputs`"):
        layer(None)
    assert layer(np.zeros((1, 2, 6), "float32")).shape == (1, 2, 6)
