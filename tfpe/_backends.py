"""What the backends, their compilers and their exporters do not do alike."""

import functools
import threading
import traceback
import weakref

import keras
from keras import ops

BACKEND = keras.backend.backend()
# Modules on the stack while a model is being exported.
ONNX_EXPORTERS = "keras.src.export.onnx", "tf2onnx."
EXPORTERS = (
    "keras.src.export.",
    "tf2onnx.",
    "tensorflow.python.saved_model.",
    "tensorflow.lite.",
)


def mode():
    """Returns how what is called now will run.

    - "eager": at once, so values can be looked at.
    - "graph": in a graph that is not compiled, where a condition is cheap.
    - "compiled": by XLA or torch.compile, where a condition is dear.
    - "exported": in a file, or a graph that holds its constants itself.
    """
    if BACKEND == "tensorflow":
        import tensorflow as tf

        if tf.executing_eagerly():
            return "eager"
        if _plain_graph() is not None or _on_stack(EXPORTERS):
            return "exported"
        from tensorflow.python.ops import control_flow_util

        graph = tf.compat.v1.get_default_graph()
        xla = control_flow_util.GraphOrParentsInXlaContext(graph)
        return "compiled" if xla else "graph"
    if BACKEND == "jax":
        from jax._src.core import trace_state_clean

        return "eager" if trace_state_clean() else "compiled"
    if BACKEND == "torch":
        import torch

        traced = torch.compiler.is_compiling() or torch.jit.is_tracing()
        return "compiled" if traced else "eager"
    return "eager"


def untraced(function):
    """Keeps torch.compile out of a function, whose NumPy it would run as torch."""
    if BACKEND == "torch":
        import torch

        return torch.compiler.disable(function)
    return function


class Constants:
    """Host arrays as tensors, made once for each context and usable in all of it.

    A context is a device under eager execution, which serves all `tf.function`s,
    traces and modes on top of it, or a graph of TensorFlow 1. Nothing made here
    outlives its context or keeps it alive.
    """

    def __init__(self):
        self._tensors = {}  # by device, then by name
        self._names = weakref.WeakKeyDictionary()  # by graph, then by name

    @untraced
    def get(self, name, make, dtype=None):
        """Returns the tensor of a name; `make()` returns its NumPy array.

        `dtype` is that of the tensor, if it is not the array's.
        """
        if BACKEND == "tensorflow":
            import tensorflow as tf

            if not tf.executing_eagerly():
                graph = _plain_graph()
                if graph is not None:
                    return self._in_graph(graph, name, make, dtype)
                if _on_stack(ONNX_EXPORTERS):
                    # tf2onnx makes an input of whatever a graph captures.
                    return _as(tf.constant(make()), dtype)
        device = _device()
        kept = self._tensors.setdefault(device, {})
        if name not in kept:
            kept[name] = _in_no_context(make(), dtype, device)
        return kept[name]

    def _in_graph(self, graph, name, make, dtype):
        import tensorflow as tf

        names = self._names.setdefault(graph, {})
        if name not in names:
            with tf.init_scope():
                names[name] = _as(tf.constant(make()), dtype).name
        # A tensor would keep its graph alive.
        return graph.get_tensor_by_name(names[name])


def _plain_graph():
    """Returns the TensorFlow 1 graph at the bottom of the current one, or `None`."""
    import tensorflow as tf

    with tf.init_scope():
        return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _device():
    """Returns the device of the replica that is being traced, or `None`."""
    if BACKEND == "tensorflow":
        import tensorflow as tf

        if tf.distribute.has_strategy() and tf.distribute.get_replica_context():
            return _device_of(tf.distribute.get_replica_context())
    return None


def _device_of(replica):
    try:
        devices = replica.devices
    except IndexError:  # of the second of several workers, as TensorFlow counts
        return None
    return devices[0] if isinstance(devices[0], str) else devices[0][0]


def _in_no_context(array, dtype, device):
    """Returns a tensor that belongs to no graph, trace or mode.

    All of these are of one thread, so another thread is free of them.
    """
    made = []
    thread = threading.Thread(target=lambda: made.append(_tensor(array, dtype, device)))
    thread.start()
    thread.join()
    return made[0]


def _tensor(array, dtype, device):
    if BACKEND == "tensorflow":
        import tensorflow as tf

        with tf.device(device):
            return _as(tf.constant(array), dtype)
    if BACKEND == "jax":
        import jax
        import jax.numpy as jnp

        with jax.enable_x64(array.dtype == "float64"):
            return _as(jnp.asarray(array), dtype)
    if BACKEND == "torch":
        import torch

        with keras.device("gpu" if torch.cuda.is_available() else "cpu"):
            return _as(ops.convert_to_tensor(array), dtype)
    return _as(ops.convert_to_tensor(array), dtype)


def _as(tensor, dtype):
    return tensor if dtype is None else ops.cast(tensor, dtype)


def _on_stack(modules):
    return any(
        frame.f_globals.get("__name__", "").startswith(modules)
        for frame, _ in traceback.walk_stack(None)
    )


def either(ready, quick, general):
    """`quick()` if `ready`, decided now if it can be and in the graph if not."""
    try:
        ready = bool(ready)
    except TypeError:  # it belongs to a graph
        return ops.cond(ready, quick, general)
    except RuntimeError:  # torch.vmap has no conditions
        return general()
    return quick() if ready else general()


def visible(x):
    """Returns the values of a tensor as an array, or `None` if a trace hides them."""
    try:
        if BACKEND == "torch" and ops.is_tensor(x):
            return x.detach().cpu().numpy()
        return ops.convert_to_numpy(x)
    except Exception:  # each backend has its own error
        return None


def is_eager_tensorflow():
    return BACKEND == "tensorflow" and mode() == "eager"


def slices_are_cheap():
    """Whether an eager slice costs the same for every start; JAX compiles each."""
    return BACKEND != "jax"


def tensor_of_integers(array):
    """Returns NumPy integers as a tensor; Keras has no uint64 on torch."""
    if BACKEND == "torch" and array.dtype == "uint64":
        import torch

        device = "cuda" if torch.cuda.is_available() else "cpu"
        return torch.from_numpy(array).to(device)
    return ops.convert_to_tensor(array)


def sine_and_cosine(angle):
    if BACKEND == "jax":  # `ops.sin` of float64 is float32 there
        import jax.numpy as jnp

        return jnp.sin(angle), jnp.cos(angle)
    return ops.sin(angle), ops.cos(angle)


def has_quick_complex_numbers(running):
    """Whether `turned_pairs` is quicker than real products in a mode."""
    return BACKEND == "tensorflow" and running in ("eager", "graph")


def turned_pairs(rows, blocks, cosine_first):
    """Returns sines and cosines in turn, of the angles of rows plus those of blocks.

    One product of complex numbers passes over the memory once, real ones four times.

    Args:
        rows: sine and cosine, tensors `(rows, pairs)`.
        blocks: sine and cosine, tensors `(blocks, pairs)`.
        cosine_first: bool, whether a cosine stands before its sine.

    Returns:
        Tensor `(blocks * rows, 2 * pairs)`.
    """
    import tensorflow as tf

    (sine, cosine), (block_sine, block_cosine) = rows, blocks
    if cosine_first:
        row, block = tf.complex(cosine, sine), tf.complex(block_cosine, block_sine)
    else:
        row, block = tf.complex(sine, cosine), tf.complex(block_cosine, -block_sine)
    turned = _turned_in_a_graph(row.dtype) if tf.executing_eagerly() else _turned
    return turned(row, block)


@functools.cache
def _turned_in_a_graph(dtype):
    """Eager operations take new memory each, in a graph a product its input's."""
    import tensorflow as tf

    # One trace for all shapes, as TensorFlow warns of several.
    any_matrix = tf.TensorSpec((None, None), dtype)
    return tf.function(_turned, input_signature=[any_matrix, any_matrix])


def _turned(row, block):
    import tensorflow as tf

    (length, count), blocks = ops.shape(row), ops.shape(block)[0]
    # A gather repeats the blocks faster than broadcasting does.
    block = tf.gather(block, tf.range(length * blocks) // length)
    row, block = (tf.reshape(x, (-1, length * count)) for x in (row, block))
    signal = tf.bitcast(block * row, row.dtype.real_dtype)
    return tf.reshape(signal, (-1, 2 * count))


def fusion_barrier(x):
    """Returns `x`; keeps XLA from recomputing it in the loop that broadcasts it.

    XLA moves cheap operations into the loop that uses them, but never a sum.
    """
    if BACKEND == "jax":
        import jax

        return jax.lax.optimization_barrier(x)
    return ops.sum(ops.stack([x, ops.zeros_like(x)]), axis=0)


def has_64_bits():
    """Whether tensors of 64-bit integers and floats exist."""
    if BACKEND != "jax":
        return True
    import jax

    return bool(jax.config.jax_enable_x64)
