"""tfpe gives the numbers of KerasHub's `SinePositionEncoding`, in float32.

It has the interleaved layout and the paper's spectrum, tfpe's defaults:

    keras_hub.layers.SinePositionEncoding(max_wavelength=w)(x, start_index=s)
        tfpe.timing_signal(x.shape[1], x.shape[2], start_index=s,
                           max_timescale=w, odd_channel="sine")
    x + keras_hub.layers.SinePositionEncoding(max_wavelength=w)(x)
        tfpe.SinusoidalPositionalEncoding(max_timescale=w, odd_channel="sine")(x)

KerasHub's layer returns the signal, tfpe's the sum. Its `max_wavelength` is a
timescale; a wavelength is 2 pi times as long. `odd_channel` matters for odd
widths only. The angles are worked out in the compute dtype there, which is why
the two part in half precision and at large positions.
"""

import numpy as np
import oracle
import pytest
from contract import FLOAT32, FLOAT32_NEAR
from keras import ops

import tfpe

keras_hub = pytest.importorskip("keras_hub")

# KerasHub's own float32 error, for each position. With x = log(1 / frequency),
# a frequency is off by (2 + x) * 2**-24 of itself, from the rounding of the
# exponent, the power and the angle; frequency * (2 + x) is at most 2.
THEIRS = 2.0**-23
EPSILON = {"bfloat16": 2.0**-7, "float16": 2.0**-10}
CHANNELS = [2, 3, 8, 9, 64, 127]


def hub(inputs, dtype="float32", max_wavelength=10_000, **call):
    layer = keras_hub.layers.SinePositionEncoding(max_wavelength, dtype=dtype)
    return to_numpy(layer(ops.cast(inputs, dtype), **call))


def ours(inputs, dtype="float32", max_timescale=10_000, **call):
    layer = tfpe.SinusoidalPositionalEncoding(
        max_timescale=max_timescale, odd_channel="sine", dtype=dtype
    )
    return to_numpy(layer(ops.cast(inputs, dtype), **call))


def to_numpy(x):
    return ops.convert_to_numpy(ops.cast(x, "float64"))


def random(*shape):
    return np.random.default_rng(4).normal(size=shape).astype("float32")


def half_unit(values, dtype):
    """Half a unit in the last place of values in a half-precision type."""
    _, exponent = np.frexp(np.abs(values))
    return np.ldexp(EPSILON[dtype] / 2, exponent - 1)


@pytest.mark.parametrize("start_index", [0, 3, 1000, 65_000])
@pytest.mark.parametrize("max_wavelength", [10_000, 50])
@pytest.mark.parametrize("channels", CHANNELS)
def test_timing_signal_is_what_keras_hub_returns(channels, max_wavelength, start_index):
    length = 50
    actual = to_numpy(
        tfpe.timing_signal(
            length,
            channels,
            start_index=start_index,
            max_timescale=max_wavelength,
            odd_channel="sine",
        )
    )
    expected = hub(
        random(2, length, channels),
        max_wavelength=max_wavelength,
        start_index=start_index,
    )
    positions = start_index + np.arange(length)[:, None]
    error = np.abs(actual - expected)
    tolerance = np.broadcast_to(FLOAT32_NEAR + THEIRS * positions, error.shape)
    np.testing.assert_array_less(error, tolerance)


@pytest.mark.parametrize(
    ("call", "furthest"),
    [
        ({}, 6),
        ({"start_index": 500}, 506),
        ({"start_index": np.int32(-500)}, 500),
        ({"positions": np.float32([0, 3, 999, 1, 2, 500, 77])}, 999),
        (
            {"positions": np.int32([[9, 8, 7, 6, 5, 4, 3], [5, 0, 700, 2, 2, 1, 6]])},
            700,
        ),
        ({"positions": np.float32([0.5, -3, 99.25, 1, 2, -50.75, 7])}, 99.25),
    ],
    ids=["plain", "start", "negative", "positions", "per row", "fractions"],
)
@pytest.mark.parametrize("channels", CHANNELS)
def test_the_layer_adds_what_keras_hub_returns(channels, call, furthest):
    inputs = random(2, 7, channels)
    expected = inputs + hub(inputs, **call)
    # Ours is 5e-7 at positions with a fraction, and the float32 sum is rounded.
    tolerance = 5e-7 + THEIRS * furthest + 2.0**-24 * np.abs(expected)
    error = np.abs(ours(inputs, **call) - expected)
    np.testing.assert_array_less(error, tolerance)


def test_in_bfloat16_keras_hub_is_wrong_by_more_than_1_and_tfpe_rounds_once():
    length, channels = 513, 32
    exact = oracle.rows(range(length), channels)
    theirs = hub(np.zeros((1, length, channels)), "bfloat16")[0]
    assert np.abs(theirs - exact).max() > 1
    actual = ours(np.zeros((1, length, channels)), "bfloat16")[0]
    tolerance = FLOAT32_NEAR + half_unit(exact, "bfloat16")
    np.testing.assert_array_less(np.abs(actual - exact), tolerance)


def test_in_bfloat16_keras_hub_rounds_the_positions_and_tfpe_does_not():
    positions = np.float32([937, 257, 2049])
    theirs = hub(random(2, 3, 4), "bfloat16", positions=positions)[0, :, 0]
    rounded = np.sin([936.0, 256.0, 2048.0])
    np.testing.assert_allclose(theirs, rounded, rtol=0, atol=EPSILON["bfloat16"])
    actual = ours(np.zeros((2, 3, 4)), "bfloat16", positions=positions)[:, :, 0]
    exact = np.broadcast_to([0.72110037, -0.57335717, 0.63002846], (2, 3))
    tolerance = FLOAT32_NEAR + half_unit(exact, "bfloat16")
    np.testing.assert_array_less(np.abs(actual - exact), tolerance)


def test_in_float16_keras_hub_is_nan_at_65536_and_tfpe_rounds_once():
    start_index, length, channels = 65_530, 11, 8
    inputs = np.zeros((1, length, channels))
    assert np.isnan(hub(inputs, "float16", start_index=start_index)[0, 6]).all()
    exact = oracle.rows(range(start_index, start_index + length), channels)
    actual = ours(inputs, "float16", start_index=start_index)[0]
    tolerance = FLOAT32 + half_unit(exact, "float16")
    np.testing.assert_array_less(np.abs(actual - exact), tolerance)


def test_at_a_million_keras_hub_is_wrong_in_float32_too_and_tfpe_is_not():
    start_index, length, channels = 1_000_000, 11, 64
    inputs = np.zeros((1, length, channels))
    exact = oracle.rows(range(start_index, start_index + length), channels)
    error = np.abs(hub(inputs, start_index=start_index)[0] - exact)
    assert error.max() > 0.01
    np.testing.assert_allclose(
        ours(inputs, start_index=start_index)[0], exact, rtol=0, atol=FLOAT32
    )


def test_one_channel_is_a_sine_in_keras_hub_and_zero_in_tfpe():
    theirs = hub(random(2, 7, 1))
    exact = np.broadcast_to(np.sin(np.arange(7.0))[:, None], (2, 7, 1))
    np.testing.assert_allclose(theirs, exact, rtol=0, atol=1e-6)
    signal = to_numpy(tfpe.timing_signal(7, 1, odd_channel="sine"))
    np.testing.assert_array_equal(signal, np.zeros((7, 1)), strict=True)


def test_keras_hub_ignores_a_start_beside_positions_and_tfpe_refuses_it():
    inputs, positions = random(2, 3, 4), np.int32([5, 1, 8])
    both = hub(inputs, positions=positions, start_index=100)
    np.testing.assert_array_equal(both, hub(inputs, positions=positions))
    with pytest.raises(ValueError, match="`start_index` must be left at 0"):
        ours(inputs, positions=positions, start_index=100)
