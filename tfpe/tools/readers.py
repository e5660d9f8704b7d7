"""Readers of the files that hold arrays by name. Each yields `Tensor`s."""

import contextlib
import io
import os
import struct
import sys
import zipfile

import numpy as np

from tfpe.tools.tensor import Tensor, UnreadableError, values

SAFETENSORS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
# The types of CTranslate2 by their numbers in a file.
CTRANSLATE2 = ("float32", "int8", "int16", "int32", "float16", "bfloat16")


def npy(path):
    array = np.load(path, allow_pickle=False, mmap_mode="r")
    yield Tensor(path.stem, array.shape, str(array.dtype), lambda: array)


def npz(path):
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                header = np.lib.format.read_array_header_1_0
                if version != (1, 0):
                    header = np.lib.format.read_array_header_2_0
                shape, _, dtype = header(file)

            def read(member=member):
                with zipfile.ZipFile(path) as archive, archive.open(member) as file:
                    return np.lib.format.read_array(file, allow_pickle=False)

            yield Tensor(member.removesuffix(".npy"), shape, str(dtype), read)


def safetensors(path):
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        names = list(file.keys())
        parts = [(n, file.get_slice(n)) for n in names]
        found = [(n, tuple(p.get_shape()), p.get_dtype()) for n, p in parts]
    for name, shape, kind in found:

        def read(name=name, shape=shape, kind=kind):
            if kind == "BF16":
                return _bfloat16_of_safetensors(path, name, shape)
            with safe_open(path, framework="numpy") as file:
                return file.get_tensor(name)

        yield Tensor(name, shape, SAFETENSORS.get(kind, kind.lower()), read)


def _bfloat16_of_safetensors(path, name, shape):
    import json

    # NumPy has no such type, so the library cannot give it.
    with path.open("rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        begin, end = json.loads(file.read(size))[name]["data_offsets"]
        file.seek(8 + size + begin)
        return values(file.read(end - begin), "bfloat16", shape)


def hdf5(path):
    return _hdf5(path, path)


def keras(path):
    with zipfile.ZipFile(path) as archive:
        content = archive.read("model.weights.h5")
    return _hdf5(path, io.BytesIO(content))


def _hdf5(path, source):
    import h5py

    file = h5py.File(source, "r")
    found = []

    def visit(name, node):
        if isinstance(node, h5py.Dataset):
            found.append((name, node))

    file.visititems(visit)
    for name, node in found:
        yield Tensor(name, node.shape or (), str(node.dtype), lambda node=node: node[:])


def ctranslate2(path):
    size = os.path.getsize(path)
    with path.open("rb") as file:

        def number(form):
            content = file.read(struct.calcsize(form))
            if len(content) < struct.calcsize(form):
                raise UnreadableError(f"{path} cannot be read: it is cut short.")
            return struct.unpack(form, content)[0]

        def text():
            return file.read(number("<H"))[:-1].decode("utf-8", "replace")

        version = number("<I")
        if not 4 <= version <= 32:
            raise UnreadableError(
                f"{path} is no model.bin of CTranslate2 and no PyTorch archive. A "
                "pickle is never read: save the table with `numpy.save`."
            )
        text(), number("<I")
        for _ in range(number("<I")):
            name = text()
            shape = tuple(number("<I") for _ in range(number("<B")))
            kind, length = number("<B"), number("<I")
            begin = file.tell()
            if begin + length > size:
                raise UnreadableError(f"{path} cannot be read: it is cut short.")
            dtype = CTRANSLATE2[kind]

            def read(begin=begin, length=length, dtype=dtype, shape=shape):
                with path.open("rb") as file:
                    file.seek(begin)
                    return values(file.read(length), dtype, shape)

            yield Tensor(name, shape, dtype, read)
            file.seek(begin + length)


@contextlib.contextmanager
def _quietly():
    """Keeps the log of TensorFlow's C++ code, which knows no other way, off stderr."""
    sys.stderr.flush()
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


def checkpoint(path):
    with _quietly():
        import tensorflow as tf

    if (path / "checkpoint").is_file():
        prefix = tf.train.latest_checkpoint(path)
    else:
        prefix = str(path.with_suffix("") if path.suffix == ".index" else path)
    try:
        reader = tf.train.load_checkpoint(prefix)
    except (tf.errors.OpError, ValueError, TypeError) as error:
        words = getattr(error, "message", str(error))
        raise UnreadableError(f"{path} cannot be read: {words}") from error
    dtypes = reader.get_variable_to_dtype_map()
    for name, shape in sorted(reader.get_variable_to_shape_map().items()):

        def read(name=name):
            array = reader.get_tensor(name)
            return array.astype("float32") if array.dtype.kind == "V" else array

        if dtypes[name].name != "string":  # the graph of objects
            yield Tensor(name, tuple(shape), dtypes[name].name, read)
