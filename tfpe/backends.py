"""What the backends, their compilers and their exporters do not do alike."""

import traceback

import keras
from keras import ops

# Modules on the stack while a model is exported to ONNX.
ONNX_EXPORTERS = "keras.src.export.onnx", "tf2onnx."


def outside_any_graph():
    """A scope whose tensors outlive the graph or trace that is being made."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        return tf.init_scope()
    if keras.backend.backend() == "jax":
        import jax

        return jax.ensure_compile_time_eval()
    import torch

    return keras.device("gpu" if torch.cuda.is_available() else "cpu")


def untraced(function):
    """Keeps torch.compile out of a function, whose NumPy it would run as torch."""
    if keras.backend.backend() == "torch":
        import torch

        return torch.compiler.disable(function)
    return function


def in_graph(table, rows=None):
    """Returns a table for use in the graph or the trace that is being made.

    It captures the table, of which all graphs share one. Only an export to ONNX
    has a constant of its own, of the first `rows`, as tf2onnx makes an input of
    the model of whatever a graph captures.
    """
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if not tf.executing_eagerly() and _exporting_to_onnx():
            with tf.init_scope():
                array = table[:rows].numpy()
            return tf.constant(array, table.dtype)
    return table


def _exporting_to_onnx():
    return any(
        frame.f_globals.get("__name__", "").startswith(ONNX_EXPORTERS)
        for frame, _ in traceback.walk_stack(None)
    )


def either(ready, quick, general):
    """`quick()` if `ready`, decided now if it can be and in the graph if not."""
    try:
        ready = bool(ready)
    except TypeError:  # it belongs to a graph or a trace
        if keras.utils.is_keras_tensor(ready):
            return general()  # as Keras' own conditions hide what they depend on
        return ops.cond(ready, quick, general)
    return quick() if ready else general()


def sine_and_cosine(angle):
    if keras.backend.backend() == "jax" and not keras.utils.is_keras_tensor(angle):
        import jax.numpy as jnp  # `ops.sin` of float64 is float32 there

        return jnp.sin(angle), jnp.cos(angle)
    return ops.sin(angle), ops.cos(angle)


def computed_once(x):
    """Returns `x`, which XLA then does not compute anew wherever it is broadcast.

    XLA takes what is cheap into the loop that uses it, but never a sum.
    """
    return ops.sum(ops.stack([x, ops.zeros_like(x)]), axis=0)
