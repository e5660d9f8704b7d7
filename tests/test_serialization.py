"""What an earlier version has written loads for ever, with equal outputs.

`serialized/` was written by this file, run as a script, and is never written again:
a new version adds a folder of its own.
"""

import json
import sys
import zipfile
from pathlib import Path

import keras
import numpy as np
import pytest
from contract import SUM

import tfpe
from tfpe import tensor2tensor

FOLDER = Path(__file__).with_name("serialized")


def with_reader(version):
    """Returns a version, skipped on a Keras older than the one that wrote its files."""
    with zipfile.ZipFile(FOLDER / version / "model.keras") as archive:
        theirs = json.loads(archive.read("metadata.json"))["keras_version"]
    numbers = [tuple(map(int, v.split(".")[:2])) for v in (keras.__version__, theirs)]
    older = pytest.mark.skipif(
        numbers[0] < numbers[1], reason=f"written by Keras {theirs}"
    )
    return pytest.param(version, marks=older)


VERSIONS = [with_reader("0.1.0"), with_reader("0.2.0")]
LATER = VERSIONS[1:]  # Those with `later.keras`.
INPUTS = np.linspace(-2, 2, 2 * 5 * 6, dtype="float32").reshape(2, 5, 6)
STEPS = np.array([[3, 0, 7, 500, 1], [2, 65_536, 1, 0, 4]], "int32")
EQUAL = {"rtol": 0, "atol": SUM}


def every_setting():
    return tfpe.SinusoidalPositionalEncoding(
        layout="concatenated",
        spectrum="geometric",
        min_timescale=2.0,
        max_timescale=500.0,
        cosine_first=True,
        first_position=-3,
        amplitude=0.5,
        axis=1,
        skip_masked=True,
        name="places",
    )


def later_model():
    """Returns a model of what 0.2.0 added to the layer."""
    inputs, steps = keras.Input((5, 6)), keras.Input((5,), dtype="int32")
    signal = tfpe.SinusoidalEmbedding(6, layout="concatenated", first_position=2)(steps)
    x = keras.layers.Add()([inputs, signal, tfpe.timing_signal_at(steps, 6)])
    x = tensor2tensor.add_timing_signal_1d(x)
    x = tensor2tensor.AddPositionalEmbedding(max_length=9)(x)
    return keras.Model([inputs, steps], x)


def write(folder):
    """Writes two models, configs of layers, and what comes out of them."""
    folder.mkdir(parents=True)
    given = keras.Input((None, 6), name="inputs")
    default = tfpe.SinusoidalPositionalEncoding(name="default")
    model = keras.Model(given, every_setting()(default(given, start_index=7)))
    model.save(folder / "model.keras")
    configs = [layer.get_config() for layer in model.layers[1:]]
    later = later_model()
    later.save(folder / "later.keras")
    record = {
        "configs": configs,
        "outputs": np.asarray(model(INPUTS)).tolist(),
        "later": np.asarray(later([INPUTS, STEPS])).tolist(),
    }
    (folder / "record.json").write_text(json.dumps(record) + "\n")


@pytest.mark.parametrize("version", VERSIONS)
def test_model_of_an_earlier_version_loads_with_equal_outputs(version):
    record = json.loads((FOLDER / version / "record.json").read_text())
    model = keras.models.load_model(FOLDER / version / "model.keras")
    got = keras.ops.convert_to_numpy(model(INPUTS))
    np.testing.assert_allclose(got, record["outputs"], **EQUAL)


@pytest.mark.parametrize("version", LATER)
def test_layers_and_functions_of_an_earlier_version_load_with_equal_outputs(version):
    record = json.loads((FOLDER / version / "record.json").read_text())
    model = keras.models.load_model(FOLDER / version / "later.keras")
    got = keras.ops.convert_to_numpy(model([INPUTS, STEPS]))
    # Sums of five terms.
    np.testing.assert_allclose(got, record["later"], rtol=0, atol=4 * SUM)


@pytest.mark.parametrize("version", VERSIONS)
def test_config_of_an_earlier_version_makes_the_same_layer(version):
    record = json.loads((FOLDER / version / "record.json").read_text())
    default, places = map(
        tfpe.SinusoidalPositionalEncoding.from_config, record["configs"]
    )
    got = keras.ops.convert_to_numpy(places(default(INPUTS, start_index=7)))
    np.testing.assert_allclose(got, record["outputs"], **EQUAL)
    for layer, config in zip((default, places), record["configs"], strict=True):
        assert config.items() <= layer.get_config().items()


if __name__ == "__main__":
    write(Path(sys.argv[1]) / tfpe.__version__)
