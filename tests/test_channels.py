"""Layouts, spectra, padding, permutations and shifts, on the host's numbers."""

import itertools

import mpmath
import numpy as np
import oracle
import pytest
from contract import (
    FLOAT32,
    FLOAT64,
    LAYOUTS,
    ORDERS,
    assert_close,
    assert_promised,
    needs_float64,
    to_float64,
)

import tfpe
from tfpe import _arguments

PLACES = (-3, 0, 1, 58, 1857)
GRID = ((1, 0), (0, 1), (7, 4), (300, -2))
RELATIVE = 1e-15  # of a timescale: half a unit in the last place of float64


def assert_signal(channels, **settings):
    got = tfpe.timing_signal_at(np.array(PLACES), channels, dtype="float64", **settings)
    assert_promised(got, oracle.rows(PLACES, channels, **settings))


def at_points(points, channels, **settings):
    """Returns the float64 signal at points of a grid, one coordinate for each axis."""
    axes = tuple(np.array(axis) for axis in zip(*points, strict=True))
    return tfpe.timing_signal_at(axes, channels, dtype="float64", **settings)


def test_every_spectrum_has_its_formula_in_the_oracle():
    assert sorted(oracle.SPECTRA) == sorted(_arguments.SPECTRA)


@pytest.mark.parametrize("spectrum", oracle.SPECTRA)
@pytest.mark.parametrize("channels", [2, 3, 4, 7, 8, 64, 513])
@pytest.mark.parametrize("ends", [(1, 10000), (2.0, 500.0), (0.25, 4), (300, 3)])
def test_timescales_follow_their_formula(channels, spectrum, ends):
    settings = {
        "spectrum": spectrum,
        "min_timescale": ends[0],
        "max_timescale": ends[1],
    }
    for axes in (1, 2, 3):
        got = tfpe.timescales(channels, axes=axes, **settings)
        want = [float(t) for t in oracle.timescales(channels, axes=axes, **settings)]
        assert got.dtype == np.float64
        assert got.shape == (channels // (2 * axes),)
        np.testing.assert_allclose(got, want, rtol=RELATIVE)


def test_ends_of_any_size_lose_no_digit():
    ends = {"min_timescale": 1e80, "max_timescale": 1e-80}  # frequencies of 1e240
    got = tfpe.timing_signal_at([1, 3, 2**30 + 1], 4, spectrum="tensor2tensor", **ends)
    with mpmath.workdps(600):
        frequencies = [mpmath.mpf(1e80), mpmath.mpf(1e80) ** 2 / mpmath.mpf(1e-80)]
        for row, position in zip(to_float64(got), [1, 3, 2**30 + 1], strict=True):
            angles = [position * frequency for frequency in frequencies]
            want = [f(a) for a in angles for f in (mpmath.sin, mpmath.cos)]
            assert_close(row, [float(w) for w in want], FLOAT32)


@pytest.mark.parametrize("channels", [3, 5, 9])
@pytest.mark.parametrize("spectrum", oracle.SPECTRA)
def test_odd_sine_has_one_more_timescale(channels, spectrum):
    settings = {"spectrum": spectrum, "odd_channel": "sine", "min_timescale": 3}
    got = tfpe.timescales(channels, **settings)
    assert got.shape == ((channels + 1) // 2,)
    want = [float(t) for t in oracle.timescales(channels, **settings)]
    np.testing.assert_allclose(got, want, rtol=RELATIVE)
    if spectrum == "geometric":
        np.testing.assert_allclose(got[-1], 10000.0, rtol=RELATIVE)


def test_each_layout_has_its_own_spectrum():
    for layout, spectrum in zip(LAYOUTS, ("vaswani", "tensor2tensor"), strict=True):
        np.testing.assert_array_equal(
            tfpe.timescales(10, layout=layout),
            tfpe.timescales(10, layout=layout, spectrum=spectrum),
        )
    own, other = (tfpe.timescales(10, layout=layout) for layout in LAYOUTS)
    assert own[0] == other[0]
    assert np.all(own[1:] < other[1:])


def test_tensor2tensor_multiplies_by_min_timescale_and_geometric_starts_there():
    ends = {"min_timescale": 4.0, "max_timescale": 1000.0}
    product = tfpe.timescales(12, spectrum="tensor2tensor", **ends)
    honest = tfpe.timescales(12, spectrum="geometric", **ends)
    np.testing.assert_allclose(product[[0, -1]], [1 / 4, 1000 / 4**2], rtol=RELATIVE)
    np.testing.assert_allclose(honest[[0, -1]], [4, 1000], rtol=RELATIVE)
    np.testing.assert_allclose(honest / product, np.full(6, 16.0), rtol=4e-15)


def test_longest_timescale_of_the_paper_is_100_at_4_channels():
    np.testing.assert_array_equal(tfpe.timescales(4), [1, 100])


def test_longest_timescale_of_the_paper_approaches_10000_from_below():
    longest = [tfpe.timescales(c)[-1] for c in (2, 4, 8, 64, 512, 4096, 20000)]
    assert np.all(np.diff(longest) > 0)
    assert 9990 < longest[-1] < 10000
    for channels in (4, 8, 513):
        reached = tfpe.timescales(channels, layout="concatenated")[-1]
        np.testing.assert_allclose(reached, 10000, rtol=RELATIVE)


@needs_float64
def test_sequence_of_timescales_is_taken_as_it_is_in_its_order():
    scales = [300.0, 2, np.float32(0.1), np.int64(7)]
    for given in (scales, tuple(scales), np.array(scales)):
        got = tfpe.timescales(8, spectrum=given)
        np.testing.assert_array_equal(got, np.array(scales, "float64"))
    assert_signal(8, spectrum=scales)
    assert_signal(9, spectrum=scales, layout="concatenated", cosine_first=True)


@needs_float64
@pytest.mark.parametrize("cosine_first", [False, True])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", [2, 3, 8, 9])
def test_channels_stand_in_the_order_of_the_layout(channels, layout, cosine_first):
    assert_signal(channels, layout=layout, cosine_first=cosine_first)


@needs_float64
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("spectrum", oracle.SPECTRA)
@pytest.mark.parametrize("odd_channel", ["zero", "sine"])
def test_odd_channel_is_zero_or_one_sine_more(layout, spectrum, odd_channel):
    settings = {"layout": layout, "spectrum": spectrum, "odd_channel": odd_channel}
    for channels in (2, 3, 5, 8, 15):
        assert_signal(channels, **settings)


@needs_float64
def test_odd_sine_stands_last_interleaved_and_last_of_the_sines_concatenated():
    last = np.sin(np.array(PLACES) / 10000 ** (4 / 5))
    for layout, channel in (("interleaved", 4), ("concatenated", 2)):
        signal = tfpe.timing_signal_at(
            np.array(PLACES),
            5,
            dtype="float64",
            layout=layout,
            spectrum="vaswani",
            odd_channel="sine",
        )
        assert_close(signal[:, channel], last, FLOAT64)


@needs_float64
@pytest.mark.parametrize("order", [*LAYOUTS, *ORDERS, list(ORDERS[4])], ids=str)
@pytest.mark.parametrize("cosine_first", [False, True])
def test_layout_is_any_order_of_axis_frequency_and_function(order, cosine_first):
    settings = {
        "layout": order,
        "spectrum": "geometric",
        "max_timescale": 50.0,
        "cosine_first": cosine_first,
    }
    for channels in (8, 13, 16):
        got = at_points(GRID, channels, **settings)
        assert_promised(got, oracle.rows(GRID, channels, **settings))
    assert_signal(7, **settings)
    three = [(1, 0, 5), (0, 2, -3)]
    got = at_points(three, 13, **settings)
    assert_promised(got, oracle.rows(three, 13, **settings))


@needs_float64
def test_six_orders_of_two_axes_are_six_signals():
    signals = [
        np.array(at_points(GRID, 8, layout=order, spectrum="vaswani"))
        for order in ORDERS
    ]
    for one, other in itertools.combinations(signals, 2):
        assert not np.allclose(one, other)


@needs_float64
@pytest.mark.case("nd-remainder")
@pytest.mark.parametrize("channels", [4, 5, 6, 7, 8, 9, 10, 11])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_channels_left_over_by_two_axes_are_zero(layout, channels):
    got = at_points(GRID, channels, layout=layout)
    assert_promised(got, oracle.rows(GRID, channels, layout=layout))
    left = np.array(got)[:, 4 * (channels // 4) :]
    np.testing.assert_array_equal(left, np.zeros((len(GRID), channels % 4)))


@pytest.mark.parametrize(("axes", "most"), [(1, 1), (2, 3), (3, 5)])
def test_too_few_channels_give_zeros(axes, most):
    for channels, layout in itertools.product(range(1, most + 1), LAYOUTS):
        lengths = (5, 3, 2)[:axes]
        got = tfpe.timing_signal(lengths, channels, layout=layout)
        np.testing.assert_array_equal(got, np.zeros((*lengths, channels)))
        positions = tuple(np.arange(1, 5) + axis for axis in range(axes))
        got = tfpe.timing_signal_at(positions, channels, layout=layout)
        np.testing.assert_array_equal(got, np.zeros((4, channels)))
        assert tfpe.timescales(channels, axes=axes, layout=layout).shape == (0,)


def test_one_channel_with_an_odd_sine_is_zero_too():
    got = tfpe.timing_signal(6, 1, odd_channel="sine")
    np.testing.assert_array_equal(got, np.zeros((6, 1)))


@needs_float64
@pytest.mark.parametrize("source", LAYOUTS + ORDERS, ids=str)
@pytest.mark.parametrize("target", LAYOUTS)
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_permutation_turns_one_layout_into_the_other(source, target, axes):
    points = [(2, 9, 31)[:axes], (700, -5, 0)[:axes]]
    for channels in (6, 7, 12, 25):
        signals = [
            at_points(points, channels, layout=layout, spectrum="vaswani")
            for layout in (source, target)
        ]
        order = tfpe.layout_permutation(channels, source, target, axes=axes)
        assert order.dtype == np.int64
        np.testing.assert_array_equal(np.array(signals[0])[..., order], signals[1])
        back = tfpe.layout_permutation(channels, target, source, axes=axes)
        np.testing.assert_array_equal(order[back], np.arange(channels))


@pytest.mark.parametrize("channels", [2, 3, 5, 8, 127])
@pytest.mark.parametrize("odd_channel", ["zero", "sine"])
def test_permutation_knows_the_odd_channel(channels, odd_channel):
    signals = [
        tfpe.timing_signal_at(
            np.array(PLACES),
            channels,
            layout=layout,
            spectrum="tensor2tensor",
            odd_channel=odd_channel,
        )
        for layout in LAYOUTS
    ]
    order = tfpe.layout_permutation(channels, *LAYOUTS, odd_channel=odd_channel)
    np.testing.assert_array_equal(np.array(signals[0])[..., order], signals[1])


@needs_float64
def test_position_is_first_position_plus_step():
    for first in (-2, 0.5, 100):
        settings = {"first_position": first, "layout": "concatenated"}
        assert_signal(6, **settings)
        got = tfpe.timing_signal(4, 6, start_index=3, dtype="float64", **settings)
        want = oracle.rows(
            [first + step for step in (3, 4, 5, 6)], 6, layout=LAYOUTS[1]
        )
        assert_close(got, want, FLOAT64)
        points = [tuple(x + first for x in point) for point in GRID]
        got = at_points(GRID, 9, **settings)
        assert_close(got, oracle.rows(points, 9, layout=LAYOUTS[1]), FLOAT64)


@needs_float64
def test_amplitude_multiplies_the_signal():
    for amplitude in (-2.5, 0, 3):
        assert_signal(5, amplitude=amplitude)
        got = at_points(GRID, 9, amplitude=amplitude)
        want = np.float64(amplitude) * oracle.rows(GRID, 9)
        assert_close(got, want, FLOAT64 * 3)
