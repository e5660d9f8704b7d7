"""Arguments of functions that are refused, and with which words."""

import numpy as np
import pytest
from contract import needs_float64, refuses, to_float64

import tfpe

LAYOUT = "must be 'interleaved', 'concatenated' or an order of the three words"
ORDER = ("function", "axis", "frequency")

FUNCTIONS = {
    "channels zero": (
        lambda: tfpe.timing_signal(3, 0),
        ValueError,
        ("`channels` must be a positive integer", "channels=0"),
    ),
    "channels negative": (
        lambda: tfpe.timing_signal_at([3], -1),
        ValueError,
        ("`channels` must be a positive integer", "channels=-1"),
    ),
    "channels float": (
        lambda: tfpe.timescales(8.0),
        TypeError,
        ("`channels` must be a positive integer", "channels=8.0"),
    ),
    "channels bool": (
        lambda: tfpe.shift_matrix(1, True),
        TypeError,
        ("`channels` must be a positive integer", "channels=True"),
    ),
    "axes": (
        lambda: tfpe.timescales(8, axes=0),
        ValueError,
        ("`axes` must be a positive integer", "axes=0"),
    ),
    "length negative": (
        lambda: tfpe.timing_signal(-1, 8),
        ValueError,
        ("`length` must be an integer >= 0", "length=-1"),
    ),
    "length float": (
        lambda: tfpe.timing_signal((3, 2.5), 8),
        TypeError,
        ("`length` must be an integer >= 0", "length=2.5"),
    ),
    "length bool": (
        lambda: tfpe.timing_signal(True, 8),
        TypeError,
        ("`length` must be an integer >= 0", "length=True"),
    ),
    "no length": (
        lambda: tfpe.timing_signal((), 8),
        ValueError,
        ("`length` must not be empty", "length=()"),
    ),
    "no positions": (
        lambda: tfpe.timing_signal_at((), 8),
        ValueError,
        ("`positions` must not be empty", "positions=()"),
    ),
    "start_index float": (
        lambda: tfpe.timing_signal(3, 8, start_index=1.0),
        TypeError,
        ("`start_index` must be an integer", "start_index=1.0"),
    ),
    "start_index of a grid": (
        lambda: tfpe.timing_signal((3, 2), 8, start_index=4),
        ValueError,
        ("`start_index` is for one axis only", "start_index=4"),
    ),
    "start_index outside int64": (
        lambda: tfpe.timing_signal(0, 8, start_index=-(2**63) - 1),
        ValueError,
        ("`start_index` must be an integer inside int", "=-9223372036854775809"),
    ),
    "positions outside 64 bits": (
        lambda: tfpe.timing_signal_at([5, 2**64], 8),
        TypeError,
        ("`positions` must be integers or floats", "[5, 18446744073709551616]"),
    ),
    "positions of strings": (
        lambda: tfpe.timing_signal_at(["a", "b"], 8),
        TypeError,
        ("`positions` must be integers or floats", "positions=", "'a', 'b'"),
    ),
    "positions of bools": (
        lambda: tfpe.timing_signal_at(np.array([True, False]), 8),
        TypeError,
        ("`positions` must be integers or floats", "positions=", "True, False"),
    ),
    "complex positions": (
        lambda: tfpe.timing_signal_at([1j], 8),
        TypeError,
        ("`positions` must be integers or floats", "positions=", "1"),
    ),
    "dtype": (
        lambda: tfpe.timing_signal(3, 8, dtype="int32"),
        ValueError,
        ("`dtype` must be one of", "'bfloat16', 'float32'", "dtype=int32"),
    ),
    "no such dtype": (
        lambda: tfpe.timing_signal_at([3], 8, dtype="float31"),
        ValueError,
        ("`dtype` must be one of", "'bfloat16', 'float32'", "dtype=float31"),
    ),
    "timescales too few": (
        lambda: tfpe.timing_signal(3, 8, spectrum=[1, 2, 3]),
        ValueError,
        ("`spectrum` must have one timescale for each pair", "4 for 8", "3 timescales"),
    ),
    "no timescales": (
        lambda: tfpe.timing_signal(3, 8, spectrum=[]),
        ValueError,
        ("`spectrum` must have one timescale for each pair", "4 for 8", "0 timescales"),
    ),
    "timescales for two axes": (
        lambda: tfpe.timescales(8, axes=2, spectrum=[1, 2, 3, 4]),
        ValueError,
        ("`spectrum` must have one", "2 for 8 channels and 2 axes", "4 timescales"),
    ),
    "timescales for an odd sine": (
        lambda: tfpe.timescales(5, spectrum=[1, 2], odd_channel="sine"),
        ValueError,
        ("`spectrum` must have one timescale for each pair", "3 for 5", "2 timescales"),
    ),
    "odd sine on two axes": (
        lambda: tfpe.timing_signal((3, 2), 9, odd_channel="sine"),
        ValueError,
        ("`odd_channel='sine'` is for one axis only", "with 2 axes"),
    ),
    "permutation from": (
        lambda: tfpe.layout_permutation(8, "concat", "interleaved"),
        ValueError,
        ("`source`", LAYOUT, "source='concat'"),
    ),
    "permutation to": (
        lambda: tfpe.layout_permutation(8, "interleaved", ("axis",)),
        ValueError,
        ("`target`", LAYOUT, "target=('axis',)"),
    ),
    "permutation of an odd channel": (
        lambda: tfpe.layout_permutation(9, "interleaved", ORDER, odd_channel=0),
        ValueError,
        ("`odd_channel` must be 'zero' or 'sine'", "odd_channel=0"),
    ),
    "offset": (
        lambda: tfpe.shift_matrix("x", 8),
        TypeError,
        ("`offset` must be a finite number", "offset='x'"),
    ),
    "offset NaN": (
        lambda: tfpe.shift_matrix(float("nan"), 8),
        ValueError,
        ("`offset` must be a finite number", "offset=nan"),
    ),
    "shift of an odd sine": (
        lambda: tfpe.shift_matrix(1, 5, odd_channel="sine"),
        ValueError,
        ("`odd_channel` must be 'zero' for a shift matrix", "channels=5"),
    ),
    "mask of floats": (
        lambda: tfpe.positions_from_mask(np.array([0.0, 1.0])),
        TypeError,
        ("`mask` must be", "integers or bools", "mask of dtype float64"),
    ),
    "mask of rank 0": (
        lambda: tfpe.positions_from_mask(True),
        ValueError,
        ("`mask` must have at least one axis", "a scalar"),
    ),
    "segments of floats": (
        lambda: tfpe.positions_from_segments(np.array([0.0, 1.0])),
        TypeError,
        ("`segment_ids` must be", "integers or bools", "segment_ids of dtype float64"),
    ),
    "segments and mask differ": (
        lambda: tfpe.positions_from_segments([[1, 1, 2]], [[True, False]]),
        ValueError,
        ("`mask` must have the shape of `segment_ids`, (1, 3)", "mask.shape=(1, 2)"),
    ),
}


@pytest.mark.case("bad-arguments")
@pytest.mark.parametrize("case", FUNCTIONS)
def test_function_refuses(case):
    call, error, words = FUNCTIONS[case]
    with refuses(error, *words):
        call()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
def test_an_amplitude_past_float32_is_refused(dtype):
    with refuses(ValueError, "`amplitude` must be in the range of float32", "=1e+300"):
        tfpe.timing_signal(3, 7, amplitude=1e300, dtype=dtype)


@needs_float64
def test_float64_takes_an_amplitude_past_float32():
    wide = tfpe.timing_signal(3, 7, amplitude=1e300, dtype="float64")
    assert np.isfinite(to_float64(wide)).all()
