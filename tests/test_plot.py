"""The pictures show the numbers of the signal, and comparisons are right."""

import subprocess
import sys

import numpy as np
import oracle
import pytest

from tfpe import plot
from tfpe.comparison import compare, in_words, signal_of

CONCATENATED = {"layout": "concatenated", "spectrum": "vaswani"}


def shown(axes):
    """Returns the numbers of a picture."""
    return np.asarray(axes.images[0].get_array())


def test_the_heat_map_shows_the_signal():
    (axes, *_) = plot.heat_map(11, 7, layout="concatenated").axes
    expected = oracle.rows(range(11), 7, layout="concatenated")
    np.testing.assert_allclose(shown(axes), expected, atol=1e-6)
    assert axes.images[0].get_clim() == (-1, 1)


def test_the_heat_map_of_a_grid_lists_its_rows():
    (axes, *_) = plot.heat_map((3, 5), 12, axis=(-3, -2)).axes
    positions = [(y, x) for y in range(3) for x in range(5)]
    np.testing.assert_allclose(shown(axes), oracle.rows(positions, 12), atol=1e-6)


def test_the_wavelengths_are_two_pi_timescales():
    (axes,) = plot.wavelengths(8, max_timescale=500.0).axes
    expected = 2 * np.pi * 500.0 ** (np.arange(4) / 4)
    np.testing.assert_allclose(axes.lines[0].get_ydata(), expected)
    assert axes.get_yscale() == "log"


def test_the_similarity_is_that_of_the_rows():
    (axes, *_) = plot.similarity(9, 8, amplitude=3.0).axes
    rows = oracle.rows(range(9), 8)
    np.testing.assert_allclose(shown(axes), rows @ rows.T / 4, atol=1e-6)


def test_the_similarity_of_a_grid_is_that_to_its_middle():
    (axes, *_) = plot.similarity((3, 5), 12, axis=(-3, -2)).axes
    middle = oracle.row((1, 2), 12)
    expected = [
        [oracle.row((y, x), 12) @ middle / 6 for x in range(5)] for y in range(3)
    ]
    np.testing.assert_allclose(shown(axes), expected, atol=1e-6)


def test_the_overview_has_three_pictures():
    figure = plot.overview(9, 8)
    titles = [axes.get_title() for axes in figure.axes if axes.get_title()]
    assert titles == ["Signal", "Wavelengths", "Similarity"]


def test_the_difference_is_shown_with_both():
    figure = plot.difference(9, 8, {}, CONCATENATED, labels=("one", "two"))
    panels = {axes.get_title(): axes for axes in figure.axes}
    one, two = oracle.rows(range(9), 8), oracle.rows(range(9), 8, **CONCATENATED)
    np.testing.assert_allclose(shown(panels["one"]), one, atol=1e-6)
    np.testing.assert_allclose(shown(panels["two"]), two, atol=1e-6)
    np.testing.assert_allclose(shown(panels["two - one"]), two - one, atol=1e-6)
    np.testing.assert_allclose(
        panels["Largest difference"].lines[0].get_ydata(),
        np.abs(two - one).max(axis=1),
        atol=1e-6,
    )
    spacing = 2 * np.pi * 10_000 ** (np.arange(4) / 4)
    lines = panels["Spacing: wavelengths of the pairs"].lines
    np.testing.assert_allclose([lines[0].get_ydata()], [spacing])
    first, second = panels["Order: wavelengths of the channels"].lines
    np.testing.assert_allclose(first.get_ydata(), np.repeat(spacing, 2))
    np.testing.assert_allclose(second.get_ydata(), np.tile(spacing, 2))


def test_matplotlib_is_imported_only_for_a_picture():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import tfpe, tfpe.plot\n"
        "try: tfpe.plot.heat_map(9, 8)\n"
        "except ImportError: print('only now')"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True
    )
    assert result.stdout == "only now\n"


def test_equal_signals_are_equal_up_to_rounding():
    signal = signal_of(20, 6)
    found = compare(signal, signal + 5e-7)
    assert str(found) == found.relation == "equal"
    assert found.first_row is None
    np.testing.assert_array_equal(found.permutation, np.arange(6))


@pytest.mark.parametrize("channels", [6, 7, 512])
def test_a_permutation_is_found(channels):
    random = np.random.default_rng(1)
    first = signal_of(64, channels)
    order = random.permutation(channels)
    found = compare(first, first[:, order])
    assert found.relation == "permutation"
    np.testing.assert_allclose(first[:, found.permutation], first[:, order], atol=1e-6)


def test_the_place_of_a_difference_is_told():
    first = signal_of(20, 6)
    second = first.copy()
    second[3, 4] += 0.25
    second[7, 1] -= 0.5
    found = compare(first, second)
    assert found.relation == "different"
    assert found.permutation is None
    assert (found.first_row, found.row, found.channel) == (3, 7, 1)
    assert str(found) == "different: from row 3 on, most at row 7, channel 1, by 0.5"


def test_more_than_rounding_is_a_difference():
    first = signal_of(20, 6)
    assert compare(first, first + 1e-5).relation == "different"


def test_a_channel_that_comes_twice_is_no_permutation():
    first = signal_of(20, 6)
    assert compare(first, first[:, [0, 0, 2, 3, 4, 5]]).relation == "different"
    twice = first[:, [0, 0, 2]]
    found = compare(twice, twice[:, [2, 0, 1]])
    assert found.relation == "permutation"
    np.testing.assert_array_equal(found.permutation, [2, 0, 1])


def test_signals_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match=r"same shape. Received: first.shape=\(3, 4\)"):
        compare(np.zeros((3, 4)), np.zeros((4, 4)))


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.full((3, 4), np.nan), "`first` must be finite. Received: NaN or infinity"),
        (np.full((3, 4), np.inf), "in 12 of its numbers"),
        (np.zeros((0, 4)), r"not be empty. Received: first.shape=\(0, 4\)"),
        (np.float32(3), r"must have the shape \(..., channels\)"),
        ([[1, 2], [3]], "`first` must be an array.*rows of different lengths"),
    ],
)
@pytest.mark.case("compare-nan")
def test_arrays_that_are_no_signals_are_refused(array, message):
    with pytest.raises(ValueError, match=message):
        compare(array, np.zeros((3, 4)))
    with pytest.raises(ValueError, match="`second` must be finite"):
        compare(np.zeros((3, 4)), np.full((3, 4), np.nan))


@pytest.mark.parametrize("array", [["a"], [True, False], [1j, 2j], [None]])
def test_arrays_of_other_things_are_refused(array):
    with pytest.raises(TypeError, match="`second` must be an array of real numbers"):
        compare(np.zeros(2), array)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({}, {"odd_channel": "sine"}, []),
        ({}, {"cosine_first": True}, ["order: sin cos sin cos ..., and cos sin"]),
        ({}, {"layout": "concatenated", "spectrum": "vaswani"}, ["order: sin cos"]),
        ({}, {"max_timescale": 16.0}, ["spacing: timescales from 1 to 1000, and from"]),
        ({}, {"spectrum": "geometric"}, ["spacing: timescales from 1 to 1000, and"]),
        ({}, {"first_position": 2}, ["first position: 0, and 2"]),
        ({}, {"amplitude": 0.5}, ["amplitude: 1, and 0.5"]),
        (
            {"layout": "concatenated"},
            {"first_position": 1},
            [
                "order: sin sin ... cos cos ...,",
                "spacing: ",
                "first position: 0, and 1",
            ],
        ),
        (
            {"axis": (-3, -2)},
            {"axis": (-2, -3)},
            ["order: sin(axis -3) cos(axis -3) sin(axis -3) cos(axis -3)"],
        ),
    ],
)
def test_what_differs_is_told_in_words(first, second, expected):
    lines = in_words(8, first, second)
    assert len(lines) == len(expected)
    assert all(a.startswith(b) for a, b in zip(lines, expected, strict=True))
