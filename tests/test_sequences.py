"""Sequences as they come: padded, packed, decoded in batches, and ragged."""

import keras
import numpy as np
import oracle
import pytest
from contract import SUM, assert_close, on_tensorflow, randoms, to_float64

import tfpe


@pytest.mark.parametrize("skip_masked", [False, True])
@pytest.mark.parametrize("side", ["left", "right"])
def test_ids_padded_on_either_side_go_through_a_model(side, skip_masked):
    ids = np.array([[0, 0, 3, 4, 5], [0, 0, 0, 0, 7], [1, 2, 3, 4, 5]])
    ids = ids if side == "left" else ids[:, ::-1]
    layer = tfpe.SinusoidalPositionalEncoding(skip_masked=skip_masked)
    embedding = keras.layers.Embedding(9, 6, mask_zero=True)
    given = keras.Input((None,), dtype="int32")
    encoded = layer(embedding(given))
    model = keras.Model(given, encoded)
    mask = ids != 0
    steps = np.broadcast_to(np.arange(5), ids.shape)
    if skip_masked:
        steps = np.maximum(np.cumsum(mask, 1) - 1, 0)
    signal = oracle.rows(steps.ravel(), 6).reshape(3, 5, 6)
    if skip_masked:
        signal[~mask] = 0
    table = embedding.get_weights()[0]
    assert_close(model(ids), table[ids] + signal, SUM)
    np.testing.assert_array_equal(to_float64(model(ids)._keras_mask), mask)


def test_packed_segments_each_count_from_zero_in_a_model():
    ids = np.array([[1, 1, 1, 2, 2, 7, 7], [4, 5, 5, 5, 4, 4, 4]], "int32")
    steps = [[0, 1, 2, 0, 1, 0, 1], [0, 0, 1, 2, 0, 1, 2]]
    inputs = randoms(2, 7, 6)
    layer = tfpe.SinusoidalPositionalEncoding()
    got = layer(inputs, positions=tfpe.positions_from_segments(ids))
    want = oracle.rows(np.ravel(steps), 6).reshape(2, 7, 6)
    assert_close(got, to_float64(inputs) + want, SUM)


def test_rows_of_a_batch_decode_from_places_of_their_own():
    layer, starts = tfpe.SinusoidalPositionalEncoding(), np.array([0, 4093, 17])
    steps = np.array(randoms(6, 3, 1, 6))
    for number, inputs in enumerate(steps):
        # The second row is done after three steps and a new one takes its place.
        if number == 3:
            starts[1] = -3
        where = starts + number
        got = layer(inputs, start_index=where.astype("int32"))
        assert_close(got, inputs + oracle.rows(where.tolist(), 6)[:, None], SUM)


def test_mask_given_by_hand_goes_before_that_of_keras():
    ids, mask = np.array([[3, 4, 0, 5]]), np.array([[False, True, True, True]])
    embedded = keras.layers.Embedding(9, 6, mask_zero=True)(ids)
    got = tfpe.SinusoidalPositionalEncoding(skip_masked=True)(embedded, mask=mask)
    want = oracle.rows([0, 0, 1, 2], 6) * mask[0][:, None]
    assert_close(got[0], to_float64(embedded)[0] + want, SUM)


def test_time_distributed_counts_within_each_part():
    layer = tfpe.SinusoidalPositionalEncoding()
    given = keras.Input((3, 5, 6))
    model = keras.Model(given, keras.layers.TimeDistributed(layer)(given))
    inputs = np.array(randoms(2, 3, 5, 6))
    assert_close(model(inputs), inputs + oracle.rows(range(5), 6), SUM)


def test_subclassed_model_takes_steps_and_masks():
    class Decoder(keras.Model):
        def __init__(self):
            super().__init__()
            self.embedding = keras.layers.Embedding(9, 6, mask_zero=True)
            self.places = tfpe.SinusoidalPositionalEncoding(skip_masked=True)

        def call(self, ids, start_index=0):
            return self.places(self.embedding(ids), start_index=start_index)

    model, ids = Decoder(), np.array([[0, 3, 4], [5, 0, 6]])
    steps = np.array([[0, 0, 1], [0, 0, 1]]) + 40
    got = model(ids, start_index=40)
    want = oracle.rows(steps.ravel(), 6).reshape(2, 3, 6) * (ids != 0)[..., None]
    assert_close(got, model.embedding.get_weights()[0][ids] + want, SUM)


def test_kerashub_encoder_and_decoder_follow_the_layer():
    hub = pytest.importorskip("keras_hub")
    places = tfpe.SinusoidalPositionalEncoding()
    source, target = keras.Input((None, 8)), keras.Input((None, 8))
    encoded = hub.layers.TransformerEncoder(16, 2)(places(source))
    decoded = hub.layers.TransformerDecoder(16, 2)(places(target), encoded)
    model = keras.Model([source, target], decoded)
    inputs = [np.array(randoms(2, 7, 8)), np.array(randoms(2, 5, 8, seed=1))]
    model.compile("sgd", "mse")
    assert np.isfinite(model.train_on_batch(inputs, 0 * inputs[1]))
    # The decoder sees the order of what it attends to.
    shuffled = [inputs[0][:, ::-1], inputs[1]]
    both = [to_float64(model(x)) for x in (inputs, shuffled)]
    assert np.abs(both[0] - both[1]).max() > 1e-3


@pytest.mark.case("padded-keras-hub")
@pytest.mark.filterwarnings("ignore:Layer 'sine_position_encoding:UserWarning")
def test_a_padded_model_keeps_the_numbers_of_kerashub_without_the_mask():
    hub = pytest.importorskip("keras_hub")
    tokens = keras.Input((None,), dtype="int32")
    embedded = keras.layers.Embedding(9, 8, mask_zero=True)(tokens)
    attention = keras.layers.MultiHeadAttention(2, 4)
    steps = keras.ops.cumsum(keras.ops.ones_like(tokens), axis=1) - 1
    signal = tfpe.SinusoidalEmbedding.from_convention("keras_hub", 8)(steps)
    layer = tfpe.SinusoidalPositionalEncoding.from_convention("keras_hub")
    encoded = {
        "theirs": embedded + hub.layers.SinePositionEncoding()(embedded),
        "ours": embedded + signal,
        "with the mask": layer(embedded),
        "twice": embedded + layer(embedded),
    }
    found = {name: keras.Model(tokens, attention(x, x)) for name, x in encoded.items()}
    for words, same in (([[5, 6, 7, 8]], True), ([[5, 6, 7, 0]], False)):
        outputs = {name: model(np.array(words)) for name, model in found.items()}
        outputs = {name: to_float64(y) for name, y in outputs.items()}
        theirs = outputs["theirs"]
        difference = {name: np.abs(y - theirs).max() for name, y in outputs.items()}
        assert difference["ours"] < 1e-6
        assert (difference["with the mask"] < 1e-6) == same
        assert difference["twice"] > 1e-3


@on_tensorflow
def test_ragged_tensor_is_refused_with_what_to_do():
    import tensorflow as tf

    ragged = tf.RaggedTensor.from_row_lengths(tf.ones((5, 6)), [2, 3])
    with pytest.raises((TypeError, ValueError), match=r"(?s)ragged.*to_tensor.*mask"):
        tfpe.SinusoidalPositionalEncoding()(ragged)
