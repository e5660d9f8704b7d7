"""`SinusoidalEmbedding`: positions in, the signal out."""

import json

import keras
import numpy as np
import oracle
import pytest
from contract import (
    FLOAT32,
    LAYOUTS,
    MODES,
    ORDERS,
    assert_close,
    assert_promised,
    assert_same_in_dtype,
    dtype_of,
    refuses,
)
from keras import ops

import tfpe
from tfpe import tensor2tensor as t2t

STEPS = np.array([[3, 0, 7], [500, 1, 2]], "int32")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [2, 3, 8])
def test_it_returns_the_signal_at_positions_of_any_shape(channels, layout, mode):
    layer = tfpe.SinusoidalEmbedding(channels, layout=layout, amplitude=2.0)
    call = MODES[mode](layer)
    for shape in ((), (6,), (2, 3), (1, 2, 3, 1)):
        where = np.resize(STEPS, shape)
        got = call(ops.convert_to_tensor(where))
        rows = oracle.rows(
            where.ravel().tolist(), channels, layout=layout, amplitude=2.0
        )
        assert_close(got, rows.reshape(*shape, channels), 2 * FLOAT32)


@pytest.mark.parametrize("policy", ["float32", "mixed_float16", "mixed_bfloat16"])
def test_its_policy_is_that_of_the_result_and_not_of_the_positions(policy):
    layer = tfpe.SinusoidalEmbedding(8, dtype=policy)
    for where in (np.array([937.0, 2049.0], "float32"), np.array([937, 2049])):
        got = layer(where)
        assert dtype_of(got) == layer.compute_dtype
        assert_promised(got, oracle.rows([937, 2049], 8))
    want = tfpe.timing_signal_at([937, 2049], 8, dtype=layer.compute_dtype)
    assert_same_in_dtype(got, want)


def test_lists_of_numbers_and_of_arrays_are_one_tensor():
    layer = tfpe.SinusoidalEmbedding(8)
    for where in (STEPS.tolist(), list(STEPS), [np.int64(3), 5], [3, 2**20]):
        want = oracle.rows(np.ravel(where).tolist(), 8)
        assert_close(layer(where), want.reshape(*np.shape(where), 8), FLOAT32)


@pytest.mark.parametrize("layout", [*LAYOUTS, ORDERS[3]])
@pytest.mark.parametrize("kind", ["tuple", "list", "symbolic"])
def test_several_axes_are_a_tuple_or_a_list_of_tensors(kind, layout):
    layer = tfpe.SinusoidalEmbedding(9, layout=layout, spectrum="geometric", axes=2)
    down, across = np.arange(2)[:, None], np.arange(3)[None] + 5
    if kind == "symbolic":
        inputs = [keras.Input((1,), dtype="int32"), keras.Input((3,), dtype="int32")]
        model = keras.Model(inputs, layer(inputs))
        assert model.output_shape == (None, 3, 9)
        got = model([down.astype("int32"), np.tile(across, (2, 1)).astype("int32")])
    else:
        given = [ops.convert_to_tensor(p.astype("int32")) for p in (down, across)]
        got = layer(tuple(given) if kind == "tuple" else given)
    points = [(p, q + 5) for p in range(2) for q in range(3)]
    want = oracle.rows(points, 9, layout=layout, spectrum="geometric")
    assert_close(got, want.reshape(2, 3, 9), FLOAT32)


@pytest.mark.parametrize(
    ("settings", "positions", "words"),
    [
        ({"axes": 1}, (STEPS, STEPS), ("1 positional axis, a tuple", "2 of them")),
        ({"axes": 2}, STEPS, ("2 positional axes", "1 of them")),
        ({}, (), ("at least one positional axis", "0 of them")),
        ({"axes": 1}, (1, 2, 3), ("a list or an array of numbers is one", "3 of them")),
        ({"axes": 2}, STEPS, ("positions.shape=(2, 3)", "`tuple(x)`")),
        ({}, (STEPS, STEPS[:, :2]), ("shapes that broadcast", "(2, 3), (2, 2)")),
    ],
)
def test_another_number_of_axes_is_refused(settings, positions, words):
    with refuses(ValueError, "`positions`", *words):
        tfpe.SinusoidalEmbedding(8, **settings)(positions)


def test_too_few_channels_are_refused():
    for channels, axes in ((1, None), (3, 2)):
        with refuses(ValueError, "`channels` must have at least", f"={channels}"):
            tfpe.SinusoidalEmbedding(channels, axes=axes)
    with refuses(ValueError, "`channels` must have at least 4", "channels=3"):
        tfpe.SinusoidalEmbedding(3)((STEPS, STEPS))


def test_config_is_plain_and_comes_back(tmp_path):
    settings = {
        "layout": ORDERS[1],
        "spectrum": (9.0, 4.0),
        "amplitude": np.float32(2),
        "first_position": 3,
        "axes": 2,
    }
    layer = tfpe.SinusoidalEmbedding(np.int64(8), name="time", **settings)
    config = layer.get_config()
    assert json.loads(json.dumps(config)) == config
    again = tfpe.SinusoidalEmbedding.from_config(config)
    assert again.get_config() == config
    inputs = [keras.Input((3,), dtype="int32") for _ in range(2)]
    model = keras.Model(inputs, layer(inputs))
    assert model.layers[-1].get_config() == config
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    np.testing.assert_array_equal(loaded([STEPS, STEPS]), model([STEPS, STEPS]))
    assert model.weights == []
    name = "tfpe>SinusoidalEmbedding"
    assert keras.saving.get_registered_object(name) is tfpe.SinusoidalEmbedding


def test_masks_pass_on_and_of_several_inputs_their_conjunction():
    ids = np.array([[1, 2, 0], [0, 3, 4]])
    other = np.array([[1, 0, 2], [1, 1, 1]])
    masked = keras.layers.Embedding(9, 3, mask_zero=True)
    positions = keras.layers.Lambda(lambda x: x[..., 0], mask=lambda _, mask: mask)
    one, two = positions(masked(ids)), positions(masked(other))
    layer = tfpe.SinusoidalEmbedding(8)
    mask = keras.src.backend.get_keras_mask(layer(one))
    np.testing.assert_array_equal(mask, ids > 0)
    mask = keras.src.backend.get_keras_mask(layer((one, two)))
    np.testing.assert_array_equal(mask, (ids > 0) & (other > 0))
    assert layer.compute_mask(one, None) is None


@pytest.mark.parametrize("name", ["fairseq", "mae_2d"])
def test_conventions_fix_the_number_of_axes(name):
    entry = tfpe.CONVENTIONS[name]
    layer = tfpe.SinusoidalEmbedding.from_convention(name, 8, amplitude=3.0)
    assert layer.axes == entry.axes
    where = (STEPS,) * entry.axes if entry.axes > 1 else STEPS
    settings = {**entry.settings, "amplitude": 3.0}
    want = tfpe.timing_signal_at(where, 8, **settings)
    np.testing.assert_array_equal(layer(where), want)


def test_detr_s_coordinates_with_a_mask_give_detr_s_numbers():
    real = np.zeros((2, 4, 6), bool)
    real[0], real[1, :3, :5] = True, True
    places = []
    for axis in (1, 2):
        count = ops.cumsum(ops.cast(ops.convert_to_tensor(real), "float32"), axis=axis)
        last = ops.take(count, [-1], axis=axis)
        places.append(count / (last + 1e-6) * 2 * np.pi)
    layer = tfpe.SinusoidalEmbedding.from_convention("detr", 16, first_position=0)
    got = layer(tuple(places))
    for image, row, column in np.ndindex(*real.shape):
        want = []
        for line, place in (
            (real[image, :, column], row),
            (real[image, row], column),
        ):
            angle = 2 * np.pi * line[: place + 1].sum() / (line.sum() + 1e-6)
            for pair in range(4):
                scaled = angle / 10_000 ** (2 * pair / 8)
                want += [np.sin(scaled), np.cos(scaled)]
        assert_close(got[image, row, column], want, 2e-6)


def test_powers_of_two_in_the_order_of_nerf_give_its_features():
    points = np.random.default_rng(0).uniform(-1, 1, (5, 3)).astype("float32")
    layer = tfpe.SinusoidalEmbedding(
        24,
        layout=("frequency", "function", "axis"),
        spectrum=[2.0**-level for level in range(4)],
        axes=3,
    )
    want = [f(2.0**level * points) for level in range(4) for f in (np.sin, np.cos)]
    assert_close(layer(tuple(points.T)), np.concatenate(want, axis=-1), 1e-6)


def test_functions_on_a_symbolic_tensor_are_one_layer_of_a_model():
    ids = keras.Input((None,), dtype="int32")
    model = keras.Model(ids, tfpe.timing_signal_at(ids, 8, layout="concatenated"))
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["InputLayer", "SinusoidalEmbedding"]
    assert model.output_shape == (None, None, 8)
    want = oracle.rows(STEPS.ravel().tolist(), 8, layout="concatenated")
    assert_close(model(STEPS), want.reshape(2, 3, 8), FLOAT32)
    x = keras.Input((None, 8))
    model = keras.Model(x, t2t.add_timing_signal_1d(x, start_index=4))
    kinds = [type(layer).__name__ for layer in model.layers]
    assert kinds == ["InputLayer", "SinusoidalPositionalEncoding"]
    for length in (3, 300):
        got = model(np.zeros((2, length, 8), "float32"))[1]
        want = oracle.rows(range(4, 4 + length), 8, layout="concatenated")
        assert_close(got, want, FLOAT32)


@pytest.mark.parametrize("channels", [1, 3])
def test_functions_on_a_symbolic_tensor_give_zeros_for_too_few_channels(channels):
    ids = keras.Input((3,), dtype="int32")
    where = (ids, ids) if channels == 3 else ids
    model = keras.Model(ids, tfpe.timing_signal_at(where, channels))
    assert_close(model(STEPS), np.zeros((2, 3, channels)), 0)
    x = keras.Input((None, 1))
    model = keras.Model(x, t2t.add_timing_signal_1d(x) * 1.0)
    ones = np.ones((2, 3, 1), "float32")
    np.testing.assert_array_equal(model(ones), ones)


def test_the_input_of_a_transformer_may_be_symbolic_and_of_unknown_length():
    from types import SimpleNamespace

    x = keras.Input((None, 8))
    hparams = SimpleNamespace(pos="timing", unidirectional_encoder=True)
    encoder = t2t.transformer_prepare_encoder(x, None, hparams)
    decoder = t2t.transformer_prepare_decoder(x, hparams)
    model = keras.Model(x, [*encoder, *decoder])
    for length in (1, 5, 300):
        given = np.random.default_rng(length).normal(size=(2, length, 8))
        given = given.astype("float32")
        given[0, length // 2 :] = 0
        want = [
            *t2t.transformer_prepare_encoder(given, None, hparams),
            *t2t.transformer_prepare_decoder(given, hparams),
        ]
        for got, value in zip(model(given), want, strict=True):
            assert_close(got, np.array(value), 2 * FLOAT32)


@pytest.mark.case("pos-none")
def test_no_positions_in_the_hyperparameters_is_none():
    from types import SimpleNamespace

    x = np.ones((1, 3, 8), "float32")
    got = t2t.transformer_prepare_encoder(x, None, SimpleNamespace(pos=None))
    want = t2t.transformer_prepare_encoder(x, None, SimpleNamespace(pos="none"))
    for one, other in zip(got, want, strict=True):
        np.testing.assert_array_equal(one, other)


class OldTable(keras.layers.Layer):
    """A foreign layer without a config of its own."""

    def call(self, inputs):
        return inputs


@pytest.mark.case("old-table-layer")
def test_a_config_of_a_foreign_layer_loads(tmp_path):
    model = keras.Sequential([keras.Input((3, 8)), OldTable()])
    model.save(tmp_path / "old.keras")
    loaded = keras.models.load_model(
        tmp_path / "old.keras",
        custom_objects={"OldTable": tfpe.SinusoidalPositionalEncoding},
    )
    got = loaded(np.zeros((1, 3, 8), "float32"))
    assert_close(got[0], oracle.rows(range(3), 8), FLOAT32)
