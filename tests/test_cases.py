"""Values of cases.json, small inputs of public fault reports.

The cases that are uses, not values, are marked on the test of their topic:
`@pytest.mark.case("packed")`.
"""

import json
import re
from pathlib import Path

import keras
import numpy as np
import oracle
import pytest
from cases import CASES, HALF, at, expected, zeros
from contract import (
    DTYPES,
    FLOAT32,
    FLOAT64,
    FRACTION,
    LAYOUTS,
    assert_close,
    dtype_of,
    dtypes,
    needs_float64,
    to_float64,
)

import tfpe

PAPER = {"layout": "interleaved", "spectrum": "vaswani"}
TENSOR2TENSOR = {"layout": "concatenated", "spectrum": "tensor2tensor"}
MIX = {"layout": "concatenated", "spectrum": "vaswani"}
SETTINGS = {
    "interleaved": {"layout": "interleaved"},
    "concatenated": {"layout": "concatenated"},
    "interleaved vaswani": PAPER,
    "concatenated tensor2tensor": TENSOR2TENSOR,
    "concatenated vaswani (a well-known tutorial's mix)": MIX,
    "tensor2tensor": {**TENSOR2TENSOR, "min_timescale": 2},
    "geometric": {
        "layout": "concatenated",
        "spectrum": "geometric",
        "min_timescale": 2,
    },
    "interleaved, zero": PAPER,
    "interleaved, sine: last channel": {**PAPER, "odd_channel": "sine"},
}
ALL = slice(None)


def values():
    """Yields case, settings, positions, channels, which of them, and their values."""

    def each(case, positions, channels, which=ALL):
        for name, row in expected(case).items():
            last = slice(-1, None) if name.endswith("last channel") else which
            yield (
                case,
                SETTINGS[name],
                [positions],
                channels,
                last,
                [np.atleast_1d(row)],
            )

    yield from each("layout-pos0", 0, 10)
    yield from each("values-d8-p3", 3, 8)
    yield from each("min-timescale", 1, 4)
    yield from each("odd-5", 1, 5)
    for name, rows in expected("values-d4").items():
        where = [int(position) for position in rows]
        yield "values-d4", SETTINGS[name], where, 4, ALL, list(rows.values())
    for layout in LAYOUTS:
        rows = [expected("odd-3")["both layouts"]]
        yield "odd-3", SETTINGS[layout], [3], 3, ALL, rows
    for name, row in expected("long-512").items():
        layout, position, which = re.match(r"(.*), (\d+), channels (.*)", name).groups()
        which = [0, 1, 2, 3] if which == "0..3" else [int(c) for c in which.split(",")]
        yield "long-512", SETTINGS[layout], [int(position)], 512, which, [row]
    for name, sine in expected("float32-integers-collapse").items():
        where = [int(name[4:-1])]
        yield "float32-integers-collapse", {}, where, 4, slice(1), [[sine]]
    probe = CASES["half-precision-probe"]
    rows = [probe["expect"]["channels 2,3"]]
    yield "half-precision-probe", PAPER, [probe["position"]], 32, slice(2, 4), rows
    for case, channels in (("negative-and-fraction", 4), ("unix-time", 6)):
        where, rows = CASES[case]["positions"], expected(case)
        if case == "unix-time":
            rows = [[sine] for sine in rows["sines"]]
        yield case, PAPER, where, channels, slice(len(rows[0])), rows


VALUES = list(values())


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
@pytest.mark.parametrize(
    ("case", "settings", "where", "channels", "which", "want"),
    VALUES,
    ids=[f"{case}-{number}" for number, (case, *_) in enumerate(VALUES)],
)
def test_signal_has_the_values_of_the_case(
    case, settings, where, channels, which, want, dtype
):
    whole = all(isinstance(position, int) for position in where)
    tolerance = {"float32": FLOAT32 if whole else FRACTION, "float64": FLOAT64}
    tolerance = tolerance.get(dtype) or HALF[dtype]
    if case == "layout-pos0":
        tolerance = 0  # exact in every dtype
    signal = at(where, channels, dtype, **settings)
    layer = tfpe.SinusoidalPositionalEncoding(dtype=dtype, **settings)
    inputs = np.zeros((2, len(where), channels), "float32")
    for got in (signal, layer(inputs, positions=where)[1]):
        assert_close(to_float64(got)[:, which], want, tolerance)
    for position, row in zip(where, want, strict=True) if whole else ():
        one = tfpe.timing_signal(
            1, channels, start_index=position, dtype=dtype, **settings
        )
        assert_close(to_float64(one)[0, which], row, tolerance)


def test_every_case_has_a_test():
    files = Path(__file__).parent.rglob("test_*.py")
    text = "".join(file.read_text() for file in files)
    marked = set(re.findall(r"mark\.case\(\"(.*?)\"\)", text))
    assert marked | {case for case, *_ in VALUES} == set(CASES)


@pytest.mark.case("values-d8-p3")
def test_the_layouts_of_a_position_are_not_permutations_of_each_other():
    sorted_rows = [np.sort(row) for row in expected("values-d8-p3").values()]
    assert not np.allclose(*sorted_rows)


@pytest.mark.case("min-timescale-t2t-512")
def test_min_timescale_multiplies_the_frequencies_of_tensor2tensor():
    got = tfpe.timescales(512, layout="concatenated", min_timescale=2.0)
    np.testing.assert_allclose(1 / got[[0, -1]], [2, 2 * 2 / 10000], rtol=1e-15)
    np.testing.assert_allclose(got[[0, -1]], [1 / 2, 10000 / 2**2], rtol=1e-15)


@pytest.mark.case("permutation-odd-sine")
def test_permutation_of_an_odd_width_is_that_of_the_case():
    for name, order in expected("permutation-odd-sine").items():
        got = tfpe.layout_permutation(
            5, "interleaved", "concatenated", odd_channel=name.split(", ")[1]
        )
        np.testing.assert_array_equal(got, order)


@pytest.mark.case("frequencies")
def test_frequencies_are_those_of_the_case():
    for spectrum, frequencies in expected("frequencies").items():
        got = 1 / tfpe.timescales(8, spectrum=spectrum)
        np.testing.assert_allclose(got, frequencies, rtol=1e-14)
    assert tfpe.timescales(4, spectrum="vaswani")[-1] == 100
    last = 1 / tfpe.timescales(512, spectrum="vaswani")[-1]
    np.testing.assert_allclose(last, 1.036632928437698e-04, rtol=1e-15)


@pytest.mark.case("spectra-meet")
@needs_float64
def test_the_spectra_meet_at_one_longest_timescale():
    for channels in CASES["spectra-meet"]["channels"]:
        end = 10000 ** (2 * (channels // 2 - 1) / channels)
        where = np.arange(-40, 5000, 9)
        order = tfpe.layout_permutation(channels, "interleaved", "concatenated")
        got = at(where, channels, layout="concatenated", max_timescale=end)
        # The end is a rounded number: the angle is off by 5000 * 2**-53 at most.
        assert_close(got, to_float64(at(where, channels))[:, order], 5e-12)


@pytest.mark.case("integer-arguments")
@needs_float64
def test_integers_of_any_kind_are_as_good_as_floats():
    settings = {"max_timescale": 10000, "min_timescale": 1, "amplitude": 1}
    want = at([1.0], 4)
    assert_close(want[0], oracle.row(1, 4), FLOAT64)
    numpy_ones = {name: np.int32(value) for name, value in settings.items()}
    for given in (settings, numpy_ones):
        np.testing.assert_array_equal(at([1], 4, **given), want)
        got = tfpe.timing_signal(np.int64(2), np.int32(4), dtype="float64", **given)
        np.testing.assert_array_equal(got[1:], want)
        layer = tfpe.SinusoidalPositionalEncoding(
            first_position=np.int8(1), dtype="float64", **given
        )
        np.testing.assert_array_equal(layer(np.zeros((1, 1, 4)))[0], want)


@pytest.mark.case("bf16-rows")
def test_bfloat16_tells_neighbouring_rows_apart():
    layer = tfpe.SinusoidalPositionalEncoding(dtype="mixed_bfloat16")
    outputs = layer(np.zeros((1, 259, 4), "float32"))
    for name, sine in expected("bf16-rows").items():
        assert_close(outputs[0, int(name[4:-1]), 0], sine, HALF["bfloat16"])


@pytest.mark.case("autocast")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_positions_are_not_rounded_by_a_mixed_policy(policy, layout):
    layer = tfpe.SinusoidalPositionalEncoding(layout=layout, dtype=policy)
    positions = np.array([937, 257, 2049], "float32")
    inputs = np.zeros((2, 3, 6), "float32")
    want = list(expected("autocast").values())
    for given in (positions, keras.ops.convert_to_tensor(positions)):
        got = layer(inputs, positions=given)
        assert dtype_of(got) == layer.compute_dtype
        assert_close(got[1, :, 0], want, HALF[layer.compute_dtype])


@pytest.mark.case("f16-start")
def test_start_index_may_be_past_the_range_of_float16():
    starts = CASES["f16-start"]["start_index"]
    sines = expected("f16-start")["sines"]
    layer = tfpe.SinusoidalPositionalEncoding(dtype="float16")
    for start, sine in zip(starts, sines, strict=True):
        got = layer(np.zeros((1, 2, 4), "float16"), start_index=start)
        assert_close(got[0, 0, 0], sine, HALF["float16"])
    got = layer(np.zeros((3, 2, 4), "float16"), start_index=np.array(starts))
    assert_close(got[:, 0, 0], sines, HALF["float16"])


@pytest.mark.case("packed")
def test_packed_segments_count_their_real_tokens():
    mask = np.array([CASES["packed"]["token_mask"]])
    segments = np.array([CASES["packed"]["segments"]])
    got = np.array(tfpe.positions_from_segments(segments, mask))
    np.testing.assert_array_equal(got[mask == 1], [0, 1, 0, 1])


@pytest.mark.case("offset-by-convention")
def test_first_position_is_that_of_the_first_real_token():
    ids, pad = np.array(CASES["offset-by-convention"]["ids"]), 1
    layer = tfpe.SinusoidalPositionalEncoding(
        "concatenated", first_position=pad + 1, skip_masked=True
    )
    got = layer(zeros(1, 6, 4), mask=ids != pad)[0]
    want = oracle.rows([2, 3, 4, 5], 4, layout="concatenated")
    np.testing.assert_array_equal(got[:2], np.zeros((2, 4)))
    assert_close(got[2:], want, FLOAT32)
    text = CASES["offset-by-convention"]["expect"]
    first = json.loads("[" + text.split("[")[1].split("]")[0] + "]")
    assert_close(got[2], first, FLOAT32)


@pytest.mark.case("masked-rows")
def test_masked_rows_get_a_signal_only_by_default():
    mask = np.array([[True, True, False]])
    rows = expected("masked-rows")
    got = tfpe.SinusoidalPositionalEncoding()(zeros(1, 3, 4), mask=mask)[0, 2]
    assert_close(got, rows["default, row 2"], FLOAT32)
    got = tfpe.SinusoidalPositionalEncoding(skip_masked=True)(
        zeros(1, 3, 4), mask=mask
    )[0, 2]
    np.testing.assert_array_equal(got, rows["skip_masked, row 2"])
