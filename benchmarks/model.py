"""Share of the positional encoding in a training step of the demo's Transformer."""

import gc
import importlib.util
import sys
import time
from pathlib import Path

import keras
import numpy as np

from benchmarks.peers import peers
from benchmarks.report import number, table

WITHOUT = "no positions"
# The demo's, with its usual number of letters.
SIZES = {"vocabulary": 68, "hidden": 64, "heads": 4, "blocks": 2, "filter_size": 256}
BATCH, LENGTH = 256, 12


def measure(seconds, quick=False, sizes=SIZES, batch=BATCH):
    """Trains the model without positions and with each peer.

    Args:
        seconds: how long all the steps may take, building and compiling aside.
        quick: bool, not used: the model is the same.
        sizes: arguments of the demo's `transformer`.
        batch: int, words in a step.

    Returns:
        List of plain rows, one for each model.
    """
    layers = {WITHOUT: None}
    for peer in peers():
        if peer.takes_any_length:
            layers[peer.name] = peer.make(sizes["hidden"], "float32")
    steps = []
    for name, layer in layers.items():
        print(f"training step, {name}", file=sys.stderr)
        steps.append(_step(_model(layer, sizes), sizes["vocabulary"], batch))
    times = _interleaved(steps, seconds)
    shares = 1 - times[:, :1] / times
    quartiles = np.percentile(shares, (25, 50, 75), axis=0).T
    return [
        {
            "positions": name,
            "step_seconds": float(np.median(times[:, column])),
            "share": float(quartiles[column, 1]),
            "low": float(quartiles[column, 0]),
            "high": float(quartiles[column, 2]),
        }
        for column, name in enumerate(layers)
    ]


def markdown(rows):
    cells = [
        [
            row["positions"],
            number(1000 * row["step_seconds"]),
            "-"
            if row["positions"] == WITHOUT
            else f"{row['share']:.1%} [{row['low']:.1%}, {row['high']:.1%}]",
        ]
        for row in rows
    ]
    return (
        f"A training step of the demo's Transformer, {BATCH} words of {LENGTH} letters "
        f"and sounds, hidden size {SIZES['hidden']}, compiled as Keras does by "
        "default. Share: time with the layer less the time without, in the time with "
        "it, median [quartiles].\n\n" + table(["positions", "step, ms", "share"], cells)
    )


def _model(layer, sizes):
    """Returns the demo's model with the positions of a layer; `None` for none."""
    path = Path(__file__).parents[1] / "examples" / "transformer.py"
    spec = importlib.util.spec_from_file_location("demo_transformer", path)
    demo = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(demo)
    keras.utils.set_random_seed(0)
    model = demo.transformer(**sizes, positions=layer)
    model.compile(
        keras.optimizers.Adam(1e-4),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0),
    )
    return model


def _step(model, vocabulary, batch):
    """Returns a function that trains `model` for a step, traced and compiled."""

    def step(x, y):
        model.train_on_batch({"inputs": x, "targets": y}, y)

    random = np.random.default_rng(0)
    # After several lengths TensorFlow's graph is for any, as in the demo.
    for length in (LENGTH - 4, LENGTH + 4, LENGTH, LENGTH):
        x, y = random.integers(2, vocabulary, (2, batch, length)).astype("int32")
        step(x, y)
    return lambda: step(x, y)


def _interleaved(steps, seconds):
    """Returns the seconds of steps that are run in turn, `(rounds, steps)`."""
    once = sum(_seconds(step) for step in steps)
    rounds = int(np.clip(seconds / once, 5, 200))
    times = np.empty((rounds, len(steps)))
    random = np.random.default_rng(0)
    gc.disable()
    try:
        for row in times:
            for which in random.permutation(len(steps)):
                row[which] = _seconds(steps[which])
    finally:
        gc.enable()
    return times


def _seconds(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start
