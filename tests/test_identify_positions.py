"""`tfpe.identify` finds where the rows of a table start and which way they count."""

import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops
from tables import noise, rows, with_defaults

import tfpe


@pytest.mark.parametrize("first_position", [-7, 1, 1000, 2.5, 12_345])
def test_it_finds_the_first_position(first_position):
    table = rows(64, 32, first_position=first_position)
    found = tfpe.identify(table.astype("float32"))
    assert found.settings == {"first_position": first_position}


def test_a_first_position_that_is_known_is_taken():
    table = rows(8, 4, first_position=3, min_timescale=50.0, max_timescale=70.0)
    found = tfpe.identify(table + noise(table.shape), first_position=3)
    assert all(c["first_position"] == 3 for c in found.candidates)
    assert tfpe.identify(rows(20, 8), first_position=5).sinusoidal is False


def of_layer(length, channels, start, **settings):
    """Returns what the layer's own code gives in float32."""
    signal = tfpe.timing_signal(length, channels, start_index=start, **settings)
    return ops.convert_to_numpy(signal)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize(
    ("start", "length"),
    [(-100, 60), (-29, 59), (-300, 600), (5000, 300), (-5, 8), (20_000, 100)],
)
def test_the_layer_s_own_float32_rows_are_found_wherever_they_start(
    start, length, layout
):
    found = tfpe.identify(of_layer(length, 64, start, layout=layout))
    assert found.settings.get("layout", "interleaved") == layout
    assert {**found.settings, "layout": layout} == {
        "layout": layout,
        "first_position": start,
    }
    assert found.step == 1
    known = tfpe.identify(
        of_layer(length, 64, start, layout=layout), first_position=start
    )
    assert known.settings == found.settings


def test_a_far_first_position_is_taken_if_it_is_known():
    table = of_layer(100, 128, 100_000)
    found = tfpe.identify(table, first_position=100_000)
    assert found.settings == {"first_position": 100_000}


@pytest.mark.case("noise-free-negative")
@given(
    st.integers(-2000, 4000),
    st.integers(12, 80),
    st.sampled_from([16, 33, 64]),
    st.sampled_from(["interleaved", "concatenated"]),
    st.sampled_from([1, -1]),
    st.sampled_from(["float32", "float16", "noise"]),
)
@settings(max_examples=60, deadline=None, derandomize=True)
def test_it_finds_negative_far_and_descending_rows(
    first, length, channels, layout, step, dtype
):
    start = min(first, first + step * (length - 1))
    table = rows(length, channels, layout=layout, first_position=start)[::step]
    noisy = table + noise(table.shape) if dtype == "noise" else table.astype(dtype)
    found = tfpe.identify(noisy)
    assert found.step == step
    given = with_defaults({"layout": layout, "first_position": first}, channels)
    candidates = [with_defaults(c, channels) for c in found.candidates]
    assert given in candidates


@pytest.mark.case("descending")
def test_rows_that_are_counted_down_are_those_of_the_layer_at_descending_positions():
    table = rows(60, 64)[::-1].astype("float32")
    found = tfpe.identify(table)
    assert (found.settings, found.step) == ({"first_position": 59}, -1)
    layer = tfpe.SinusoidalPositionalEncoding(**found.settings)
    inputs = np.zeros((1, 60, 64), "float32")
    actual = layer(inputs, positions=found.step * np.arange(60))
    np.testing.assert_allclose(ops.convert_to_numpy(actual)[0], table, atol=2e-7)


def test_the_rows_of_espnet_s_relative_positions_have_its_name():
    positions = np.arange(29, -30, -1)
    table = oracle.rows(positions, 64).astype("float32")
    found = tfpe.identify(table)
    assert found.names[:2] == ("espnet_relative", "paper")
    assert (found.settings, found.step) == ({"first_position": 29}, -1)
    known = tfpe.identify(table, first_position=29)
    assert known == found
    assert not tfpe.identify(table, first_position=28).sinusoidal
    assert "espnet_relative" not in tfpe.identify(rows(60, 64)).names
