"""A model can change its layout: permute its weights and it stays the same."""

import functools

import keras
import numpy as np
import pytest
from keras import layers, ops

import tfpe

# Every size is its own, so that a size tells what an axis of a weight is.
BATCH, LENGTH, VOCABULARY, OUTPUTS = 3, 7, 13, 5
HEADS, KEY, FILTER = 2, 6, 23
WIDTHS = [(10, "zero"), (11, "zero"), (11, "sine")]
LAYOUTS = [("interleaved", "concatenated"), ("concatenated", "interleaved")]


def rounding(channels):
    """How far another order of the channels may move the outputs, in float32.

    A sum of n terms is off by n * 2**-24 of its terms' size, 1 here. On the
    longest path there are six sums over the channels (two ways into the
    attention and the filter, three norms, one way out) and one each over the
    keys, the steps, the heads' channels and the filter.
    """
    return (6 * channels + KEY + LENGTH + HEADS * KEY + FILTER) * 2.0**-24


def transformer(layout, channels, odd_channel):
    position = tfpe.SinusoidalPositionalEncoding(
        layout, "vaswani", odd_channel=odd_channel, max_timescale=30.0, dtype="float32"
    )
    tokens = keras.Input((None,), dtype="int32")
    x = position(layers.Embedding(VOCABULARY, channels)(tokens))
    y = layers.LayerNormalization()(x)
    x = layers.Add()([x, layers.MultiHeadAttention(HEADS, KEY)(y, y)])
    y = layers.Dense(FILTER, "relu")(layers.LayerNormalization()(x))
    x = layers.Add()([x, layers.Dense(channels)(y)])
    return keras.Model(tokens, layers.Dense(OUTPUTS)(layers.LayerNormalization()(x)))


def random_weights(model):
    """Weights that all matter, biases too, and that keep the sizes at about 1."""
    rng = np.random.default_rng(2)
    return [
        rng.normal(size=w.shape) / np.sqrt(np.prod(w.shape[:-1]) or 1)
        for w in model.get_weights()
    ]


def permuted(weight, order):
    """Permutes each axis of a weight that is made of the model's channels."""
    axes = [axis for axis, n in enumerate(weight.shape) if n == len(order)]
    return functools.reduce(lambda w, axis: np.take(w, order, axis), axes, weight)


def outputs(model, weights):
    tokens = np.random.default_rng(3).integers(VOCABULARY, size=(BATCH, LENGTH))
    model.set_weights(weights)
    return ops.convert_to_numpy(model(tokens))


@pytest.fixture(params=LAYOUTS, ids="-".join)
def layouts(request):
    return request.param


@pytest.fixture(params=WIDTHS, ids=str)
def switch(request, layouts):
    """Returns a model, the same with the other layout, weights and their order."""
    channels, odd_channel = request.param
    models = [transformer(layout, channels, odd_channel) for layout in layouts]
    order = tfpe.layout_permutation(channels, *layouts, odd_channel=odd_channel)
    return (*models, random_weights(models[0]), order)


def test_a_transformer_with_another_layout_and_permuted_weights_is_the_same(switch):
    model, switched, weights, order = switch
    np.testing.assert_allclose(
        outputs(switched, [permuted(w, order) for w in weights]),
        outputs(model, weights),
        rtol=0,
        atol=rounding(len(order)),
    )


def test_a_transformer_with_another_layout_alone_is_another(switch):
    model, switched, weights, _ = switch
    change = np.abs(outputs(switched, weights) - outputs(model, weights))
    assert np.median(change) > 0.03


def test_a_transformer_with_permuted_weights_alone_is_another(switch):
    model, _, weights, order = switch
    change = outputs(model, [permuted(w, order) for w in weights]) - outputs(
        model, weights
    )
    assert np.median(np.abs(change)) > 0.03


def test_no_weight_of_the_channels_may_be_left_as_it_was(switch):
    model, switched, weights, order = switch
    expected = outputs(model, weights)
    moved = [permuted(w, order) for w in weights]
    touched = [i for i, w in enumerate(weights) if len(order) in w.shape]
    # All but the biases of the queries, keys, values, the filter and the outputs.
    assert len(touched) == len(weights) - 5
    for i in touched:
        forgotten = [*moved[:i], weights[i], *moved[i + 1 :]]
        change = np.abs(outputs(switched, forgotten) - expected).max()
        assert change > 0.01, model.weights[i].path
