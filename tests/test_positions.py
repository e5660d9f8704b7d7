"""Positions given to the layer and to the function, and positions from masks."""

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from contract import (
    FRACTION,
    MODES,
    SUM,
    assert_close,
    assert_promised,
    dtype_of,
    dtypes,
    on_tensorflow,
    randoms,
    to_float64,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tfpe

UNSORTED = [7, 0, -3, 70000, 7]
BY_ROW = [[7, 0, -3, 70000, 7], [1, 2, 3, 4, 5], [-9, 2**31 - 1, 600, 0, 255]]


def added_to(inputs, signal):
    return to_float64(inputs) + np.asarray(signal)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [-2, 0])
@pytest.mark.parametrize("positions", [UNSORTED, BY_ROW], ids=["all", "by row"])
@pytest.mark.parametrize("dtype", dtypes("int32", "int64", "float64"))
def test_positions_are_those_of_every_row_or_of_each(dtype, positions, axis, mode):
    want = oracle.rows(np.ravel(positions), 6).reshape(*np.shape(positions), 6)
    want = np.broadcast_to(want, (3, 5, 6))
    if axis == 0:
        want = want.transpose(1, 0, 2)
    inputs = randoms(*want.shape)
    layer = tfpe.SinusoidalPositionalEncoding(axis=axis)
    call = MODES[mode](lambda positions: layer(inputs, positions=positions))
    given_ones = keras.ops.convert_to_tensor(np.array(positions, dtype))
    assert_close(call(given_ones), added_to(inputs, want), SUM)


def test_a_list_may_mix_numbers_of_numpy_and_python():
    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(2, 4, 6)
    got = layer(inputs, positions=[np.int64(3), 1, 2, 700])
    assert_close(got, added_to(inputs, oracle.rows([3, 1, 2, 700], 6)), SUM)
    got = layer(inputs, start_index=[np.int64(3), 1])
    want = [oracle.rows(range(start, start + 4), 6) for start in (3, 1)]
    assert_close(got, added_to(inputs, want), SUM)


@pytest.mark.parametrize("kind", ["list", "int8", "uint8", "uint64", "float32"])
def test_positions_may_be_of_any_real_type(kind):
    where = [3, 0, 100, 7, 100]
    inputs = randoms(2, 5, 6)
    given_ones = where if kind == "list" else np.array(where, kind)
    got = tfpe.SinusoidalPositionalEncoding()(inputs, positions=given_ones)
    assert_close(got, added_to(inputs, oracle.rows(where, 6)), SUM)
    signal = tfpe.timing_signal_at(given_ones, 6)
    assert_promised(signal, oracle.rows(where, 6))


@pytest.mark.parametrize("shape", [(), (5,), (5, 3), (2, 4, 3)])
def test_function_takes_positions_of_any_shape(shape):
    where = np.random.default_rng(3).integers(-(2**31), 2**31, shape)
    want = oracle.rows(where.ravel(), 7).reshape(*shape, 7)
    for given_ones in (where, where.tolist(), keras.ops.convert_to_tensor(where)):
        assert_promised(tfpe.timing_signal_at(given_ones, 7), want)


def test_function_takes_a_tuple_of_tensors_that_broadcast():
    height, width = np.array([5, -2, 900]), np.array([0, 3, 3, 70000])
    points = [(h, w) for h in height for w in width]
    want = oracle.rows(points, 9).reshape(3, 4, 9)
    got = tfpe.timing_signal_at((height[:, None], width), 9)
    assert_promised(got, want)
    got = tfpe.timing_signal_at((height[:, None], 3.0), 9)
    assert_promised(got, want[:, 1:2])


def grid_entry(kind, axis, block):
    """Returns positions for an axis of a grid and the same for all its points.

    They are for all rows (kind "a"), for each row ("r") or for each point ("p").
    """
    values = np.array([[5, -2, 900, 0], [0, 3, 70000]][block])
    by_row = values + np.arange(2)[:, None] * (kind != "a")
    full = by_row[:, None, :] if block else by_row[:, :, None]
    points = np.broadcast_to(full, (2, 4, 3))
    if kind == "p":
        points = points + np.arange(24).reshape(2, 4, 3)
        entry = points if axis[0] < axis[1] else points.transpose(0, 2, 1)
    else:
        entry = by_row if kind == "r" else values
    return keras.ops.convert_to_tensor(entry.astype("int32")), points.ravel()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("axis", [(1, 2), (2, 1), (0, 2)])
def test_positions_of_a_grid_have_an_entry_for_each_axis(axis, mode):
    both = [
        [grid_entry(kind, axis, block) for block, kind in enumerate(kinds)]
        for kinds in ("aa", "ar", "ra", "rp", "pa", "pp")
    ]
    (batch,) = {0, 1, 2} - set(axis)
    layer = tfpe.SinusoidalPositionalEncoding(layout="concatenated", axis=axis)
    shape = np.empty(3, int)
    shape[[batch, *axis]] = 2, 4, 3
    inputs = randoms(*shape, 9)

    @MODES[mode]
    def call(entries):
        return [layer(inputs, positions=pair) for pair in entries]

    found = call([tuple(entry for entry, _ in pair) for pair in both])
    for got, pair in zip(found, both, strict=True):
        points = list(zip(*(points for _, points in pair), strict=True))
        want = oracle.rows(points, 9, layout="concatenated").reshape(2, 4, 3, 9)
        want = np.moveaxis(want, (0, 1, 2), (batch, *axis))
        assert_close(got, added_to(inputs, want), SUM)


@pytest.mark.parametrize("axis", [(1, 2), (-3, -2), (2, 1)])
def test_flattened_grid_takes_the_positions_of_its_patches(axis):
    rows, columns = np.divmod(np.arange(12), 4)
    layer = tfpe.SinusoidalPositionalEncoding(axis=axis)
    inputs = randoms(2, 12, 9)
    want = oracle.rows(list(zip(rows, columns, strict=True)), 9)
    got = layer(inputs, positions=(rows, columns))
    assert_close(got, added_to(inputs, want), SUM)
    by_row = [rows, rows + 50]
    want = [want, oracle.rows(list(zip(rows + 50, columns, strict=True)), 9)]
    got = layer(inputs, positions=(np.array(by_row), columns))
    assert_close(got, added_to(inputs, want), SUM)


def test_flattened_grid_may_have_three_axes():
    where = np.unravel_index(np.arange(24), (2, 3, 4))
    layer = tfpe.SinusoidalPositionalEncoding(axis=(1, 2, 3))
    inputs = randoms(2, 24, 13)
    want = oracle.rows(list(zip(*where, strict=True)), 13)
    got = layer(inputs, positions=where)
    assert_close(got, added_to(inputs, want), SUM)


@pytest.mark.case("zero-is-not-unset")
def test_all_zero_positions_are_positions():
    inputs = randoms(2, 5, 6)
    layer = tfpe.SinusoidalPositionalEncoding(first_position=3)
    want = added_to(inputs, np.tile(oracle.rows([3], 6), (5, 1)))
    for zeros in (np.zeros(5, "int32"), np.zeros((2, 5)), [0] * 5):
        assert_close(layer(inputs, positions=zeros), want, SUM)
    starts = np.zeros(2, "int32")
    want = added_to(inputs, oracle.rows(range(3, 8), 6))
    assert_close(layer(inputs, start_index=starts), want, SUM)


@pytest.mark.parametrize("mode", MODES)
def test_floats_outside_int64_and_nan_give_rows_of_nan_alone(mode):
    where = np.array([1.5, np.nan, 2.0**63, -(2.0**62), np.inf, -np.inf, 1e30, -3e9, 8])
    bad = np.array([0, 1, 1, 0, 1, 1, 1, 0, 0], bool)
    call = MODES[mode](lambda p: tfpe.timing_signal_at(p, 6))
    for dtype in ("float32", "float64"):
        got = to_float64(call(keras.ops.convert_to_tensor(where.astype(dtype))))
        np.testing.assert_array_equal(np.isnan(got), np.tile(bad[:, None], 6))
        where = where.astype(dtype).astype("float64")
        assert_close(got[~bad], oracle.rows(where[~bad], 6), FRACTION)


def test_nan_on_one_axis_leaves_the_block_of_the_other_alone():
    got = to_float64(tfpe.timing_signal_at(([np.nan, 4.0], [7.0, 2.5]), 9))
    assert np.isnan(got[0, :4]).all()
    want = oracle.rows([(0, 7), (4, 2.5)], 9)
    assert_close(got[:, 4:], want[:, 4:], FRACTION)
    assert_close(got[1], want[1], FRACTION)


@on_tensorflow
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", dtypes("float32", "float64"))
def test_signal_is_differentiable_with_respect_to_float_positions(dtype, mode):
    where = np.array([0.0, 3.0, -2.75, 500.25, 65537.5])
    settings = {"amplitude": 2.0, "first_position": 1, "layout": "concatenated"}
    positions = keras.ops.convert_to_tensor(where.astype(dtype))

    @MODES[mode]
    def slopes(positions):
        with tf.GradientTape() as tape:
            tape.watch(positions)
            signal = tfpe.timing_signal_at(positions, 7, dtype=dtype, **settings)
            weighted = keras.ops.sum(signal * keras.ops.arange(1, 8, dtype=dtype))
        return tape.gradient(weighted, positions)

    # The slope of a sine is the cosine of the same timescale, divided by it.
    scales = tfpe.timescales(7, layout="concatenated")
    signal = oracle.rows(where, 7, **settings)
    sines, cosines = signal[:, :3], signal[:, 3:6]
    want = (cosines / scales) @ [1, 2, 3] - (sines / scales) @ [4, 5, 6]
    assert_close(
        slopes(positions), want, 30 * FRACTION if dtype == "float32" else 1e-12
    )


@on_tensorflow
def test_positions_that_a_layer_learns_get_their_gradient_through_it():
    layer = tfpe.SinusoidalPositionalEncoding()
    positions = keras.Variable(np.array([0.5, -1.25, 30.0], "float32"))
    inputs = randoms(2, 3, 4)
    with tf.GradientTape() as tape:
        loss = keras.ops.sum(layer(inputs, positions=positions.value)[..., 0])
    slope = tape.gradient(loss, positions.value)
    assert_close(slope, 2 * np.cos([0.5, -1.25, 30.0]), 4 * FRACTION)


@given(arrays.arrays(bool, st.tuples(st.integers(1, 4), st.integers(0, 9))))
def test_positions_from_mask_count_unmasked_steps(mask):
    got = tfpe.positions_from_mask(mask)
    want = [[max(sum(row[: i + 1]) - 1, 0) for i in range(len(row))] for row in mask]
    assert dtype_of(got) == "int32"
    np.testing.assert_array_equal(got, np.array(want).reshape(mask.shape))


@given(st.data())
def test_positions_from_segments_count_within_each_run(data):
    shape = data.draw(st.tuples(st.integers(1, 3), st.integers(0, 9)))
    ids = data.draw(arrays.arrays("int32", shape, elements=st.integers(-1, 2)))
    mask = data.draw(st.none() | arrays.arrays(bool, shape))
    got = tfpe.positions_from_segments(ids, mask)
    want = np.zeros(shape, int)
    for r, row in enumerate(ids):
        count = 0
        for i, number in enumerate(row):
            count = 0 if i == 0 or row[i - 1] != number else count
            count += 1 if mask is None else int(mask[r, i])
            want[r, i] = max(count - 1, 0)
    assert dtype_of(got) == "int32"
    np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("mode", MODES)
def test_positions_from_masks_and_segments_work_in_graphs_of_any_size(mode):
    ids = np.array([[1, 1, 1, 2, 2, 2], [4, 5, 5, 5, 4, 4]])
    mask = np.array([[0, 1, 1, 0, 1, 1], [1, 1, 0, 1, 1, 1]])
    call = MODES[mode](
        lambda ids, mask: (
            tfpe.positions_from_mask(mask),
            tfpe.positions_from_segments(ids),
            tfpe.positions_from_segments(ids, mask),
        )
    )
    found = call(*map(keras.ops.convert_to_tensor, (ids, mask)))
    np.testing.assert_array_equal(found[0], [[0, 0, 1, 1, 2, 3], [0, 1, 1, 2, 3, 4]])
    np.testing.assert_array_equal(found[1], [[0, 1, 2, 0, 1, 2], [0, 0, 1, 2, 0, 1]])
    np.testing.assert_array_equal(found[2], [[0, 0, 1, 0, 0, 1], [0, 0, 0, 1, 0, 1]])


def test_signal_at_symbolic_integers_is_part_of_a_model():
    where = keras.Input((None,), dtype="int32")
    model = keras.Model(where, tfpe.timing_signal_at(where, 6))
    positions = np.array([[3, 70000, -1], [0, 5, 2]], "int32")
    want = np.array([oracle.rows(row, 6) for row in positions.tolist()])
    assert_promised(model(positions), want)
