"""Calls of the layer that are refused, eager and symbolic, and that it survives."""

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import assert_promised, needs_float64, on_tensorflow, randoms, refuses

import tfpe

Layer = tfpe.SinusoidalPositionalEncoding
IDS = np.arange(15, dtype="int32").reshape(3, 5)


def knows(dtype):
    try:
        return bool(keras.backend.standardize_dtype(dtype))
    except ValueError:
        return False


COMPLEX = pytest.param(
    "complex64",
    marks=pytest.mark.skipif(not knows("complex64"), reason="no dtype of this Keras"),
)


def ints(*shape):
    return np.arange(np.prod(shape), dtype="int32").reshape(shape)


# Arguments of the constructor, the error, what its message says.
CONSTRUCTORS = [
    ({"axis": -1}, ValueError, "`axis` must be an int other than -1", "axis=-1"),
    ({"axis": (1, 1)}, ValueError, "`axis` must be", "different", "axis=(1, 1)"),
    ({"axis": ()}, ValueError, "`axis` must be an int", "axis=()"),
    ({"axis": 1.0}, TypeError, "`axis` must be an int", "axis=1.0"),
    ({"axis": True}, TypeError, "`axis` must be an int", "axis=True"),
    ({"axis": "1"}, TypeError, "`axis` must be an int", "axis='1'"),
    ({"axis": (1, 2.0)}, TypeError, "`axis` must be an int", "axis="),
    ({"skip_masked": 1}, TypeError, "`skip_masked` must be True or False", "=1"),
    (
        *({"skip_masked": True, "axis": (1, 2)}, ValueError),
        *("`skip_masked=True` is for one axis only", "axis=(1, 2)"),
    ),
    (
        *({"odd_channel": "sine", "axis": (1, 2)}, ValueError),
        *("`odd_channel='sine'` is for one axis only", "2 axes"),
    ),
    ({"dtype": "int32"}, ValueError, "`dtype` must be one of", "'float64'", "=int32"),
]
# Arguments of the constructor, shape of the inputs, what a ValueError says.
SHAPES = [
    ({}, (6,), "`inputs` must have a rank of at least 3", "inputs.shape=(6,)"),
    ({}, (3, 6), "`inputs` must have a rank of at least 3", "inputs.shape=(3, 6)"),
    ({"axis": (1, 2, 3)}, (3, 5, 4, 6), "`inputs` must have a rank of at least 5"),
    ({"axis": 3}, (3, 5, 6), "`axis` must name", "of `inputs`", "axis=3", "(3, 5, 6)"),
    ({"axis": 2}, (3, 5, 6), "`axis` must name", "before the last", "axis=2"),
    ({"axis": -4}, (3, 5, 6), "`axis` must name", "of `inputs`", "axis=-4"),
    ({"axis": (1, -3)}, (3, 5, 4, 6), "`axis` must name different", "axis=(1, -3)"),
    ({}, (3, 5, 1), "`inputs` must have at least 2 channels", "shape=(3, 5, 1)"),
    ({"axis": (1, 2)}, (2, 5, 4, 3), "`inputs` must have at least 4 channels", "4, 3)"),
    ({"spectrum": [1, 2]}, (3, 5, 6), "`spectrum` must have one", "3 for 6 channels"),
    ({"axis": (1, 2)}, (2, 20, 8), "`positions` must be given for inputs of rank 3"),
]
INDEX = "`start_index` must be a"
AT_ZERO = "`start_index` must be left at 0 when `positions` is given"
STEPS = "`positions` must have the shape "
# Arguments of a call on inputs (3, 5, 6), the error, what its message says.
ONE_AXIS = [
    ({"start_index": 3, "positions": ints(5)}, ValueError, AT_ZERO, "start_index=3"),
    ({"start_index": np.int32(0), "positions": ints(5)}, ValueError, AT_ZERO),
    ({"start_index": ints(3) * 0, "positions": ints(5)}, ValueError, AT_ZERO),
    ({"start_index": ints(3) * 1.0}, TypeError, "`start_index` must be integers"),
    ({"start_index": 0.0}, TypeError, "`start_index` must be integers"),
    ({"start_index": False}, TypeError, INDEX, "start_index=False"),
    ({"start_index": ints(5)}, ValueError, "`start_index`", "(3,)", "shape=(5,)"),
    ({"start_index": ints(3, 1)}, ValueError, INDEX, "each batch row", "(3, 1)"),
    ({"start_index": 2**63}, ValueError, INDEX, "inside int", "=9223372036854775808"),
    ({"positions": ints(4)}, ValueError, STEPS + "(5,)", "positions.shape=(4,)"),
    ({"positions": ints(1)}, ValueError, STEPS + "(5,)", "positions.shape=(1,)"),
    ({"positions": ints(1, 5)}, ValueError, STEPS + "(3, 5)", "shape=(1, 5)"),
    ({"positions": ints(5, 3)}, ValueError, STEPS + "(3, 5)", "shape=(5, 3)"),
    ({"positions": ints(3, 5, 1)}, ValueError, STEPS, "(batch, length)", "(3, 5, 1)"),
    ({"positions": ints()}, ValueError, STEPS, "(batch, length)", "()"),
    ({"positions": ints(5) > 2}, TypeError, "`positions` must be integers or floats"),
]
SEQUENCE = "`positions` must be a sequence of 2 tensors, one for each axis"
# Positions for inputs (2, 5, 4, 8) with two axes, what a ValueError says.
TWO_AXES = [
    (ints(5), SEQUENCE),
    (ints(2, 20), SEQUENCE, "positions.shape=(2, 20)", "stacked", "`tuple(x)`"),
    ((ints(5), ints(4), ints(8)), SEQUENCE),
    ((ints(4), ints(5)), STEPS + "(5,)", "positions.shape=(4,)"),
    ((ints(5), ints(1)), STEPS + "(4,)", "positions.shape=(1,)"),
    ((ints(5), ints(2, 4, 5)), STEPS + "(2, 5, 4)", "positions.shape=(2, 4, 5)"),
    ((ints(5), ints(2, 5, 4, 1)), STEPS, "(batch, *grid)", "(2, 5, 4, 1)"),
]


def symbolic(x):
    """Returns a symbolic tensor in place of each array."""
    if isinstance(x, tuple):
        return tuple(map(symbolic, x))
    if isinstance(x, np.ndarray):
        return keras.Input(batch_shape=x.shape, dtype=str(x.dtype))
    return x


def call(kind, settings, shape, arguments):
    inputs = np.array(randoms(*shape))
    if kind == "symbolic":
        inputs = symbolic(inputs)
        arguments = {name: symbolic(value) for name, value in arguments.items()}
    Layer(**settings)(inputs, **arguments)


@pytest.mark.parametrize("case", CONSTRUCTORS, ids=lambda case: str(case[0]))
def test_constructor_refuses(case):
    arguments, error, *words = case
    with refuses(error, *words):
        Layer(**arguments)


@pytest.mark.case("bad-arguments")
@pytest.mark.parametrize("kind", ["eager", "symbolic"])
@pytest.mark.parametrize("case", SHAPES, ids=lambda case: str(case[:2]))
def test_call_refuses_inputs(case, kind):
    settings, shape, *words = case
    with refuses(ValueError, *words):
        call(kind, settings, shape, {})


@pytest.mark.case("zero-is-not-unset")
@pytest.mark.parametrize("kind", ["eager", "symbolic"])
@pytest.mark.parametrize("case", ONE_AXIS)
def test_call_refuses_steps_of_one_axis(case, kind):
    arguments, error, *words = case
    with refuses(error, *words):
        call(kind, {}, (3, 5, 6), arguments)


@pytest.mark.parametrize("kind", ["eager", "symbolic"])
@pytest.mark.parametrize("case", TWO_AXES)
def test_call_refuses_steps_of_two_axes(case, kind):
    positions, *words = case
    with refuses(ValueError, *words):
        call(kind, {"axis": (1, 2)}, (2, 5, 4, 8), {"positions": positions})


@pytest.mark.parametrize("kind", ["eager", "symbolic"])
def test_start_index_is_refused_on_two_axes(kind):
    for start_index in (2, ints(2), np.int64(0)):
        with refuses(ValueError, "`start_index` is for one axis only"):
            call(kind, {"axis": (1, 2)}, (2, 5, 4, 8), {"start_index": start_index})


@pytest.mark.parametrize("kind", ["eager", "symbolic"])
def test_flattened_grid_refuses_the_positions_of_its_sides(kind):
    with refuses(ValueError, STEPS + "(20,)", "positions.shape=(5,)"):
        call(kind, {"axis": (1, 2)}, (2, 20, 8), {"positions": (ints(5), ints(4))})


@pytest.mark.parametrize("kind", ["eager", "symbolic"])
@pytest.mark.parametrize("patches", [20, 21])
def test_flattened_grid_is_told_of_one_entry_a_patch_and_of_class_tokens(kind, patches):
    wrong = ints(41 - patches)
    words = f"({patches},)", "entry for each patch", "np.meshgrid", "class token after"
    with refuses(ValueError, STEPS, *words, f"shape={wrong.shape}"):
        call(kind, {"axis": (1, 2)}, (2, patches, 8), {"positions": (wrong, wrong)})
    with pytest.raises(ValueError, match="the inputs have it\\. Received"):
        call(kind, {}, (2, patches, 8), {"positions": wrong})


@pytest.mark.case("integer-input")
@pytest.mark.parametrize("kind", ["eager", "symbolic"])
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", COMPLEX])
def test_inputs_that_are_not_floats_are_refused(dtype, kind):
    inputs = np.zeros((3, 5, 6), dtype)
    if kind == "symbolic":
        inputs = symbolic(inputs)
    words = "`inputs` must be of a floating dtype, one of", f"inputs.dtype={dtype}"
    with refuses(TypeError, *words):
        Layer()(inputs)


@pytest.mark.case("bad-arguments")
@pytest.mark.parametrize("shape", [(None, None), (5, None)])
def test_unknown_channels_are_refused(shape):
    with refuses(ValueError, "`inputs` must have a known number of channels", "None)"):
        Layer()(keras.Input(shape))


def test_other_channels_than_those_it_was_built_for_are_refused():
    layer = Layer()
    layer(randoms(3, 5, 6))
    with refuses(ValueError, "expected axis -1 of input shape to have value 6"):
        layer(randoms(3, 5, 8))


@pytest.mark.parametrize("shape", [(3,), (3, 4), (5, 3), (3, 5, 6)])
def test_mask_of_another_shape_is_refused(shape):
    words = "`mask` must have the", f"mask.shape={shape}", "inputs.shape=(3, 5, 6)"
    with refuses(ValueError, *words):
        Layer(skip_masked=True)(randoms(3, 5, 6), mask=np.ones(shape, bool))


def test_mask_of_floats_is_refused():
    with refuses(TypeError, "`mask` must be", "integers or bools", "float32"):
        Layer(skip_masked=True)(randoms(3, 5, 6), mask=np.ones((3, 5), "float32"))


SIZES = {"same count": (5, 3), "other rows": (1, 5), "other length": (3, 4)}


@on_tensorflow
@pytest.mark.parametrize("sizes", SIZES)
def test_positions_of_sizes_known_in_the_graph_alone_are_refused_there(sizes):
    layer = Layer()
    signature = [tf.TensorSpec([None, None, 6]), tf.TensorSpec([None, None], "int32")]
    call = tf.function(lambda x, p: layer(x, positions=p), input_signature=signature)
    assert_promised(
        call(np.zeros((3, 5, 6), "float32"), IDS)[1], oracle.rows(IDS[1], 6)
    )
    with pytest.raises(tf.errors.InvalidArgumentError):
        call(randoms(3, 5, 6), ints(*SIZES[sizes]))


@on_tensorflow
def test_start_indices_of_a_size_known_in_the_graph_alone_are_refused_there():
    layer = Layer()
    signature = [tf.TensorSpec([None, None, 6]), tf.TensorSpec([None], "int32")]
    call = tf.function(lambda x, s: layer(x, start_index=s), input_signature=signature)
    for size in (1, 5):
        with pytest.raises(tf.errors.InvalidArgumentError):
            call(randoms(3, 5, 6), ints(size))


def test_layer_is_as_before_after_a_refusal():
    layer = Layer()
    for arguments in (
        {"start_index": 1.5},
        {"positions": ints(4)},
        {"start_index": 2**63},
    ):
        with pytest.raises((TypeError, ValueError)):
            layer(randoms(3, 5, 6), **arguments)
        got = layer(np.zeros((3, 5, 6), "float32"), start_index=2)
        assert_promised(got[2], oracle.rows(range(2, 7), 6))


@needs_float64
@pytest.mark.case("int32-edge")
def test_steps_past_the_end_of_int64_are_refused_everywhere():
    for call in (
        lambda start, n: Layer()(np.zeros((1, n, 6), "float32"), start_index=start),
        lambda start, n: tfpe.timing_signal(n, 6, start_index=start),
        lambda start, n: Layer()(keras.Input((n, 6)), start_index=start),
    ):
        # int64 since 0.2: what was refused in 0.1 beyond int32 is right now.
        call(2**31 - 4, 5)
        call(2**63 - 5, 5)
        with pytest.raises(ValueError, match="must not go past 2\\*\\*63 - 1"):
            call(2**63 - 4, 5)
