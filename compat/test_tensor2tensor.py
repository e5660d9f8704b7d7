"""tfpe gives the numbers of tensor2tensor 1.15.7.

What a call of it becomes:

    concatenated = {"layout": "concatenated"}       # its spectrum comes with it

    get_timing_signal_1d(length, channels, low, high, start)
        tfpe.timing_signal(length, channels, start_index=start, **concatenated,
                           min_timescale=low, max_timescale=high)[None]
    add_timing_signal_1d(x, start_index=start)
        tfpe.SinusoidalPositionalEncoding(**concatenated)(x, start_index=start)
    add_timing_signal_1d_given_position(x, position)
        tfpe.SinusoidalPositionalEncoding(**concatenated)(x, positions=position)
    add_timing_signal_nd(x)                         # here x is an image
        tfpe.SinusoidalPositionalEncoding(**concatenated, axis=(1, 2))(x)
    add_timing_signals_given_positions(x, [p, None])
        tfpe.SinusoidalPositionalEncoding(**concatenated, axis=(1, 2))(
            x, positions=[p, np.arange(x.shape[1])])

tensor2tensor's signal has a batch axis of 1, tfpe's has none. Its
`min_timescale` multiplies the frequencies, so that it is a timescale only when
it is 1; the "tensor2tensor" spectrum keeps this, "geometric" mends it. With one
channel the functions of both return zeros; tfpe's layer refuses to do nothing.
"""

import numpy as np
import oracle
import pytest
from contract import FLOAT32_NEAR
from goldens import CASES, THEIRS, goldens
from keras import ops

import tfpe

SUM = 2.0**-24  # a float32 sum is rounded by this part of itself
CONCATENATED = {"layout": "concatenated"}

GET_1D = "get_timing_signal_1d"
ADD_1D = "add_timing_signal_1d"
ADD_AT = "add_timing_signal_1d_given_position"
ADD_ND = "add_timing_signal_nd"
ADD_ALL_AT = "add_timing_signals_given_positions"


def paired(golden):
    """Whether there is a pair of channels, without which the layer refuses."""
    return golden.channels > 1


def half(golden):
    """Whether the call was made in a half-precision type."""
    return "x_dtype" in golden.kwargs


def layer(**settings):
    return tfpe.SinusoidalPositionalEncoding(
        **{**CONCATENATED, "dtype": "float32", **settings}
    )


def settings(golden):
    """The timescales' ends and `start_index`, which have the same names."""
    same = ("min_timescale", "max_timescale", "start_index")
    return {k: v for k, v in golden.kwargs.items() if k in same}


def entries(golden):
    """The positions that were given, with those that `None` stands for."""
    length = golden.out.shape[1]
    names = golden.kwargs["positions"]
    return [np.arange(length) if n is None else golden.arrays[n] for n in names]


def steps(golden):
    """The positions on each axis, as a tuple of arrays that broadcast."""
    shape = golden.out.shape[:-1]
    if golden.function == ADD_ALL_AT:
        return tuple(entries(golden))
    if golden.function == ADD_AT:
        return (golden.arrays["position"],)
    if golden.function == ADD_ND:
        return tuple(np.ogrid[tuple(slice(n) for n in shape[1:])])
    return (golden.kwargs.get("start_index", 0) + np.arange(shape[1]),)


def assert_is(golden, actual):
    """Holds `actual` against tensor2tensor's result, to the rounding of both."""
    actual = ops.convert_to_numpy(actual)
    assert actual.shape == golden.out.shape
    fastest = golden.kwargs.get("min_timescale", 1.0)  # a factor, see above
    furthest = np.max(np.broadcast_arrays(*steps(golden)), axis=0)
    tolerance = FLOAT32_NEAR + THEIRS * fastest * furthest[..., None]
    if "x" in golden.arrays:
        tolerance = tolerance + 2 * SUM * np.abs(golden.out)
    error = np.abs(actual.astype("float64") - golden.out)
    np.testing.assert_array_less(error, np.broadcast_to(tolerance, error.shape))
    # Channels that are left over hold the inputs themselves, or zeros.
    np.testing.assert_array_equal(
        actual[..., used(golden) :], golden.out[..., used(golden) :]
    )


def used(golden):
    axes = len(steps(golden))
    return golden.channels // (2 * axes) * 2 * axes


@pytest.mark.parametrize("golden", goldens(GET_1D))
def test_timing_signal_is_get_timing_signal_1d(golden):
    length, channels = golden.kwargs["length"], golden.kwargs["channels"]
    signal = tfpe.timing_signal(length, channels, **CONCATENATED, **settings(golden))
    assert_is(golden, signal[None])


@pytest.mark.parametrize("golden", goldens(GET_1D))
def test_timing_signal_at_is_get_timing_signal_1d(golden):
    ends = {k: v for k, v in settings(golden).items() if k != "start_index"}
    (positions,) = steps(golden)
    signal = tfpe.timing_signal_at(positions, golden.channels, **CONCATENATED, **ends)
    assert_is(golden, signal[None])


@pytest.mark.parametrize("golden", goldens(ADD_1D, where=lambda g: not half(g)))
def test_adding_timing_signal_is_add_timing_signal_1d(golden):
    x = golden.arrays["x"]
    signal = tfpe.timing_signal(
        x.shape[1], golden.channels, **CONCATENATED, **settings(golden)
    )
    assert_is(golden, x + signal)


@pytest.mark.parametrize(
    "golden", goldens(ADD_1D, where=lambda g: paired(g) and not half(g))
)
def test_the_layer_is_add_timing_signal_1d(golden):
    start_index = golden.kwargs["start_index"]
    assert_is(golden, layer()(golden.arrays["x"], start_index=start_index))


@pytest.mark.parametrize("golden", goldens(ADD_1D, where=half))
def test_in_half_precision_the_layer_and_add_timing_signal_1d_round_alike(golden):
    # The signal is rounded once, then the sum: where the errors in float32 do
    # not reach the middle of two numbers, all but everywhere, bits are equal.
    dtype = golden.kwargs["x_dtype"]
    x = ops.cast(golden.arrays["x"], dtype)
    positions = np.arange(golden.out.shape[1])
    exact = oracle.rows(positions.tolist(), golden.channels, **CONCATENATED)
    error = FLOAT32_NEAR + THEIRS * positions[:, None]
    bounds = [x + ops.cast(exact + e, dtype) for e in (-error, error)]
    low, high, actual = (
        ops.convert_to_numpy(ops.cast(y, "float32"))
        for y in (*bounds, layer(dtype=dtype)(x))
    )
    assert np.mean(low == high) > 0.99
    for found in (golden.out, actual):
        assert found.shape == x.shape
        assert ((low <= found) & (found <= high)).all()


@pytest.mark.parametrize("golden", goldens(ADD_AT))
def test_adding_timing_signal_at_is_add_timing_signal_1d_given_position(golden):
    signal = tfpe.timing_signal_at(
        golden.arrays["position"], golden.channels, **CONCATENATED
    )
    assert_is(golden, golden.arrays["x"] + signal)


@pytest.mark.parametrize("golden", goldens(ADD_AT, where=paired))
def test_the_layer_is_add_timing_signal_1d_given_position(golden):
    positions = golden.arrays["position"]
    assert_is(golden, layer()(golden.arrays["x"], positions=positions))


@pytest.mark.parametrize("golden", goldens(ADD_ND))
def test_adding_timing_signal_of_lengths_is_add_timing_signal_nd(golden):
    x = golden.arrays["x"]
    signal = tfpe.timing_signal(x.shape[1:-1], golden.channels, **CONCATENATED)
    assert_is(golden, x + signal)


@pytest.mark.parametrize("golden", goldens(ADD_ND))
def test_the_layer_is_add_timing_signal_nd(golden):
    x = golden.arrays["x"]
    assert_is(golden, layer(axis=tuple(range(1, x.ndim - 1)))(x))


@pytest.mark.parametrize("golden", goldens(ADD_ALL_AT))
def test_adding_timing_signal_at_is_add_timing_signals_given_positions(golden):
    positions = tuple(entries(golden))
    signal = tfpe.timing_signal_at(positions, golden.channels, **CONCATENATED)
    assert_is(golden, golden.arrays["x"] + signal)


@pytest.mark.parametrize("golden", goldens(ADD_ALL_AT))
def test_the_layer_is_add_timing_signals_given_positions(golden):
    positions = entries(golden)
    axis = tuple(range(1, 1 + len(positions)))
    assert_is(golden, layer(axis=axis)(golden.arrays["x"], positions=positions))


@pytest.mark.parametrize(
    "golden", goldens(ADD_1D, ADD_AT, where=lambda g: not paired(g))
)
def test_the_layer_refuses_the_one_channel_that_tensor2tensor_leaves_as_it_is(golden):
    x = golden.arrays["x"]
    np.testing.assert_array_equal(golden.out, x)
    with pytest.raises(ValueError, match="`inputs` must have at least 2 channels"):
        layer()(x, positions=golden.arrays.get("position"))


@pytest.mark.parametrize("golden", goldens(ADD_AT, ADD_ND, ADD_ALL_AT, finite=False))
def test_where_tensor2tensor_gives_nan_the_layer_gives_the_right_values(golden):
    # One pair on an axis: tensor2tensor divides by a number of pairs less one.
    x, positions = golden.arrays["x"], steps(golden)
    if golden.function == ADD_ND:
        actual = layer(axis=tuple(range(1, x.ndim - 1)))(x)
    elif golden.function == ADD_AT:
        actual = layer()(x, positions=positions[0])
    else:
        actual = layer(axis=(1, 2))(x, positions=positions)
    actual = ops.convert_to_numpy(actual)

    pairs = used(golden)
    assert np.isnan(golden.out[..., :pairs]).all()
    np.testing.assert_array_equal(golden.out[..., pairs:], x[..., pairs:])
    np.testing.assert_array_equal(actual[..., pairs:], x[..., pairs:])
    grids = [np.broadcast_to(p, x.shape[:-1]).ravel().tolist() for p in positions]
    places = list(zip(*grids, strict=True))
    signal = oracle.rows(places, golden.channels, **CONCATENATED)
    expected = x.astype("float64") + signal.reshape(x.shape)
    tolerance = FLOAT32_NEAR + SUM * np.abs(expected)
    np.testing.assert_array_less(np.abs(actual - expected), tolerance)


@pytest.mark.parametrize(
    ("function", "finite", "count"),
    [
        (GET_1D, True, 180),
        (ADD_1D, True, 12),
        (ADD_AT, True, 8),
        (ADD_AT, False, 2),
        (ADD_ND, True, 6),
        (ADD_ND, False, 3),
        (ADD_ALL_AT, True, 10),
        (ADD_ALL_AT, False, 4),
    ],
)
def test_no_golden_is_left_out(function, finite, count):
    there = {
        i
        for i, case in enumerate(CASES)
        if (case["function"], case["finite"]) == (function, finite)
    }
    marks = [m for test in globals().values() for m in getattr(test, "pytestmark", [])]
    tested = {
        param.values[0].index
        for mark in marks
        if mark.args[0] == "golden"
        for param in mark.args[1]
    }
    assert len(there) == count
    assert there <= tested
