"""How long the command `tfpe` takes from its start, and `identify` by size."""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import tfpe
from benchmarks.report import number, table, verdict

ROOT = Path(__file__).parent.parent
CODE = "from _tfpe_command import main; main()"
# Seconds that these commands may take; they read no file.
LIMIT = 1.0
SIZES = ((512, 512), (2048, 1024), (8192, 4096))


def measure(seconds=None, quick=False):
    """Returns plain rows, one for each command and size.

    Each command is started three times as a new process, the fastest counts. The
    seconds of a size are those of the processor, all cores together.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "pe.npz"
        np.savez(path, pe=_table(512, 512), other=_learned(512, 512))
        commands = [["--help"], ["--version"], ["conventions"], ["identify", str(path)]]
        rows = [_command(command, 1 if quick else 3) for command in commands]
    for size in SIZES[: 1 if quick else None]:
        for kind, values in (("sinusoidal", _table), ("learned", _learned)):
            rows.append(_identify(kind, values(*size)))
    return rows


def markdown(rows):
    """Returns the rows of `measure` as a Markdown table."""
    cells = [
        [row["what"], number(row["seconds"]), verdict(row["holds"])] for row in rows
    ]
    return table(["what", "seconds", f"within {LIMIT:g}"], cells)


def _command(arguments, times):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    found = []
    for _ in range(times):
        start = time.perf_counter()
        subprocess.run(
            [sys.executable, "-c", CODE, *arguments],
            check=True,
            env=environment,
            stdout=subprocess.DEVNULL,
        )
        found.append(time.perf_counter() - start)
    limited = arguments[0] != "identify"
    shown = "FILE.npz" if arguments[-1].endswith(".npz") else ""
    return {
        "what": f"`tfpe {arguments[0]} {shown}`".replace(" `", "`"),
        "seconds": min(found),
        "holds": min(found) < LIMIT if limited else None,
    }


def _identify(kind, values):
    start = time.process_time()
    found = tfpe.identify(values)
    seconds = time.process_time() - start
    assert found.sinusoidal == (kind == "sinusoidal")
    size = " x ".join(f"{n:,}" for n in values.shape)
    return {"what": f"`identify`, {kind}, {size}", "seconds": seconds, "holds": None}


def _table(length, channels):
    settings = tfpe.CONVENTIONS["tensor2tensor"].settings
    return np.array(tfpe.timing_signal(length, channels, **settings))


def _learned(length, channels):
    return np.random.default_rng(0).normal(size=(length, channels)).astype("float32")
