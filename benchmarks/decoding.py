"""How fast a migrated model decodes, compared with tensor2tensor on this machine.

    python -m benchmarks.decoding FOLDER

prints a table. `make compat-live` runs it after tensor2tensor, which has to have an
environment of its own, has written its model, its decodes and its seconds to FOLDER
(`compat/golden/time_decoding.py`).
"""

import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.report import number, table
from tfpe import migration

WAYS = {"greedy": 1, "beams": 4}
TIMES = 5


def measure(folder):
    """Returns plain rows, one for each way to decode."""
    loaded = migration.load(folder, target_space=0)
    with np.load(Path(folder) / "reference.npz") as archive:
        theirs = dict(archive)
    inputs = [_cut(row) for row in theirs["inputs"]]  # Without the end.
    told = {"extra_length": int(theirs["extra_length"])}
    rows = []
    for way, beams in WAYS.items():
        found, _ = migration.decode(loaded, inputs, beams=beams, **told)
        seconds = []
        for _ in range(TIMES):
            start = time.perf_counter()
            migration.decode(loaded, inputs, beams=beams, **told)
            seconds.append(time.perf_counter() - start)
        seconds, their_seconds = np.median(seconds), theirs[f"{way}_seconds"]
        same = [ours == _cut(ids) for ours, ids in zip(found, theirs[way], strict=True)]
        rows.append(
            {
                "way": f"{way}, {len(inputs)} rows, {theirs[way].shape[1]} steps",
                "tensor2tensor": float(their_seconds),
                "tfpe": float(seconds),
                "times_as_fast": float(their_seconds / seconds),
                "same": float(np.mean(same)),
            }
        )
    return rows


def markdown(rows):
    """Returns the rows of `measure` as a Markdown table."""
    cells = [
        [
            row["way"],
            number(row["tensor2tensor"]),
            number(row["tfpe"]),
            f"{row['times_as_fast']:.2f}",
            f"{row['same']:.0%}",
        ]
        for row in rows
    ]
    heads = ["decoding", "tensor2tensor, s", "tfpe, s", "times as fast", "same ids"]
    return table(heads, cells)


def _cut(ids):
    """Returns ids up to the first end."""
    ids = ids.tolist()
    return ids[: [*ids, 1].index(1)]


if __name__ == "__main__":
    print(markdown(measure(sys.argv[1])))
