"""Very many calls of one instance: no wrong value, and nothing grows.

SOAK is the number of calls, 600 if it is not set.
"""

import gc
import os
import resource
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np
import oracle
import pytest
from contract import FLOAT32, on_tensorflow

import tfpe

CALLS = int(os.environ.get("SOAK", "600"))
STARTS = (0, 4090, 65536, -7, 2**24)
LONGEST = 40
ROOM = 64 * 2**20  # of memory, for what Python and the allocator keep


def tables():
    return {
        start: oracle.many_rows(range(start, start + LONGEST), 6) for start in STARTS
    }


def peak():
    gc.collect()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def worst_of(layer, want, number):
    """Returns the error of one call, whose shape and dtype its number says."""
    random = np.random.default_rng(number)
    length, batch = random.integers(1, LONGEST), random.integers(1, 4)
    start = STARTS[number % len(STARTS)]
    dtype = ("float32", "float16", "float64")[number % 3]
    inputs = np.zeros((batch, length, 6), dtype)
    if number % 2:
        outputs = layer(inputs, start_index=start)
    else:
        outputs = layer(inputs, positions=np.arange(start, start + length))
    got = keras.ops.convert_to_numpy(outputs)
    return np.abs(got - want[start][:length]).max()


@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 8])
def test_values_stay_right_and_memory_stays_small(threads):
    layer, want = tfpe.SinusoidalPositionalEncoding(), tables()
    with ThreadPoolExecutor(threads) as pool:

        def worst(numbers):
            return max(pool.map(lambda n: worst_of(layer, want, n), numbers))

        # All shapes and dtypes once, as JAX compiles each of them.
        assert worst(range(CALLS)) <= FLOAT32
        before = peak()
        assert worst(range(CALLS)) <= FLOAT32
        assert peak() - before <= ROOM


@on_tensorflow
@pytest.mark.slow
def test_one_trace_serves_very_many_calls_of_eight_threads():
    import tensorflow as tf

    layer, want = tfpe.SinusoidalPositionalEncoding(), tables()
    signature = [tf.TensorSpec([None, None, 6]), tf.TensorSpec([], "int32")]
    call = tf.function(lambda x, s: layer(x, start_index=s), input_signature=signature)

    def worst(number):
        start, length = STARTS[number % len(STARTS)], 1 + number % LONGEST
        got = call(np.zeros((1 + number % 3, length, 6), "float32"), start)
        return np.abs(got - want[start][:length]).max()

    with ThreadPoolExecutor(8) as pool:
        assert max(pool.map(worst, range(CALLS))) <= FLOAT32
    assert call.experimental_get_tracing_count() == 1
