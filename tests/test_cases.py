"""Values of cases.json; each case has a test with its name in a file like this."""

from pathlib import Path

import keras
import numpy as np
import oracle
import pytest
from cases import CASES, HALF, at, expected
from contract import (
    DTYPES,
    FLOAT32,
    FLOAT64,
    LAYOUTS,
    assert_close,
    dtype_of,
    to_float64,
)

import tfpe

# Exporters and several devices have suites of their own.
ELSEWHERE = {
    "litert": "test_exported_model_equals_the_layer_at_any_length",
    "replicas": "test_replicas_of_a_mirrored_strategy_add_the_same",
}
OWN = {
    "interleaved vaswani": {"layout": "interleaved", "spectrum": "vaswani"},
    "concatenated tensor2tensor": {
        "layout": "concatenated",
        "spectrum": "tensor2tensor",
    },
    "concatenated vaswani (a well-known tutorial's mix)": {
        "layout": "concatenated",
        "spectrum": "vaswani",
    },
}


def test_every_case_has_a_test():
    text = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    for case in CASES:
        name = ELSEWHERE.get(case, f"test_{case.replace('-', '_')}")
        assert f"\ndef {name}(" in text


@pytest.mark.parametrize("dtype", DTYPES)
def test_layout_pos0(dtype):
    for layout, row in expected("layout-pos0").items():
        got = tfpe.timing_signal(1, 10, dtype=dtype, layout=layout)
        np.testing.assert_array_equal(to_float64(got), [row])


def test_values_d4():
    for name, rows in expected("values-d4").items():
        for position, row in rows.items():
            assert_close(at(int(position), 4, **OWN[name]), row, FLOAT64)
            got = at(int(position), 4, "float32", **OWN[name])
            assert_close(got, row, FLOAT32)


def test_values_d8_p3():
    for name, row in expected("values-d8-p3").items():
        assert_close(at(3, 8, **OWN[name]), row, FLOAT64)
    sorted_rows = [np.sort(row) for row in expected("values-d8-p3").values()]
    assert not np.allclose(*sorted_rows)


def test_min_timescale():
    for spectrum, row in expected("min-timescale").items():
        settings = {"layout": "concatenated", "min_timescale": 2}
        assert_close(at(1, 4, spectrum=spectrum, **settings), row, FLOAT64)


def test_min_timescale_t2t_512():
    got = tfpe.timescales(512, layout="concatenated", min_timescale=2.0)
    np.testing.assert_allclose(1 / got[[0, -1]], [2, 2 * 2 / 10000], rtol=1e-15)
    np.testing.assert_allclose(got[[0, -1]], [1 / 2, 10000 / 2**2], rtol=1e-15)


def test_odd_5():
    rows = expected("odd-5")
    assert_close(at(1, 5), rows["interleaved, zero"], FLOAT64)
    got = at(1, 5, layout="concatenated")
    assert_close(got, rows["concatenated tensor2tensor"], FLOAT64)
    last = at(1, 5, odd_channel="sine")[-1]
    assert_close(last, rows["interleaved, sine: last channel"], FLOAT64)


def test_odd_3():
    for layout in LAYOUTS:
        row = expected("odd-3")["both layouts"]
        assert_close(at(3, 3, layout=layout), row, FLOAT64)


def test_permutation_odd_sine():
    for name, order in expected("permutation-odd-sine").items():
        got = tfpe.layout_permutation(
            5, "interleaved", "concatenated", odd_channel=name.split(", ")[1]
        )
        np.testing.assert_array_equal(got, order)


def test_frequencies():
    for spectrum, frequencies in expected("frequencies").items():
        got = 1 / tfpe.timescales(8, spectrum=spectrum)
        np.testing.assert_allclose(got, frequencies, rtol=1e-14)
    assert tfpe.timescales(4, spectrum="vaswani")[-1] == 100
    last = 1 / tfpe.timescales(512, spectrum="vaswani")[-1]
    np.testing.assert_allclose(last, 1.036632928437698e-04, rtol=1e-15)


def test_spectra_meet():
    for channels in CASES["spectra-meet"]["channels"]:
        end = 10000 ** (2 * (channels // 2 - 1) / channels)
        where = np.arange(-40, 5000, 9)
        order = tfpe.layout_permutation(channels, "interleaved", "concatenated")
        got = at(where, channels, layout="concatenated", max_timescale=end)
        # The end is a rounded number: the angle is off by 5000 * 2**-53 at most.
        assert_close(got, to_float64(at(where, channels))[:, order], 5e-12)


def test_integer_arguments():
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


def test_long_512():
    channels = {"interleaved": [0, 1, 2, 3], "concatenated": [0, 1, 256, 257]}
    for name, row in expected("long-512").items():
        layout, position = name.split()[0], int(name.split(", ")[1])
        got = to_float64(at(position, 512, layout=layout))[channels[layout]]
        assert_close(got, row, FLOAT64)
        got = tfpe.timing_signal(1, 512, start_index=position, layout=layout)
        assert_close(to_float64(got)[0, channels[layout]], row, FLOAT32)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_float32_integers_collapse(dtype):
    for name, sine in expected("float32-integers-collapse").items():
        position = int(name[4:-1])
        assert_close(at(position, 4, dtype)[0], sine, FLOAT32)
        got = tfpe.timing_signal(1, 4, start_index=position, dtype=dtype)
        assert_close(got[0, 0], sine, FLOAT32)


@pytest.mark.parametrize("dtype", DTYPES)
def test_half_precision_probe(dtype):
    want = expected("half-precision-probe")["channels 2,3"]
    got = at(CASES["half-precision-probe"]["position"], 32, dtype)[2:4]
    assert_close(got, want, HALF.get(dtype, FLOAT32))


def test_bf16_rows():
    layer = tfpe.SinusoidalPositionalEncoding(dtype="mixed_bfloat16")
    outputs = layer(np.zeros((1, 259, 4), "float32"))
    for name, sine in expected("bf16-rows").items():
        assert_close(outputs[0, int(name[4:-1]), 0], sine, HALF["bfloat16"])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_autocast(policy, layout):
    layer = tfpe.SinusoidalPositionalEncoding(layout=layout, dtype=policy)
    positions = np.array([937, 257, 2049], "float32")
    inputs = np.zeros((2, 3, 6), "float32")
    want = list(expected("autocast").values())
    for given in (positions, keras.ops.convert_to_tensor(positions)):
        got = layer(inputs, positions=given)
        assert dtype_of(got) == layer.compute_dtype
        assert_close(got[1, :, 0], want, HALF[layer.compute_dtype])


def test_f16_start():
    starts = CASES["f16-start"]["start_index"]
    sines = expected("f16-start")["sines"]
    layer = tfpe.SinusoidalPositionalEncoding(dtype="float16")
    for start, sine in zip(starts, sines, strict=True):
        got = layer(np.zeros((1, 2, 4), "float16"), start_index=start)
        assert_close(got[0, 0, 0], sine, HALF["float16"])
    got = layer(np.zeros((3, 2, 4), "float16"), start_index=np.array(starts))
    assert_close(got[:, 0, 0], sines, HALF["float16"])


def test_negative_and_fraction():
    positions = CASES["negative-and-fraction"]["positions"]
    rows = expected("negative-and-fraction")
    assert_close(at(positions, 4), rows, FLOAT64)
    layer = tfpe.SinusoidalPositionalEncoding()
    got = layer(np.zeros((3, 2, 4), "float32"), positions=positions)
    assert_close(got[2], rows, 5e-7)


def test_unix_time():
    positions = CASES["unix-time"]["positions"]
    sines = expected("unix-time")["sines"]
    assert_close(at(positions, 6, "float32")[:, 0], sines, FLOAT32)
    got = tfpe.timing_signal(2, 6, start_index=positions[0])
    assert_close(got[:, 0], sines, FLOAT32)
