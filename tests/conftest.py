import hypothesis
import keras
import pytest

# The same examples in each run, and no word about a slow machine.
hypothesis.settings.register_profile(
    "tfpe", deadline=None, derandomize=True, database=None, max_examples=40
)
hypothesis.settings.load_profile("tfpe")


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and not _has_gpu():
        pytest.skip("needs a GPU")


def _has_gpu():
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        return bool(tf.config.list_physical_devices("GPU"))
    if backend == "jax":
        import jax

        return jax.default_backend() == "gpu"
    import torch

    return torch.cuda.is_available()


@pytest.fixture(autouse=True)
def _float32_policy():
    """Each test starts and ends with Keras' own defaults."""
    keras.config.set_dtype_policy("float32")
    keras.utils.set_random_seed(0)
    yield
    keras.config.set_dtype_policy("float32")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in an empty folder; returns its exit code and its words."""
    from click.testing import CliRunner

    from tfpe.tools.command_line import main

    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return run
