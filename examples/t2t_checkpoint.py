"""A checkpoint of tensor2tensor's `transformer` as a Keras model.

    .venv/bin/python examples/t2t_checkpoint.py CHECKPOINT --heads 8 --save model.keras
    .venv/bin/python examples/t2t_checkpoint.py CHECKPOINT --heads 8 \
        --vocab vocab.txt --decode keras tensor --beams 4

CHECKPOINT is a folder or the common part of its files' names. The saved model
loads in plain Keras after `import tfpe`.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow starts.

import numpy as np
from beam_search import END, beam_search
from decoding import greedy
from t2t_variables import TARGET_SPACES, Variables, body_variables
from transformer import layers_by_name, transformer

import tfpe

# Which axis of a layer's weights the residual stream runs along, by the last word
# of the layer's name.
RESIDUAL_AXES = {
    "embedding": {"embeddings": 1, "reverse_embeddings": 0},
    "space": {"embeddings": 1},
    "norm": {"gamma": 0, "beta": 0},
    "query": {"kernel": 0},
    "key": {"kernel": 0},
    "value": {"kernel": 0},
    "output": {"kernel": 2},
    "in": {"kernel": 0},
    "out": {"kernel": 1, "bias": 0},
}


def load_transformer(
    checkpoint,
    num_heads,
    layout="concatenated",
    *,
    target_space=0,
    target_vocabulary=None,
):
    """Returns the Keras model of a checkpoint of tensor2tensor's `transformer`.

    It maps `{"inputs": ids, "targets": ids}`, int32 `(batch, length)` each, to
    logits `(batch, target length, vocabulary)`. Like tensor2tensor it shifts the
    targets itself. What the variables tell is not asked for: sizes, number of
    blocks, shared or separate embeddings in any number of shards.

    Args:
        checkpoint: folder with a checkpoint, or the common part of its files' names.
        num_heads: int, number of attention heads.
        layout: layout of the positional encoding. For one that is not
            tensor2tensor's the weights are permuted, and the logits stay the same.
        target_space: int, number of the target space; used if the model has them.
        target_vocabulary: int, number of ids of the targets; used if inputs and
            targets have different ones and the names don't tell which is which.

    Raises:
        ValueError: if the checkpoint can't be read or is not of such a model, with
            the variables that are missing, unknown or have another shape; or if an
            argument does not fit it.
    """
    found = Variables(checkpoint)
    tables = found.tables(target_vocabulary)
    settings = _settings(found, tables, num_heads)
    model = transformer(layout="concatenated", **settings)
    layers = layers_by_name(model)
    body = dict(body_variables(*settings["blocks"]))
    found.check(_expected_shapes(found, tables, body, layers))

    for layer, names in body.items():
        pairs = zip(names, layers[layer].weights, strict=True)
        layers[layer].set_weights([found.value(n).reshape(w.shape) for n, w in pairs])
    weights = [found.table(tables["targets"])]
    if not settings["tied"]:
        weights.append(found.table(tables["softmax"]).T)
    layers["embedding"].set_weights(weights)
    if settings["inputs_vocabulary"] is not None:
        layers["inputs_embedding"].set_weights([found.table(tables["inputs"])])
    if settings["target_space"]:
        spaces = found.value(TARGET_SPACES)
        if not 0 <= target_space < len(spaces):
            raise ValueError(
                f"`target_space` must be from 0 to {len(spaces) - 1}. Received: "
                f"target_space={target_space}"
            )
        layers["target_space"].set_weights([spaces[[target_space]]])

    if layout == "concatenated":
        return model
    other = transformer(layout=layout, **settings)
    other.set_weights(permuted_weights(model, layout))
    return other


def _settings(found, tables, num_heads):
    """Returns the arguments of `transformer` that the variables tell."""
    hidden = found.shapes[tables["targets"][0]][-1]
    if num_heads < 1 or hidden % num_heads:
        raise ValueError(
            f"`num_heads` must divide the hidden size, {hidden}. Received: "
            f"num_heads={num_heads}"
        )
    blocks, filter_size = found.sizes()
    own_inputs = tables["inputs"] != tables["targets"]
    return {
        "vocabulary": found.rows(tables["targets"]),
        "inputs_vocabulary": found.rows(tables["inputs"]) if own_inputs else None,
        "tied": tables["softmax"] == tables["targets"],
        "hidden": hidden,
        "heads": num_heads,
        "blocks": blocks,
        "filter_size": filter_size,
        "target_space": TARGET_SPACES in found.shapes,
        "spectrum": "tensor2tensor",
    }


def _expected_shapes(found, tables, body, layers):
    """Returns the shape that each variable must have, by name."""
    hidden = layers["embedding"].output_dim
    free = [name for shards in tables.values() for name in shards]
    if "target_space" in layers:
        free.append(TARGET_SPACES)
    expected = {name: (found.shapes[name][0], hidden) for name in free}
    for layer, names in body.items():
        for name, weight in zip(names, layers[layer].weights, strict=True):
            # The kernels of attention have one axis more here, that of the heads.
            square = len(weight.shape) == 3
            expected[name] = (hidden, hidden) if square else tuple(weight.shape)
    return expected


def permuted_weights(model, layout):
    """Returns the weights that a model has in another layout.

    The positional encoding is added to the residual stream, so the channels of the
    stream can be put in any order, if every weight that touches them follows: the
    model that gets these weights, with the same spectrum, has the same logits.

    Args:
        model: a model that `transformer` or `load_transformer` made.
        layout: the layout that is wanted.

    Returns:
        List of arrays, for `set_weights` of the model in that layout.
    """
    own = layers_by_name(model)["positions"].get_config()["layout"]
    hidden = model.get_layer("embedding").output_dim
    order = tfpe.layout_permutation(hidden, own, layout)
    permuted = []
    for layer in model.layers:
        axes = RESIDUAL_AXES.get(layer.name.rpartition("_")[2], {})
        for weight in layer.weights:
            value = weight.numpy()
            axis = axes.get(weight.name)
            permuted.append(value if axis is None else value.take(order, axis))
    return permuted


class Symbols:
    """The symbols of a vocabulary file, one a line, in the order of their ids.

    Symbols in single quotes, as tensor2tensor writes subwords, lose them.
    """

    def __init__(self, path):
        lines = Path(path).read_text(encoding="utf-8").splitlines()
        self._symbols = [
            s[1:-1] if len(s) > 2 and s[0] == s[-1] == "'" else s for s in lines
        ]
        self._ids = {symbol: i for i, symbol in enumerate(self._symbols)}

    def encode(self, text):
        """Returns the ids of a text, cut into the longest symbols there are."""
        ids, start = [], 0
        while start < len(text):
            ends = range(len(text), start, -1)
            found = next((e for e in ends if text[start:e] in self._ids), None)
            if found is None:
                raise ValueError(f"no symbol for {text[start]!r} in {text!r}")
            ids.append(self._ids[text[start:found]])
            start = found
        return ids

    def decode(self, ids):
        # A model may have more ids, to make their number a round one.
        known = len(self._symbols)
        return " ".join(self._symbols[i] if i < known else f"<{i}>" for i in ids)


class Numbers:
    """Plain ids with commas between them, for want of a vocabulary."""

    @staticmethod
    def encode(text):
        try:
            return [int(number) for number in text.split(",")]
        except ValueError:
            raise ValueError(
                "`--decode` must be ids with commas between them, or words with a "
                f"`--vocab`. Received: {text!r}"
            ) from None

    @staticmethod
    def decode(ids):
        return ",".join(map(str, ids))


def decoded(model, rows, extra_length=50, beams=1, alpha=0.6):
    """Returns what a model makes of lists of ids, as lists of ids without the end.

    Args:
        model: a model that `load_transformer` made, or its copy from a file.
        rows: list of lists of ids, without an end.
        extra_length: int, number of steps beyond the length of the longest row.
        beams: int, number of beams; 1 is greedy decoding.
        alpha: float, of the length penalty, with beams.

    Raises:
        ValueError: if an id is beyond the vocabulary.
    """
    layers = layers_by_name(model)
    vocabulary = layers.get("inputs_embedding", layers["embedding"]).input_dim
    largest = max(max(row) for row in rows)
    if largest >= vocabulary:
        raise ValueError(f"the model has ids below {vocabulary}, not {largest}")
    width = 1 + max(map(len, rows))
    inputs = np.zeros((len(rows), width), "int32")
    for ids, row in zip(inputs, rows, strict=True):
        ids[: len(row) + 1] = [*row, END]
    steps = width + extra_length
    if beams == 1:
        found, _ = greedy(model, inputs, steps)
    else:
        found = beam_search(model, inputs, steps, beams, alpha)[0][:, 0]
    return [row[: [*row, END].index(END)] for row in found.tolist()]


def main(arguments=None):
    options = parse(arguments)
    try:
        model = load_transformer(
            options.checkpoint,
            options.heads,
            options.layout,
            target_space=options.target_space,
            target_vocabulary=options.target_vocabulary,
        )
        print(f"{model.count_params():,} weights in the {options.layout} layout")
        if options.save:
            model.save(options.save)
            print(f"saved as {options.save}")
        if options.decode:
            source = Symbols(options.vocab) if options.vocab else Numbers
            target = Symbols(options.target_vocab) if options.target_vocab else source
            rows = [source.encode(word) for word in options.decode]
            made = decoded(
                model, rows, options.extra_length, options.beams, options.alpha
            )
            for word, ids in zip(options.decode, made, strict=True):
                print(f"{word:15} {target.decode(ids)}")
    except (ValueError, OSError) as error:
        sys.exit(f"t2t_checkpoint.py: {error}")


def parse(arguments):
    parser = argparse.ArgumentParser(
        description="Load a checkpoint of tensor2tensor's transformer into Keras.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    add = parser.add_argument
    add("checkpoint", help="a folder, or the common part of the files' names")
    add("--heads", type=int, required=True, metavar="N", help="attention heads")
    layouts = ("concatenated", "interleaved")
    add("--layout", choices=layouts, default=layouts[0], help="of the positions")
    add("--target-space", type=int, default=0, metavar="N", help="its number")
    add("--target-vocabulary", type=int, metavar="N", help="ids of the targets")
    add("--save", metavar="FILE.keras", help="write the model to a file")
    add("--decode", nargs="+", metavar="WORD", help="ids with commas if no --vocab")
    add("--vocab", metavar="FILE", help="a symbol on each line")
    add("--target-vocab", metavar="FILE", help="that of the targets, if another")
    add("--beams", type=int, default=1, metavar="N", help="1 is greedy decoding")
    add("--alpha", type=float, default=0.6, help="of the length penalty, with beams")
    add("--extra-length", type=int, default=50, help="steps beyond the input's")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
