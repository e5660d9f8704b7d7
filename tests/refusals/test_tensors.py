"""Inputs and positions of the wrong kind are refused with a way out."""

import keras
import numpy as np
import oracle
import pytest
from contract import INT64, assert_close, needs_float64, on_tensorflow, randoms, refuses

import tfpe
from tfpe import tensor2tensor as t2t

Layer = tfpe.SinusoidalPositionalEncoding
INPUTS = np.zeros((1, 3, 6), "float32")


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
    floats = tf.RaggedTensor.from_row_lengths(tf.ones((3, 6)), [1, 2])
    for call, name in ((Layer(), "inputs"), (t2t.add_timing_signal_1d, "x")):
        with refuses(TypeError, f"`{name}` must be dense", "to_tensor", "mask"):
            call(floats)


@on_tensorflow
def test_sparse_tensors_and_unknown_ranks_are_refused():
    import tensorflow as tf

    sparse = tf.sparse.from_dense(tf.ones((1, 2, 6)))
    for call, name in (
        (Layer(), "inputs"),
        (tfpe.SinusoidalEmbedding(6), "positions"),
        (t2t.add_timing_signal_1d, "x"),
    ):
        with refuses(TypeError, f"`{name}` must be dense", "to_dense", "SparseTensor"):
            call(sparse)
        unknown = tf.function(call, input_signature=[tf.TensorSpec(None)])
        with refuses(ValueError, f"`{name}` must have a known rank", "ensure_shape"):
            unknown.get_concrete_function()


@pytest.mark.parametrize("inputs", [None, [[[0.0] * 6] * 3], "a", {}, [INPUTS] * 2])
def test_what_is_no_tensor_is_refused(inputs):
    words = (
        "`inputs` must be a tensor of floats",
        "np.array",
        "once for each",
        "Received",
    )
    with refuses(TypeError, *words):
        Layer()(inputs)
    if not isinstance(inputs, list):
        with refuses(TypeError, "`x` must be a dense tensor of numbers", "Received"):
            t2t.shift_right_3d(inputs)


def test_a_sequence_without_a_batch_is_told_how_to_get_one():
    for inputs in (randoms(5, 6), keras.Input((6,))):
        with refuses(ValueError, "rank of at least 3", "x[None]", "timing_signal"):
            Layer()(inputs)


@pytest.mark.case("keras2")
@pytest.mark.parametrize("module", ["tf_keras.src.engine", "keras.src.engine"])
def test_a_tensor_of_keras_2_is_told_that_this_is_for_keras_3(module):
    kind = type("KerasTensor", (), {"__module__": f"{module}.keras_tensor"})
    tensor = kind()
    tensor.shape, tensor.dtype = (None, 3, 6), "float32"
    for call, name in (
        (Layer(), "inputs"),
        (lambda p: Layer()(randoms(2, 3, 6), positions=p), "positions"),
        (tfpe.SinusoidalEmbedding(6), "positions"),
        (lambda p: tfpe.timing_signal_at(p, 6), "positions"),
        (t2t.add_timing_signal_1d, "x"),
    ):
        words = f"`{name}` must be a tensor of Keras 3", "tf_keras.layers.Lambda"
        with refuses(TypeError, *words, "Received"):
            call(tensor)


@pytest.mark.parametrize("name", ["rope", "RoPE", "apply_rotary_pos_emb"])
def test_the_name_of_something_else_is_told_what_it_is(name):
    with refuses(ValueError, "`name`", "add nothing", "RotaryEmbedding", name):
        Layer.from_convention(name)


@pytest.mark.parametrize(
    ("name", "convention"),
    [
        ("add_timing_signal_1d", "'tensor2tensor' or"),
        ("SinePositionEncoding", "such as 'keras_hub'. "),
        ("sine_position_encoding.py", "such as 'keras_hub'. "),
        ("common_attention", "'tensor2tensor' or"),
        ("facebookresearch/detr", "such as 'detr'. "),
    ],
)
def test_a_source_or_a_function_is_told_the_name_of_its_convention(name, convention):
    with refuses(ValueError, "`name` must be one of", convention, name):
        Layer.from_convention(name)
    with refuses(ValueError, "`name` must be one of", convention, name):
        tfpe.SinusoidalEmbedding.from_convention(name, 8)


@pytest.mark.parametrize(
    "name",
    [
        "add_positional_embedding",
        "add_positional_embedding_nd",
        "add_layer_timing_signal_learned_1d",
        "get_layer_timing_signal_learned_1d",
    ],
)
def test_a_function_with_variables_is_told_the_layer_that_has_them(name):
    with refuses(AttributeError, f"`{name}`", "weight of the layer `tfpe.tensor2ten"):
        getattr(t2t, name)
    with refuses(AttributeError, "no attribute 'add_positional'"):
        t2t.add_positional  # noqa: B018


def test_a_number_of_channels_is_told_where_it_comes_from():
    with refuses(ValueError, "`layout`", "Channels are those of the inputs", "=512"):
        Layer(512)


def test_channels_first_are_told_how_to_be_last():
    for axis, shape in ((2, (2, 8, 5)), ((2, 3), (2, 8, 5, 7))):
        with refuses(ValueError, "`axis`", "ops.moveaxis(x, 1, -1)", "Received"):
            Layer(axis=axis)(randoms(*shape))
    with refuses(ValueError, "`inputs`", "ops.moveaxis(x, 1, -1)", "Received"):
        Layer()(keras.Input((8, None)))


@needs_float64
def test_dates_are_told_how_to_be_numbers():
    dates = np.array(["2024-01-01", "2024-01-02"], "datetime64[D]")
    with refuses(TypeError, "`positions`", "astype('datetime64[ms]').astype('int64')"):
        tfpe.SinusoidalEmbedding(8)(dates)
    got = tfpe.SinusoidalEmbedding(8)(dates.astype("datetime64[ms]").astype("int64"))
    assert_close(got, oracle.rows([1704067200000, 1704153600000], 8), INT64)


def test_token_ids_are_told_of_the_embedding():
    with refuses(TypeError, "keras.layers.Embedding", "SinusoidalEmbedding", "int32"):
        Layer()(np.zeros((2, 3), "int32"))


def test_any_layer_takes_autocast_which_has_no_effect():
    for make in (
        Layer,
        lambda **given: tfpe.SinusoidalEmbedding(8, **given),
        lambda **given: t2t.AddPositionalEmbedding(4, **given),
        lambda **given: t2t.AddPositionalEmbeddingNd(4, **given),
        lambda **given: t2t.AddLayerTimingSignalLearned1d(4, **given),
    ):
        for autocast in (True, False):
            layer = make(autocast=autocast)
            assert layer.get_config() == {**make().get_config(), "name": layer.name}
            assert not layer.autocast


@pytest.mark.parametrize(
    ("argument", "here"),
    [
        ({"max_wavelength": 500}, "`max_timescale`"),
        ({"max_period": 500}, "`max_timescale`"),
        ({"flip_sin_to_cos": True}, "`cosine_first`"),
        ({"d_model": 64}, "`channels`, or the inputs' own"),
        ({"max_len": 64}, "unneeded, any length is right"),
    ],
)
def test_an_argument_of_another_library_is_told_its_name_here(argument, here):
    (name, value), *_ = argument.items()
    for make in (
        lambda: Layer(**argument),
        lambda: tfpe.SinusoidalEmbedding(8, **argument),
        lambda: Layer.from_convention("keras_hub", **argument),
        lambda: tfpe.SinusoidalEmbedding.from_convention("ddpm", 8, **argument),
    ):
        with refuses(TypeError, f"`{name}`", f"here it is {here}", f"{name}={value}"):
            make()
    with pytest.raises(ValueError, match="Unrecognized keyword"):
        Layer(colour="red")


def test_channels_of_a_convention_may_be_named():
    embed = tfpe.SinusoidalEmbedding.from_convention("guided_diffusion", channels=8)
    same = tfpe.SinusoidalEmbedding.from_convention("guided_diffusion", 8, name="other")
    assert {**embed.get_config(), "name": "other"} == same.get_config()


def test_a_name_that_is_like_none_is_not_told_one_that_rhymes():
    with pytest.raises(ValueError, match="must be one of") as caught:
        Layer.from_convention("unet")
    assert "espnet" not in str(caught.value)
    with refuses(ValueError, "such as 'espnet'"):
        Layer.from_convention("esqnet")


@pytest.mark.parametrize("within", ["eager", "model"])
def test_a_warning_of_half_positions_points_at_the_line_that_gave_them(within):
    given = np.array([[3.0, 5.0]], "float16")
    embed = tfpe.SinusoidalEmbedding(8)
    if within == "model":
        time = keras.Input((2,), dtype="float16")
        with pytest.warns(match="If you did not make them so") as caught:
            keras.Model(time, embed(time))
    else:
        with pytest.warns(match="If you did not make them so") as caught:
            embed(given)
        with pytest.warns(match="arrived in float16") as more:
            tfpe.timing_signal_at(given, 8)
        caught.list.extend(more.list)
    assert {warning.filename for warning in caught.list} == {__file__}


def test_nothing_is_remembered_of_a_refused_call():
    layer = Layer()
    with refuses(TypeError, "`inputs`"):
        layer(None)
    assert layer(np.zeros((1, 2, 6), "float32")).shape == (1, 2, 6)
