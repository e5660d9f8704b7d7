import hypothesis
import keras
import pytest

# The same examples in each run, and no word about a slow machine.
hypothesis.settings.register_profile(
    "tfpe", deadline=None, derandomize=True, database=None, max_examples=40
)
hypothesis.settings.load_profile("tfpe")


@pytest.fixture(autouse=True)
def _float32_policy():
    """Each test starts and ends with Keras' own defaults."""
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
