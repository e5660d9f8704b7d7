"""What the layer adds, where: axes, grids, start indices, dtypes."""

import keras
import numpy as np
import oracle
import pytest
from cases import CASES
from contract import (
    DTYPES,
    FLOAT32,
    LAYOUTS,
    MODES,
    ORDERS,
    POLICIES,
    SUM,
    assert_close,
    assert_promised,
    assert_same_in_dtype,
    conventions,
    dtype_of,
    dtypes,
    randoms,
    rounded,
    to_float64,
)
from hypothesis import given
from hypothesis import strategies as st

import tfpe


def layer_of(**settings):
    return tfpe.SinusoidalPositionalEncoding(**settings)


def grid_rows(lengths, channels, **settings):
    """Returns the right signal of a whole grid, from one index after the other."""
    points = list(np.ndindex(*lengths))
    return oracle.rows(points, channels, **settings).reshape(*lengths, channels)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [2, 3, 6, 7])
def test_outputs_are_inputs_plus_signal(channels, layout):
    inputs = randoms(3, 5, channels)
    outputs = layer_of(layout=layout)(inputs)
    want = to_float64(inputs) + oracle.rows(range(5), channels, layout=layout)
    assert_close(outputs, want, SUM)


@pytest.mark.parametrize("dtype", dtypes("float32", "float64"))
@given(
    channels=st.integers(2, 17),
    layout=st.sampled_from(LAYOUTS),
    spectrum=st.sampled_from([None, *oracle.SPECTRA]),
    ends=st.tuples(st.floats(0.5, 100), st.floats(0.5, 1e5)),
    cosine_first=st.booleans(),
    first_position=st.integers(-1000, 1000),
    amplitude=st.floats(-3, 3),
    start_index=st.integers(-(2**31), 2**31 - 4),
)
def test_signal_function_gives_what_the_layer_adds(
    dtype, channels, ends, start_index, **settings
):
    settings.update(min_timescale=ends[0], max_timescale=ends[1])
    signal = tfpe.timing_signal(
        4, channels, start_index=start_index, dtype=dtype, **settings
    )
    zeros = np.zeros((2, 4, channels), dtype)
    added = layer_of(dtype=dtype, **settings)(zeros, start_index=start_index)
    np.testing.assert_array_equal(added[1], signal)
    where = np.arange(start_index, start_index + 4)
    at = tfpe.timing_signal_at(where, channels, dtype=dtype, **settings)
    assert_close(at, to_float64(signal), FLOAT32 * 3)
    want = oracle.rows(where, channels, **settings)
    assert_promised(signal, want, amplitude=max(abs(settings["amplitude"]), 1))


@pytest.mark.case("axis")
@pytest.mark.parametrize(
    ("axis", "shape"),
    [
        *((-2, (2, 5, 6)), (1, (2, 5, 6)), (0, (5, 2, 6)), (-3, (5, 2, 6))),
        (-2, (5, 5, 6)),  # as many rows as steps hide swapped axes
        *((2, (2, 3, 5, 6)), (1, (2, 5, 3, 6)), (-4, (5, 2, 3, 6))),
        (3, (4, 2, 3, 5, 6)),
    ],
)
def test_signal_lies_along_the_axis_and_is_the_same_along_all_others(axis, shape):
    inputs = randoms(*shape)
    outputs = layer_of(axis=axis)(inputs, start_index=40)
    want = oracle.rows(range(40, 45), 6)
    place = [1] * len(shape)
    place[axis], place[-1] = 5, 6
    assert_close(outputs, to_float64(inputs) + want.reshape(place), SUM)


@pytest.mark.case("nd-non-square")
@pytest.mark.parametrize("layout", [*LAYOUTS, ORDERS[3]], ids=str)
@pytest.mark.parametrize(
    ("axis", "shape"),
    [
        *(((1, 2), (2, 5, 3, 9)), ((-3, -2), (2, 5, 3, 9)), ((0, 1), (5, 3, 2, 9))),
        *(((2, 3), (2, 4, 5, 3, 9)), ((1, 3), (2, 5, 4, 3, 9))),
        ((-4, -2), (2, 5, 4, 3, 9)),
    ],
)
def test_two_axes_have_a_block_of_channels_each(axis, shape, layout):
    inputs = randoms(*shape)
    settings = {"layout": layout, "spectrum": "geometric"}
    outputs = layer_of(axis=axis, **settings)(inputs)
    place = [1] * len(shape)
    for a in (*axis, -1):
        place[a] = shape[a]
    want = grid_rows((5, 3), 9, **settings).reshape(place)
    assert_close(outputs, to_float64(inputs) + want, SUM)


def test_blocks_of_channels_come_in_the_order_of_the_axes():
    inputs = randoms(2, 5, 3, 8)
    outputs = layer_of(axis=(2, 1))(inputs)
    want = grid_rows((3, 5), 8).transpose(1, 0, 2)
    assert_close(outputs, to_float64(inputs) + want, SUM)


def test_three_axes_have_three_blocks():
    inputs = randoms(2, 4, 3, 5, 14)
    outputs = layer_of(axis=(1, 2, 3), layout="concatenated")(inputs)
    want = grid_rows((4, 3, 5), 14, layout="concatenated")
    assert_close(outputs, to_float64(inputs) + want, SUM)
    signal = tfpe.timing_signal((4, 3, 5), 14, layout="concatenated")
    assert_promised(signal, want)


@pytest.mark.parametrize("lengths", [(5,), [5], (3, 5), (2, 3, 4)])
def test_signal_of_a_tuple_of_lengths_is_a_grid(lengths):
    got = tfpe.timing_signal(lengths, 13)
    assert_promised(got, grid_rows(lengths, 13))


@pytest.mark.parametrize("axis", [1, (1,), [1], np.int64(1)])
def test_one_axis_may_be_given_in_many_ways(axis):
    layer = layer_of(axis=axis)
    assert layer.get_config()["axis"] == 1
    assert_promised(layer(np.zeros((1, 5, 7), "float32"))[0], oracle.rows(range(5), 7))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("axis", "shape"), [(1, (3, 5, 6)), (0, (5, 3, 6))])
def test_start_index_may_differ_by_row(axis, shape, mode):
    inputs, starts = randoms(*shape), [70000, 0, -4]
    layer = layer_of(axis=axis)
    call = MODES[mode](lambda starts: layer(inputs, start_index=starts))
    want = np.stack([oracle.rows(range(s, s + 5), 6) for s in starts], 1 - axis)
    for kind in (np.int32, np.int64):
        got = call(keras.ops.convert_to_tensor(np.array(starts, kind)))
        assert_close(got, to_float64(inputs) + want, SUM)


def test_start_index_by_row_belongs_to_the_first_batch_axis():
    inputs, starts = randoms(3, 2, 5, 6), [9, 0, 4000]
    want = np.stack([oracle.rows(range(s, s + 5), 6) for s in starts])
    got = layer_of()(inputs, start_index=starts)
    assert_close(got, to_float64(inputs) + want[:, None], SUM)


@pytest.mark.parametrize(
    "start_index",
    [
        *(5, np.int32(5), np.int64(5), np.uint8(5), np.array(5), [5, 5], (5, 5)),
        np.array([5, 5], "int16"),
    ],
    ids=repr,
)
def test_start_index_may_be_any_integers(start_index):
    inputs = randoms(2, 4, 6)
    outputs = layer_of()(inputs, start_index=start_index)
    want = to_float64(inputs) + oracle.rows(range(5, 9), 6)
    assert_close(outputs, want, SUM)


@pytest.mark.parametrize("policy", dtypes("mixed_float16", "mixed_bfloat16", "float64"))
@pytest.mark.parametrize("given_dtype", dtypes(*DTYPES))
def test_inputs_and_signal_are_rounded_once_and_so_is_their_sum(policy, given_dtype):
    layer = layer_of(dtype=policy)
    dtype = layer.compute_dtype
    inputs = randoms(3, 50, 6, dtype=given_dtype)
    signal = tfpe.timing_signal(50, 6, dtype=dtype)
    terms = rounded(to_float64(inputs), dtype).astype("float64") + to_float64(signal)
    outputs = layer(inputs)
    assert dtype_of(outputs) == dtype
    got = to_float64(outputs)
    np.testing.assert_array_equal(got, rounded(terms, dtype).astype("float64"))


@pytest.mark.parametrize("shape", [(0, 5, 6), (3, 0, 6)])
def test_empty_inputs_stay_empty(shape):
    for start_index in (0, 5000, -1):
        assert layer_of()(randoms(*shape), start_index=start_index).shape == shape
    assert layer_of(axis=(1, 2))(randoms(*shape[:2], 3, 6)).shape == (*shape[:2], 3, 6)
    assert tfpe.timing_signal(0, 6).shape == (0, 6)
    assert tfpe.timing_signal((0, 4), 6).shape == (0, 4, 6)


@pytest.mark.case("nd-blocks")
def test_pixel_has_the_signal_of_its_row_and_then_of_its_column():
    settings = {"layout": CASES["nd-blocks"]["layout"]}
    layer = tfpe.SinusoidalPositionalEncoding(axis=(1, 2), **settings)
    got = layer(np.zeros(CASES["nd-blocks"]["shape"], "float32"))[0, 1, 0]
    want = [oracle.row(position, 4, **settings) for position in (1, 0)]
    assert_close(got, np.concatenate(want), FLOAT32)


@pytest.mark.case("split")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("policy", dtypes(*POLICIES))
def test_split_equals_whole_for_every_cut(policy, mode):
    keras.config.set_dtype_policy(policy)
    dtype = keras.config.dtype_policy().compute_dtype
    inputs = randoms(2, 7, 6, dtype=dtype)
    layer = layer_of(layout="concatenated")

    def starts(cut, cuts, wide_cuts):
        yield cuts[cut]
        if cut in (0, 3):
            yield from (cut, np.int64(cut), wide_cuts[cut])
            yield keras.ops.stack([cuts[cut]] * 2)

    @MODES[mode]
    def pieces(inputs, *cuts):
        return [
            (layer(inputs[:, :cut]), layer(inputs[:, cut:], start_index=start))
            for cut in range(8)
            for start in starts(cut, *cuts)
        ]

    whole = layer(inputs)
    cuts = (keras.ops.convert_to_tensor(np.arange(8, dtype=d)) for d in ("i4", "i8"))
    for both in pieces(inputs, *cuts):
        assert_same_in_dtype(keras.ops.concatenate(both, axis=1), whole)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [2, 3, 64])
def test_lengths_and_start_indices_may_come_in_any_order(channels, mode):
    steps = [(3, 0), (5001, 0), (3, 5), (1, 4999), (3, 0), (7, 70000), (5001, 0)]
    for settings in conventions(channels)[:5] if mode == "eager" else [{}]:
        layer = layer_of(**settings)
        call = MODES[mode](lambda x, start, layer=layer: layer(x, start_index=start))
        for length, start in steps:
            zeros = np.zeros((1, length, channels), "float32")
            where = np.arange(start, start + length)
            want = oracle.many_rows(where, channels, **settings)
            for kind in (int, np.int32) if mode == "eager" else (np.int32,):
                assert_promised(call(zeros, kind(start))[0], want, where)
