import keras
import pytest


@pytest.fixture(autouse=True)
def _float32_policy():
    """Each test starts and ends with Keras' own defaults."""
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")
