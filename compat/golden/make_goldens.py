"""Calls tensor2tensor's position functions and writes down what they return.

    python compat/golden/make_goldens.py FOLDER

writes `goldens.json` and `goldens.npz`, in the form of the files that stand beside
this script and with the same calls, but with random numbers of its own. It runs in
the environment that `make compat-live` builds.
"""

import json
import sys
from pathlib import Path

import numpy as np
from package import MADE_BY, common_attention, common_layers, tf, transformer

RANDOM = np.random.default_rng(20170612)
CHANNELS = (1, 2, 3, 4, 5, 8, 9, 64, 127, 512)


class Goldens:
    """The calls so far and their arrays."""

    def __init__(self):
        self.cases, self.arrays = [], {}

    def add(self, function, call, kwargs, **arrays):
        """Runs a call in a graph of its own and keeps what came of it.

        Args:
            function: str, what was called.
            call: callable, from `arrays` as tensors to the result.
            kwargs: dict, the plain arguments.
            **arrays: the array arguments.
        """
        with tf.Graph().as_default(), tf.Session() as session:
            tf.set_random_seed(len(self.cases))
            result = call(**{n: tf.constant(array) for n, array in arrays.items()})
            tables = tf.global_variables()
            session.run(tf.global_variables_initializer())
            out, values = session.run([tf.cast(result, "float32"), tables])
        names = (
            ["table"] if len(tables) == 1 else [f"table_{v.name[-3]}" for v in tables]
        )
        kept = {**arrays, **dict(zip(names, values, strict=True))}
        number = len(self.cases)
        self.cases.append(
            {
                "function": function,
                "kwargs": kwargs,
                "arrays": {name: f"{number}/{name}" for name in kept},
                "out": f"{number}/out",
                "out_dtype": result.dtype.name,
                "finite": bool(np.isfinite(out).all()),
            }
        )
        self.arrays[f"{number}/out"] = out
        self.arrays.update({f"{number}/{name}": a for name, a in kept.items()})

    def write(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"made_by": MADE_BY, "cases": self.cases}, indent=1)
        (folder / "goldens.json").write_text(text + "\n")
        np.savez_compressed(folder / "goldens.npz", **self.arrays)


def normal(*shape):
    return RANDOM.normal(size=shape).astype("float32")


def integers(high, *shape):
    return RANDOM.integers(0, high, shape).astype("int32")


def signals(goldens):
    """The signal by itself."""
    ends = ("min_timescale", "max_timescale")
    for channels in CHANNELS:
        calls = [
            (length, 1.0, 1.0e4, start)
            for length in (0, 1, 7, 50)
            for start in (0, 3, 1000)
        ]
        calls += [
            (50, low, high, start)
            for low, high in ((2.0, 1.0e4), (1.0, 100.0), (0.5, 1000.0))
            for start in (0, 3)
        ]
        for length, low, high, start in calls:
            kwargs = {"length": length, "channels": channels}
            kwargs.update(zip(ends, (low, high), strict=True), start_index=start)
            goldens.add(
                "get_timing_signal_1d",
                lambda kwargs=kwargs: common_attention.get_timing_signal_1d(**kwargs),
                kwargs,
            )


def additions(goldens):
    """The signal added, at consecutive and at given positions."""

    def add(function, kwargs, *arrays):
        call = getattr(common_attention, function)
        goldens.add(
            function,
            lambda x, **rest: call(x, *rest.values(), **kwargs),
            kwargs,
            **dict(arrays),
        )

    for channels in CHANNELS:
        x = ("x", normal(2, 7, channels))
        p, q = ("p", integers(1000, 2, 7)), ("q", integers(300, 2, 7))
        add("add_timing_signal_1d", {"start_index": 3}, x)
        add("add_timing_signal_1d_given_position", {}, x, ("position", p[1]))
        if channels >= 4:
            for names, arrays in ((["p", "q"], (x, p, q)), ([None, "q"], (x, q))):
                goldens.add(
                    "add_timing_signals_given_positions",
                    lambda x, names=names, **rest: (
                        common_attention.add_timing_signals_given_positions(
                            x, [n and rest[n] for n in names]
                        )
                    ),
                    {"positions": names},
                    **dict(arrays),
                )
            names = ",q" if channels < 8 else "p,,q"
            goldens.add(
                "add_timing_signals_from_features",
                lambda x, names=names, **rest: (
                    common_attention.add_timing_signals_from_features(x, rest, names)
                ),
                {"position_features": names},
                **dict((x, p, q)),
            )
        number = {"channels": channels, "layer": 2, "num_layers": 6}
        goldens.add(
            "get_layer_timing_signal_sinusoid_1d",
            lambda number=number: common_attention.get_layer_timing_signal_sinusoid_1d(
                **number
            ),
            number,
        )
        add("add_layer_timing_signal_sinusoid_1d", {"layer": 1, "num_layers": 4}, x)

    for shape in (
        (2, 3, 4, 4),
        (1, 3, 4, 5),
        (1, 3, 4, 7),
        (1, 3, 4, 8),
        (2, 5, 2, 9),
        (1, 4, 3, 16),
        (1, 2, 3, 4, 12),
        (1, 2, 3, 4, 14),
        (2, 6, 5),
    ):
        add("add_timing_signal_nd", {}, ("x", normal(*shape)))
    for dtype in ("float16", "bfloat16"):
        goldens.add(
            "add_timing_signal_1d",
            lambda x, dtype=dtype: common_attention.add_timing_signal_1d(
                tf.cast(x, dtype)
            ),
            {"x_dtype": dtype},
            x=normal(2, 9, 8),
        )


def learned(goldens):
    """What is learned: the variables are kept as tables."""
    for (batch, length, depth), rows in (
        ((2, 6, 8), 10),
        ((2, 6, 8), 4),
        ((1, 5, 7), 5),
    ):
        for given in ({}, {"positions": integers(rows, batch, length)}):
            goldens.add(
                "add_positional_embedding",
                lambda x, rows=rows, **given: common_attention.add_positional_embedding(
                    x, rows, "table", **given
                ),
                {"max_length": rows},
                x=normal(batch, length, depth),
                **given,
            )
    goldens.add(
        "add_positional_embedding_nd",
        lambda x: common_attention.add_positional_embedding_nd(x, 9, "table"),
        {"max_length": 9},
        x=normal(2, 3, 4, 6),
    )


def learned_layer(goldens, channels):
    number = {"layer": 1, "num_layers": 3}
    goldens.add(
        "add_layer_timing_signal_learned_1d",
        lambda x: common_attention.add_layer_timing_signal_learned_1d(x, **number),
        number,
        x=normal(2, 4, channels),
    )


def older(goldens):
    """The functions of `common_layers`."""
    for length, scales, depth in ((9, 3, 9), (5, 16, 35)):
        kwargs = {"length": length, "num_timescales": scales}
        goldens.add(
            "common_layers.get_timing_signal",
            lambda kwargs=kwargs: common_layers.get_timing_signal(**kwargs),
            kwargs,
        )
        goldens.add(
            "common_layers.add_timing_signal",
            lambda x, scales=scales: common_layers.add_timing_signal(
                x, num_timescales=scales
            ),
            {"num_timescales": scales},
            x=normal(2, length, 3, depth),
        )


ENCODER = ("encoder_input", "self_attention_bias", "encoder_decoder_attention_bias")
DECODER = ("decoder_input", "self_attention_bias")
SEGMENTS = np.array([[1, 1, 1, 2, 2], [1, 2, 2, 2, 0]], "int32")
WITHIN = np.array([[0, 1, 2, 0, 1], [0, 0, 1, 2, 0]], "int32")


def add_prepared(goldens, side, names, kwargs, arrays):
    """Keeps one result of each name of preparing the encoder or the decoder."""
    hparams = transformer.transformer_base()
    for name in ("pos", "position_features", "max_length"):
        hparams.set_hparam(name, kwargs.get(name, hparams.get(name)))
    kinds = ("_segmentation", "_position") if kwargs.get("packed") else ()

    def call(index, inputs=None, targets=None, **rest):
        found = {n: t for n, t in rest.items() if n == "p" or n.endswith(kinds)}
        if side == "encoder":
            prepare = transformer.transformer_prepare_encoder
            return prepare(inputs, None, hparams, features=found)[index]
        prepare = transformer.transformer_prepare_decoder
        return prepare(targets, hparams, features=found)[index]

    for index, name in enumerate(names):
        goldens.add(
            f"transformer_prepare_{side}",
            lambda index=index, **tensors: call(index, **tensors),
            {**kwargs, "returns": name},
            **arrays,
        )


def prepared(goldens, channels):
    """The inputs of the encoder and the decoder, and their biases."""
    inputs, targets = normal(2, 5, channels), normal(2, 5, channels)
    inputs[0, 3:] = 0  # padding
    packed = {"inputs_segmentation": SEGMENTS, "inputs_position": WITHIN}
    packed["targets_segmentation"] = SEGMENTS
    timing, none = {"pos": "timing"}, {"pos": "none"}
    for side, names, kwargs, arrays in (
        ("decoder", DECODER, timing, {"targets": targets}),
        ("decoder", DECODER[:1], none, {"targets": targets}),
        ("encoder", ENCODER[:2], timing, {"inputs": inputs}),
        (
            "encoder",
            ENCODER[:2],
            {**timing, "packed": True},
            {"inputs": inputs, **packed},
        ),
    ):
        add_prepared(goldens, side, names, kwargs, arrays)


def prepared_in_every_way(goldens, channels):
    inputs, targets = normal(2, 5, channels), normal(2, 5, channels)
    inputs[0, 3:] = 0  # padding
    common = {"targets_segmentation": SEGMENTS, "p": SEGMENTS}
    for pos in ("timing", "timing_from_features", "emb"):
        for packed in (False, True):
            kwargs = {"pos": pos, "packed": packed}
            kwargs.update(position_features="p,", max_length=7)
            arrays = {"targets": targets, "targets_position": WITHIN, **common}
            add_prepared(goldens, "decoder", DECODER, kwargs, arrays)
            arrays = {
                "inputs": inputs,
                "inputs_segmentation": SEGMENTS,
                "inputs_position": WITHIN,
                **common,
            }
            add_prepared(goldens, "encoder", ENCODER, kwargs, arrays)


def main(folder):
    goldens = Goldens()
    signals(goldens)
    additions(goldens)
    learned(goldens)
    for channels in (8, 5):
        prepared(goldens, channels)
    older(goldens)
    for channels in (8, 5):
        learned_layer(goldens, channels)
        prepared_in_every_way(goldens, channels)
    goldens.write(Path(folder))
    unusable = sum(not case["finite"] for case in goldens.cases)
    print(f"{len(goldens.cases)} calls, {unusable} of them not finite")


if __name__ == "__main__":
    main(*sys.argv[1:])
