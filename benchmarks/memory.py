"""What a call keeps and needs of memory, and what making it ready costs.

Each peer is measured in a process of its own, which is

    python -m benchmarks.memory NAME LENGTH
"""

import gc
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import keras
import numpy as np
from keras import ops

from benchmarks.peers import OURS, Constant, Peer, peers
from benchmarks.report import gpu, number, table, verdict
from benchmarks.timing import modes, prepared, read

CHANNELS = 512
MIB = 2**20
CONSTANT = "inputs + constant"
MOST_HELD = 12  # MiB
# Beyond the output, in signals of (length, channels), and by compiler.
MOST_EXTRA = {"graph": 3, "XLA": 1}


def measure(seconds=None, quick=False, length=32_768):
    """Returns plain rows, one for each peer and mode."""
    rows = []
    # glibc and TensorFlow then give freed memory back at once, and what is in use
    # can be seen; TensorFlow would else keep it in a pool that is oneDNN's.
    freeing = {"MALLOC_MMAP_THRESHOLD_": str(MIB // 2), "TF_ENABLE_ONEDNN_OPTS": "0"}
    everyone = [CONSTANT, *(peer.name for peer in peers())]
    for name in [OURS] if quick else everyone:
        print(f"memory of {name}", file=sys.stderr)
        done = subprocess.run(
            [sys.executable, "-m", "benchmarks.memory", name, str(length)],
            cwd=Path(__file__).parents[1],
            env={**os.environ, **freeing},
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        rows += json.loads(done.stdout)
    return rows


def markdown(rows):
    order = [mode.name for mode in modes()]
    cells = [
        [
            row["mode"],
            row["peer"],
            "-" if row["extra"] is None else f"{row['extra']:.1f}",
            f"{row['most_extra'] or ''}",
            number(row["held"]),
            f"{row['most_held'] or ''}",
            verdict(row["holds"]),
            *(
                "-"
                if row[part] is None or row["peer"] == CONSTANT
                else f"{1000 * row[part]:,.0f}"
                for part in ("build", "trace", "compile")
            ),
        ]
        for row in sorted(rows, key=lambda row: order.index(row["mode"]))
    ]
    columns = [
        "mode", "", "peak, signals", "limit", "held, MiB", "limit", "holds",
        "build, ms", "trace, ms", "compile, ms",
    ]  # fmt: skip
    length = rows[0]["length"]
    return (
        f"Inputs of (1, {length:,}, {CHANNELS}). Peak: the most memory during a call "
        f"beyond its output, in signals of {number(length * CHANNELS * 4 / MIB)} MiB. "
        "Held: constants of the layer and, in a graph, those it captured or folded. "
        "Compile: the first call without a later one's time.\n\n"
        + table(columns, cells)
    )


def measured_here(name, length):
    """Returns the rows of one peer, measured in this process."""
    constant = Peer(CONSTANT, None, lambda c, d: Constant(length, c, d), "")
    (peer,) = (p for p in (constant, *peers()) if p.name == name)
    inputs = keras.random.normal((1, length, CHANNELS))
    peer.make(2, "float32")  # Imports its library, which is not timed.
    rows = []
    for mode in modes():
        if mode.static or peer.takes_any_length:
            # What tracing and compiling need for the first time is no peer's.
            read(prepared(lambda x: x + 1, mode, (inputs,))(inputs))
            rows.append(_row(peer, mode, inputs))
    return rows


def _row(peer, mode, inputs):
    start = time.perf_counter()
    layer = peer.make(CHANNELS, "float32")
    if hasattr(layer, "build"):
        layer.build(inputs.shape)
    built = time.perf_counter()
    call, trace, compiling, captured, folded = _compiled(layer, mode, inputs)
    held = (_held([layer, captured], {}) + folded) / MIB
    extra = _extra(call, inputs)
    if extra is not None:
        extra = round(extra / (inputs.shape[1] * CHANNELS * 4), 1)
    ours = peer.name == OURS
    most_extra = MOST_EXTRA.get(mode.compiler) if ours else None
    within = held <= MOST_HELD and (None in (extra, most_extra) or extra <= most_extra)
    return {
        "peer": peer.name,
        "mode": mode.name,
        "length": inputs.shape[1],
        "extra": extra,
        "most_extra": most_extra,
        "held": held,
        "most_held": MOST_HELD if ours else None,
        "holds": within if ours else None,
        "build": built - start,
        "trace": trace,
        "compile": compiling,
    }


def _compiled(layer, mode, inputs):
    """Returns a call that is ready, and what making it so took.

    That is, seconds to trace and to compile, and of a graph the tensors that it
    captured and the bytes of the constants in it.
    """
    call = prepared(layer, mode, (inputs,))
    if mode.compiler is None:
        read(call(inputs))
        return call, None, None, [], 0
    start = time.perf_counter()
    if keras.backend.backend() == "jax":
        lowered = call.lower(inputs)
        traced = time.perf_counter()
        call = lowered.compile()
        compiled = time.perf_counter()
        read(call(inputs))
        return call, traced - start, compiled - traced, [], 0

    from tensorflow.python.eager import context

    graph = call.get_concrete_function()
    traced = time.perf_counter()
    with context.collect_graphs(optimized=True) as optimized:
        read(call(inputs))
    first = time.perf_counter()
    read(call(inputs))
    again = time.perf_counter()
    folded = sum(
        node.attr["value"].tensor.ByteSize()
        for part in optimized
        for nodes in (part.node, *(f.node_def for f in part.library.function))
        for node in nodes
        if node.op == "Const"
    )
    compiling = max(0, (first - traced) - (again - first))
    return call, traced - start, compiling, graph.captured_inputs, folded


def _held(thing, seen):
    """Returns the bytes of the arrays and tensors that a layer's attributes are."""
    if id(thing) in seen:
        return 0
    seen[id(thing)] = thing  # Kept, so that no other gets its identity.
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if ops.is_tensor(thing):
        try:
            return ops.convert_to_numpy(thing).nbytes
        except Exception:  # a tensor of a graph, which has no memory of its own
            return 0
    if isinstance(thing, dict):
        return _held(list(thing.values()), seen)
    if isinstance(thing, (list, tuple)):
        return sum(_held(part, seen) for part in thing)
    library = type(thing).__module__.partition(".")[0]
    if library in ("tfpe", "benchmarks", "keras_hub", "positional_encodings"):
        return _held(vars(thing), seen)
    return 0


def _extra(call, inputs):
    """Returns the median bytes that a call needs beyond its output, or None."""
    if keras.backend.backend() == "jax":
        # JAX keeps what was freed; the compiler says what it needs.
        analysis = getattr(call, "memory_analysis", None)
        return analysis().temp_size_in_bytes if analysis else None
    if gpu():
        return None
    try:
        gc.collect()
        found = [_extra_once(call, inputs) for _ in range(3)]
    except OSError:  # not Linux
        return None
    return sorted(found)[1]


def _extra_once(call, inputs):
    before = _status("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # The peak starts anew.
    result = call(inputs)
    read(result)
    peak = _status("VmHWM")
    return max(0, peak - before - ops.convert_to_numpy(result).nbytes)


def _status(name):
    lines = Path("/proc/self/status").read_text().splitlines()
    (line,) = (line for line in lines if line.startswith(name))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    print(json.dumps(measured_here(sys.argv[1], int(sys.argv[2]))))
