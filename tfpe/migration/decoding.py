"""Greedy decoding and beam search as tensor2tensor does them.

A score is the logarithm of a sequence's probability. Of one that ended it is divided
by tensor2tensor's length penalty, `((5 + steps) / 6) ** alpha`, where the steps
include the end; only a row of which nothing ended gets what is unfinished.
"""

from collections.abc import Iterable
from numbers import Real
from typing import Any

import keras
import numpy as np
from keras import ops

from tfpe.migration.layers import MASKED, padding_bias
from tfpe.migration.model import Migrated, layer_of

END = 1
# Lengths are rounded up to a multiple of this, as each one is compiled anew.
BLOCK = 8


def decode(
    loaded: Migrated,
    rows: Iterable[Any],
    *,
    beams: int = 1,
    alpha: float = 0.6,
    extra_length: int = 50,
) -> tuple[list[Any], np.ndarray]:
    """Returns what a model makes of each row, and the scores.

    Args:
        loaded: what `load` returned.
        rows: list of lists of ids without an end, or of texts. A language model
            continues them.
        beams: int >= 1, number of sequences that are followed; 1 is greedy.
        alpha: float, 0 for no length penalty; the larger, the longer the sequences.
        extra_length: int >= 0, number of steps beyond the longest row with its end;
            of a language model, the number of ids that follow.

    Returns:
        List of lists of ids without the end, or of texts if texts were given, and
        float32 array of their scores.

    Raises:
        ValueError: if the model can't be decoded or an argument does not fit it.
    """
    layer = layer_of(loaded.model)
    _require_decodable(loaded.model, layer)
    _require_counts(beams, extra_length)
    if not isinstance(alpha, Real) or not np.isfinite(alpha):
        raise ValueError(f"`alpha` must be a finite number. Received: alpha={alpha!r}")
    if isinstance(rows, str):
        raise ValueError(f"`rows` must be a list of texts or rows. Received: {rows!r}")
    rows = list(rows)
    continues = "inputs" not in loaded.model.input
    texts = bool(rows) and all(isinstance(row, str) for row in rows)
    if texts:
        rows = _encoded(loaded, rows, continues)
    rows = [_as_row(row, layer) for row in rows]
    if not continues and not all(rows):
        raise ValueError("`rows` must have a text or ids each. Received: an empty one")
    make = _continued if continues else _translated
    found, scores = make(_Decoder(layer, beams, alpha), rows, extra_length)
    if texts:
        found = [loaded.target_text.decode(ids) for ids in found]
    return found, scores


def _encoded(loaded, texts, continues):
    encoder = loaded.target_text if continues else loaded.source_text
    if encoder is None or loaded.target_text is None:
        raise ValueError(
            "`rows` must be ids, as no vocabulary was given to `load`, or one for "
            "only one side. Received: texts"
        )
    return [encoder.encode(text) for text in texts]


def _translated(decoder, rows, extra_length):
    if not rows:
        return [], np.zeros(0, "float32")
    width = 1 + max(map(len, rows))
    inputs = np.zeros((len(rows), _rounded(width)), "int32")
    for ids, row in zip(inputs, rows, strict=True):
        ids[: len(row) + 1] = [*row, END]
    starts = np.zeros((len(rows), 0), "int32")
    return decoder.run(starts, width + extra_length, inputs)


def _continued(decoder, rows, extra_length):
    """Decodes rows of the same length together, as steps count from their start."""
    found, scores = [None] * len(rows), np.zeros(len(rows), "float32")
    for length in sorted({len(row) for row in rows}):
        places = [i for i, row in enumerate(rows) if len(row) == length]
        starts = np.array([rows[i] for i in places], "int32")
        starts = starts.reshape(len(places), length)
        ids, scores[places] = decoder.run(starts, length + extra_length)
        for place, row in zip(places, ids, strict=True):
            found[place] = row[length:]
    return found, scores


class _Decoder:
    """Decodes a batch with compiled loops and a cache of keys and values."""

    def __init__(self, layer, beams, alpha):
        self.layer, self.beams, self.alpha = layer, beams, np.float32(alpha)
        self.encode, self.fill, greedy, beam_search = _compiled(layer)
        self.search = greedy if beams == 1 else beam_search

    def run(self, starts, length, inputs=None):
        """Returns lists of ids without the end, and scores.

        Args:
            starts: int32 `(batch, steps)`, the ids that are given.
            length: int, the largest number of steps, with those.
            inputs: int32 `(batch, input length)`, or `None` of a language model.
        """
        batch, given = starts.shape
        if length == given:
            return starts.tolist(), np.zeros(batch, "float32")
        memory = ()
        if inputs is not None:
            memory = self.encode(ops.convert_to_tensor(inputs))
        cache = self.layer.empty_cache(batch * self.beams, _rounded(length))
        before = np.zeros((batch, self.beams), "int32")
        for index in range(given):
            cache = self.fill(*_tensors(before, np.int32(index)), cache, memory)
            before = np.repeat(starts[:, index : index + 1], self.beams, axis=1)
        limits = (np.int32(given), np.int32(length), self.alpha)
        ids, scores = self.search(*_tensors(before, *limits), cache, memory)
        ids = ops.convert_to_numpy(ids)[:, given:length]
        rows = [[*a, *b] for a, b in zip(starts.tolist(), ids.tolist(), strict=True)]
        ends = [[*row, END].index(END, given) for row in rows]
        cut = [row[:end] for row, end in zip(rows, ends, strict=True)]
        return cut, ops.convert_to_numpy(scores)


def _tensors(*arrays):
    return map(ops.convert_to_tensor, arrays)


def _rounded(length):
    return -(-length // BLOCK) * BLOCK


def _compiled(layer):
    """Returns the functions of a layer, compiled once for its weights."""
    functions = [make(layer) for make in (_encoding, _filling, _greedy, _beam_search)]
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if not hasattr(layer, "compiled"):
            # Without XLA TensorFlow 2.21 optimizes some of these loops to no result.
            layer.compiled = [tf.function(f, jit_compile=True) for f in functions]
        return layer.compiled
    if backend == "jax":
        import jax

        # It makes constants of the weights.
        values = tuple(weight.value for weight in layer.weights)
        kept, compiled = getattr(layer, "compiled", ((), None))
        if [*map(id, kept)] != [*map(id, values)]:
            compiled = [*map(jax.jit, functions)]
            layer.compiled = values, compiled
        return compiled
    return functions


def _encoding(layer):
    def encode(ids):
        bias = padding_bias(ids)
        return layer.crossing(layer.encode(ids, bias)), bias

    return encode


def _filling(layer):
    def fill(before, index, cache, memory):
        return _step(layer, before, index, cache, memory)[1]

    return fill


def _greedy(layer):
    def greedy(before, start, stop, alpha, cache, memory):
        """Returns ids by row and step, and the scores of the rows."""
        ids = _no_ids(before, cache)[:, 0]
        logs = ops.cast(ids, "float32")

        def goes_on(index, before, alive, ids, logs, cache):
            return ops.logical_and(index < stop, ops.any(alive))

        def step(index, before, alive, ids, logs, cache):
            new, cache = _step(layer, before, index, cache, memory)
            best = ops.cast(ops.argmax(new, axis=-1), "int32")
            before = ops.where(alive, best, 0)
            ids = ops.slice_update(ids, (0, index), before)
            best = ops.where(alive, ops.max(new, axis=-1), 0.0)
            logs = ops.slice_update(logs, (0, index), best)
            alive = ops.logical_and(alive, ops.not_equal(before, END))
            return index + 1, before, alive, ids, logs, cache

        alive = ops.ones_like(before, dtype="bool")
        state = (start, before, alive, ids, logs, cache)
        _, _, _, ids, logs, _ = ops.while_loop(goes_on, step, state)
        logs, ends = ops.sum(logs, axis=1), ops.equal(ids, END)
        ended = logs / _penalty(ops.argmax(ends, axis=1) + 1, alpha)
        return ids, ops.where(ops.any(ends, axis=1), ended, logs)

    return greedy


def _beam_search(layer):
    def beam_search(before, start, stop, alpha, cache, memory):
        """Returns ids by row and step, and the scores of the rows.

        `alive` has the sequences that are followed, and `logs` their logarithms;
        `done` those that ended, and `scores` theirs.
        """
        batch, beams = before.shape
        first = beams * ops.arange(batch, dtype="int32")[:, None]

        def goes_on(index, before, parents, alive, logs, done, scores, cache):
            # No sequence gets better than its logarithm over the largest penalty.
            bound = logs[:, 0] / _penalty(stop, alpha)
            better = ops.all(ops.max(scores, axis=1) > bound)
            return ops.logical_and(index < stop, ops.logical_not(better))

        def step(index, before, parents, alive, logs, done, scores, cache):
            rows = ops.reshape(first + parents, (-1,))
            cache = [[ops.take(a, rows, axis=0) for a in pair] for pair in cache]
            new, cache = _step(layer, before, index, cache, memory)
            # Twice as many, so that enough are left when all of them end at once.
            new, ids = ops.top_k(new, min(2 * beams, new.shape[-1]))
            count = new.shape[-1]
            grown = ops.reshape(logs[:, :, None] + new, (batch, -1))
            grown, places = ops.top_k(grown, 2 * beams)
            ids = ops.take_along_axis(ops.reshape(ids, (batch, -1)), places, axis=1)
            ids, parents = ops.cast(ids, "int32"), ops.cast(places, "int32") // count
            followed = ops.take_along_axis(alive, parents[:, :, None], axis=1)
            followed = ops.slice_update(followed, (0, 0, index), ids[:, :, None])
            ends = ops.equal(ids, END)

            finals = ops.where(ends, grown / _penalty(index + 1, alpha), -np.inf)
            scores, kept = ops.top_k(ops.concatenate([scores, finals], axis=1), beams)
            done = ops.concatenate([done, followed], axis=1)
            done = ops.take_along_axis(done, kept[:, :, None], axis=1)

            logs, kept = ops.top_k(ops.where(ends, -np.inf, grown), beams)
            alive = ops.take_along_axis(followed, kept[:, :, None], axis=1)
            before = ops.take_along_axis(ids, kept, axis=1)
            parents = ops.take_along_axis(parents, kept, axis=1)
            return index + 1, before, parents, alive, logs, done, scores, cache

        none = _no_ids(before, cache)
        scores = ops.full((batch, beams), -np.inf, "float32")
        logs = ops.where(ops.arange(beams) > 0, scores, 0.0)
        state = (start, before, ops.zeros_like(before), none, logs, none, scores, cache)
        _, _, _, alive, logs, done, scores, _ = ops.while_loop(goes_on, step, state)
        unfinished = ops.isinf(scores[:, 0])
        ids = ops.where(unfinished[:, None], alive[:, 0], done[:, 0])
        return ids, ops.where(unfinished, logs[:, 0], scores[:, 0])

    return beam_search


def _step(layer, before, index, cache, memory):
    """Returns the logarithms `(batch, beams, symbols)` after ids, and the cache."""
    places = ops.arange(cache[0][0].shape[2], dtype="int32")
    bias = MASKED * ops.cast(places > index, "float32")[None, None, None]
    ids = ops.reshape(before, (-1, 1))
    logits, cache = layer.decode(ids, bias, memory or None, None, index, cache)
    logits = ops.reshape(ops.cast(logits, "float32"), (*before.shape, -1))
    return ops.log_softmax(logits), cache


def _no_ids(before, cache):
    return ops.zeros((*before.shape, cache[0][0].shape[2]), "int32")


def _penalty(steps, alpha):
    return ((5 + ops.cast(steps, "float32")) / 6) ** alpha


def _require_decodable(model, layer):
    if "classes" in layer.w:
        raise ValueError("A classifier can't be decoded: its logits are of classes")
    if any(name.endswith("_segmentation") for name in model.input):
        raise ValueError(
            "A model of packed examples can't be decoded, as its rows hold several"
        )


def _require_counts(beams, extra_length):
    for name, value, least in (("beams", beams, 1), ("extra_length", extra_length, 0)):
        whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
        if not whole or value < least:
            raise ValueError(
                f"`{name}` must be an integer >= {least}. Received: {name}={value!r}"
            )


def _as_row(row, layer):
    table = layer.w.get("inputs/embedding", layer.w["targets/embedding"])
    count = table.shape[0]
    array = np.asarray(row)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise ValueError(
            f"`rows` must be lists of ids, or all texts. Received: {row!r}"
        )
    if array.size and not 0 <= array.min() <= array.max() < count:
        raise ValueError(
            f"`rows` must have ids from 0 to {count - 1}. Received: {row!r}"
        )
    return array.tolist()
