"""Models exported to SavedModel, ONNX and LiteRT, with unknown batch and length."""

import warnings

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import (
    FLOAT32,
    FRACTION,
    LAYOUTS,
    SUM,
    assert_close,
    export,
    on_tensorflow,
    randoms,
    to_float64,
)

import tfpe

pytestmark = on_tensorflow
LENGTHS = (1, 3, 9, 300, 5000)
QUANTISED = 1e-3  # of tables rounded to float16
INT8 = 0.06  # of sums from -5 to 5, whose step is 0.04
# One after the other, back and forth, ten times.
CHANGING = (*LENGTHS, *LENGTHS[::-1])


def encoder(**settings):
    """Returns a model that encodes, of any batch and length."""
    inputs = keras.Input((None, 6), name="x")
    layer = tfpe.SinusoidalPositionalEncoding(**settings)
    return keras.Model(inputs, layer(inputs))


def decoding_step():
    """Returns a model of one step whose `start_index`, one a row, is an input."""
    inputs = keras.Input((1, 6), name="x")
    start = keras.Input((), dtype="int32", name="start")
    encoded = tfpe.SinusoidalPositionalEncoding()(inputs, start_index=start)
    return keras.Model([inputs, start], encoded)


class SavedModel:
    """A model exported to a SavedModel, and loaded."""

    def __init__(self, model, folder):
        export(model, folder / "saved")
        self.loaded = tf.saved_model.load(str(folder / "saved"))

    def __call__(self, *arrays):
        given = arrays[0] if len(arrays) == 1 else list(arrays)
        return self.loaded.serve(given).numpy()


class Onnx:
    """A model exported to ONNX, in an onnxruntime session."""

    def __init__(self, model, folder):
        runtime = pytest.importorskip("onnxruntime")
        pytest.importorskip("tf2onnx")
        # Keras 3.15 exports a model to ONNX only once it was called.
        zeros = [np.zeros([n or 1 for n in x.shape], x.dtype) for x in model.inputs]
        model(zeros if len(zeros) > 1 else zeros[0])
        with warnings.catch_warnings():
            # Keras asks NumPy for an old name of `object`.
            warnings.filterwarnings("ignore", "In the future `np.object`")
            export(model, folder / "model.onnx", format="onnx")
        self.session = runtime.InferenceSession(folder / "model.onnx")

    def __call__(self, *arrays):
        names = [given.name for given in self.session.get_inputs()]
        (result,) = self.session.run(None, dict(zip(names, arrays, strict=True)))
        return result


class LiteRT:
    """A model exported to LiteRT, in one interpreter for all calls."""

    def __init__(self, model, folder, **options):
        module = pytest.importorskip("ai_edge_litert.interpreter")
        path = folder / "model.tflite"
        export(model, path, format="litert", **options)
        self.interpreter = module.Interpreter(str(path))

    def __call__(self, *arrays):
        interpreter = self.interpreter
        # The inputs have lost their order and kept their ranks and dtypes.
        places = {
            (np.dtype(d["dtype"]), len(d["shape_signature"])): d["index"]
            for d in interpreter.get_input_details()
        }
        for array in arrays:
            place = places[array.dtype, array.ndim]
            interpreter.resize_tensor_input(place, array.shape)
        interpreter.allocate_tensors()
        for array in arrays:
            interpreter.set_tensor(places[array.dtype, array.ndim], array)
        interpreter.invoke()
        return interpreter.get_tensor(interpreter.get_output_details()[0]["index"])


EXPORTERS = {"SavedModel": SavedModel, "ONNX": Onnx, "LiteRT": LiteRT}


@pytest.mark.case("litert")
@pytest.mark.parametrize("exporter", EXPORTERS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_exported_model_equals_the_layer_at_any_length(layout, exporter, tmp_path):
    model = encoder(layout=layout)
    exported = EXPORTERS[exporter](model, tmp_path)
    for batch, length in zip((2, 3) * 5, CHANGING, strict=True):
        inputs = np.array(randoms(batch, length, 6))
        got = exported(inputs)
        assert_close(got, to_float64(model(inputs)), SUM)
        want = oracle.many_rows(range(length), 6, layout=layout)
        assert_close(got, inputs.astype("float64") + want, SUM)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_model_of_wide_channels_is_exported(exporter, tmp_path):
    # Narrow tables may be constants of a graph where wide ones are captured.
    inputs = keras.Input((None, 65))
    model = keras.Model(inputs, tfpe.SinusoidalPositionalEncoding()(inputs))
    exported = EXPORTERS[exporter](model, tmp_path)
    for length in (9, 5000):
        given = np.array(randoms(2, length, 65))
        assert_close(exported(given), to_float64(model(given)), SUM)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_exported_decoding_step_takes_its_place_as_an_input(exporter, tmp_path):
    model = decoding_step()
    exported = EXPORTERS[exporter](model, tmp_path)
    for starts in ([0, 7, 255], [256, 4095, 4096], [70000, -3, 2**31 - 1], [1, 0]):
        inputs = np.array(randoms(len(starts), 1, 6))
        got = exported(inputs, np.array(starts, "int32"))
        assert_close(got, inputs + oracle.rows(starts, 6)[:, None], SUM)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_exported_model_takes_positions_as_an_input(exporter, tmp_path):
    inputs = keras.Input((None, 6), name="x")
    where = keras.Input((None,), name="where")
    encoded = tfpe.SinusoidalPositionalEncoding()(inputs, positions=where)
    exported = EXPORTERS[exporter](keras.Model([inputs, where], encoded), tmp_path)
    random = np.random.default_rng(0)
    for length in (5, 300, 1):
        positions = random.normal(0, 1e4, (2, length)).astype("float32")
        given = np.array(randoms(2, length, 6))
        want = given + oracle.rows(positions.ravel(), 6).reshape(given.shape)
        assert_close(exported(given, positions), want, FRACTION + FLOAT32)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_exported_model_counts_unmasked_steps(exporter, tmp_path):
    ids = keras.Input((None,), dtype="int32", name="ids")
    embedding = keras.layers.Embedding(3, 6, mask_zero=True)
    encoded = tfpe.SinusoidalPositionalEncoding(skip_masked=True)(embedding(ids))
    exported = EXPORTERS[exporter](keras.Model(ids, encoded), tmp_path)
    rows = np.array(embedding.embeddings)
    for given in ([[0, 2, 1]], [[1, 0, 0, 2, 0], [0, 0, 0, 1, 1]]):
        want = rows[np.array(given)].astype("float64")
        for row, words in zip(want, given, strict=True):
            real = np.flatnonzero(words)
            row[real] += oracle.rows(range(len(real)), 6)
        assert_close(exported(np.array(given, "int32")), want, SUM)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_exported_model_counts_within_segments(exporter, tmp_path):
    inputs = keras.Input((None, 6), name="x")
    ids = keras.Input((None,), dtype="int32", name="ids")
    positions = tfpe.positions_from_segments(ids)
    encoded = tfpe.SinusoidalPositionalEncoding()(inputs, positions=positions)
    exported = EXPORTERS[exporter](keras.Model([inputs, ids], encoded), tmp_path)
    for segments, steps in (
        ([[7, 7, 2]], [[0, 1, 0]]),
        ([[1, 1, 1, 4, 1], [5, 6, 6, 6, 6]], [[0, 1, 2, 0, 0], [0, 0, 1, 2, 3]]),
    ):
        given = np.array(randoms(*np.shape(steps), 6))
        want = given + oracle.rows(np.ravel(steps), 6).reshape(given.shape)
        assert_close(exported(given, np.array(segments, "int32")), want, SUM)


@pytest.mark.parametrize("exporter", EXPORTERS)
def test_grid_of_any_sides_is_exported(exporter, tmp_path):
    inputs = keras.Input((None, None, 9), name="x")
    layer = tfpe.SinusoidalPositionalEncoding(axis=(1, 2), layout="concatenated")
    model = keras.Model(inputs, layer(inputs))
    exported = EXPORTERS[exporter](model, tmp_path)
    for shape in ((2, 5, 3, 9), (1, 3, 40, 9), (2, 5, 3, 9)):
        given = np.array(randoms(*shape))
        want = oracle.rows(list(np.ndindex(*shape[1:3])), 9, layout="concatenated")
        assert_close(exported(given), given + want.reshape(*shape[1:]), SUM)


def test_quantised_litert_is_as_near_as_float16(tmp_path):
    model = encoder()
    options = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    options["target_spec"] = {"supported_types": [tf.float16]}
    exported = LiteRT(model, tmp_path, **options)
    for length in CHANGING:
        inputs = np.array(randoms(2, length, 6))
        assert_close(exported(inputs), to_float64(model(inputs)), QUANTISED)


def test_int8_litert_is_right_up_to_the_longest_example(tmp_path):
    def examples():
        for length in (64, 1000):
            yield [np.array(randoms(1, length, 6))]

    options = {"optimizations": [tf.lite.Optimize.DEFAULT]}
    options["representative_dataset"] = examples
    integers = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    options["target_spec"] = {"supported_ops": integers}
    model = encoder()
    exported = LiteRT(model, tmp_path, **options)
    for length in (64, 500, 1000):
        inputs = np.array(randoms(1, length, 6))
        assert_close(exported(inputs), to_float64(model(inputs)), INT8)
