"""Readers of PyTorch's files. Neither PyTorch nor what a file names is run.

The pickles in an archive say which tensors there are. Here they are read by something
that looks nothing up and calls nothing: each class and function is an inert record.
"""

import io
import pickle
import zipfile

import numpy as np

from tfpe.tools.tensor import Tensor, UnreadableError, values

TORCH = {
    "BFloat16": "bfloat16",
    "Double": "float64",
    "Float": "float32",
    "Half": "float16",
}


def old_file(path):
    """Reads what PyTorch saved before 1.6, by PyTorch's own safe loader."""
    with path.open("rb") as file:
        if file.read(1) != b"\x80":  # with which pickles begin
            raise UnreadableError(f"{path} is not a PyTorch file.")
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
            f"{path} is damaged, or a pickle of more than tensors. Such pickles are "
            "never read: save the table with `numpy.save` or safetensors."
        ) from error
    for name, tensor in _leaves(state, torch.Tensor):
        if tensor.is_floating_point():

            def read(tensor=tensor):
                return tensor.detach().float().numpy()

            dtype = str(tensor.dtype).removeprefix("torch.")
            yield Tensor(name, tuple(tensor.shape), dtype, read)


def archive(path):
    """Reads an archive of `torch.save` or of TorchScript."""
    with zipfile.ZipFile(path) as file:
        names = set(file.namelist())
        (main,) = [n for n in names if n.count("/") <= 1 and n.endswith("data.pkl")]
        folder = main.removesuffix("data.pkl")
        scripted = f"{folder}constants.pkl" in names
        state = _Pickle(file.read(main), f"{folder}data/").load()
        leaves = list(_leaves(state, _TorchTensor))
        if scripted:
            content = file.read(f"{folder}constants.pkl")
            constants = _Pickle(content, f"{folder}constants/").load()
            code = {n: file.read(n).decode() for n in names if n.endswith(".py")}
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
