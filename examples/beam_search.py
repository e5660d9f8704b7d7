"""Beam search with a model of `transformer.py`, as tensor2tensor does it."""

import numpy as np
import tensorflow as tf
from keras import ops
from transformer import decode, encode, layers_by_name

END = 1


def beam_search(model, inputs, length, beams=4, alpha=0.6):
    """Returns the best sequences of each row, and their scores.

    A score is the logarithm of a sequence's probability divided by tensor2tensor's
    length penalty, `((5 + steps) / 6) ** alpha`, where the steps include the end. A
    sequence counts once it has ended. Only a row without any that did gets the
    unfinished ones, whose scores are not divided.

    Args:
        model: a model that `transformer` made, or its copy from a file.
        inputs: int32 `(batch, input length)`.
        length: int, the largest number of steps.
        beams: int, number of sequences that are followed, less than half of the
            vocabulary.
        alpha: float, 0 for no penalty; the larger, the longer the sequences.

    Returns:
        int32 array `(batch, beams, steps)`, zeros after an end, and float32 array
        `(batch, beams)`, both best first, `-inf` where there is no sequence.
    """
    layers = layers_by_name(model)
    step = tf.function(lambda *arguments: decode(layers, *arguments))
    batch = len(inputs)
    encoded = encode(layers, ops.convert_to_tensor(np.repeat(inputs, beams, axis=0)))
    cache = [
        [tf.zeros((keys.shape[0], length, *keys.shape[2:]), keys.dtype)] * 2
        for keys, _ in encoded[0]
    ]
    alive = ended = np.zeros((batch, beams, 1), "int32")  # with the step before all
    logs = np.full((batch, beams), -np.inf, "float32")
    logs[:, 0] = 0
    scores = np.full((batch, beams), -np.inf, "float32")

    for index in range(length):
        # No sequence gets better than its logarithm over the largest penalty.
        if (scores.min(axis=1) > logs[:, 0] / _penalty(length, alpha)).all():
            break
        ids = alive[:, :, -1].reshape(-1, 1)
        logits, cache = step(ids, encoded, tf.constant(index), cache)
        grown = logs[:, :, None] + tf.nn.log_softmax(logits[:, 0]).numpy().reshape(
            batch, beams, -1
        )
        # Twice as many, so that enough are left when all of `beams` end at once.
        grown, place = _best(grown.reshape(batch, -1), 2 * beams)
        parent, symbol = np.divmod(place, logits.shape[-1])
        followed = np.take_along_axis(alive, parent[:, :, None], axis=1)
        followed = np.concatenate([followed, symbol[:, :, None]], axis=2)
        ends = symbol == END

        ended = np.concatenate([np.pad(ended, [(0, 0), (0, 0), (0, 1)]), followed], 1)
        finals = np.where(ends, grown / _penalty(index + 1, alpha), -np.inf)
        scores, kept = _best(np.concatenate([scores, finals], axis=1), beams)
        ended = np.take_along_axis(ended, kept[:, :, None], axis=1)

        logs, kept = _best(np.where(ends, -np.inf, grown), beams)
        alive = np.take_along_axis(followed, kept[:, :, None], axis=1)
        parent = np.take_along_axis(parent, kept, axis=1)
        rows = (parent + beams * np.arange(batch)[:, None]).ravel()
        cache = [[tf.gather(array, rows) for array in pair] for pair in cache]

    unfinished = np.isneginf(scores).all(axis=1)
    ids = np.where(unfinished[:, None, None], alive, ended)[:, :, 1:]
    scores = np.where(unfinished[:, None], logs, scores)
    return np.where(np.isneginf(scores)[:, :, None], 0, ids), scores


def _penalty(steps, alpha):
    return ((5 + steps) / 6) ** alpha


def _best(values, count):
    """Returns the largest values of each row, in falling order, and their places."""
    places = np.argsort(-values, axis=1, kind="stable")[:, :count].astype("int32")
    return np.take_along_axis(values, places, axis=1).astype("float32"), places
