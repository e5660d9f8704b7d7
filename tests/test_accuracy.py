"""The accuracy contract, against mpmath."""

import contextlib

import keras
import numpy as np
import oracle
import pytest
from contract import (
    BOUND,
    COMPILED,
    DTYPES,
    FLOAT64,
    FRACTION,
    MODES,
    POLICIES,
    POSITIONS,
    WIDTHS,
    assert_close,
    assert_promised,
    conventions,
    dtype_of,
    dtypes,
    some_conventions,
    to_float64,
)

import tfpe

ADVERSARIAL = np.array(POSITIONS, "int32")
# Lengths below, at and past what a table of 256 or 4,096 rows holds.
RANGES = (
    *((0, 5), (250, 13), (4090, 12), (-260, 270), (65530, 12), (2**24 - 3, 9)),
    *((-(2**31), 9), (2**31 - 260, 260)),
)


def zeros(*shape):
    return keras.ops.zeros(shape, keras.config.dtype_policy().compute_dtype)


@pytest.mark.parametrize("policy", dtypes(*POLICIES))
@pytest.mark.parametrize("channels", WIDTHS)
def test_layer_is_right_at_adversarial_positions(channels, policy):
    keras.config.set_dtype_policy(policy)
    inputs = zeros(2, len(POSITIONS), channels)
    for settings in conventions(channels):
        layer = tfpe.SinusoidalPositionalEncoding(**settings)
        want = oracle.rows(POSITIONS, channels, **settings)
        outputs = layer(inputs, positions=ADVERSARIAL)
        assert_promised(outputs[1], want, ADVERSARIAL)
        for position, row in zip(POSITIONS, want, strict=True):
            outputs = layer(inputs[:, :1], start_index=position)
            assert dtype_of(outputs) == dtype_of(inputs)
            assert_promised(outputs[1], row[None], [position])


@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("policy", dtypes(*POLICIES))
@pytest.mark.parametrize("channels", WIDTHS)
def test_layer_is_right_in_graphs(channels, policy, mode):
    keras.config.set_dtype_policy(policy)
    choice = WIDTHS.index(channels), POLICIES.index(policy), len(mode)
    settings = some_conventions(channels, *choice)
    layers = [tfpe.SinusoidalPositionalEncoding(**s) for s in settings]

    @MODES[mode]
    def call(positions, start_index):
        row = zeros(1, 1, channels)
        rows = zeros(1, len(POSITIONS), channels)
        return [
            (layer(row, start_index=start_index), layer(rows, positions=positions))
            for layer in layers
        ]

    wants = [oracle.rows(POSITIONS, channels, **own) for own in settings]
    for i, start_index in enumerate(ADVERSARIAL):
        found = call(*map(keras.ops.convert_to_tensor, (ADVERSARIAL, start_index)))
        for (row, _), want in zip(found, wants, strict=True):
            assert_promised(row[0], want[i : i + 1], ADVERSARIAL[i : i + 1])
    for (_, rows), want in zip(found, wants, strict=True):
        assert_promised(rows[0], want, ADVERSARIAL)


@pytest.mark.parametrize("policy", dtypes(*POLICIES))
@pytest.mark.parametrize("channels", WIDTHS)
def test_layer_is_right_over_ranges(channels, policy):
    keras.config.set_dtype_policy(policy)
    choice = WIDTHS.index(channels), POLICIES.index(policy)
    for settings in some_conventions(channels, *choice):
        layer = tfpe.SinusoidalPositionalEncoding(**settings)
        for start, length in RANGES:
            where = np.arange(start, start + length)
            got = layer(zeros(1, length, channels), start_index=start)
            want = oracle.many_rows(where, channels, **settings)
            assert_promised(got[0], want, where)


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
@pytest.mark.parametrize("settings", conventions(8), ids=str)
def test_signal_is_right_at_random_positions(settings, dtype):
    random = np.random.default_rng(8)
    for low, high in ((-(2**31), 2**31), (0, 2**16), (-(2**20), 2**20)):
        where = random.integers(low, high, (40, 500)).astype("int32")
        want = oracle.many_rows(where.ravel(), 8, **settings).reshape(40, 500, 8)
        got = tfpe.timing_signal_at(where, 8, dtype=dtype, **settings)
        assert_promised(got, want, where)


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
def test_signal_is_right_one_step_before_and_after_powers_of_two(dtype):
    for power in (8, 10, 12, 13, 16, 24, 30):
        for where in (2**power - 1, 2**power, 2**power + 1):
            want = oracle.rows([where, -where], 8)
            for position, row in zip((where, -where), want, strict=True):
                at = tfpe.timing_signal_at([position], 8, dtype=dtype)
                ranged = tfpe.timing_signal(1, 8, start_index=position, dtype=dtype)
                assert_promised(at, row[None], [position])
                assert_promised(ranged, row[None], [position])


def test_fast_oracle_is_right():
    where = [*POSITIONS, *np.random.default_rng(1).integers(-(2**31), 2**31, 50)]
    for settings in some_conventions(64, 0):
        np.testing.assert_allclose(
            oracle.many_rows(where, 64, **settings),
            oracle.rows(where, 64, **settings),
            rtol=0,
            atol=FLOAT64 / 10,
        )


@pytest.fixture(scope="module")
def first_65536_rows():
    return oracle.many_rows(range(2**16), 64)


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
def test_every_position_to_65535_is_right(first_65536_rows, dtype):
    where = np.arange(2**16, dtype="int32")
    for got in (
        tfpe.timing_signal(2**16, 64, dtype=dtype),
        tfpe.timing_signal_at(where, 64, dtype=dtype),
    ):
        assert_promised(got, first_65536_rows, where)
        assert np.abs(to_float64(got)).max() <= BOUND


@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("policy", dtypes(*POLICIES))
def test_long_range_of_unknown_length_is_right(first_65536_rows, policy, mode):
    keras.config.set_dtype_policy(policy)
    layer = tfpe.SinusoidalPositionalEncoding()
    got = MODES[mode](layer)(zeros(1, 2**16, 64))
    assert_promised(got[0], first_65536_rows, np.arange(2**16))


@pytest.mark.parametrize("channels", [2, 3, 8, 64])
@pytest.mark.parametrize(
    "positions", dtypes("float16", "bfloat16", "float32", "float64")
)
def test_float_position_without_a_fraction_is_the_integer(positions, channels):
    where = np.array([0, 1, -1, 255, 256, 1024, 65536, -(2**31), 2**30], "float64")
    where = where[np.abs(where) < 2**16] if positions == "float16" else where
    given = keras.ops.cast(keras.ops.convert_to_tensor(where), positions)
    half = positions in ("float16", "bfloat16")
    for settings in conventions(channels):
        with pytest.warns(match="autocast") if half else contextlib.nullcontext():
            got = tfpe.timing_signal_at(given, channels, **settings)
        assert_promised(got, oracle.rows(where, channels, **settings), where)


def fractions(count=90):
    """Returns float32 positions below 2**24 in size, most of them with a fraction."""
    random = np.random.default_rng(24)
    drawn = random.choice([-1, 1], count) * 2 ** random.uniform(-20, 23, count)
    edges = [0.5, -0.5, -0.25, 255.75, -255.25, 4095.5, -65536.5, 2**22 + 0.5, 1e-30]
    return np.array([*drawn, *edges, -(2**23) + 0.5], "float32")


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("channels", [2, 3, 8, 64])
def test_positions_with_a_fraction_are_right(channels, mode):
    settings = some_conventions(channels, channels, len(mode))
    where = fractions()
    layers = [tfpe.SinusoidalPositionalEncoding(**s) for s in settings]

    def call(positions):
        inputs = keras.ops.zeros((1, len(where), channels))
        return [layer(inputs, positions=positions) for layer in layers]

    found = MODES[mode](call)(keras.ops.convert_to_tensor(where))
    for got, own in zip(found, settings, strict=True):
        assert_close(got[0], oracle.rows(where, channels, **own), FRACTION)


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16"])
def test_positions_with_a_fraction_are_not_rounded_under_half_policies(policy):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=policy)
    where = fractions()
    got = layer(np.zeros((2, len(where), 8), "float32"), positions=where)
    want = oracle.rows(where, 8)
    unit = {"mixed_float16": 2.0**-12, "mixed_bfloat16": 2.0**-9}[policy]
    assert_close(got[1], want, unit + FRACTION)


@pytest.mark.parametrize("held", dtypes("float64"))
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", FRACTION), ("float64", FLOAT64)]
)
def test_float64_positions_keep_their_digits(dtype, tolerance, held):
    where = [1700000001.3125, -2147483647.7, 0.1, 16777217.25, -0.3]
    where = np.array(where, held)
    for settings in conventions(8):
        got = tfpe.timing_signal_at(where, 8, dtype=dtype, **settings)
        assert_close(got, oracle.rows(where, 8, **settings), tolerance)


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
@pytest.mark.parametrize("amplitude", [-0.125, 3.0, 100.5])
def test_error_and_bound_are_in_proportion_to_the_amplitude(amplitude, dtype):
    settings = {"amplitude": amplitude, "layout": "concatenated"}
    want = oracle.rows(POSITIONS, 9, **settings)
    got = tfpe.timing_signal_at(ADVERSARIAL, 9, dtype=dtype, **settings)
    assert_promised(got, want, ADVERSARIAL, amplitude=amplitude)


@pytest.mark.parametrize("first_position", [7, -3, 0.25, -1700000001, 2**31 - 1])
@pytest.mark.parametrize("dtype", dtypes("float32", "float64"))
def test_first_position_costs_no_accuracy(first_position, dtype):
    settings = {"first_position": first_position}
    want = oracle.rows(POSITIONS, 8, **settings)
    got = tfpe.timing_signal_at(ADVERSARIAL, 8, dtype=dtype, **settings)
    assert_promised(got, want)


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
def test_timescales_of_every_size_are_right(dtype):
    for settings in (
        {"min_timescale": 1e-3, "max_timescale": 1e9},
        {"min_timescale": 500.0, "max_timescale": 0.5},
        {"spectrum": (1e-30, 1e30, 0.7, 1e-6), "layout": "concatenated"},
    ):
        want = oracle.rows(POSITIONS, 8, **settings)
        got = tfpe.timing_signal_at(ADVERSARIAL, 8, dtype=dtype, **settings)
        assert_promised(got, want)
