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

from tensor2tensor.data_generators import problem, problem_hparams  # noqa: E402
from tensor2tensor.layers import (  # noqa: E402
    common_attention,
    common_layers,
    modalities,
)
from tensor2tensor.models import transformer  # noqa: E402
from tensor2tensor.models.research import universal_transformer  # noqa: E402, F401
from tensor2tensor.utils import registry as models  # noqa: E402

MADE_BY = f"tensor2tensor 1.15.7 on TensorFlow {tf.version.VERSION}, CPU, float32"


def problem_of(sizes, of_classes, hparams):
    """Returns the `problem_hparams` of symbols, or from symbols to a class.

    Args:
        sizes: dict, the number of ids of "targets" and, if there are, "inputs".
        of_classes: bool, whether the targets are classes.
        hparams: the model's hyperparameters.
    """

    class Made(problem.Problem):
        def hparams(self, defaults, _):
            defaults.modality = dict.fromkeys(sizes, modalities.ModalityType.SYMBOL)
            if of_classes:
                defaults.modality["targets"] = modalities.ModalityType.CLASS_LABEL
            defaults.vocab_size = dict(sizes)

    return Made(False, False).get_hparams(hparams)


__all__ = [
    "MADE_BY",
    "common_attention",
    "common_layers",
    "modalities",
    "models",
    "problem",
    "problem_hparams",
    "problem_of",
    "tf",
    "transformer",
]
