"""Model files of every kind that `tfpe identify` reads, with a table among others."""

import struct
import warnings

import h5py
import keras
import numpy as np
import onnx
import oracle
import pytest
import safetensors.numpy
from onnx import helper, numpy_helper

CONCATENATED = {"layout": "concatenated", "spectrum": "vaswani"}


def table(length=40, channels=12, **settings):
    return oracle.many_rows(range(length), channels, **settings).astype("float32")


def learned(length=40, channels=12):
    return np.random.default_rng(2).normal(size=(length, channels)).astype("float32")


PE, WEIGHTS = table(**CONCATENATED), learned(50, 30)


def npy(path):
    np.save(path / "it.npy", PE)
    return path / "it.npy"


def npz(path):
    np.savez(path / "it.npz", pe=PE, weights=WEIGHTS, bias=np.zeros(40))
    return path / "it.npz"


def safetensors_file(path):
    tensors = {"pe": PE, "weights": WEIGHTS, "bias": np.zeros(40, "float32")}
    safetensors.numpy.save_file(tensors, path / "it.safetensors")
    return path / "it.safetensors"


def _module():
    torch = pytest.importorskip("torch")

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("pe", torch.tensor(PE))
            self.dense = torch.nn.Linear(12, 9)

        def forward(self, x):
            return self.dense(x + self.pe)

    return torch, Encoder()


def pytorch(path):
    torch, encoder = _module()
    torch.save({"model": encoder.state_dict(), "step": 3}, path / "it.pt")
    return path / "it.pt"


def old_pytorch(path):
    torch, encoder = _module()
    torch.save(
        encoder.state_dict(), path / "it.pth", _use_new_zipfile_serialization=False
    )
    return path / "it.pth"


def torchscript(path):
    """A traced function, whose table is a constant without a name."""
    torch, _ = _module()
    with warnings.catch_warnings(action="ignore"):  # it is deprecated
        graph = torch.jit.trace(lambda x: x + torch.tensor(PE), torch.zeros(40, 12))
    graph.save(str(path / "script.pt"))
    return path / "script.pt"


def onnx_file(path):
    """A graph whose table is a constant without a telling name."""
    nodes = [
        helper.make_node("Constant", [], ["c17"], value=numpy_helper.from_array(PE)),
        helper.make_node("Add", ["x", "c17"], ["y"], name="/encoder/Add"),
        helper.make_node("MatMul", ["y", "w"], ["z"]),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, [40, 12])]
    outputs = [helper.make_tensor_value_info("z", 1, [40, 30])]
    weights = numpy_helper.from_array(WEIGHTS[:12], "w")
    graph = helper.make_graph(nodes, "graph", inputs, outputs, [weights])
    onnx.save(helper.make_model(graph), path / "it.onnx")
    return path / "it.onnx"


def saved_model(path):
    """A module whose table is a constant of its function."""
    import tensorflow as tf

    module = tf.Module()
    module.weights = tf.Variable(WEIGHTS)
    module.call = tf.function(lambda x: x + tf.constant(PE) + module.weights[0, 0])
    signature = module.call.get_concrete_function(tf.TensorSpec((40, 12)))
    tf.saved_model.save(module, path / "saved", signatures=signature)
    return path / "saved"


def checkpoint(path):
    import tensorflow as tf

    tracked = tf.train.Checkpoint(pe=tf.Variable(PE), weights=tf.Variable(WEIGHTS))
    return tracked.save(path / "it.ckpt")


def checkpoint_index(path):
    return f"{checkpoint(path)}.index"


def checkpoint_folder(path):
    checkpoint(path)
    return path


def _keras_model():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Embedding(40, 12)])
    model.set_weights([PE])
    return model


def keras_file(path):
    _keras_model().save(path / "it.keras")
    return path / "it.keras"


def keras_weights(path):
    _keras_model().save_weights(path / "it.weights.h5")
    return path / "it.weights.h5"


def hdf5(path):
    with h5py.File(path / "it.h5", "w") as file:
        file["encoder/pe"], file["encoder/weights"] = PE, WEIGHTS
    return path / "it.h5"


def ctranslate2(path):
    """What CTranslate2 writes: a head, then name, shape, type and bytes of each."""

    def text(word):
        return struct.pack("<H", len(word) + 1) + word.encode() + b"\0"

    variables = {"encoder/position_encodings/encodings": PE, "weights": WEIGHTS}
    with open(path / "model.bin", "wb") as file:
        file.write(struct.pack("<I", 6) + text("TransformerSpec"))
        file.write(struct.pack("<II", 7, len(variables)))
        for name, values in variables.items():
            file.write(text(name) + struct.pack("<B2I", 2, *values.shape))
            file.write(struct.pack("<BI", 0, values.nbytes) + values.tobytes())
        file.write(struct.pack("<I", 0))
    return path / "model.bin"


OF_TENSORFLOW = [checkpoint, checkpoint_index, checkpoint_folder, saved_model]
KINDS = [
    npy,
    npz,
    safetensors_file,
    pytorch,
    old_pytorch,
    torchscript,
    onnx_file,
    keras_file,
    keras_weights,
    hdf5,
    ctranslate2,
]
