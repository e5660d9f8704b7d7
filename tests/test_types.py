"""`py.typed` is true: a strict type checker accepts good programs and no bad ones."""

import re
import subprocess
import sys

import pytest

import tfpe
from tfpe import tensor2tensor

pytest.importorskip("mypy")
GOOD = """
import numpy as np
import tfpe
from tfpe import comparison, identification, plot

layer = tfpe.SinusoidalPositionalEncoding(
    "concatenated", spectrum=[1.0, 2.0], axis=(1, 2), amplitude=2, name="positions"
)
y = layer(np.zeros((1, 3, 4, 8)), positions=None)
named = tfpe.SinusoidalPositionalEncoding.from_convention("fairseq", amplitude=2.0)
embedding = tfpe.SinusoidalEmbedding(8, layout="concatenated", axes=1)
embedding(np.arange(3))
tfpe.SinusoidalEmbedding.from_convention("fairseq", 8)
tfpe.timing_signal((3, 4), 8, dtype="float32", layout="concatenated")
tfpe.timing_signal_at([1, 2], 8, min_timescale=2.0, odd_channel="sine")
tfpe.positions_from_segments(tfpe.positions_from_mask([True]))
scales: np.ndarray = tfpe.timescales(8, axes=2, spectrum="geometric")
order: np.ndarray = tfpe.layout_permutation(8, "interleaved", "concatenated")
matrix: np.ndarray = tfpe.shift_matrix(1.5, 8, cosine_first=True)
found: identification.Identification = tfpe.identify(np.zeros((9, 8)))
axes: int = tfpe.CONVENTIONS["fairseq"].axes
text = str(comparison.compare(y, y))
plot.heat_map(8, 8, layout="concatenated")
loaded: tfpe.migration.Migrated = tfpe.migration.load("folder", heads=8)
rows, scores = tfpe.migration.decode(loaded, ["a text"], beams=4)
ids: list[int] = tfpe.migration.text_encoder(kind="byte").encode("a text")
tfpe.migration.to_layout(loaded.model, "interleaved")
{calls}
"""
BAD = [
    "tfpe.timing_signal(3, 8, layuot='concatenated')",
    "tfpe.timescales(8, max_timescales=100.0)",
    "tfpe.shift_matrix(1, 8, axis=1)",
    "tfpe.SinusoidalPositionalEncoding(layout=3)",
    "tfpe.SinusoidalEmbedding(8, 'concatenated')",
    "tfpe.timing_signal_at(3, 8, amplitude='2')",
    "tfpe.migration.load('folder', head=8)",
]


def check(program, folder):
    """Returns what mypy says of a program."""
    path = folder / "program.py"
    path.write_text(program)
    flags = ["--strict", "--ignore-missing-imports", "--follow-imports=silent"]
    command = [sys.executable, "-m", "mypy", *flags, "--cache-dir", str(folder), path]
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_a_program_that_uses_every_public_name_passes(tmp_path):
    calls = ["anything: Any = {}"] + [
        f"tfpe.tensor2tensor.{name}(**anything)" for name in tensor2tensor.__all__
    ]
    program = "from typing import Any" + GOOD.format(calls="\n".join(calls))
    assert all(f"tfpe.{name}" in program for name in tfpe.__all__)
    assert "Success" in check(program, tmp_path)


def test_wrong_arguments_are_seen_by_the_type_checker(tmp_path):
    said = check("\n".join(["import tfpe", *BAD]), tmp_path)
    lines = re.findall(r"program\.py:(\d+): error:", said)
    assert {int(line) for line in lines} == set(range(2, 2 + len(BAD)))
