"""The cases of cases.json, small inputs of public fault reports with right values."""

import json
from pathlib import Path

import numpy as np

import tfpe

FILE = Path(__file__).with_name("cases.json")
CASES = {case["id"]: case for case in json.loads(FILE.read_text())}
HALF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}  # half a unit in the last place of 1


def expected(case):
    return CASES[case]["expect"]


def at(positions, channels, dtype="float64", **settings):
    return tfpe.timing_signal_at(np.array(positions), channels, dtype=dtype, **settings)


def zeros(*shape):
    return np.zeros(shape, "float32")
