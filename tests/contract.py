"""What the accuracy contract promises, and the helpers that hold `tfpe` to it."""

import inspect
import itertools
import os
import re

import keras
import ml_dtypes
import numpy as np
import pytest

FLOAT32_NEAR = 1.6e-7  # float32 at positions 0 to 65,535
FLOAT32 = 3.5e-7  # float32 at any int32 position; and between two ways to get there
INT64 = 6e-7  # float32 at any position of 64 bits
SUM = 2 * FLOAT32  # float32 sums below 4 in size: the signal and one rounding
FLOAT64 = 1e-14  # float64 at any int32 position
FRACTION = 5e-7  # float32 at positions with a fraction, below 2**24
BOUND = 1 + 2**-22  # what no value of the signal exceeds

POLICIES = ("float32", "mixed_float16", "mixed_bfloat16", "float64")
DTYPES = ("float32", "float16", "bfloat16", "float64")
WIDTHS = (2, 3, 8, 64, 513)
LAYOUTS = ("interleaved", "concatenated")
ORDERS = tuple(itertools.permutations(("axis", "frequency", "function")))
POSITIONS = (
    *(0, 1, -1, 255, 256, 257, 1857, 65535, 65536, 2**24 + 1, 1700000001),
    *(2**31 - 1, -(2**31)),
)
BACKEND = keras.backend.backend()
HAS_FLOAT64 = BACKEND != "jax" or os.environ.get("JAX_ENABLE_X64") == "1"


def _modes():
    """Returns, by name, the ways in which the backend runs a function."""
    modes = {"eager": lambda function: function}
    if BACKEND == "tensorflow":
        import tensorflow as tf

        modes["graph"] = tf.function
        modes["xla"] = lambda function: tf.function(function, jit_compile=True)
    if BACKEND == "jax":
        import jax

        modes["xla"] = jax.jit
    return modes


def _only_on(backend):
    return pytest.mark.skipif(backend != BACKEND, reason=f"{backend} only")


on_tensorflow, on_jax, on_torch = map(_only_on, ("tensorflow", "jax", "torch"))
needs_float64 = pytest.mark.skipif(not HAS_FLOAT64, reason="needs JAX_ENABLE_X64=1")
MODES = _modes()
COMPILED = tuple(MODES)[1:]


def dtypes(*names):
    """Returns dtypes or policies as parameters; float64 is skipped where missing."""
    return [
        pytest.param(name, marks=needs_float64) if name == "float64" else name
        for name in names
    ]


def export(model, path, **options):
    """Exports a model without its printed summary, which Keras 3.3 never printed."""
    if "verbose" in inspect.signature(model.export).parameters:
        options["verbose"] = False
    model.export(path, **options)


def conventions(channels):
    """Returns settings: both layouts with each spectrum, a sequence among them."""
    drawn = np.random.default_rng(channels).uniform(0, 11.5, (channels + 1) // 2)
    spectra = {
        "vaswani": {},
        "tensor2tensor": {},
        "geometric": {"min_timescale": 2.0, "max_timescale": 30000.0},
        tuple(np.exp(drawn[: channels // 2])): {},
    }
    return [
        {"layout": layout, "spectrum": spectrum, **ends}
        for layout in LAYOUTS
        for spectrum, ends in spectra.items()
    ]


def some_conventions(channels, *choice):
    """Returns a third of `conventions`, another one for a neighbour of `choice`.

    So tests of every width, policy and mode meet each convention with each mode
    and policy, in a third of the time.
    """
    return conventions(channels)[sum(choice) % 3 :: 3]


def to_float64(x):
    if hasattr(x, "dtype") and dtype_of(x) in ("float16", "bfloat16"):
        x = keras.ops.cast(x, "float32")  # NumPy has no bfloat16 of its own.
    return np.asarray(keras.ops.convert_to_numpy(x)).astype("float64")


def dtype_of(x):
    return keras.backend.standardize_dtype(x.dtype)


def rounded(x, dtype):
    """Returns a NumPy array rounded to a dtype once, in that dtype."""
    return np.asarray(x).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)


def randoms(*shape, dtype="float32", seed=0):
    """Returns a normally distributed tensor, no two of whose slices are equal."""
    values = np.random.default_rng(seed).normal(size=shape)
    return keras.ops.convert_to_tensor(rounded(values, dtype))


def assert_close(got, want, tolerance):
    np.testing.assert_allclose(to_float64(got), want, rtol=0, atol=tolerance)


def assert_promised(got, want, positions=None, amplitude=1.0):
    """Asserts that a signal keeps the promise for its dtype at each position.

    Args:
        got: tensor `(..., channels)`.
        want: the right values in float64.
        positions: the positions of the rows, where they are known to be near.
        amplitude: the amplitude of the signal.
    """
    dtype, got = dtype_of(got), to_float64(got)
    assert got.shape == np.shape(want)
    np.testing.assert_array_equal(got[..., np.all(want == 0, axis=_rows(want))], 0)
    if dtype in ("float32", "float64"):
        tolerance = FLOAT64 if dtype == "float64" else FLOAT32
        if dtype == "float32" and positions is not None:
            near = (np.asarray(positions) >= 0) & (np.asarray(positions) < 2**16)
            tolerance = np.where(near, FLOAT32_NEAR, FLOAT32)[..., None]
        error = np.abs(got - want) / abs(amplitude)
        worst = np.unravel_index(np.argmax(error - tolerance), error.shape)
        assert np.all(error <= tolerance), (
            f"{dtype}: off by {error[worst]:.3g} at {worst}: {got[worst]}, "
            f"and not {want[worst]}"
        )
        return
    # The float32 signal, wherever its promise lets it be, rounded once.
    error = FLOAT32 * abs(amplitude)
    low, high = (rounded(np.float32(want + e), dtype) for e in (-error, error))
    outside = (got < low.astype("float64")) | (got > high.astype("float64"))
    assert not outside.any(), (
        f"{dtype}: {got[outside][:5]}, and not {want[outside][:5]} rounded once"
    )


def _rows(want):
    return tuple(range(np.ndim(want) - 1))


def assert_same_in_dtype(got, want):
    """Asserts that two ways to one signal agree as the contract promises.

    Half types may differ by a unit in the last place of the largest term.
    """
    assert dtype_of(got) == dtype_of(want)
    dtype, got, want = dtype_of(got), to_float64(got), to_float64(want)
    if dtype in ("float16", "bfloat16"):
        unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
        scale = np.maximum(np.abs(got), np.abs(want)).max(initial=1.0)
        assert_close(got, want, unit * scale)
    else:
        assert_close(got, want, FLOAT64 if dtype == "float64" else FLOAT32)


def refuses(error, *words):
    """Expects an error whose message has all the words, in this order."""
    return pytest.raises(error, match="(?s)" + ".*".join(map(re.escape, words)))
