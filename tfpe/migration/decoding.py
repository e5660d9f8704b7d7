"""Greedy decoding and beam search as tensor2tensor does them.

A score is the logarithm of a sequence's probability. Of one that ended it is divided
by tensor2tensor's length penalty, `((5 + steps) / 6) ** alpha`, where the steps
include the end; only a row of which nothing ended gets what is unfinished.
"""

from collections.abc import Iterable
from typing import Any

import keras
import numpy as np
from keras import ops

from tfpe.migration.layers import MASKED, padding_bias
from tfpe.migration.model import Migrated, layer_of

END = 1
# Lengths are rounded up to a multiple of this, as each one is compiled anew.
BLOCK = 8
# XLA makes steps a third quicker, which small models don't win back from the seconds
# that it takes to compile them.
FEW_WEIGHTS = 2**20


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
    """Decodes a batch with one compiled step and a cache of keys and values."""

    def __init__(self, layer, beams, alpha):
        self.layer, self.beams, self.alpha = layer, beams, alpha
        self.encode, self.step = _compiled(layer)

    def run(self, starts, length, inputs=None):
        """Returns lists of ids without the end, and scores.

        Args:
            starts: int32 `(batch, steps)`, the ids that are given.
            length: int, the largest number of steps, with those.
            inputs: int32 `(batch, input length)`, or `None` of a language model.
        """
        batch, given = starts.shape
        self.memory = ()
        if inputs is not None:
            self.memory = self.encode(ops.convert_to_tensor(inputs))
        self.cache = self.layer.empty_cache(batch * self.beams, _rounded(length))
        before = np.zeros((batch, self.beams), "int32")
        for index in range(given):
            self._next(before, index)
            before = np.repeat(starts[:, index : index + 1], self.beams, axis=1)
        if length == given:
            return starts.tolist(), np.zeros(batch, "float32")
        search = self._greedy if self.beams == 1 else self._beams
        ids, scores = search(before, given, length)
        rows = [[*a, *b] for a, b in zip(starts.tolist(), ids.tolist(), strict=True)]
        ends = [[*row, END].index(END, given) for row in rows]
        cut = [row[:end] for row, end in zip(rows, ends, strict=True)]
        return cut, scores.astype("float32")

    def _next(self, before, index, parents=None):
        """Returns the best logarithms and their ids after the ids before a step."""
        rows = None
        if parents is not None:
            rows = (parents + self.beams * np.arange(len(parents))[:, None]).ravel()
            rows = ops.convert_to_tensor(rows.astype("int32"))
        logs, ids, self.cache = self.step(
            ops.convert_to_tensor(before.reshape(-1, 1)),
            ops.convert_to_tensor(np.int32(index)),
            rows,
            self.cache,
            self.memory,
            # Twice as many, so that enough are left when all of them end at once.
            2 * self.beams if self.beams > 1 else 1,
        )
        found = (ops.convert_to_numpy(array) for array in (logs, ids))
        return [array.reshape(*before.shape, -1) for array in found]

    def _greedy(self, before, start, length):
        made, logs = [], np.zeros(len(before))
        steps = np.full(len(before), length)
        alive = np.ones(len(before), bool)
        for index in range(start, length):
            best, ids = self._next(before, index)
            before = np.where(alive[:, None], ids[:, :, 0], 0).astype("int32")
            made.append(before[:, 0])
            logs += np.where(alive, best[:, 0, 0], 0)
            ended = alive & (before[:, 0] == END)
            steps[ended] = index + 1
            alive &= ~ended
            if not alive.any():
                break
        scores = np.where(alive, logs, logs / self._penalty(steps))
        return np.stack(made, axis=1), scores

    def _beams(self, before, start, length):
        batch, beams = before.shape
        alive = ended = np.zeros((batch, beams, 0), "int32")
        logs = np.full((batch, beams), -np.inf)
        logs[:, 0] = 0
        scores, parents = np.full((batch, beams), -np.inf), None
        for index in range(start, length):
            # No sequence gets better than its logarithm over the largest penalty.
            if (scores.max(axis=1) > logs[:, 0] / self._penalty(length)).all():
                break
            grown, ids = self._next(before, index, parents)
            grown = (logs[:, :, None] + grown).reshape(batch, -1)
            grown, place = _best(grown, 2 * beams)
            parents = place // ids.shape[2]
            symbols = np.take_along_axis(ids.reshape(batch, -1), place, axis=1)
            followed = np.take_along_axis(alive, parents[:, :, None], axis=1)
            followed = np.concatenate([followed, symbols[:, :, None]], axis=2)
            ends = symbols == END

            padded = np.pad(ended, [(0, 0), (0, 0), (0, 1)])
            ended = np.concatenate([padded, followed], axis=1)
            finals = np.where(ends, grown / self._penalty(index + 1), -np.inf)
            scores, kept = _best(np.concatenate([scores, finals], axis=1), beams)
            ended = np.take_along_axis(ended, kept[:, :, None], axis=1)

            logs, kept = _best(np.where(ends, -np.inf, grown), beams)
            alive = np.take_along_axis(followed, kept[:, :, None], axis=1)
            parents = np.take_along_axis(parents, kept, axis=1)
            before = alive[:, :, -1].astype("int32")
        unfinished = np.isneginf(scores[:, 0])
        ids = np.where(unfinished[:, None], alive[:, 0], ended[:, 0])
        return ids, np.where(unfinished, logs[:, 0], scores[:, 0])

    def _penalty(self, steps):
        return ((5 + steps) / 6) ** self.alpha


def _rounded(length):
    return -(-length // BLOCK) * BLOCK


def _best(values, count):
    """Returns the largest values of each row, in falling order, and their places."""
    lacking = max(0, count - values.shape[1])
    values = np.pad(values, [(0, 0), (0, lacking)], constant_values=-np.inf)
    places = np.argsort(-values, axis=1, kind="stable")[:, :count]
    best = np.take_along_axis(values, places, axis=1)
    return best, np.minimum(places, values.shape[1] - lacking - 1)


def _compiled(layer):
    """Returns the encoder and the step of a layer, compiled once for its weights."""
    functions = _encoder_of(layer), _step_of(layer)
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if not hasattr(layer, "compiled"):
            jit_compile = layer.count_params() > FEW_WEIGHTS
            step = tf.function(functions[1], jit_compile=jit_compile)
            layer.compiled = tf.function(functions[0]), step
        return layer.compiled
    if backend == "jax":
        import jax

        # It makes constants of the weights.
        values = tuple(weight.value for weight in layer.weights)
        kept, compiled = getattr(layer, "compiled", ((), None))
        if [*map(id, kept)] != [*map(id, values)]:
            compiled = jax.jit(functions[0]), jax.jit(functions[1], static_argnums=5)
            layer.compiled = values, compiled
        return compiled
    return functions


def _encoder_of(layer):
    def encode(ids):
        bias = padding_bias(ids)
        return layer.crossing(layer.encode(ids, bias)), bias

    return encode


def _step_of(layer):
    def step(ids, index, rows, cache, memory, count):
        if rows is not None:
            cache = [[ops.take(a, rows, axis=0) for a in pair] for pair in cache]
        places = ops.arange(cache[0][0].shape[2], dtype="int32")
        bias = MASKED * ops.cast(places > index, "float32")[None, None, None]
        logits, cache = layer.decode(ids, bias, memory or None, None, index, cache)
        logits = ops.cast(logits[:, 0], "float32")
        if count == 1:  # Quicker than to sort.
            best = ops.argmax(logits, axis=-1, keepdims=True)
            largest = ops.max(logits, axis=-1, keepdims=True)
        else:
            largest, best = ops.top_k(logits, min(count, logits.shape[-1]))
        return largest - ops.logsumexp(logits, axis=-1, keepdims=True), best, cache

    return step


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
