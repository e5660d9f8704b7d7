import os
import types

import hypothesis
import keras
import pytest

# The same examples in each run, and no word about a slow machine.
hypothesis.settings.register_profile(
    "tfpe", deadline=None, derandomize=True, database=None, max_examples=40
)
hypothesis.settings.load_profile("tfpe")
BACKEND = keras.backend.backend()
HAS_FLOAT64 = BACKEND != "jax" or os.environ.get("JAX_ENABLE_X64") == "1"


def pytest_collection_modifyitems(items):
    """Leaves out what the backend or the machine does not have, and says so."""
    for item in items:
        reason = _why_not(item)
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


def _why_not(item):
    given = item.callspec.params.values() if hasattr(item, "callspec") else ()
    given = [value for value in given if isinstance(value, str)]
    if BACKEND != "tensorflow" and "tf" in _names(getattr(item, "function", None)):
        return "of TensorFlow alone"
    if not HAS_FLOAT64 and "float64" in given:
        return "needs JAX_ENABLE_X64=1"
    if item.get_closest_marker("gpu") and not _has_gpu():
        return "needs a GPU"
    return None


def _names(function):
    """Returns the globals that a test names, itself or in its module's helpers."""
    function = getattr(getattr(function, "hypothesis", None), "inner_test", function)
    found, left = set(), [getattr(function, "__code__", None)]
    while left:
        code = left.pop()
        if isinstance(code, types.CodeType):
            new = set(code.co_names) - found
            found |= new
            helpers = [function.__globals__.get(name) for name in new]
            left += [h.__code__ for h in helpers if isinstance(h, types.FunctionType)]
            left += code.co_consts
    return found


def _has_gpu():
    if BACKEND == "tensorflow":
        import tensorflow as tf

        return bool(tf.config.list_physical_devices("GPU"))
    if BACKEND == "jax":
        import jax

        return jax.default_backend() == "gpu"
    import torch

    return torch.cuda.is_available()


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem):
    """Skips what asks `tfpe` for float64 where JAX has none, and is told so."""
    try:
        return (yield)
    except ValueError as error:
        if not HAS_FLOAT64 and "`jax_enable_x64`" in str(error):
            pytest.skip("needs JAX_ENABLE_X64=1")
        raise


@pytest.fixture(autouse=True)
def _float32_policy():
    """Each test starts and ends with Keras' own defaults."""
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
