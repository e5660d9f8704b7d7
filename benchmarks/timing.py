"""Ways to run a layer, and races between two of them."""

import gc
import math
import time
from typing import NamedTuple

import keras
import numpy as np

# A run is as many calls as the constant needs this long for, so that reading
# its result is a small part of it.
RUN_SECONDS = 2e-3
WARM_SECONDS = 0.05
MOST_ROUNDS = 400


class Mode(NamedTuple):
    """A way to run a layer: what compiles it, and whether it knows the length."""

    name: str
    compiler: str | None = None
    static: bool = True


MODES = {
    "tensorflow": (
        Mode("eager"),
        Mode("graph static", "graph"),
        Mode("graph unknown", "graph", static=False),
        Mode("XLA static", "XLA"),
        Mode("XLA unknown", "XLA", static=False),
    ),
    "jax": (Mode("eager"), Mode("jit", "XLA")),
    "torch": (Mode("eager"),),
}


def modes():
    """Returns the modes of Keras' backend."""
    return MODES[keras.backend.backend()]


def prepared(layer, mode, arguments, given=None):
    """Returns a function of `arguments` that calls the layer in a mode.

    Args:
        layer: called with inputs and, if there is one, the argument `given`.
        mode: a `Mode`.
        arguments: tensors, the inputs first, for their shapes and dtypes.
        given: None, "start_index" or "positions", the name of the second.
    """

    def call(inputs, *second):
        return layer(inputs, **({given: second[0]} if given else {}))

    if mode.compiler is None:
        return call
    if keras.backend.backend() == "jax":
        import jax

        return jax.jit(call)
    import tensorflow as tf

    return tf.function(
        call,
        input_signature=[
            tf.TensorSpec(x.shape if mode.static else _unknown(x.shape), x.dtype)
            for x in arguments
        ],
        jit_compile=mode.compiler == "XLA",
        autograph=False,
    )


def _unknown(shape):
    """Returns a shape of which the channels alone are known."""
    return [None, None, shape[2]] if len(shape) == 3 else [None] * len(shape)


def read(result):
    """Returns one element, for which all the work must be done."""
    return float(result[0, 0, 0])


class Race(NamedTuple):
    """Time of one function in that of another: the median and the quartiles."""

    ratio: float
    low: float
    high: float
    base_seconds: float
    rounds: int


def race(base, other, feeds, seconds, least):
    """Runs two functions in turn, and compares the two times of each round.

    Args:
        base: the function whose time is 1.
        other: the function to be compared with it.
        feeds: tuples of arguments, used one after the other.
        seconds: how long to run them, warm-up aside.
        least: the fewest rounds, however long they take.

    Returns:
        A `Race`.
    """
    once = [_warmed(function, feeds) for function in (base, other)]
    calls = math.ceil(RUN_SECONDS / once[0])
    rounds = min(max(least, round(seconds / (calls * sum(once)))), MOST_ROUNDS)
    times = np.empty((rounds, 2))
    gc.disable()
    try:
        for number, row in enumerate(times):
            # In each order as often: the second finds the caches of the first.
            for which in (0, 1) if number % 2 else (1, 0):
                row[which] = _run((base, other)[which], feeds, calls)
    finally:
        gc.enable()
    low, ratio, high = np.percentile(times[:, 1] / times[:, 0], (25, 50, 75))
    base_seconds = float(np.median(times[:, 0])) / calls
    return Race(float(ratio), float(low), float(high), base_seconds, rounds)


def _warmed(function, feeds):
    """Returns the shortest time of a call, after those that compile."""
    for feed in feeds:
        read(function(*feed))
    times = []
    while sum(times) < WARM_SECONDS and len(times) < 50:
        times.append(_run(function, feeds, 1))
    return min(times)


def _run(function, feeds, calls):
    start = time.perf_counter()
    for call in range(calls):
        result = function(*feeds[call % len(feeds)])
    read(result)
    return time.perf_counter() - start
