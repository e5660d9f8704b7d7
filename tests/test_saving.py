"""Configuration, cloning, saving and loading."""

import json

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import (
    ORDERS,
    SUM,
    assert_close,
    needs_float64,
    randoms,
    to_float64,
)

import tfpe

PLAIN = {
    "layout": "concatenated",
    "spectrum": "geometric",
    "min_timescale": 2.0,
    "max_timescale": 500.0,
    "cosine_first": True,
    "odd_channel": "zero",
    "first_position": -3,
    "amplitude": 0.5,
    "axis": 1,
    "skip_masked": True,
    "name": "places",
}
NUMPY = {
    "min_timescale": np.float32(2),
    "max_timescale": np.int64(500),
    "cosine_first": np.bool_(True),
    "first_position": np.int16(-3),
    "amplitude": np.float64(0.5),
    "axis": np.int32(1),
    "skip_masked": np.bool_(True),
    "dtype": tf.float32,
}
CONFIGS = {
    "defaults": {},
    "nothing at its default": {**PLAIN, "dtype": "float64"},
    "NumPy scalars and a tf dtype": {**PLAIN, **NUMPY},
    "an order and timescales": {
        "layout": ORDERS[3],
        "spectrum": np.array([5.0, 3.25, 7e3]),
        "odd_channel": "sine",
        "first_position": 0.5,
    },
    "two axes and a policy": {
        "axis": (1, 3),
        "layout": list(ORDERS[5]),
        "spectrum": "vaswani",
        "dtype": keras.DTypePolicy("mixed_bfloat16"),
    },
}
EACH_CONFIG = [
    pytest.param(case, marks=needs_float64)
    if settings.get("dtype") == "float64"
    else case
    for case, settings in CONFIGS.items()
]


def sample(settings):
    shape = (2, 4, 3, 5, 8) if isinstance(settings.get("axis"), tuple) else (2, 4, 6)
    return np.array(randoms(*shape))


@pytest.mark.case("config")
@pytest.mark.parametrize("case", EACH_CONFIG)
def test_config_is_plain_and_the_same_before_and_after_a_call(case):
    layer = tfpe.SinusoidalPositionalEncoding(**CONFIGS[case])
    config = layer.get_config()
    text = json.dumps(config)
    again = tfpe.SinusoidalPositionalEncoding.from_config(json.loads(text))
    assert json.dumps(again.get_config()) == text
    inputs = sample(CONFIGS[case])
    outputs = layer(inputs)
    layer(inputs[:, :2])
    assert layer.get_config() == config
    np.testing.assert_array_equal(to_float64(again(inputs)), to_float64(outputs))


@pytest.mark.parametrize("case", EACH_CONFIG)
def test_config_holds_the_settings_as_plain_values(case):
    settings = CONFIGS[case]
    config = tfpe.SinusoidalPositionalEncoding(**settings).get_config()
    plain = (str, int, float, bool, list, dict, type(None))
    assert all(type(value) in plain for value in config.values())
    for name, value in settings.items():
        if name != "dtype":
            assert config[name] == (list(value) if np.ndim(value) else value)


@pytest.mark.case("config")
@pytest.mark.parametrize("case", EACH_CONFIG)
def test_saved_model_loads_without_custom_objects(case, tmp_path):
    layer = tfpe.SinusoidalPositionalEncoding(**CONFIGS[case])
    inputs = sample(CONFIGS[case])
    given = keras.Input((None, *inputs.shape[2:]))
    model = keras.Model(given, layer(given))
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    cloned = keras.models.clone_model(model)
    for other in (loaded, cloned):
        assert other.layers[1].get_config() == layer.get_config()
        for longer in (inputs, np.concatenate([inputs, -inputs, inputs], 1)):
            got, want = other(longer), model(longer)
            np.testing.assert_array_equal(to_float64(got), to_float64(want))


@pytest.mark.case("weights")
def test_model_saved_after_a_call_at_one_length_runs_at_another(tmp_path):
    model = keras.Sequential([tfpe.SinusoidalPositionalEncoding(name="places")])
    model(randoms(2, 4, 6))
    assert model.weights == []
    model.set_weights([])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    inputs = randoms(3, 9, 6)
    assert_close(loaded(inputs), to_float64(inputs) + oracle.rows(range(9), 6), SUM)
    loaded.save_weights(tmp_path / "model.weights.h5")
    model.load_weights(tmp_path / "model.weights.h5")


def test_weights_of_a_model_line_up_with_those_from_before_the_layer():
    def model(*between):
        outer = keras.layers.Dense(8), keras.layers.Dense(3)
        return keras.Sequential([keras.Input((None, 6)), outer[0], *between, outer[1]])

    old = model()
    new = model(tfpe.SinusoidalPositionalEncoding())
    new.set_weights(old.get_weights())
    for one, other in zip(old.get_weights(), new.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.case("shared-instance")
def test_shared_instance_is_one_instance_after_loading(tmp_path):
    layer = tfpe.SinusoidalPositionalEncoding(layout="concatenated")
    source, target = keras.Input((7, 6)), keras.Input((5, 6))
    model = keras.Model([source, target], [layer(source), layer(target)])
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    kind = tfpe.SinusoidalPositionalEncoding
    assert sum(isinstance(other, kind) for other in loaded.layers) == 1
    inputs = [np.array(randoms(2, 7, 6)), np.array(randoms(2, 5, 6))]
    for got, want in zip(loaded(inputs), inputs, strict=True):
        signal = oracle.rows(range(want.shape[1]), 6, layout="concatenated")
        assert_close(got, want + signal, SUM)


def test_steps_in_a_functional_model_are_saved_too(tmp_path):
    inputs, start = keras.Input((None, 6)), keras.Input((), dtype="int32")
    layer = tfpe.SinusoidalPositionalEncoding()
    outputs = [layer(inputs, start_index=start), layer(inputs, start_index=7)]
    model = keras.Model([inputs, start], outputs)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    given = [np.array(randoms(2, 5, 6)), np.array([70000, -4], "int32")]
    for got, want in zip(loaded(given), model(given), strict=True):
        np.testing.assert_array_equal(got, want)


def test_registered_name_is_for_ever():
    name = "tfpe>SinusoidalPositionalEncoding"
    kind = tfpe.SinusoidalPositionalEncoding
    assert keras.saving.get_registered_name(kind) == name
    assert keras.saving.get_registered_object(name) is kind


def test_layout_and_axis_come_back_from_json_as_lists():
    settings = {"layout": ORDERS[1], "spectrum": (9.0, 4.0), "axis": (2, 1)}
    config = tfpe.SinusoidalPositionalEncoding(**settings).get_config()
    assert config["layout"] == list(ORDERS[1])
    assert config["spectrum"] == [9.0, 4.0]
    assert config["axis"] == [2, 1]
    layer = tfpe.SinusoidalPositionalEncoding.from_config(config)
    points = list(np.ndindex(3, 4))
    want = oracle.rows(points, 8, layout=ORDERS[1], spectrum=(9.0, 4.0))
    got = layer(np.zeros((1, 4, 3, 8), "float32"))[0]
    assert_close(got, want.reshape(3, 4, 8).transpose(1, 0, 2), SUM)
