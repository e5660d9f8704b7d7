"""Masks: kept by the layer, and counted by `skip_masked`."""

import warnings

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from cases import CASES
from contract import (
    LAYOUTS,
    MODES,
    SUM,
    assert_close,
    on_tensorflow,
    randoms,
    to_float64,
)

import tfpe

MASK = np.array([[0, 0, 1, 1, 1], [1, 0, 1, 1, 0], [0, 0, 0, 0, 0]], bool)
STEPS = np.array([[0, 0, 0, 1, 2], [0, 0, 1, 2, 0], [0, 0, 0, 0, 0]])


def skipping(**settings):
    return tfpe.SinusoidalPositionalEncoding(skip_masked=True, **settings)


def expected(inputs, steps=STEPS, mask=MASK, **settings):
    """Returns inputs plus the signal of `steps` where the mask is true."""
    signal = oracle.rows(np.ravel(steps), inputs.shape[-1], **settings)
    signal = signal.reshape(*np.shape(steps), -1)
    return to_float64(inputs) + np.where(mask[..., None], signal, 0)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_unmasked_steps_are_counted_and_masked_ones_get_nothing(layout, mode):
    inputs = randoms(3, 5, 7)
    layer = skipping(layout=layout)
    call = MODES[mode](lambda mask: layer(inputs, mask=mask))
    outputs = call(keras.ops.convert_to_tensor(MASK))
    assert_close(outputs, expected(inputs, layout=layout), SUM)
    np.testing.assert_array_equal(to_float64(outputs)[~MASK], to_float64(inputs)[~MASK])


def test_mask_that_keras_attached_is_used_too():
    ids = np.where(MASK, 3, 0)
    embedding = keras.layers.Embedding(9, 6, mask_zero=True)
    embedded = embedding(ids)
    for call in (lambda x: skipping()(x), lambda x: skipping()(x, start_index=0)):
        assert_close(call(embedded), expected(embedded), SUM)
    start = keras.ops.convert_to_tensor(np.int32(4))
    outputs = skipping()(embedded, start_index=start)
    assert_close(outputs, expected(embedded, STEPS + 4), SUM)
    model = keras.Sequential([embedding, skipping()])
    assert_close(model(ids), expected(embedded), SUM)


@pytest.mark.parametrize("start", [6, -70000, [6, 0, 70000]], ids=str)
def test_count_begins_at_start_index(start):
    inputs = randoms(3, 5, 6)
    outputs = skipping(first_position=2)(inputs, start_index=start, mask=MASK)
    steps = STEPS + np.reshape(start, (-1, 1))
    assert_close(outputs, expected(inputs, steps, first_position=2), SUM)


def test_mask_only_removes_the_signal_where_positions_are_given():
    inputs, positions = randoms(3, 5, 6), np.array([9, 8, 7, -6, 5])
    outputs = skipping()(inputs, positions=positions, mask=MASK)
    steps = np.broadcast_to(positions, MASK.shape)
    assert_close(outputs, expected(inputs, steps), SUM)
    floats = skipping()(inputs, positions=np.where(MASK, steps, np.nan), mask=MASK)
    assert_close(floats, expected(inputs, steps), SUM)


def test_without_a_mask_nothing_is_skipped():
    inputs = randoms(3, 5, 6)
    want = to_float64(inputs) + oracle.rows(range(7, 12), 6)
    assert_close(skipping()(inputs, start_index=7), want, SUM)


def test_without_skip_masked_a_mask_changes_nothing():
    inputs = randoms(3, 5, 6)
    outputs = tfpe.SinusoidalPositionalEncoding()(inputs, mask=MASK)
    want = to_float64(inputs) + oracle.rows(range(5), 6)
    assert_close(outputs, want, SUM)


@pytest.mark.parametrize("dtype", [bool, "int32", "uint8"])
def test_mask_may_be_bool_or_integer(dtype):
    inputs = randoms(3, 5, 6)
    mask = MASK.astype(dtype) * np.array(2).astype(dtype)
    assert_close(skipping()(inputs, mask=mask), expected(inputs), SUM)


@pytest.mark.parametrize("axis", [0, -3])
def test_mask_of_time_major_inputs_is_time_major(axis):
    inputs = randoms(5, 3, 6)
    outputs = skipping(axis=axis)(inputs, mask=MASK.T, start_index=[5, 0, 2])
    steps = (STEPS + np.array([[5], [0], [2]])).T
    assert_close(outputs, expected(inputs, steps, MASK.T), SUM)


def test_mask_may_have_every_leading_axis_or_those_to_the_positional_one():
    inputs = randoms(3, 5, 2, 6)
    layer = skipping(axis=1)
    want = expected(inputs, STEPS[..., None], MASK[..., None])
    assert_close(layer(inputs, mask=MASK), want, SUM)
    mask = np.stack([MASK, MASK[:, ::-1]], -1)
    steps = np.maximum(np.cumsum(mask, axis=1) - 1, 0)
    want = expected(inputs, steps, mask)
    assert_close(layer(inputs, mask=mask), want, SUM)


@pytest.mark.case("left-padding")
def test_real_rows_of_left_and_right_padded_copies_are_equal():
    tokens = randoms(1, 3, 6)
    padding = randoms(1, 2, 6, seed=1)
    left = keras.ops.concatenate([padding, tokens], axis=1)
    right = keras.ops.concatenate([tokens, padding], axis=1)
    mask = np.array(CASES["left-padding"]["mask"], bool)
    np.testing.assert_array_equal(tfpe.positions_from_mask(mask)[:, 2:], [[0, 1, 2]])
    outputs = [
        skipping()(left, mask=mask)[:, 2:],
        skipping()(right, mask=mask[:, ::-1])[:, :3],
    ]
    np.testing.assert_array_equal(*outputs)
    want = to_float64(tokens) + oracle.rows(range(3), 6)
    assert_close(outputs[0], want, SUM)


@pytest.mark.case("mask")
@pytest.mark.parametrize("skip_masked", [False, True])
def test_mask_of_an_embedding_is_kept(skip_masked):
    layer = tfpe.SinusoidalPositionalEncoding(skip_masked=skip_masked)
    embedding = keras.layers.Embedding(9, 6, mask_zero=True)
    ids = np.where(MASK, 3, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        outputs = layer(embedding(ids))
        start = keras.ops.convert_to_tensor(np.int32(4))
        shifted = layer(embedding(ids), start_index=start)
    np.testing.assert_array_equal(outputs._keras_mask, MASK)
    np.testing.assert_array_equal(shifted._keras_mask, MASK)
    np.testing.assert_array_equal(layer.compute_mask(None, MASK), MASK)
    assert layer.compute_mask(embedding(ids), None) is None


def test_mask_of_a_masking_layer_reaches_the_layer_behind():
    inputs = np.array(randoms(3, 5, 6))
    mask = MASK | ([[False]] * 2 + [[True]])  # a mean wants a step in each row
    inputs[~mask] = -1
    given = keras.Input((None, 6))
    encoded = tfpe.SinusoidalPositionalEncoding()(keras.layers.Masking(-1.0)(given))
    model = keras.Model(given, keras.layers.GlobalAveragePooling1D()(encoded))
    rows = np.where(mask[..., None], inputs + oracle.rows(range(5), 6), 0)
    assert_close(model(inputs), rows.sum(1) / mask.sum(1)[:, None], 2 * SUM)


def test_mask_may_be_an_input_of_a_functional_model():
    given, mask = keras.Input((None, 6)), keras.Input((None,), dtype="bool")
    model = keras.Model([given, mask], skipping()(given, mask=mask))
    inputs = randoms(3, 5, 6)
    mask = keras.ops.convert_to_tensor(MASK)
    assert_close(model([inputs, mask]), expected(inputs), SUM)


@on_tensorflow
def test_mask_of_unknown_size_is_used_in_a_graph():
    layer = skipping()
    signature = [tf.TensorSpec([None, None, 6]), tf.TensorSpec([None, None], "bool")]
    call = tf.function(lambda x, m: layer(x, mask=m), input_signature=signature)
    inputs = randoms(3, 5, 6)
    assert_close(call(inputs, MASK), expected(inputs), SUM)
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(inputs, MASK[:, 1:])
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(inputs, MASK.T)


@pytest.mark.parametrize("mask", [np.ones((2, 5), bool), np.ones((2,), bool)])
def test_a_mask_that_does_not_fit_is_refused_in_a_symbolic_call(mask):
    with pytest.raises(ValueError, match="`mask` must have the"):
        skipping()(keras.Input((4, 8), batch_size=2), mask=mask)


def test_a_symbolic_mask_that_does_not_fit_is_refused():
    with pytest.raises(ValueError, match="`mask` must have the"):
        skipping()(keras.Input((4, 8)), mask=keras.Input((5,), dtype="bool"))
