"""Readers of graphs, whose tables are often constants without a telling name.

TensorFlow's graphs are read with protobuf and the few fields that matter here, so
that TensorFlow is needed only for the variables of a SavedModel.
"""

import functools

import numpy as np

from tfpe.tools import readers
from tfpe.tools.tensor import Tensor, UnreadableError, values

# The messages of TensorFlow's `saved_model.proto` and what lies below it: each field
# with its number and its type, "*" for repeated ones.
MESSAGES = {
    "SavedModel": {"meta_graphs": (2, "*MetaGraph")},
    "MetaGraph": {"graph": (2, "Graph")},
    "Graph": {"node": (1, "*Node"), "library": (2, "Library")},
    "Library": {"function": (1, "*Function")},
    "Function": {"signature": (1, "Signature"), "node": (3, "*Node")},
    "Signature": {"name": (1, "string")},
    "Node": {
        "name": (1, "string"),
        "op": (2, "string"),
        "input": (3, "*string"),
        "attr": (5, "*Attribute"),
    },
    "Attribute": {"key": (1, "string"), "value": (2, "Value")},
    "Value": {"tensor": (8, "Constant")},
    "Constant": {
        "dtype": (1, "int32"),
        "shape": (2, "Shape"),
        "content": (4, "bytes"),
        "half": (13, "*int32"),
        "float": (5, "*float"),
        "double": (6, "*double"),
    },
    "Shape": {"dim": (2, "*Size")},
    "Size": {"size": (1, "int64")},
}
DTYPES = {1: "float32", 2: "float64", 14: "bfloat16", 19: "float16"}


def onnx(path):
    import onnx

    model = onnx.load(path, load_external_data=False)
    if not model.graph.node and not model.graph.initializer:
        raise UnreadableError(f"{path} cannot be read: it holds no graph.")
    seen = set()
    for where, nodes, initializers in _onnx_graphs(model):
        uses = {}
        for node in nodes:
            for name in node.input:
                uses.setdefault(name, f"{node.op_type} {node.name}".strip())
        constants = [(tensor.name, tensor) for tensor in initializers]
        for node in nodes:
            if node.op_type == "Constant":
                given = [a.t for a in node.attribute if a.HasField("t")]
                constants += [(node.output[0], tensor) for tensor in given]
        for name, tensor in constants:
            name = f"{where}{name}"
            if name in seen or tensor.data_location == onnx.TensorProto.EXTERNAL:
                continue  # the values are in another file
            seen.add(name)
            yield _onnx_tensor(name, tensor, uses.get(name.removeprefix(where), ""))


def _onnx_tensor(name, tensor, use):
    from onnx import TensorProto, numpy_helper

    dtype = TensorProto.DataType.Name(tensor.data_type).lower()
    dtype = {"float": "float32", "double": "float64"}.get(dtype, dtype)
    return Tensor(
        name,
        tuple(tensor.dims),
        dtype,
        lambda: np.asarray(numpy_helper.to_array(tensor)).astype(
            "float32" if dtype == "bfloat16" else dtype
        ),
        f"used by {use}" if use else "",
    )


def _onnx_graphs(model):
    """Yields the graph, its subgraphs and the functions, with a prefix for names."""
    stack = [("", model.graph)]
    while stack:
        where, graph = stack.pop()
        yield where, graph.node, graph.initializer
        for node in graph.node:
            for attribute in node.attribute:
                graphs = [*attribute.graphs]
                if attribute.HasField("g"):
                    graphs.append(attribute.g)
                stack += [(f"{where}{node.name or node.op_type}/", g) for g in graphs]
    for function in model.functions:
        yield f"{function.name}/", function.node, []


def saved_model(path):
    model = _message("SavedModel")()
    model.ParseFromString((path / "saved_model.pb").read_bytes())
    if not model.meta_graphs:
        raise UnreadableError(f"{path} cannot be read: saved_model.pb holds no graph.")
    for meta in model.meta_graphs:
        yield from _constants(meta.graph)
    prefix = path / "variables" / "variables"
    if prefix.with_suffix(".index").is_file():
        yield from readers.checkpoint(prefix)


def tensorflow(path):
    """Reads a frozen graph, or the file inside a SavedModel."""
    if path.name == "saved_model.pb":
        yield from saved_model(path.parent)
        return
    graph = _message("Graph")()
    graph.ParseFromString(path.read_bytes())
    if not graph.node:
        raise UnreadableError(f"{path} cannot be read: it holds no graph.")
    yield from _constants(graph)


def _constants(graph):
    scopes = [("", graph.node)]
    scopes += [(f"{f.signature.name}/", f.node) for f in graph.library.function]
    for scope, nodes in scopes:
        uses = {}
        for node in nodes:
            for name in node.input:
                # `name:output:0`, or `^name` of what has to run before.
                source = name.lstrip("^").partition(":")[0]
                if not node.op.endswith("PartitionedCall"):  # which tells nothing
                    uses.setdefault(source, f"{node.op} {node.name}")
        for node in nodes:
            for attribute in node.attr:
                tensor = attribute.value.tensor
                # Strings, shapes and other integers are no tables.
                known = tensor.dtype in DTYPES and tensor.shape.dim
                if node.op == "Const" and attribute.key == "value" and known:
                    use = uses.get(node.name, "")
                    yield _constant(scope + node.name, tensor, use)


def _constant(name, tensor, use):
    shape = tuple(dim.size for dim in tensor.shape.dim)
    dtype = DTYPES[tensor.dtype]

    def read():
        if tensor.content:
            return values(tensor.content, dtype, shape)
        given = np.array(tensor.float or tensor.double, dtype)
        if tensor.half:
            content = np.array(tensor.half, "<u2").tobytes()
            given = values(content, dtype, (len(tensor.half),))
        # The last value stands for all that follow.
        count = int(np.prod(shape)) - len(given)
        return np.pad(given, (0, count), mode="edge").reshape(shape)

    return Tensor(name, shape, dtype, read, f"used by {use}" if use else "")


@functools.cache
def _message(name):
    """Returns the class of one of `MESSAGES`."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="tfpe.proto", package="tfpe", syntax="proto3"
    )
    for message, fields in MESSAGES.items():
        described = file.message_type.add(name=message)
        for field, (number, kind) in fields.items():
            added = described.field.add(name=field, number=number)
            added.label = 3 if kind.startswith("*") else 1
            kind = kind.lstrip("*")
            if kind in MESSAGES:
                added.type, added.type_name = added.TYPE_MESSAGE, f".tfpe.{kind}"
            else:
                added.type = getattr(added, f"TYPE_{kind.upper()}")
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(f"tfpe.{name}"))
