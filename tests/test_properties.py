"""What the encoding is for, and what that takes."""

import keras
import numpy as np
import oracle
import pytest
from contract import (
    BOUND,
    DTYPES,
    FLOAT32,
    FLOAT64,
    LAYOUTS,
    ORDERS,
    assert_close,
    conventions,
    dtypes,
    needs_float64,
    randoms,
    rounded,
    to_float64,
)
from hypothesis import given
from hypothesis import strategies as st

import tfpe

POSITIONS = st.integers(-(2**31), 2**31 - 1)
SETTINGS = st.fixed_dictionaries(
    {
        "layout": st.sampled_from(LAYOUTS + ORDERS),
        "spectrum": st.sampled_from(oracle.SPECTRA),
        "max_timescale": st.floats(0.5, 1e6),
        "cosine_first": st.booleans(),
        "first_position": st.integers(-1000, 1000),
    }
)


def signal_at(positions, channels, dtype="float64", **settings):
    return tfpe.timing_signal_at(np.array(positions), channels, dtype=dtype, **settings)


@pytest.mark.case("unique-bounded")
@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
@pytest.mark.parametrize("layout", LAYOUTS)
def test_no_two_of_10000_rows_are_equal(layout, dtype):
    for start in (0, -4000, 2**24, 1_700_000_000):
        signal = tfpe.timing_signal(
            10_000, 64, start_index=start, dtype=dtype, layout=layout
        )
        rows = to_float64(signal)
        assert len(np.unique(rows, axis=0)) == 10_000
        assert np.abs(rows).max() <= BOUND


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
@given(positions=st.lists(POSITIONS, min_size=1, max_size=20), settings=SETTINGS)
def test_no_value_exceeds_the_bound(positions, settings, dtype):
    signal = signal_at(positions, 8, dtype, **settings)
    assert np.abs(to_float64(signal)).max() <= BOUND


@needs_float64
@pytest.mark.case("unique-bounded")
@given(
    starts=st.tuples(st.integers(-(2**31), 2**30), st.integers(-(2**31), 2**30)),
    distance=st.integers(0, 2**30 - 1),
    channels=st.integers(2, 40),
    settings=SETTINGS,
)
def test_dot_product_depends_on_the_distance_alone(
    starts, distance, channels, settings
):
    scales = oracle.timescales(channels, **settings)
    want = float(sum(oracle.waves(distance, scale)[0] for scale in scales))
    for start in starts:
        places = [start, start + distance]
        one, other = to_float64(signal_at(places, channels, **settings))
        error = channels * 2 * FLOAT64
        np.testing.assert_allclose(one @ other, want, rtol=0, atol=error)
        np.testing.assert_allclose(one @ one, channels // 2, rtol=0, atol=error)


@given(
    position=st.integers(-(2**30), 2**30),
    offset=st.integers(-(2**30), 2**30) | st.integers(-999, 999).map(lambda n: n / 8),
    channels=st.integers(1, 17),
    settings=SETTINGS,
)
def test_moving_is_one_linear_map_whatever_the_position(
    position, offset, channels, settings
):
    matrix = tfpe.shift_matrix(offset, channels, **settings)
    assert matrix.dtype == np.float64
    assert matrix.shape == (channels, channels)
    here = oracle.row(position, channels, **settings)
    there = oracle.row(position + offset, channels, **settings)
    np.testing.assert_allclose(here @ matrix, there, rtol=0, atol=4 * FLOAT64)
    np.testing.assert_allclose(matrix @ matrix.T, np.eye(channels), atol=FLOAT64)
    padding = range(2 * (channels // 2), channels)
    np.testing.assert_array_equal(matrix[padding, padding], 1)


def test_shift_of_an_even_number_of_channels_knows_no_odd_channel():
    want = tfpe.shift_matrix(5, 6)
    np.testing.assert_array_equal(tfpe.shift_matrix(5, 6, odd_channel="sine"), want)


def test_shifts_compose():
    for settings in conventions(9):
        shift = [tfpe.shift_matrix(k, 9, **settings) for k in (3, -40, -37, 0)]
        np.testing.assert_allclose(shift[0] @ shift[1], shift[2], atol=FLOAT64)
        np.testing.assert_array_equal(shift[3], np.eye(9))


def test_shift_matrix_moves_the_layers_signal():
    settings = {"layout": "concatenated", "amplitude": 3.0, "cosine_first": True}
    signal = to_float64(tfpe.timing_signal(40, 7, **settings))
    moved = signal[:30] @ tfpe.shift_matrix(10, 7, **settings)
    np.testing.assert_allclose(moved, signal[10:], rtol=0, atol=6 * FLOAT32)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_it_goes_on_past_any_length(layout):
    layer = tfpe.SinusoidalPositionalEncoding(layout=layout)
    layer(np.zeros((1, 4, 6), "float32"))
    for length in (5, 5000, 70000):
        got = layer(np.zeros((1, length, 6), "float32"))[0, -3:]
        want = oracle.rows(range(length - 3, length), 6, layout=layout)
        assert_close(got, want, FLOAT32)


def attention():
    layer = keras.layers.MultiHeadAttention(2, 4)
    return lambda x: layer(x, x)


def test_attention_alone_cannot_tell_an_order_and_with_the_layer_it_can():
    inputs = randoms(3, 7, 8)
    order = np.random.default_rng(7).permutation(7)
    attend, encode = attention(), tfpe.SinusoidalPositionalEncoding()
    shuffled = keras.ops.take(inputs, order, axis=1)
    alone = attend(inputs), attend(shuffled)
    assert_close(alone[1], to_float64(alone[0])[:, order], 1e-5)
    encoded = attend(encode(inputs)), attend(encode(shuffled))
    difference = to_float64(encoded[1]) - to_float64(encoded[0])[:, order]
    assert np.abs(difference).max() > 0.01


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
def test_half_types_see_neighbours_apart_at_any_position(dtype):
    for start in (256, 2048, 65536, 2**24, 2**31 - 9):
        rows = to_float64(tfpe.timing_signal(9, 8, start_index=start, dtype=dtype))
        want = oracle.many_rows(range(start, start + 9), 8)
        want = rounded(want.astype("float32"), dtype).astype("float64")
        assert np.abs(rows - want).max() <= 2.0**-8
        assert np.abs(np.diff(rows, axis=0)).max(axis=1).min() > 0.1


@pytest.mark.parametrize("channels", [2, 3, 8, 9])
def test_there_are_no_parameters(channels):
    layer = tfpe.SinusoidalPositionalEncoding()
    layer(randoms(2, 5, channels))
    assert layer.weights == layer.variables == []
    assert layer.count_params() == 0
    layer.set_weights([])


@pytest.mark.case("pairs")
@pytest.mark.parametrize("channels", [2, 8, 65])
def test_each_pair_is_a_point_of_the_unit_circle_that_turns(channels):
    n = channels // 2
    for settings in conventions(channels):
        signal = to_float64(tfpe.timing_signal(90, channels, **settings))
        pairs = signal[:, : 2 * n].reshape(90, n, 2)
        if settings["layout"] == "concatenated":
            pairs = signal[:, : 2 * n].reshape(90, 2, n).transpose(0, 2, 1)
        np.testing.assert_allclose((pairs**2).sum(-1), 1, atol=4 * FLOAT32)
        for k in (1, 17):
            moved = signal[:-k] @ tfpe.shift_matrix(k, channels, **settings)
            np.testing.assert_allclose(moved, signal[k:], atol=4 * FLOAT32)
