"""Readers of the files that hold arrays by name. Each yields `Tensor`s."""

import contextlib
import io
import os
import pickle
import struct
import sys
import zipfile

import numpy as np

from tfpe.tools.tensor import Tensor, UnreadableError, values

SAFETENSORS = {"BF16": "bfloat16", "F16": "float16", "F32": "float32", "F64": "float64"}
TORCH = {
    "BFloat16": "bfloat16",
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
}
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

        yield Tensor(name, tuple(shape), dtypes[name].name, read)


def old_pytorch(path):
    """Reads what PyTorch saved before 1.6, by PyTorch's own safe loader."""
    try:
        import torch
    except ImportError as error:
        raise UnreadableError(
            f"{path} is in the format of PyTorch before 1.6, which needs PyTorch "
            "itself: pip install torch"
        ) from error
    try:
        state = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise UnreadableError(
            f"{path} is no PyTorch archive, or holds more than tensors. Such pickles "
            "are never read: save the table with `numpy.save` or safetensors."
        ) from error
    for name, tensor in _leaves(state, torch.Tensor):
        if tensor.is_floating_point():

            def read(tensor=tensor):
                return tensor.detach().float().numpy()

            dtype = str(tensor.dtype).removeprefix("torch.")
            yield Tensor(name, tuple(tensor.shape), dtype, read)


def pytorch(path):
    """Reads the archives of `torch.save` and TorchScript without PyTorch.

    Their pickles say which tensors there are. Here they are read by something that
    looks nothing up and calls nothing: each class and function is an inert record.
    """
    with zipfile.ZipFile(path) as archive:
        names = set(archive.namelist())
        (main,) = [n for n in names if n.count("/") <= 1 and n.endswith("data.pkl")]
        folder = main.removesuffix("data.pkl")
        scripted = f"{folder}constants.pkl" in names
        state = _Pickle(archive.read(main), f"{folder}data/").load()
        leaves = list(_leaves(state, _TorchTensor))
        if scripted:
            content = archive.read(f"{folder}constants.pkl")
            constants = _Pickle(content, f"{folder}constants/").load()
            code = {n: archive.read(n).decode() for n in names if n.endswith(".py")}
            found = _leaves(constants, _TorchTensor)
            leaves += [(f"constant {n}", c.found_in(n, code)) for n, c in found]
    for name, tensor in leaves:
        if tensor.file in names and tensor.dtype:
            yield Tensor(
                name,
                tensor.shape,
                tensor.dtype,
                lambda tensor=tensor: tensor.read(path),
                tensor.use,
            )


class _TorchTensor:
    """A view of a storage, which is a file of the archive."""

    use = ""

    def __init__(self, storage, offset, shape, stride):
        _, kind, key, _, count = storage
        self.dtype = TORCH.get(kind.name.removesuffix("Storage"))
        self.file, self.count = kind.folder + key, count
        self.offset, self.shape, self.stride = offset, tuple(shape), tuple(stride)

    def found_in(self, name, code):
        for file, text in sorted(code.items()):
            for line in text.splitlines():
                if line.rstrip().endswith(f"CONSTANTS.c{name}") or (
                    f"CONSTANTS.c{name}," in line or f"CONSTANTS.c{name})" in line
                ):
                    self.use = f"{file.rpartition('/')[2]}: {line.strip()}"
                    return self
        return self

    def read(self, path):
        with zipfile.ZipFile(path) as archive:
            content = archive.read(self.file)
        storage = values(content, self.dtype, (self.count,))
        last = self.offset + sum(
            (n - 1) * s for n, s in zip(self.shape, self.stride, strict=True)
        )
        if min((self.offset, *self.shape, *self.stride)) < 0 or last >= self.count:
            raise ValueError("it is larger than its storage")
        size = storage.itemsize
        view = np.lib.stride_tricks.as_strided(
            storage[self.offset :], self.shape, [s * size for s in self.stride]
        )
        return np.array(view)


class _Inert:
    """Stands for any class or function: it keeps what it is given and does nothing."""

    def __new__(cls, *arguments, **_):
        inert = super().__new__(cls)
        inert.state = list(arguments)
        return inert

    def __call__(self, *arguments, **_):
        return _Inert(*arguments)

    def __setstate__(self, state):
        self.state.append(state)

    def __setitem__(self, key, value):
        self.state.append({str(key): value})

    def append(self, value):
        self.state.append(value)

    def extend(self, values):
        self.state.extend(values)


class _Dict(dict):
    """Stands for an ordered dict, which may have attributes, too."""


class _Kind:
    """Stands for the class of a storage."""

    def __init__(self, name, folder):
        self.name, self.folder = name, folder


class _Pickle(pickle.Unpickler):
    """A reader of pickles that looks up no class and calls no function."""

    def __init__(self, content, folder):
        super().__init__(io.BytesIO(content))
        self.folder = folder

    def find_class(self, module, name):
        if name.endswith("Storage") and module in ("torch", "torch.storage"):
            return _Kind(name, self.folder)
        if (module, name) == ("collections", "OrderedDict"):
            return _Dict
        if name in ("_rebuild_tensor", "_rebuild_tensor_v2"):
            return lambda storage, offset, shape, stride, *_: _TorchTensor(
                storage, offset, shape, stride
            )
        if name.startswith("_rebuild_parameter"):
            return lambda data, *_: data
        return _Inert

    def persistent_load(self, pid):
        return pid


def _leaves(node, kind, name="", above=()):
    """Yields the tensors in nested containers, with a name made of the keys."""
    if isinstance(node, kind):
        yield name or "tensor", node
    if id(node) in above or len(above) > 64:
        return
    above = (*above, id(node))
    if isinstance(node, dict):
        for key, value in node.items():
            # The containers of a pickled module, which are no part of a name.
            own = str(key) not in ("_parameters", "_buffers", "_modules")
            parts = [name] if name else []
            yield from _leaves(value, kind, ".".join(parts + [str(key)] * own), above)
    elif isinstance(node, _Inert):
        for value in node.state:
            yield from _leaves(value, kind, name, above)
    elif isinstance(node, (list, tuple)):
        for index, value in enumerate(node):
            yield from _leaves(value, kind, f"{name}.{index}".strip("."), above)
