"""Tables from the files that models come in. Nothing is ever unpickled."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

PICKLES = {".bin", ".ckpt", ".pickle", ".pkl", ".pt", ".pth"}
SAFETENSORS = {
    "BF16": "bfloat16",
    "F16": "float16",
    "F32": "float32",
    "F64": "float64",
}


@dataclass(frozen=True)
class Variable:
    """A variable in a file, which `read` reads."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], np.ndarray]

    @property
    def is_table(self):
        """Whether it may be what `identify` takes."""
        *lengths, channels = [n for n in self.shape if n != 1] or [0]
        sizes = 1 <= len(lengths) <= 3 and min(lengths) >= 8 and channels >= 2
        return sizes and "float" in self.dtype


def variables(path):
    """Returns the variables of a file, by name.

    Args:
        path: str, a `.npy`, `.npz` or `.safetensors` file, or a TensorFlow
            checkpoint: its prefix, its index file or its folder.

    Returns:
        dict of `Variable`s.

    Raises:
        ValueError: if there is no such file, or it is of another kind, or
            would have to be unpickled.
    """
    path = Path(path)
    readers = {".npy": _npy, ".npz": _npz, ".safetensors": _safetensors}
    if path.is_file() and path.suffix in readers:
        found = readers[path.suffix](path)
    elif (prefix := _checkpoint_prefix(path)) is not None:
        found = _checkpoint(prefix)
    elif path.exists():
        pickles = (
            " Many files of this name are pickles, which can run code: they are "
            "never read. Save the table with `numpy.save` or safetensors."
        )
        raise ValueError(
            f"{path} is not .npy, .npz, .safetensors or a TensorFlow checkpoint."
            f"{pickles if path.suffix in PICKLES else ''}"
        )
    else:
        raise ValueError(f"{path} is neither a file nor a TensorFlow checkpoint.")
    return {variable.name: variable for variable in found}


def _npy(path):
    array = _load(path, lambda: np.load(path, allow_pickle=False, mmap_mode="r"))
    yield Variable(path.stem, array.shape, str(array.dtype), lambda: array)


def _npz(path):
    def read(name):
        with np.load(path, allow_pickle=False) as archive:
            return archive[name]

    with _load(path, lambda: np.load(path, allow_pickle=False)) as archive:
        names = archive.files
    for name in names:

        def checked(name=name):
            return _load(path, lambda: read(name))

        try:
            array = checked()
        except ValueError:  # objects, perhaps; an error only if they are wanted
            yield Variable(name, (), "object", checked)
        else:
            yield Variable(name, array.shape, str(array.dtype), checked)


def _safetensors(path):
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError as error:
        raise ValueError(f"{path} needs the package safetensors.") from error
    file = _load(path, lambda: safe_open(path, framework="numpy"), SafetensorError)
    for name in file.keys():  # noqa: SIM118 (it is no mapping)
        part = file.get_slice(name)
        yield Variable(
            name,
            tuple(part.get_shape()),
            SAFETENSORS.get(part.get_dtype(), part.get_dtype().lower()),
            lambda name=name: file.get_tensor(name),
        )


def _load(path, read, *errors):
    try:
        return read()
    except (OSError, EOFError, ValueError, *errors) as error:
        reason = str(error)
        if "pickle" in reason or "Python objects" in reason:
            reason = "it is of another kind, or holds pickles, which are never read"
        raise ValueError(f"{path} cannot be read: {reason}") from error


def _checkpoint_prefix(path):
    """Returns the prefix of a TensorFlow checkpoint, or `None` if it is none."""
    if (path / "checkpoint").is_file():
        import tensorflow as tf

        return tf.train.latest_checkpoint(path)
    prefix = str(path.with_suffix("") if path.suffix == ".index" else path)
    return prefix if Path(f"{prefix}.index").is_file() else None


def _checkpoint(prefix):
    import tensorflow as tf

    reader = _load(prefix, lambda: tf.train.load_checkpoint(prefix), tf.errors.OpError)
    dtypes = reader.get_variable_to_dtype_map()
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):
        yield Variable(
            name,
            tuple(shape),
            dtypes[name].name,
            lambda name=name: reader.get_tensor(name),
        )
