"""Settings that are refused at every entry point, and with which words."""

import numpy as np
import pytest
from contract import refuses

import tfpe

Layer = tfpe.SinusoidalPositionalEncoding
TIMESCALE = "must be a positive finite number"
LAYOUT = "must be 'interleaved', 'concatenated' or an order of the three words"
FINITE = "must be a finite number"
ORDER = ("function", "axis", "frequency")

# Setting, what is refused, the error, what the message says is allowed.
SETTINGS = [
    ("layout", "concat", ValueError, LAYOUT),
    ("layout", None, ValueError, LAYOUT),
    ("layout", ("axis", "function"), ValueError, LAYOUT),
    ("layout", ("axis", "function", "function"), ValueError, LAYOUT),
    ("layout", ("axis", "function", "channel"), ValueError, LAYOUT),
    ("spectrum", "foo", ValueError, "must be None, one of ('vaswani', 'tensor2tensor'"),
    ("spectrum", 3.0, ValueError, "or a sequence of timescales"),
    ("spectrum", [[1.0, 2.0]], ValueError, "or a sequence of timescales"),
    ("spectrum", [1.0, 0.0, 3.0], ValueError, TIMESCALE),
    ("spectrum", [1.0, -2.0, 3.0], ValueError, TIMESCALE),
    ("spectrum", [1.0, np.nan, 3.0], ValueError, TIMESCALE),
    ("spectrum", [1.0, np.inf, 3.0], ValueError, TIMESCALE),
    ("spectrum", [1.0, "x", 3.0], TypeError, TIMESCALE),
    ("spectrum", [1.0, True, 3.0], TypeError, TIMESCALE),
    *(
        (name, value, error, TIMESCALE)
        for name in ("min_timescale", "max_timescale")
        for value, error in (
            *((0, ValueError), (-1.5, ValueError), (float("nan"), ValueError)),
            *((float("inf"), ValueError), (10**400, ValueError), ("x", TypeError)),
            *((True, TypeError), (None, TypeError), (1j, TypeError), ([2], TypeError)),
        )
    ),
    ("cosine_first", 1, TypeError, "must be True or False"),
    ("cosine_first", "yes", TypeError, "must be True or False"),
    ("cosine_first", None, TypeError, "must be True or False"),
    ("odd_channel", "cosine", ValueError, "must be 'zero' or 'sine'"),
    ("odd_channel", None, ValueError, "must be 'zero' or 'sine'"),
    ("first_position", "x", TypeError, FINITE),
    ("first_position", True, TypeError, FINITE),
    ("first_position", None, TypeError, FINITE),
    ("first_position", float("nan"), ValueError, FINITE),
    ("first_position", 2**31, ValueError, "in the range of int32"),
    ("first_position", -(2**31) - 1, ValueError, "in the range of int32"),
    ("amplitude", "x", TypeError, FINITE),
    ("amplitude", False, TypeError, FINITE),
    ("amplitude", float("nan"), ValueError, FINITE),
    ("amplitude", float("-inf"), ValueError, FINITE),
]
COMBINATIONS = [
    (
        {"layout": ORDER},
        ValueError,
        "`spectrum` must be given when `layout` is an order",
    ),
    (
        {"spectrum": [1, 2, 3], "min_timescale": 2},
        ValueError,
        "`min_timescale` and `max_timescale` must stay at their defaults",
    ),
    (
        {"spectrum": [1, 2, 3], "max_timescale": 2},
        ValueError,
        "`min_timescale` and `max_timescale` must stay at their defaults",
    ),
    (
        {"odd_channel": "sine", "cosine_first": True},
        ValueError,
        "`odd_channel='sine'` cannot be combined with `cosine_first=True`",
    ),
]
ENTRY_POINTS = {
    "layer": tfpe.SinusoidalPositionalEncoding,
    "timing_signal": lambda **settings: tfpe.timing_signal(3, 6, **settings),
    "timing_signal_at": lambda **settings: tfpe.timing_signal_at([1, 5], 6, **settings),
    "timescales": lambda **settings: tfpe.timescales(6, **settings),
    "shift_matrix": lambda **settings: tfpe.shift_matrix(2, 6, **settings),
}


@pytest.mark.case("bad-arguments")
@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize(
    ("name", "value", "error", "allowed"),
    SETTINGS,
    ids=[f"{name}={value!r:.20}" for name, value, _, _ in SETTINGS],
)
def test_bad_setting_is_refused_by_name(entry_point, name, value, error, allowed):
    received = f"Received: {name}="
    if isinstance(value, str):
        received += repr(value)
    with refuses(error, f"`{name}`", allowed, received):
        ENTRY_POINTS[entry_point](**{name: value})


@pytest.mark.parametrize("entry_point", ENTRY_POINTS)
@pytest.mark.parametrize(("settings", "error", "words"), COMBINATIONS)
def test_bad_combination_is_refused(entry_point, settings, error, words):
    with refuses(error, words, "Received: "):
        ENTRY_POINTS[entry_point](**settings)


@pytest.mark.parametrize("entry_point", [e for e in ENTRY_POINTS if e != "layer"])
def test_unknown_setting_is_refused_with_the_names_of_all(entry_point):
    words = "Unknown setting `max_length`", "layout, spectrum, min_timescale"
    with refuses(TypeError, *words, "Received: max_length=9"):
        ENTRY_POINTS[entry_point](max_length=9)


def test_layer_refuses_unknown_arguments():
    with pytest.raises((TypeError, ValueError), match="max_length"):
        tfpe.SinusoidalPositionalEncoding(max_length=9)
