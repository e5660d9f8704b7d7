"""What a layer adds to an exported file, and what it takes to build one."""

import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from importlib import util
from pathlib import Path

import keras
import numpy as np

import tfpe
from benchmarks.peers import OURS, peers
from benchmarks.report import number, table, verdict

MIB = 2**20
FORMATS = {"SavedModel": "tf_saved_model", "ONNX": "onnx", "LiteRT": "litert"}
NEEDS = {"ONNX": "tf2onnx", "LiteRT": "ai_edge_litert"}
ENDINGS = {"SavedModel": "", "ONNX": ".onnx", "LiteRT": ".tflite"}
# What is measured: channels, length and how many equal layers; and the limits in MiB.
FILES = {
    "512 channels, unknown length": (512, None, 1, 1.0),
    "64 channels, unknown length": (64, None, 1, 0.15),
    "512 channels, a second equal layer": (512, None, 2, 0.1),
    "512 channels, length 128": (512, 128, 1, 0.5),
}
FRESH = """
import resource, time
import keras, tfpe
tfpe.timing_signal(1, 8)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
start = time.perf_counter()
tfpe.timing_signal(1, 16_384)
seconds = time.perf_counter() - start
after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
print(seconds, (after - before) * 1024)
"""


def measure(seconds=None, quick=False):
    """Returns plain rows: a name, the unit, a figure for each peer and the limit."""
    rows = []
    if keras.backend.backend() == "tensorflow":
        rows += [
            _file(name, kind)
            for name in list(FILES)[: 1 if quick else None]
            for kind in FORMATS
            if util.find_spec(NEEDS.get(kind, "keras"))
        ]
    rows += [
        _row("building a layer, 512 channels", "ms", {OURS: _building(512)}, 30),
        _row("building a layer, 4,096 channels", "ms", {OURS: _building(4096)}, 300),
        _row("a second equal layer", "ms", {OURS: _building(512, again=True)}, 3),
    ]
    if not quick:
        taken, memory = _fresh()
        what = "timing_signal(1, 16_384) in a fresh process"
        rows.append(_row(what, "s", {OURS: taken}, 1.0))
        rows.append(_row(f"{what}, memory", "GiB", {OURS: memory / 2**30}, 0.3))
    return rows


def markdown(rows):
    names = list(dict.fromkeys(name for row in rows for name in row["measured"]))
    cells = [
        [
            row["what"],
            row["unit"],
            "" if row["limit"] is None else f"{row['limit']:g}",
            verdict(row["holds"]),
            *(number(row["measured"].get(name)) for name in names),
        ]
        for row in rows
    ]
    return (
        "Beyond the same model without the layer; building is the median of five, with "
        "new settings each, on inputs whose shape is known.\n\n"
        + table(["what", "unit", "limit", "holds", *names], cells)
    )


def _row(what, unit, measured, limit):
    ours = measured[OURS]
    holds = None if limit is None else ours <= limit
    return {
        **{"what": what, "unit": unit, "measured": measured},
        **{"limit": limit, "holds": holds},
    }


def _file(name, kind):
    channels, length, count, limit = FILES[name]

    def size(layers):
        """Returns the size of the file of a model that has these layers."""
        x = inputs = keras.Input((length, channels), name="x")
        for add in layers:
            x = add(keras.layers.Activation("relu")(x))
        model = keras.Model(inputs, keras.layers.Activation("relu")(x))
        model(np.zeros((1, length or 3, channels), "float32"))
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            path = Path(folder) / f"model{ENDINGS[kind]}"
            model.export(path, format=FORMATS[kind], verbose=False)
            files = [path] if path.is_file() else path.rglob("*")
            return sum(file.stat().st_size for file in files if file.is_file())

    measured = {}
    for peer in peers():
        if not peer.takes_any_length:
            continue
        fewer = [_identity] * (count if count == 1 else 0)
        added = []
        for index in range(count):
            layer = peer.make(channels, "float32")
            if index and hasattr(layer, "name"):
                layer.name = "second"
            added.append(layer)
        if count > 1:
            fewer = [peer.make(channels, "float32"), _identity]
        measured[peer.name] = (size(added) - size(fewer)) / MIB
    return _row(f"{kind}: {name}", "MiB", measured, limit)


def _identity(x):
    return keras.layers.Identity()(x)


def _building(channels, again=False):
    """Returns the median of five times to build a layer, in ms."""
    taken = []
    for index in range(5):
        # An amplitude that no other layer has, so nothing is shared.
        settings = {"amplitude": 1 + (index + 1) / channels}
        layers = [tfpe.SinusoidalPositionalEncoding(**settings) for _ in range(2)]
        for layer in layers[: 1 + again]:
            start = time.perf_counter()
            layer.build((None, None, channels))
            last = time.perf_counter() - start
        taken.append(last)
    return 1000 * statistics.median(taken)


def _fresh():
    command = [sys.executable, "-W", "ignore", "-c", FRESH]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return map(float, ran.stdout.split())
