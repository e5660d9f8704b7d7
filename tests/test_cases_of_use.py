"""Uses of cases.json: what a fault report did, and what must come out."""

import json
import warnings

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from cases import CASES, expected, zeros
from contract import (
    FLOAT32,
    assert_close,
    randoms,
    to_float64,
)

import tfpe

SUM = 2 * FLOAT32  # of float32 numbers below 4 in size: the signal and one rounding


def test_left_padding():
    mask = np.array(CASES["left-padding"]["mask"])
    got = np.array(tfpe.positions_from_mask(mask))
    np.testing.assert_array_equal(got[mask == 1], [0, 1, 2])
    tokens, layer = (
        randoms(1, 3, 6),
        tfpe.SinusoidalPositionalEncoding(skip_masked=True),
    )
    pads = randoms(1, 2, 6, seed=1)
    left = layer(keras.ops.concatenate([pads, tokens], 1), mask=mask)
    right = layer(keras.ops.concatenate([tokens, pads], 1), mask=mask[:, ::-1])
    np.testing.assert_array_equal(left[:, 2:], right[:, :3])


def test_packed():
    mask = np.array([CASES["packed"]["token_mask"]])
    segments = np.array([CASES["packed"]["segments"]])
    got = np.array(tfpe.positions_from_segments(segments, mask))
    np.testing.assert_array_equal(got[mask == 1], [0, 1, 0, 1])


def test_offset_by_convention():
    ids, pad = np.array(CASES["offset-by-convention"]["ids"]), 1
    layer = tfpe.SinusoidalPositionalEncoding(
        "concatenated", first_position=pad + 1, skip_masked=True
    )
    got = layer(zeros(1, 6, 4), mask=ids != pad)[0]
    want = oracle.rows([2, 3, 4, 5], 4, layout="concatenated")
    np.testing.assert_array_equal(got[:2], np.zeros((2, 4)))
    assert_close(got[2:], want, FLOAT32)
    text = CASES["offset-by-convention"]["expect"]
    first = json.loads("[" + text.split("[")[1].split("]")[0] + "]")
    assert_close(got[2], first, FLOAT32)


def test_mask():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        embedded = keras.layers.Embedding(5, 6, mask_zero=True)(np.array([[1, 2, 0]]))
        outputs = tfpe.SinusoidalPositionalEncoding()(embedded)
    np.testing.assert_array_equal(outputs._keras_mask, [[True, True, False]])
    assert tfpe.SinusoidalPositionalEncoding().compute_mask(embedded, None) is None


def test_masked_rows():
    mask = np.array([[True, True, False]])
    rows = expected("masked-rows")
    got = tfpe.SinusoidalPositionalEncoding()(zeros(1, 3, 4), mask=mask)[0, 2]
    assert_close(got, rows["default, row 2"], FLOAT32)
    got = tfpe.SinusoidalPositionalEncoding(skip_masked=True)(
        zeros(1, 3, 4), mask=mask
    )[0, 2]
    np.testing.assert_array_equal(got, rows["skip_masked, row 2"])


def test_config(tmp_path):
    settings = {
        **{"layout": "concatenated", "spectrum": "geometric", "cosine_first": True},
        **{"min_timescale": np.float32(2), "max_timescale": np.int64(99), "axis": 1},
        **{"first_position": np.int8(-4), "amplitude": np.float64(2.5)},
        **{"skip_masked": True, "name": "places", "dtype": tf.float32},
    }
    layer = tfpe.SinusoidalPositionalEncoding(**settings)
    config = json.dumps(layer.get_config())
    given = keras.Input((None, 6))
    model = keras.Model(given, layer(given))
    model.save(tmp_path / "model.keras")
    inputs = randoms(2, 5, 6)
    want = model(inputs)
    for other in (
        keras.models.load_model(tmp_path / "model.keras"),
        keras.models.clone_model(model),
        keras.Sequential(
            [tfpe.SinusoidalPositionalEncoding.from_config(json.loads(config))]
        ),
    ):
        np.testing.assert_array_equal(other(inputs), want)
        assert json.dumps(other.layers[-1].get_config()) == config
    assert json.dumps(layer.get_config()) == config


def test_weights(tmp_path):
    layer = tfpe.SinusoidalPositionalEncoding()
    model = keras.Sequential([layer])
    model(randoms(2, 4, 6))
    assert layer.weights == []
    layer.set_weights([])
    model.save(tmp_path / "model.keras")
    inputs = randoms(2, 9, 6)
    got = keras.models.load_model(tmp_path / "model.keras")(inputs)
    assert_close(got, to_float64(inputs) + oracle.rows(range(9), 6), SUM)


def test_shared_instance(tmp_path):
    layer = tfpe.SinusoidalPositionalEncoding()
    source, target = keras.Input((7, 6)), keras.Input((5, 6))
    model = keras.Model([source, target], [layer(source), layer(target)])
    model.save(tmp_path / "model.keras")
    inputs = [np.array(randoms(2, length, 6)) for length in (7, 5)]
    for one in (model, keras.models.load_model(tmp_path / "model.keras")):
        for got, x in zip(one(inputs), inputs, strict=True):
            assert_close(got, x + oracle.rows(range(x.shape[1]), 6), SUM)


def test_scaled_embedding():
    ids = keras.Input((None,), dtype="int32")
    outputs = tfpe.SinusoidalPositionalEncoding()(
        keras.layers.Embedding(67, 64)(ids) * 8.0
    )
    model = keras.Model(ids, keras.layers.Dense(3)(outputs))
    model.compile("sgd", "mse")
    given = np.random.default_rng(0).integers(0, 67, (4, 7))
    assert np.isfinite(model.train_on_batch(given, np.array(randoms(4, 7, 3))))


def test_integer_input():
    for inputs in (np.zeros((1, 3, 4), "int32"), keras.Input((3, 4), dtype="int32")):
        with pytest.raises(TypeError, match=r"inputs\.dtype=int32"):
            tfpe.SinusoidalPositionalEncoding()(inputs)


BAD = [
    ("layout", "concat"),
    ("spectrum", "foo"),
    *(("max_timescale", bad) for bad in (0, -1, np.nan, np.inf, "x", True)),
]


@pytest.mark.parametrize(("name", "value"), BAD, ids=str)
def test_bad_arguments(name, value):
    received = f"`{name}` must be .* Received: {name}="
    for call in (
        tfpe.SinusoidalPositionalEncoding,
        lambda **bad: tfpe.timing_signal(3, 4, **bad),
    ):
        with pytest.raises((TypeError, ValueError), match=received):
            call(**{name: value})
    for channels in (0, -1):
        with pytest.raises(ValueError, match=f"`channels` .*: channels={channels}"):
            tfpe.timing_signal(3, channels)
    for shape in ((4,), (3, 4), (3, 5, None)):
        with pytest.raises(ValueError, match=r"`inputs`.* Received: inputs\.shape="):
            tfpe.SinusoidalPositionalEncoding()(keras.Input(batch_shape=shape))


def test_zero_is_not_unset():
    layer, inputs = tfpe.SinusoidalPositionalEncoding(), zeros(2, 3, 6)
    first = np.tile(oracle.row(0, 6), (3, 1))
    assert_close(layer(inputs, start_index=0)[1], oracle.rows(range(3), 6), FLOAT32)
    assert_close(layer(inputs, positions=[0, 0, 0])[1], first, FLOAT32)
    got = layer(inputs, start_index=np.zeros(2, "int32"))
    assert_close(got[1], oracle.rows(range(3), 6), FLOAT32)
    with pytest.raises(ValueError, match="`start_index` must be left at 0"):
        layer(inputs, start_index=np.zeros(2, "int32"), positions=[1, 2, 3])
