"""The cases of cases.json and reports.json: faults as reported, with right values."""

import json
from pathlib import Path

import numpy as np

import tfpe

FILES = [Path(__file__).with_name(f"{name}.json") for name in ("cases", "reports")]
CASES = {case["id"]: case for file in FILES for case in json.loads(file.read_text())}
HALF = {"float16": 2.0**-11, "bfloat16": 2.0**-8}  # half a unit in the last place of 1


def expected(case):
    return CASES[case]["expect"]


def right(report):
    """Returns the right values of a case of reports.json, without the words."""
    value = CASES[report]["right"]
    if isinstance(value, str) and "[" in value:
        return json.loads(value[value.index("[") :])
    return value


def at(positions, channels, dtype="float64", **settings):
    return tfpe.timing_signal_at(np.array(positions), channels, dtype=dtype, **settings)


def zeros(*shape):
    return np.zeros(shape, "float32")
