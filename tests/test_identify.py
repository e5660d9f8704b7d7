"""`tfpe.identify` tells from the numbers of a table which settings made it."""

import functools
import itertools

import ml_dtypes
import numpy as np
import oracle
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from keras import ops

import tfpe
import tfpe._settings

ROUNDING = {"float64": 1e-12, "float32": 2.0**-23, "float16": 2.0**-11}
CONVENTIONS = {n: c for n, c in tfpe.CONVENTIONS.items() if c.axes == 1}
# One name for each of the distinct settings.
DISTINCT = {tuple(c.settings.items()): n for n, c in reversed(CONVENTIONS.items())}
SPECTRUM = ("spectrum", "min_timescale", "max_timescale", "odd_channel")
SIZES = [(8, 4), (8, 512), (512, 4), (512, 512), (9, 7), (64, 33), (20, 8)]


@functools.cache
def _rows(length, channels, items):
    given = dict(items)
    amplitude, first = given.pop("amplitude", 1.0), given.pop("first_position", 0)
    if first != int(first):
        return oracle.rows(
            range(length),
            channels,
            amplitude=amplitude,
            first_position=first,
            **given,
        )
    return amplitude * oracle.many_rows(range(first, first + length), channels, **given)


def rows(length, channels, **given):
    return _rows(length, channels, tuple(given.items()))


def noise(shape, size=1e-3):
    return size * np.random.default_rng(7).normal(size=shape)


def with_defaults(given, channels):
    """Returns all the settings, as what makes no difference at this width."""
    plain = vars(tfpe._settings.Settings(**given)).copy()
    if channels % 2 == 0:
        plain["odd_channel"] = "zero"
    if plain["spectrum"] is None:
        own = {"interleaved": "vaswani", "concatenated": "tensor2tensor"}
        plain["spectrum"] = own[plain["layout"]]
    return plain


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


GRIDS = {n: c for n, c in tfpe.CONVENTIONS.items() if c.axes > 1}


def grid(lengths, channels, axis, **settings):
    """Returns the rows of a grid whose blocks of channels are for these axes."""
    axes = [a + len(lengths) + 1 for a in axis]
    positions = itertools.product(*(range(n) for n in lengths))
    found = [
        oracle.row(tuple(p[a] for a in axes), channels, **settings) for p in positions
    ]
    return np.array(found).reshape(*lengths, channels)


@pytest.mark.parametrize("name", GRIDS)
def test_it_finds_every_convention_of_a_grid(name):
    entry = GRIDS[name]
    lengths = (8, 9, 10)[: entry.axes]
    table = grid(lengths, 24, entry.axis, **entry.settings).astype("float32")
    found = tfpe.identify(table)
    assert found.settings == {**entry.settings, "axis": entry.axis}
    assert name in found.names
    layer = tfpe.SinusoidalPositionalEncoding(**found.settings)
    signal = np.array(layer(np.zeros((1, *lengths, 24), "float32")))[0]
    np.testing.assert_allclose(signal, table, rtol=0, atol=2e-7)


@pytest.mark.parametrize("name", [n for n, c in GRIDS.items() if c.axes == 2])
def test_it_finds_the_grid_in_a_flattened_table(name):
    entry = GRIDS[name]
    table = grid((12, 9), 16, entry.axis, **entry.settings).reshape(-1, 16)
    wanted = {**entry.settings, "axis": entry.axis}
    assert tfpe.identify(table.astype("float16")).settings == wanted
    assert tfpe.identify(table + noise(table.shape)).settings == wanted
    class_token = np.concatenate([np.zeros((1, 16)), table])
    assert tfpe.identify(class_token).settings == wanted


def test_other_orders_and_spacings_of_a_grid_are_found():
    given = {
        "layout": ("frequency", "function", "axis"),
        "spectrum": "geometric",
        "max_timescale": 50.0,
        "cosine_first": True,
        "first_position": 3,
        "amplitude": 0.5,
    }
    found = tfpe.identify(grid((8, 11), 18, (-2, -3), **given).astype("float32"))
    assert found.settings == {**given, "axis": (-2, -3)}


@pytest.mark.parametrize("shape", [(1, 30, 8), (30, 1, 8), (1, 30, 1, 8)])
def test_axes_of_size_1_are_left_out(shape):
    assert tfpe.identify(rows(30, 8).reshape(shape)).settings == {}


def test_other_kinds_of_arrays_are_taken():
    table = rows(30, 64)
    assert tfpe.identify(table.tolist()).settings == {}
    assert tfpe.identify(table.astype(ml_dtypes.bfloat16)).settings == {}
    assert tfpe.identify(np.round(table, 4)).settings == {}
    assert tfpe.identify(tfpe.timing_signal(30, 64)).settings == {}


def _tables_that_are_no_encodings():
    random = np.random.default_rng(3)
    for length, channels in [(8, 4), (8, 9), (64, 64), (300, 128)]:
        shape = (length, channels)
        steps, index = np.arange(length)[:, None], np.arange(channels)
        half = index - index % 2
        sines = rows(length, channels)
        yield "normal", 0.02 * random.normal(size=shape)
        yield "uniform", random.uniform(-1, 1, shape)
        yield "signs", random.choice([-1.0, 1.0], shape)
        yield "smooth", 0.1 * np.cumsum(random.normal(size=shape), axis=0)
        yield "zeros", np.zeros(shape)
        yield "ones", np.ones(shape)
        yield "equal rows", np.tile(random.normal(size=channels), (length, 1))
        yield "one-hot", np.eye(*shape)
        yield "a line", steps * np.ones(channels) / length
        yield "cosine transform", np.cos(np.pi * (steps + 0.5) * index / length)
        yield "trained", sines + 0.1 * random.normal(size=shape)
        yield "shuffled rows", random.permutation(sines)
        yield (
            "one frequency a channel",
            np.where(
                index % 2 == 0,
                np.sin(steps / 1e4 ** (2 * index / channels)),
                np.cos(steps / 1e4 ** (2 * index / channels)),
            ),
        )
        yield "sines only", np.sin(steps / 1e4 ** (half / channels))
        if channels > 4:
            yield "shuffled channels", random.permutation(sines, axis=1)
            yield "standardised", (sines - sines.mean()) / sines.std()


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, id=f"{name}-{table.shape[0]}x{table.shape[1]}")
        for name, table in _tables_that_are_no_encodings()
    ],
)
def test_it_refuses_tables_that_no_settings_make(table):
    found = tfpe.identify(table)
    assert not found.sinusoidal
    assert found.settings is None
    assert found.names == found.candidates == ()
    np.testing.assert_allclose(found.residual, np.sqrt(np.mean(table**2)))


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.zeros(8), ValueError, r"shape \(length, channels\).*shape=\(8,\)"),
        (np.zeros((7, 4)), ValueError, r"at least 8 rows.*shape=\(7, 4\)"),
        (np.zeros((8, 1)), ValueError, r"2 channels. Received: table.shape=\(8, 1\)"),
        (np.zeros((8,) * 5), ValueError, r"one length for each axis of a grid"),
        (np.zeros((2, 8, 4)), ValueError, r"shape=\(2, 8, 4\)"),
        (np.full((8, 4), np.nan), ValueError, "finite.*8 of its rows"),
        (np.zeros((8, 4), complex), TypeError, "real numbers.*complex128"),
        (np.zeros((8, 4), bool), TypeError, "real numbers.*bool"),
        (np.full((8, 4), "a"), TypeError, "real numbers"),
        (np.full((8, 4), None), TypeError, "real numbers.*object"),
    ],
)
def test_what_is_no_table_is_an_error(table, error, message):
    with pytest.raises(error, match=message):
        tfpe.identify(table)


def test_a_first_position_that_is_no_number_is_an_error():
    with pytest.raises(TypeError, match="`first_position` must be a finite number"):
        tfpe.identify(rows(8, 4), first_position="0")


def of_layer(length, channels, start, **settings):
    """Returns what the layer's own code gives in float32."""
    signal = tfpe.timing_signal(length, channels, start_index=start, **settings)
    return ops.convert_to_numpy(signal)


@pytest.mark.parametrize("layout", ["interleaved", "concatenated"])
@pytest.mark.parametrize(
    ("start", "length"),
    [(-100, 60), (-29, 59), (-300, 600), (5000, 300), (-5, 8), (20_000, 100)],
)
@pytest.mark.case("noise-free-negative")
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


def test_rows_that_are_counted_down_are_those_of_the_layer_at_descending_positions():
    table = rows(60, 64)[::-1].astype("float32")
    found = tfpe.identify(table)
    assert (found.settings, found.step) == ({"first_position": 59}, -1)
    layer = tfpe.SinusoidalPositionalEncoding(**found.settings)
    inputs = np.zeros((1, 60, 64), "float32")
    actual = layer(inputs, positions=found.step * np.arange(60))
    np.testing.assert_allclose(ops.convert_to_numpy(actual)[0], table, atol=2e-7)


@pytest.mark.case("descending")
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


@pytest.mark.parametrize("name", [n for n, c in GRIDS.items() if c.axes == 3])
@pytest.mark.case("flattened-volume")
def test_it_finds_the_volume_in_a_flattened_table(name):
    entry = GRIDS[name]
    table = grid((8, 5, 6), 24, entry.axis, **entry.settings).reshape(-1, 24)
    wanted = {**entry.settings, "axis": entry.axis}
    assert tfpe.identify(table.astype("float32")).settings == wanted
    class_token = np.concatenate([np.zeros((1, 24)), table])
    assert tfpe.identify(class_token).settings == wanted


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


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("cosines", ["beside", "behind"])
def test_a_fourier_matrix_is_no_table_of_positions(first, cosines):
    angle = 2 * np.pi / 64 * np.outer(np.arange(64), np.arange(first, 32 + first))
    both = [np.sin(angle), np.cos(angle)]
    matrix = np.stack(both, axis=-1) if cosines == "beside" else np.hstack(both)
    assert not tfpe.identify(matrix.reshape(64, 64)).sinusoidal


def test_long_and_wide_tables_have_the_residual_of_all_their_rows():
    table = rows(3000, 512, layout="concatenated").astype("float32")
    found = tfpe.identify(table)
    assert found.settings == {"layout": "concatenated"}
    # One number in the middle, which neither end has.
    table[1500, 7] += 0.5
    expected = np.hypot(found.residual, 0.5 / np.sqrt(table.size))
    np.testing.assert_allclose(tfpe.identify(table).residual, expected, rtol=1e-3)


@pytest.mark.parametrize("ragged", [[1, [2]], [[1, 2], [3]]])
def test_lists_of_different_lengths_are_refused(ragged):
    with pytest.raises(ValueError, match=r"`table` must be .*different lengths"):
        tfpe.identify(ragged)


@pytest.mark.parametrize("position", [1e154, -(2.0**40), np.inf, np.nan])
@pytest.mark.case("far-first")
def test_a_first_position_beyond_int32_is_refused(position):
    with pytest.raises(ValueError, match="`first_position` must be a finite number in"):
        tfpe.identify(rows(8, 4), first_position=position)
