"""The tensors in a model file of any kind. Nothing is unpickled, no code is run.

This module tells the kinds of files apart; `readers`, `pytorch` and `graphs` read
them.
"""

import re
import zipfile
from pathlib import Path

from tfpe.tools import graphs, pytorch, readers
from tfpe.tools.tensor import Tensor, UnreadableError

KINDS = (
    "NumPy (.npy, .npz), safetensors, PyTorch and TorchScript (.pt, .pth, .bin), ONNX, "
    "TensorFlow (SavedModel folders, .pb graphs, checkpoints), Keras (.keras, .h5) and "
    "CTranslate2 (model.bin)"
)
# A part of a TensorFlow checkpoint.
SHARD = re.compile(r"\.data-\d+-of-\d+$")
# What a zip archive of each kind holds.
ARCHIVES = (
    (".npy", "NumPy", readers.npz),
    ("data.pkl", "PyTorch", pytorch.archive),
    ("model.weights.h5", "Keras", readers.keras),
)
SUFFIXES = {
    ".npy": ("NumPy", readers.npy),
    ".npz": ("NumPy", readers.npz),
    ".safetensors": ("safetensors", readers.safetensors),
    ".onnx": ("ONNX", graphs.onnx),
    ".pb": ("TensorFlow", graphs.tensorflow),
    ".keras": ("Keras", readers.keras),
    ".h5": ("Keras", readers.hdf5),
    ".hdf5": ("Keras", readers.hdf5),
    ".pt": ("PyTorch", pytorch.old_file),
    ".pth": ("PyTorch", pytorch.old_file),
    ".ckpt": ("PyTorch", pytorch.old_file),
    ".bin": ("CTranslate2", readers.ctranslate2),
}
# The files of a model in a folder, those looked for first in front.
IN_FOLDERS = ("*.safetensors", "*model*.bin", "*.onnx", "*.keras", "*.h5", "*.pt")


def model_files(path):
    """Returns the model files in a folder of no kind of its own, or the path itself."""
    folder = Path(path)
    if folder.is_dir() and not any(
        (folder / name).is_file() for name in ("saved_model.pb", "checkpoint")
    ):
        for pattern in IN_FOLDERS:
            if found := sorted(map(str, folder.glob(pattern))):
                return found
    return [path]


def tensors(path):
    """Returns the tensors of a model file.

    Args:
        path: str, a file of one of `KINDS`, a SavedModel or a folder with a TensorFlow
            checkpoint, or the prefix of a checkpoint.

    Returns:
        The kind of file, a str, and a dict of `Tensor`s by name.

    Raises:
        UnreadableError: if there is no such file, or it is damaged or of another
            kind, or a package is missing. The message is one line.
    """
    path = Path(path)
    kind, read = _kind(path)
    try:
        found = list(read(path))
    except UnreadableError:
        raise
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        raise UnreadableError(
            f"{path} needs the package {package}: pip install {package}"
        ) from error
    # Half a dozen libraries raise what they like at a damaged file.
    except Exception as error:
        raise UnreadableError(f"{path} cannot be read: {_reason(error)}") from error
    return kind, {tensor.name: tensor for tensor in found}


def read(path, tensor):
    """Returns the values of one of the tensors of a file as a NumPy array."""
    try:
        return tensor.read()
    except UnreadableError:
        raise
    except Exception as error:
        raise UnreadableError(
            f"{path} cannot be read: {tensor.name}: {_reason(error)}"
        ) from error


def _reason(error):
    words = " ".join(str(error).split())
    if isinstance(error, zipfile.BadZipFile):
        words = "it is cut short or damaged"
    if "pickle" in words.lower() or "Python objects" in words:
        words = "it is of another kind, or holds pickles, which are never read"
    return (words or type(error).__name__)[:200]


def _kind(path):
    """Returns the kind of a file and its reader."""
    if (path / "saved_model.pb").is_file():
        return "TensorFlow", graphs.saved_model
    if (path / "checkpoint").is_file() or Path(f"{path}.index").is_file():
        return "TensorFlow", readers.checkpoint
    if path.suffix == ".index" and path.is_file():
        return "TensorFlow", readers.checkpoint
    if not path.is_file():
        if path.is_dir():
            raise UnreadableError(
                f"{path} is a folder without a SavedModel, a TensorFlow checkpoint or "
                "a model file. Name a file."
            )
        raise UnreadableError(f"{path} does not exist.")
    if SHARD.search(path.name):
        prefix = SHARD.sub("", str(path))
        saved = path.parent.parent
        name = saved if (saved / "saved_model.pb").is_file() else prefix
        raise UnreadableError(
            f"{path} is a part of a TensorFlow checkpoint. Name all of it: {name}"
        )
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
    if not head:
        raise UnreadableError(f"{path} is empty.")
    if head.startswith(b"\x93NUMPY"):
        return "NumPy", readers.npy
    if head == b"\x89HDF\r\n\x1a\n":
        return "Keras", readers.hdf5
    if head.startswith(b"PK"):
        return _archive(path)
    if head.startswith(b"\x80") and path.suffix == ".bin":
        return "PyTorch", pytorch.old_file
    if path.suffix in SUFFIXES:
        return SUFFIXES[path.suffix]
    raise UnreadableError(
        f"{path} is not in a supported format: {KINDS}. Of any other, "
        "save the table with `numpy.save`."
    )


def _archive(path):
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except Exception as error:  # a zip that is cut short fails in many ways
        raise UnreadableError(f"{path} cannot be read: {_reason(error)}") from error
    for end, kind, reader in ARCHIVES:
        if any(name.endswith(end) for name in names):
            return kind, reader
    raise UnreadableError(
        f"{path} is a zip archive, but holds no arrays of NumPy, PyTorch or Keras."
    )


__all__ = ["KINDS", "Tensor", "UnreadableError", "read", "tensors"]
