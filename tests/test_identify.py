"""`tfpe.identify` tells from the numbers of a table which settings made it."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import noise, rows, with_defaults

import tfpe

ROUNDING = {"float64": 1e-12, "float32": 2.0**-23, "float16": 2.0**-11}
CONVENTIONS = {n: c for n, c in tfpe.CONVENTIONS.items() if c.axes == 1}
# One name for each of the distinct settings.
DISTINCT = {tuple(c.settings.items()): n for n, c in reversed(CONVENTIONS.items())}
SPECTRUM = ("spectrum", "min_timescale", "max_timescale", "odd_channel")
SIZES = [(8, 4), (8, 512), (512, 4), (512, 512), (9, 7), (64, 33), (20, 8)]


def assert_rebuilds(found, table, allowed):
    """Asserts that the settings found make the table, to `allowed` root mean square."""
    rebuilt = rows(*table.shape, **found.settings)
    off = np.sqrt(np.mean((rebuilt - table) ** 2))
    np.testing.assert_array_less(off, allowed)
    np.testing.assert_array_less(found.residual, 2 * allowed)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize(("length", "channels"), SIZES)
@pytest.mark.parametrize("name", DISTINCT.values())
def test_it_finds_every_convention(name, length, channels, dtype):
    given = dict(CONVENTIONS[name].settings)
    table = rows(length, channels, **given)
    found = tfpe.identify(table.astype(dtype))
    assert found.sinusoidal
    assert name in found.names
    candidates = [with_defaults(c, channels) for c in found.candidates]
    assert with_defaults(given, channels) in candidates
    assert found.settings == found.candidates[0]
    assert_rebuilds(found, table, ROUNDING[dtype])


@pytest.mark.parametrize(("length", "channels"), [(8, 4), (8, 512), (64, 33), (20, 8)])
@pytest.mark.parametrize("name", DISTINCT.values())
def test_it_finds_every_convention_in_noise(name, length, channels):
    given = dict(CONVENTIONS[name].settings)
    table = rows(length, channels, **given)
    found = tfpe.identify(table + noise(table.shape))
    assert name in found.names
    candidates = [with_defaults(c, channels) for c in found.candidates]
    assert with_defaults(given, channels) in candidates
    assert_rebuilds(found, table, 1e-3)


@pytest.mark.parametrize(
    ("given", "channels"),
    [
        ({}, 8),
        ({"odd_channel": "sine"}, 9),
        ({"layout": "concatenated"}, 512),
        ({"layout": "concatenated", "spectrum": "vaswani"}, 64),
        ({"layout": "concatenated", "first_position": 2}, 128),
        ({"layout": "concatenated", "spectrum": "vaswani", "cosine_first": True}, 32),
    ],
)
def test_a_plain_answer_is_the_settings_themselves(given, channels):
    found = tfpe.identify(rows(100, channels, **given).astype("float32"))
    assert found.settings == given


def test_names_are_those_of_the_settings_whatever_the_amplitude():
    table = rows(64, 512, layout="concatenated", spectrum="vaswani")
    found = tfpe.identify((table * 512**-0.5).astype("float32"))
    assert found.settings["amplitude"] == 512**-0.5
    assert "x_transformers" in found.names
    assert "tensor2tensor" not in found.names


def test_what_a_width_cannot_tell_apart_is_among_the_candidates():
    found = tfpe.identify(rows(50, 4).astype("float32"))
    # 1 and 100: the paper's up to 10,000 or another spacing up to 100.
    assert found.settings == {}
    assert {"spectrum": "geometric", "max_timescale": 100.0} in found.candidates
    assert {"spectrum": "tensor2tensor", "max_timescale": 100.0} in found.candidates


@st.composite
def random_settings(draw):
    channels = draw(st.integers(4, 40) | st.sampled_from([127, 256]))
    given = {
        "layout": draw(st.sampled_from(["interleaved", "concatenated"])),
        "first_position": draw(st.integers(0, 5)),
        "amplitude": draw(st.sampled_from([1.0, 0.5, -1.0, channels**-0.5, 1.7])),
    }
    kind = draw(st.sampled_from(["plain", "cosine_first", "sine"]))
    if kind == "cosine_first":
        given["cosine_first"] = True
    if kind == "sine":
        given["odd_channel"] = "sine"
    pairs = channels // 2 + (kind == "sine" and channels % 2)
    spectrum = draw(
        st.sampled_from(["vaswani", "tensor2tensor", "geometric", "sequence"])
    )
    if spectrum == "sequence":
        exponents = st.lists(st.floats(-0.2, 3), min_size=pairs, max_size=pairs)
        given["spectrum"] = tuple(10**e for e in draw(exponents))
    else:
        low = 10 ** draw(st.sampled_from([0.0]) | st.floats(-0.3, 1))
        given["spectrum"] = spectrum
        given["min_timescale"] = 1 / low if spectrum == "tensor2tensor" else low
        given["max_timescale"] = 10 ** draw(st.floats(1, 5))
    length = draw(st.integers(8, 60) | st.just(300))
    return length, channels, given


def same_kind(candidate, given, channels):
    candidate = with_defaults(candidate, channels)
    given = with_defaults(given, channels)
    for plain in candidate, given:
        if isinstance(plain["spectrum"], tuple):
            plain["spectrum"] = "sequence"
    names = ["layout", "cosine_first", "odd_channel", "first_position", "spectrum"]
    return all(candidate[name] == given[name] for name in names)


@given(random_settings(), st.sampled_from(["float32", "float16", "noise"]))
@settings(max_examples=150, deadline=None, derandomize=True)
def test_it_finds_any_settings(case, dtype):
    length, channels, given = case
    table = rows(length, channels, **given)
    if dtype == "noise":
        found = tfpe.identify(table + noise(table.shape))
        allowed = 1e-3
    else:
        found = tfpe.identify(table.astype(dtype))
        allowed = 4 * ROUNDING[dtype] * abs(given["amplitude"])
    assert found.sinusoidal
    assert_rebuilds(found, table, allowed)
    spectrum = {name: given[name] for name in SPECTRUM if name in given}
    timescales = tfpe.timescales(channels, **spectrum)
    few = isinstance(given["spectrum"], tuple) and len(timescales) <= 3
    few |= len(set(timescales)) == 1  # the rows repeat, so many positions agree
    assert few or any(same_kind(c, given, channels) for c in found.candidates)
    tfpe.SinusoidalPositionalEncoding(**found.settings)


@pytest.mark.parametrize(
    ("length", "channels", "given"),
    [
        (300, 5, {"odd_channel": "sine"}),
        (512, 128, {"first_position": 1}),
        (300, 7, {"odd_channel": "sine", "amplitude": -0.5}),
    ],
)
def test_columns_that_are_rounded_alike_count_once(length, channels, given):
    # Many positions, some thousand steps away, fit the rounded numbers as well.
    ends = {"min_timescale": 10.0, "max_timescale": 10.0}
    table = rows(length, channels, **ends, **given).astype("float16")
    assert tfpe.identify(table).settings == {**ends, **given}


def test_timescales_of_which_each_is_free_do_not_shut_out_a_spacing():
    given = {"spectrum": "geometric", "min_timescale": 5.580561, "max_timescale": 781.0}
    given |= {"layout": "interleaved", "first_position": 1, "amplitude": 1 / 3}
    table = rows(8, 9, **given)
    found = tfpe.identify(table + noise(table.shape))
    assert any(same_kind(candidate, given, 9) for candidate in found.candidates)


@pytest.mark.parametrize("spectrum", [(3.0, 500.0, 1.5, 20.0, 77.0), (2.5,) * 5])
def test_a_spectrum_that_is_not_geometric_is_a_sequence(spectrum):
    table = rows(40, 10, layout="concatenated", spectrum=spectrum)
    found = tfpe.identify(table.astype("float32"))
    actual = tfpe.timescales(10, **found.settings)
    np.testing.assert_allclose(actual, spectrum, rtol=1e-6)


def test_rising_frequencies_and_those_beyond_a_turn_a_row_are_found():
    given = {"spectrum": "geometric", "min_timescale": 20.0, "max_timescale": 0.02}
    found = tfpe.identify(rows(64, 32, **given).astype("float32"))
    assert found.settings == given


def test_code_that_works_out_its_angles_in_float32_is_recognised():
    positions = np.arange(5000, dtype="float32")[:, None]
    step = np.float32(-np.log(10_000) / 255)
    angles = positions * np.exp(np.arange(256, dtype="float32") * step)
    table = np.concatenate([np.sin(angles), np.cos(angles)], axis=1)
    found = tfpe.identify(table)
    assert found.settings == {"layout": "concatenated"}
    assert 1e-6 < found.residual < 1e-3


def test_rows_of_zeros_are_left_out_but_counted():
    table = rows(64, 512, layout="concatenated").astype("float32")
    table[1] = 0  # as fairseq has it for the padding index
    found = tfpe.identify(table)
    assert found.settings == {"layout": "concatenated"}
    table[0] = 0
    assert tfpe.identify(table).settings == {"layout": "concatenated"}
    assert found.residual < 1e-7


def test_other_kinds_of_arrays_are_taken():
    table = rows(30, 64)
    assert tfpe.identify(table.tolist()).settings == {}
    assert tfpe.identify(table.astype(ml_dtypes.bfloat16)).settings == {}
    assert tfpe.identify(np.round(table, 4)).settings == {}
    assert tfpe.identify(tfpe.timing_signal(30, 64)).settings == {}


@pytest.mark.parametrize("size", [1e-150, 1e-5, 1e200])
def test_any_amplitude_is_found(size):
    found = tfpe.identify(size * rows(60, 64))
    assert found.settings == {"amplitude": size}
    assert "paper" in found.names
    np.testing.assert_array_less(found.residual, 1e-12 * size)


@pytest.mark.parametrize("shape", [(1500, 384), (200, 64), (40, 512)])
@pytest.mark.parametrize("given", [{}, {"layout": "concatenated"}])
def test_bfloat16_tables_are_found(given, shape):
    table = rows(*shape, **given)
    rounded = table.astype(ml_dtypes.bfloat16)
    for same in rounded, rounded.astype("float32"):
        assert tfpe.identify(same).settings == given


def test_a_pair_that_turns_once_a_row_is_found():
    given = {"spectrum": "geometric", "max_timescale": 100.0}
    table = rows(60, 8, min_timescale=1 / (2 * np.pi), **given).astype("float32")
    found = tfpe.identify(table)
    np.testing.assert_allclose(found.settings.pop("min_timescale"), 0.5 / np.pi)
    assert found.settings == given


def test_long_and_wide_tables_have_the_residual_of_all_their_rows():
    table = rows(3000, 512, layout="concatenated").astype("float32")
    found = tfpe.identify(table)
    assert found.settings == {"layout": "concatenated"}
    # One number in the middle, which neither end has.
    table[1500, 7] += 0.5
    expected = np.hypot(found.residual, 0.5 / np.sqrt(table.size))
    np.testing.assert_allclose(tfpe.identify(table).residual, expected, rtol=1e-3)
