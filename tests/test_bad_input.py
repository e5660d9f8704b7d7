"""Every argument of every public name, given what nobody should give."""

import inspect
import re

import keras
import numpy as np
import oracle
import pytest
from contract import assert_promised, to_float64
from hypothesis import given
from hypothesis import strategies as st

import tfpe

Layer = tfpe.SinusoidalPositionalEncoding
INPUTS = np.zeros((2, 3, 8), "float32")
SETTINGS = {
    "layout": "interleaved",
    "spectrum": None,
    "min_timescale": 1.0,
    "max_timescale": 1e4,
    "cosine_first": False,
    "odd_channel": "zero",
    "first_position": 0,
    "amplitude": 1.0,
}
MASK = np.array([[True, True, False]] * 2)
# Each public name with arguments that are right.
CALLS = {
    "SinusoidalPositionalEncoding": (
        Layer,
        {**SETTINGS, "axis": 1, "dtype": "float32"},
    ),
    "SinusoidalPositionalEncoding.call": (
        lambda inputs, mask, **steps: Layer(skip_masked=True)(
            inputs, mask=mask, **steps
        ),
        {"inputs": INPUTS, "start_index": 0, "positions": None, "mask": MASK},
    ),
    "timing_signal": (
        tfpe.timing_signal,
        {
            **{"length": 3, "channels": 8, "start_index": 0, "dtype": "float32"},
            **SETTINGS,
        },
    ),
    "timing_signal_at": (
        tfpe.timing_signal_at,
        {
            **{"positions": np.arange(3), "channels": 8, "dtype": "float32"},
            **SETTINGS,
        },
    ),
    "timescales": (tfpe.timescales, {"channels": 8, "axes": 1, **SETTINGS}),
    "shift_matrix": (tfpe.shift_matrix, {"offset": 3, "channels": 8, **SETTINGS}),
    "layout_permutation": (
        tfpe.layout_permutation,
        {
            **{"channels": 8, "source": "interleaved", "target": "concatenated"},
            **{"axes": 1, "odd_channel": "zero"},
        },
    ),
    "positions_from_mask": (tfpe.positions_from_mask, {"mask": MASK}),
    "positions_from_segments": (
        tfpe.positions_from_segments,
        {"segment_ids": np.array([[1, 1, 2]] * 2), "mask": MASK},
    ),
}
BAD = {
    **{"text": "x", "bytes": b"x", "complex": 1j, "dict": {"a": 1}, "object": object()},
    **{"NaN": float("nan"), "inf": float("inf"), "huge": 10**400, "minus": -(10**19)},
    **{"empty": [], "ragged": [[1, 2], [3]], "NaNs": np.full((2, 3), np.nan)},
    **{"shape": np.zeros((4, 1, 2), "int32"), "texts": np.array(["a", "b"])},
    **{"symbolic": keras.Input((5,)), "none": None, "bool": True, "fraction": 2.5},
}
# Keras sees these before the layer does, and refuses some of them in its own words.
KERAS = {
    ("SinusoidalPositionalEncoding", "dtype"),
    ("SinusoidalPositionalEncoding.call", "inputs"),
}
CASES = [
    (name, argument, bad)
    for name, (_, right) in CALLS.items()
    for argument in right
    for bad in BAD
]


def test_every_public_name_is_here():
    functions = {n for n in tfpe.__all__ if callable(getattr(tfpe, n))}
    others = {"identify"}  # takes a table, and has a suite of its own
    assert functions - others <= set(CALLS)
    arguments = set(inspect.signature(Layer).parameters) - {"kwargs", "skip_masked"}
    assert arguments <= set(CALLS["SinusoidalPositionalEncoding"][1])


@pytest.mark.parametrize(("name", "argument", "bad"), CASES)
def test_bad_argument_is_named_or_the_call_succeeds(name, argument, bad):
    call, right = CALLS[name]
    try:
        call(**{**right, argument: BAD[bad]})
    except (TypeError, ValueError) as error:
        message = str(error)
        if (name, argument) in KERAS:
            assert message
            return
        assert re.search(rf"`{argument}\b", message), message
        assert "Received: " in message, message
    call(**right)


@given(
    channels=st.integers(1, 12),
    positions=st.lists(
        st.integers(-(2**31), 2**31 - 1) | st.floats(width=32), max_size=4
    ),
    settings=st.fixed_dictionaries(
        {},
        optional={
            "layout": st.sampled_from(["interleaved", "concatenated", "else"]),
            "spectrum": st.sampled_from(["vaswani", "geometric", None, 3])
            | st.lists(st.floats(1, 1e5), max_size=6),
            "max_timescale": st.floats(1e-3, 1e9) | st.just(-1.0),
            "cosine_first": st.booleans(),
            "odd_channel": st.sampled_from(["zero", "sine", "cosine"]),
        },
    ),
)
def test_any_call_gives_the_right_values_or_an_error_of_ours(
    channels, positions, settings
):
    try:
        if all(isinstance(p, int) for p in positions):
            positions = np.array(positions, "int32")
        got = tfpe.timing_signal_at(positions, channels, **settings)
    except (TypeError, ValueError) as error:
        if "Received: " not in str(error):
            raise
        return
    got = to_float64(got)
    assert got.shape == (len(positions), channels)
    if not got.size:
        return
    if np.asarray(positions).dtype.kind == "i":
        signal = tfpe.timing_signal_at(positions, channels, **settings)
        want = oracle.rows(positions.tolist(), channels, **settings)
        assert_promised(signal, want.reshape(got.shape))
    else:
        assert np.all(np.isnan(got) | (np.abs(got) <= 1 + 2**-22))
