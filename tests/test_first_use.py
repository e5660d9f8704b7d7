"""The first use in examples/ shows what it says."""

import re
import runpy
from pathlib import Path

import pytest
from contract import on_tensorflow

FILE = Path(__file__).parents[1] / "examples" / "first_use.py"


@on_tensorflow
@pytest.mark.slow
def test_attention_finds_the_first_token_with_positions_alone(capsys):
    runpy.run_path(str(FILE), run_name="__main__")
    printed = capsys.readouterr().out
    without, with_positions = map(int, re.findall(r"(\d+)%", printed))
    assert without < 50
    assert with_positions > 95
