"""The tensors in a model file of any kind. Nothing is unpickled, no code is run.

This module tells the kinds of files apart; `readers`, `pytorch` and `graphs` read
them.
"""

import zipfile
from pathlib import Path

from tfpe.tools import graphs, pytorch, readers
from tfpe.tools.tensor import Tensor, UnreadableError

KINDS = (
    "NumPy (.npy, .npz), safetensors, PyTorch and TorchScript (.pt, .pth, .bin), ONNX, "
    "TensorFlow (SavedModel folders, .pb graphs, checkpoints), Keras (.keras, .h5) and "
    "CTranslate2 (model.bin)"
)
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
                f"{path} is a folder, but no SavedModel and no TensorFlow checkpoint. "
                "Name a file in it."
            )
        raise UnreadableError(f"{path} is neither a file nor a TensorFlow checkpoint.")
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError as error:
        raise UnreadableError(f"{path} cannot be read: {error.strerror}") from error
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
        f"{path} is of a kind that is not read. Those that are: {KINDS}. Of any other, "
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
