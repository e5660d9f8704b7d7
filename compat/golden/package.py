"""The real tensor2tensor 1.15.7, imported on TensorFlow 2.13.1."""

import importlib.util
import os
import sys
import types
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow starts.
warnings.filterwarnings("ignore")


def _pass_over_models():
    """Lets one model be imported without the import of all of them.

    `tensor2tensor.models` imports every model, and so packages that are gone.
    """
    folder = importlib.util.find_spec("tensor2tensor").submodule_search_locations[0]
    models = types.ModuleType("tensor2tensor.models")
    models.__path__ = [os.path.join(folder, "models")]
    sys.modules["tensor2tensor.models"] = models


_pass_over_models()

import tensorflow.compat.v1 as tf  # noqa: E402

# Before tensor2tensor is imported, which chooses then where its variables live.
tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.ERROR)

from tensor2tensor.data_generators import problem_hparams  # noqa: E402
from tensor2tensor.layers import common_attention, common_layers  # noqa: E402
from tensor2tensor.models import transformer  # noqa: E402

MADE_BY = f"tensor2tensor 1.15.7 on TensorFlow {tf.version.VERSION}, CPU, float32"

__all__ = [
    "MADE_BY",
    "common_attention",
    "common_layers",
    "problem_hparams",
    "tf",
    "transformer",
]
