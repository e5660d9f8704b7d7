"""What tables cost in files, in memory and in time of making: the limits."""

import keras
import numpy as np
import oracle
import pytest
from contract import INT64, assert_close, on_tensorflow
from test_exporters import EXPORTERS

import tfpe
from tfpe import tensor2tensor as t2t

MIB = 2**20
EXPORTED = 5e-7  # float32 of an exported file at any int32 position
EXPORTED_NEAR = 3.5e-7  # the same at positions 0 to 65,535


def model(layers, channels, length=None):
    """Returns a model of unknown batch with so many layers of tfpe, and others."""
    outputs = inputs = keras.Input((length, channels), name="x")
    for layer in layers:
        outputs = layer(keras.layers.Activation("relu")(outputs))
    return keras.Model(inputs, keras.layers.Activation("relu")(outputs))


def size(path):
    files = [path] if path.is_file() else [f for f in path.rglob("*") if f.is_file()]
    return sum(file.stat().st_size for file in files)


def exported_size(made, exporter, folder):
    folder.mkdir()
    EXPORTERS[exporter](made, folder)
    return size(folder)


@on_tensorflow
@pytest.mark.slow
@pytest.mark.parametrize("exporter", ["SavedModel", "ONNX", "LiteRT"])
@pytest.mark.parametrize(("channels", "limit"), [(512, 1.0), (64, 0.15)])
def test_an_exported_file_grows_by_little(channels, limit, exporter, tmp_path):
    def grown(name, *layers, length=None):
        made = model(layers, channels, length)
        without = model([keras.layers.Identity() for _ in layers], channels, length)
        sizes = [
            exported_size(m, exporter, tmp_path / f"{name} {i}")
            for i, m in enumerate((made, without))
        ]
        return sizes[0] - sizes[1]

    layer = tfpe.SinusoidalPositionalEncoding
    one = grown("one", layer())
    assert 0 < one <= limit * MIB
    assert grown("equal", layer(), layer()) - one <= 0.1 * MIB
    shared = layer()
    assert grown("shared", shared, shared) - one <= 0.1 * MIB
    fixed = grown("fixed", layer(), length=128)
    assert fixed <= 0.5 * MIB
    # No more than its rows, and the nodes around them.
    assert fixed <= 128 * channels * 4 + 2**14


@on_tensorflow
@pytest.mark.parametrize("exporter", ["SavedModel", "ONNX", "LiteRT"])
def test_an_exported_file_is_right_far_away(exporter, tmp_path):
    inputs = keras.Input((None, 10), name="x")
    steps = keras.Input((), dtype="int32", name="start")
    layer = tfpe.SinusoidalPositionalEncoding()
    made = keras.Model([inputs, steps], layer(inputs, start_index=steps))
    exported = EXPORTERS[exporter](made, tmp_path)
    starts = np.array([0, 65_000, 2**31 - 1000, -(2**31)], "int32")
    got = exported(np.zeros((4, 500, 10), "float32"), starts)
    for row, start in zip(got, starts.tolist(), strict=True):
        near = 0 <= start < 2**16
        want = oracle.many_rows(range(start, start + 500), 10)
        assert_close(row, want, EXPORTED_NEAR if near else EXPORTED)


@on_tensorflow
@pytest.mark.parametrize("exporter", ["SavedModel", "ONNX", "LiteRT"])
@pytest.mark.parametrize("dtype", ["int64", "float32"])
def test_an_exported_file_takes_positions_past_int32(dtype, exporter, tmp_path):
    inputs = keras.Input((None, 10), name="x")
    steps = keras.Input((None,), dtype=dtype, name="steps")
    layer = tfpe.SinusoidalPositionalEncoding()
    made = keras.Model([inputs, steps], layer(inputs, positions=steps))
    exported = EXPORTERS[exporter](made, tmp_path)
    where = np.array([[2**53 + 1, -(2**62) - 7, 5, -1]], dtype)
    got = exported(np.zeros((1, 4, 10), "float32"), where)
    want = oracle.rows(where.astype("float64" if "f" in dtype else object)[0], 10)
    assert_close(got[0], want, INT64)
    if dtype == "float32":
        where = np.array([[3.5, np.nan, np.inf, 1e30]], dtype)
        got = exported(np.zeros((1, 4, 10), "float32"), where)[0]
        assert_close(got[0], oracle.row(3.5, 10), EXPORTED)
        assert np.isnan(got[1:]).all()


def added(name):
    x = keras.Input((None, 512))
    ids = keras.Input((None,), dtype="int32")
    image = keras.Input((None, None, 512))
    return {
        "timing_signal_at": (ids, lambda: tfpe.timing_signal_at(ids, 512)),
        "embedding": (ids, lambda: tfpe.SinusoidalEmbedding(512)(ids)),
        "encoding": (x, lambda: tfpe.SinusoidalPositionalEncoding()(x)),
        "1d": (x, lambda: t2t.add_timing_signal_1d(x)),
        "given": (
            [x, ids],
            lambda: t2t.add_timing_signal_1d_given_position(x, ids),
        ),
        "several": (
            [x, ids],
            lambda: t2t.add_timing_signals_given_positions(x, [ids, None]),
        ),
        "nd": (image, lambda: t2t.add_timing_signal_nd(image)),
        "layer": (x, lambda: t2t.add_layer_timing_signal_sinusoid_1d(x, 1, 6)),
        "2017": (image, lambda: t2t.add_timing_signal(image)),
    }[name]


@pytest.mark.case("functional-file")
@pytest.mark.parametrize(
    "name",
    [
        "timing_signal_at",
        "embedding",
        "encoding",
        "1d",
        "given",
        "several",
        "nd",
        "layer",
        "2017",
    ],
)
def test_a_functional_model_saves_kilobytes_and_loads_right(name, tmp_path):
    inputs, output = added(name)
    made = keras.Model(inputs, output())
    made.save(tmp_path / "model.keras")
    assert size(tmp_path / "model.keras") < 50_000
    loaded = keras.models.load_model(tmp_path / "model.keras")
    shapes = [[n or 3 for n in given.shape] for given in made.inputs]
    given = [np.ones(s, i.dtype) for s, i in zip(shapes, made.inputs, strict=True)]
    given = given if len(given) > 1 else given[0]
    np.testing.assert_array_equal(np.array(loaded(given)), np.array(made(given)))


def test_tables_are_made_when_first_needed():
    layer = tfpe.SinusoidalPositionalEncoding(amplitude=1.25)  # nobody else's tables
    layer.build((None, None, 512))
    assert not layer._sinusoids._tables._constants._tensors
    layer(np.zeros((1, 3, 512), "float32"))
    assert layer._sinusoids._tables._constants._tensors
