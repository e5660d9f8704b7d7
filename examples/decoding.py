"""Greedy decoding with a model of `transformer.py`, in two ways that must agree."""

import numpy as np
import tensorflow as tf
from keras import ops
from transformer import decode, encode, layers_by_name


def greedy(model, inputs, length):
    """Returns the likeliest ids, one step at a time, and all their logits.

    Each step computes one new column and finds the earlier ones in a cache of
    keys and values. The step's number is a tensor, so one trace serves all steps.

    Args:
        model: a model that `transformer` made, or its copy from a file.
        inputs: int32 `(batch, input length)`.
        length: int, number of steps. Nothing stops at an end symbol.

    Returns:
        Arrays `(batch, length)` and `(batch, length, vocabulary)`.
    """
    layers = layers_by_name(model)
    step = tf.function(lambda *arguments: decode(layers, *arguments))
    encoded = encode(layers, ops.convert_to_tensor(inputs))
    cache = [
        [tf.zeros((keys.shape[0], length, *keys.shape[2:]), keys.dtype)] * 2
        for keys, _ in encoded[0]
    ]
    ids = tf.zeros((len(inputs), 1), "int32")
    columns = []
    for index in tf.range(length):
        logits, cache = step(ids, encoded, index, cache)
        ids = tf.argmax(logits, axis=-1, output_type="int32")
        columns.append((ids, logits))
    return tuple(np.concatenate(parts, axis=1) for parts in zip(*columns, strict=True))


def greedy_by_prefix(model, inputs, length):
    """Returns what `greedy` does, from the whole prefix anew at each step."""
    ids = np.zeros((len(inputs), length), "int32")
    columns = []
    for step in range(length):
        logits = model({"inputs": inputs, "targets": ids[:, : step + 1]})
        columns.append(ops.convert_to_numpy(logits)[:, step])
        ids[:, step] = columns[-1].argmax(axis=-1)
    return ids, np.stack(columns, axis=1)
