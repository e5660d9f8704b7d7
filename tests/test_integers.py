"""Any integer and any float is a position: nothing wraps, nothing is cut off."""

import keras
import mpmath
import numpy as np
import oracle
import pytest
from cases import CASES, right
from contract import (
    FLOAT32,
    FRACTION,
    HAS_FLOAT64,
    INT64,
    MODES,
    assert_close,
    needs_float64,
    on_tensorflow,
    refuses,
    to_float64,
)
from keras import ops

import tfpe

EDGES = {
    "int8": [-128, -1, 0, 127],
    "int32": [-(2**31), -(2**31) + 1, -1, 255, 2**31 - 1],
    "int64": [-(2**63), -(2**40) - 3, -1, 2**31, 2**32 + 255, 2**53 + 1, 2**63 - 1],
    "uint8": [0, 255],
    "uint32": [0, 2**31 - 1, 2**31, 2**32 - 1],
    "uint64": [0, 2**32, 2**63 - 1, 2**63, 2**64 - 1],
}
WIDE = ("int64", "uint64")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", EDGES)
@pytest.mark.parametrize("channels", [2, 9])
def test_every_integer_of_every_dtype_is_its_own_position(channels, dtype, mode):
    if dtype in WIDE and not HAS_FLOAT64:
        pytest.skip("needs JAX_ENABLE_X64=1")
    random = np.random.default_rng(channels)
    info = np.iinfo(dtype)
    drawn = random.integers(info.min, info.max, 20, dtype, endpoint=True)
    where = np.concatenate([np.array(EDGES[dtype], dtype), drawn])
    call = MODES[mode](lambda p: tfpe.timing_signal_at(p, channels))
    if keras.backend.backend() == "torch" and dtype == "uint64":
        given = where  # no Keras function makes such a tensor there
    else:
        given = ops.convert_to_tensor(where)
    tolerance = INT64 if dtype in WIDE else FLOAT32
    assert_close(call(given), oracle.rows(where.tolist(), channels), tolerance)


@needs_float64
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_many_int64_positions_keep_the_promise(dtype):
    where = np.random.default_rng(1).integers(-(2**63), 2**63 - 1, 4000)
    tolerance = INT64 if dtype == "float32" else 2e-14
    for settings in ({}, {"layout": "concatenated", "spectrum": "tensor2tensor"}):
        got = tfpe.timing_signal_at(where, 32, dtype=dtype, **settings)
        assert_close(got, oracle.many_rows(where, 32, **settings), tolerance)


def milliseconds_layer(**arguments):
    ends = {"min_timescale": 100, "max_timescale": 86_400_000}
    return tfpe.SinusoidalPositionalEncoding(spectrum="geometric", **ends, **arguments)


@pytest.mark.case("int64-in-graph")
@needs_float64
def test_int64_positions_of_a_functional_model_are_right():
    where = np.array(CASES["int64-in-graph"]["positions"])
    inputs = keras.Input((3, 6)), keras.Input((3,), dtype="int64")
    model = keras.Model(inputs, milliseconds_layer()(inputs[0], positions=inputs[1]))
    given = [np.zeros((1, 3, 6), "float32"), where[None]]
    for got in (model(given), model.predict(given, verbose=0)):
        assert_close(got[0], right("int64-in-graph"), INT64)


@pytest.mark.case("int64-in-graph")
@on_tensorflow
def test_int64_positions_of_a_data_set_are_right():
    import tensorflow as tf

    where = np.array(CASES["int64-in-graph"]["positions"])
    layer, zeros = milliseconds_layer(), tf.zeros((1, 3, 6))
    data = tf.data.Dataset.from_tensors(where[None])
    (got,) = data.map(lambda p: layer(zeros, positions=p))
    assert_close(got[0], right("int64-in-graph"), INT64)


@pytest.mark.case("int64-start")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int64", "uint32", "uint64"])
def test_start_index_of_any_dtype_is_right(dtype, mode):
    if dtype in WIDE and not HAS_FLOAT64:
        pytest.skip("needs JAX_ENABLE_X64=1")
    if keras.backend.backend() == "torch" and dtype == "uint64":
        pytest.skip("Keras has no uint64 on torch")
    layer = tfpe.SinusoidalPositionalEncoding()
    zeros = ops.zeros((2, 2, 8))
    call = MODES[mode](lambda s: layer(zeros, start_index=s))
    for start in ([3_000_000_000], [3_000_000_000, 7]):
        given = np.array(start if len(start) > 1 else start[0], dtype)
        got = to_float64(call(ops.convert_to_tensor(given)))
        assert_close(got[0, 0], right("int64-start"), INT64)
        assert_close(got[0, 1], oracle.row(3_000_000_001, 8), INT64)
        assert_close(got[1, 1], oracle.row(start[-1] + 1, 8), INT64)


@needs_float64
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("shape", [(), (1,)])
def test_start_index_takes_the_whole_range_of_uint64(shape, mode):
    if keras.backend.backend() == "torch":
        pytest.skip("Keras has no uint64 on torch")
    layer = tfpe.SinusoidalPositionalEncoding()
    call = MODES[mode](lambda s: layer(ops.zeros((1, 3, 6)), start_index=s))
    for start in (2**63 - 2, 2**63, 2**64 - 3):
        got = call(ops.convert_to_tensor(np.full(shape, start, "uint64")))
        assert_close(got[0], oracle.rows(range(start, start + 3), 6), INT64)


@on_tensorflow
@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("start", [4000, 4096, 2**31 - 5, 2**31 + 5, 2**40, -512])
def test_a_plain_start_is_right_where_the_length_is_unknown(start, compiled):
    import tensorflow as tf

    layer = tfpe.SinusoidalPositionalEncoding()
    signature = [tf.TensorSpec([None, None, 6])]
    call = tf.function(
        lambda x: layer(x, start_index=start),
        input_signature=signature,
        jit_compile=compiled,
    )
    for length in (0, 1, 300):
        got = call(tf.zeros((1, length, 6)))
        want = oracle.rows(range(start, start + length), 6).reshape(1, length, 6)
        assert_close(got, want, INT64)
    signal = tf.function(lambda n: tfpe.timing_signal(n, 6, start_index=start))
    assert_close(signal(tf.constant(1)), oracle.rows([start], 6), INT64)


@pytest.mark.parametrize("start", [-256, 4096, 8192, 2**30])
def test_no_steps_are_an_empty_signal_wherever_they_start(start):
    assert to_float64(tfpe.timing_signal(0, 6, start_index=start)).shape == (0, 6)


@needs_float64
def test_integers_of_a_list_are_not_rounded():
    # NumPy makes floats of these lists.
    for positions in ([1, 2**63 + 1], [2**64 - 1, 3, 2**53 + 1]):
        got = tfpe.timing_signal_at(positions, 6)
        assert_close(got, oracle.rows(positions, 6), INT64)
    with pytest.raises(TypeError, match=r"`positions` must fit int64 or uint64"):
        tfpe.timing_signal_at([-1, 2**63], 6)


def test_an_array_of_32_bits_or_less_needs_no_integers_of_64():
    where = np.array([0, 2**31, 2**32 - 1], "int64")
    assert_close(tfpe.timing_signal_at(where, 9), oracle.rows(where.tolist(), 9), INT64)


@pytest.mark.parametrize("mode", MODES)
def test_steps_that_leave_the_dtype_of_their_start_do_not_wrap(mode):
    layer = tfpe.SinusoidalPositionalEncoding()
    call = MODES[mode](lambda s: layer(ops.zeros((1, 300, 6)), start_index=s))
    dtypes = {"int32": 2**31 - 5, "uint32": 2**32 - 5}
    if HAS_FLOAT64:
        dtypes["int64"] = 2**63 - 5
    for dtype, start in dtypes.items():
        got = call(ops.convert_to_tensor(np.array(start, dtype)))
        want = oracle.rows(range(start, start + 300), 6)
        assert_close(got[0], want, INT64)


@needs_float64
@pytest.mark.parametrize("start", [2**31 - 7, 2**40 + 3, -(2**50), -(2**31) - 9])
def test_consecutive_steps_may_stand_anywhere_in_int64(start):
    for length in (1, 5, 300):
        want = oracle.rows(range(start, start + length), 6)
        got = tfpe.timing_signal(length, 6, start_index=start)
        assert_close(got, want, INT64)
        layer = tfpe.SinusoidalPositionalEncoding()
        got = layer(np.zeros((1, length, 6), "float32"), start_index=start)
        assert_close(got[0], want, INT64)


@needs_float64
def test_a_range_past_int64_is_refused():
    for call in (
        lambda: tfpe.timing_signal(3, 8, start_index=2**63 - 2),
        lambda: tfpe.SinusoidalPositionalEncoding()(
            keras.Input((3, 8)), start_index=2**63 - 2
        ),
    ):
        with refuses(ValueError, "must not go past 2**63 - 1", "length=3"):
            call()


@pytest.mark.skipif(HAS_FLOAT64, reason="has integers of 64 bits")
def test_integers_that_jax_has_no_type_for_are_refused():
    for call in (
        lambda: tfpe.timing_signal_at(np.array([5, 2**40]), 8),
        lambda: tfpe.timing_signal(3, 8, start_index=2**31),
    ):
        with refuses(ValueError, "inside int32", "Received"):
            call()


@pytest.mark.parametrize("mode", MODES)
def test_floats_are_right_as_far_as_they_are_floats(mode):
    sizes = 2.0 ** np.arange(-30, 62.5, 1.75)
    where = np.concatenate([sizes, -sizes]).astype("float32")
    call = MODES[mode](lambda p: tfpe.timing_signal_at(p, 6))
    got = call(ops.convert_to_tensor(where))
    assert_close(got, oracle.rows(where.astype("float64").tolist(), 6), INT64)


@pytest.mark.parametrize("mode", MODES)
def test_fractions_are_right_at_timescales_far_below_one(mode):
    random = np.random.default_rng(3)
    where = random.uniform(-4000, 4000, 400).astype("float32")
    scales = 2.0 ** np.linspace(-12, 6, 8)
    call = MODES[mode](lambda p: tfpe.timing_signal_at(p, 16, spectrum=scales))
    got = call(ops.convert_to_tensor(where))
    want = oracle.rows(where.astype("float64").tolist(), 16, spectrum=scales)
    assert_close(got, want, FRACTION)


@pytest.mark.case("small-timescales")
@needs_float64
def test_calendar_time_in_years_is_right():
    periods = 1 / 365.25 * (128 * 365.25) ** (np.arange(8) / 7)
    got = tfpe.timing_signal_at(
        np.array([2024.5021]), 16, spectrum=periods / (2 * np.pi)
    )
    # The position in turns of the shortest timescale, times the rounding of float64.
    rounding = 2024.5021 * 365.25 * 2 * np.pi * 2.0**-52
    assert_close(got[0], right("small-timescales"), FRACTION + rounding)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_positions_of_a_half_type_are_worth_a_warning(dtype):
    given = ops.cast(ops.convert_to_tensor([3.0, 5.0]), dtype)
    layer = tfpe.SinusoidalPositionalEncoding()
    for call in (
        lambda: tfpe.timing_signal_at(given, 8),
        lambda: layer(np.zeros((1, 2, 8), "float32"), positions=given)[0],
        lambda: tfpe.SinusoidalEmbedding(8)(given),
    ):
        with pytest.warns(match="(?s)autocast.*integers.*dtype='float32'"):
            got = call()
        assert_close(got, oracle.rows([3, 5], 8), FLOAT32)


class Outer(keras.Model):
    """A model whose float inputs Keras casts to half under a mixed policy."""

    def __init__(self, **arguments):
        super().__init__(**arguments)
        self.encode = tfpe.SinusoidalPositionalEncoding(dtype="float32")

    def call(self, inputs):
        return self.encode(ops.cast(inputs[0], "float32"), positions=inputs[1])


@pytest.mark.case("half-positions")
def test_an_outer_layer_that_rounds_positions_is_told_the_ways_out():
    keras.config.set_dtype_policy("mixed_bfloat16")
    zeros = np.zeros((1, 1, 8), "float32")
    with pytest.warns(match="autocast"):
        got = Outer()([zeros, np.array([[2909.0]], "float32")])
    assert_close(got[0, 0], oracle.row(2912, 8), FLOAT32)
    for model, position in (
        (Outer(), np.array([[2909]], "int32")),
        (Outer(autocast=False), np.array([[2909.0]], "float32")),
    ):
        want = right("half-positions")["2909"]
        assert_close(model([zeros, position])[0, 0], want, FLOAT32)


@pytest.mark.parametrize("offset", [1e20, 1e100, 1e308, -(10**30), 2.0**-60, 7])
def test_shift_matrix_takes_any_offset(offset):
    with mpmath.workdps(700):
        matrix = tfpe.shift_matrix(offset, 5)
        want = mpmath.sin(mpmath.mpf(offset))
        assert_close(matrix[1, 0], float(want), 1e-14)
    assert matrix[4, 4] == 1


@pytest.mark.case("shift-context")
def test_shift_matrix_does_not_ask_the_decimal_context_of_the_caller():
    import decimal

    want = tfpe.shift_matrix(3, 6), tfpe.timescales(6)
    with decimal.localcontext() as context:
        context.prec = 5
        context.traps[decimal.Inexact] = True
        context.traps[decimal.FloatOperation] = True
        got = tfpe.shift_matrix(3, 6, max_timescale=10_000), tfpe.timescales(6)
        other = tfpe.shift_matrix(1, 2, spectrum=[3e-30])
    np.testing.assert_array_equal(got[0], want[0])
    np.testing.assert_array_equal(got[1], want[1])
    assert_close(other[1, 0], right("shift-context")["[1, 0] of the first"], 1e-14)


@pytest.mark.case("zero-width-block")
@pytest.mark.case("many-axes")
def test_blocks_of_no_width_and_axes_without_number():
    assert_close(tfpe.timing_signal((4097, 1), 3), np.zeros((4097, 1, 3)), 0)
    got = tfpe.tensor2tensor.add_timing_signal_nd(np.zeros((1, 4097, 2, 3), "float32"))
    assert_close(got, np.zeros((1, 4097, 2, 3)), 0)
    permutation = tfpe.layout_permutation(4, "interleaved", "concatenated", axes=10**9)
    np.testing.assert_array_equal(permutation, right("many-axes"))


@pytest.mark.case("huge-widths")
@pytest.mark.parametrize(
    "call",
    [
        lambda: tfpe.timing_signal(2, 10**9),
        lambda: tfpe.timescales(10**9),
        lambda: tfpe.SinusoidalEmbedding(10**9),
        lambda: tfpe.shift_matrix(1, 10**9),
    ],
)
def test_a_width_that_would_take_all_memory_is_refused(call):
    with refuses(ValueError, "`channels` must be", "at most 131,072", "=1000000000"):
        call()


@pytest.mark.parametrize("mode", MODES)
def test_length_may_be_an_integer_scalar_tensor(mode):
    if mode == "xla":
        pytest.skip("XLA compiles only lengths that come from shapes")
    call = MODES[mode](lambda n: tfpe.timing_signal((n, 3), 8))
    got = call(ops.convert_to_tensor(5, "int32"))
    assert_close(got, oracle.rows(list(np.ndindex(5, 3)), 8).reshape(5, 3, 8), FLOAT32)
    with refuses(TypeError, "`length` must be", "KerasTensor"):
        tfpe.timing_signal(keras.Input((), dtype="int32"), 8)
    with refuses(TypeError, "`length` must be", "length=None"):
        tfpe.timing_signal(None, 8)
