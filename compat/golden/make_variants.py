"""Has tensor2tensor write small checkpoints of the kinds of models that people have.

    python compat/golden/make_variants.py FOLDER

writes a folder for each of `VARIANTS`, with a checkpoint, `hparams.json`,
`flags_t2t.txt` and `reference.npz`: ids, logits, greedy decodes and beam searches. It
runs in the environment that `make compat-live` builds.
"""

import sys
from pathlib import Path

import numpy as np
from package import models, problem_of, tf

SIZES = {
    "hidden_size": 32,
    "num_heads": 4,
    "filter_size": 64,
    "num_hidden_layers": 2,
    "symbol_modality_num_shards": 1,
    "max_length": 64,
}
SYMBOLS, CLASSES = 61, 3
ROWS, LENGTH, EXTRA = 12, 10, 8
BEAMS, ALPHA = 4, 0.6
SPACE = 3
BASE = ("transformer", "transformer_base", "pair")
UNIVERSAL = ("universal_transformer", "universal_transformer_base", "pair")

# Model, set of hyperparameters, what is in an example, and what else differs.
VARIANTS = {
    "postnorm_v1": ("transformer", "transformer_base_v1", "pair", {}),
    "language_model": ("transformer", "transformer_small", "text", {}),
    "position_emb": (*BASE, {"pos": "emb"}),
    "packed": ("transformer", "transformer_base", "packed", {}),
    "encoder_classifier": ("transformer_encoder", "transformer_tiny", "class", {}),
    "universal": (*UNIVERSAL, {"num_rec_steps": 3}),
    "universal_sinusoid": (
        *UNIVERSAL,
        {"num_rec_steps": 4, "step_timing_signal_type": "sinusoid"},
    ),
    "universal_encoder": (
        "universal_transformer_encoder",
        "universal_transformer_base",
        "class",
        {"num_rec_steps": 3},
    ),
    "unidirectional": (
        *BASE,
        {"unidirectional_encoder": True, "num_encoder_layers": 1},
    ),
    "silent/silent_pos_none": (
        "transformer",
        "transformer_base",
        "pair",
        {"pos": "none"},
    ),
    "silent/silent_epsilon": (*BASE, {"norm_epsilon": 0.01}),
    "silent/silent_embedding": (*BASE, {"multiply_embedding_mode": "none"}),
}


def main(folder):
    for number, (name, variant) in enumerate(VARIANTS.items()):
        write(Path(folder) / name, number, *variant)
        print(f"{name}: written")


def write(folder, number, model, hparams_set, kind, settings):
    """Writes a checkpoint with random values, and the model's results."""
    random = np.random.default_rng(number)
    folder.mkdir(parents=True, exist_ok=True)
    hparams = models.hparams(hparams_set)
    for name, value in {**SIZES, **settings}.items():
        hparams.set_hparam(name, value)
    (folder / "hparams.json").write_text(hparams.to_json(indent=0, sort_keys=True))
    flags = f"--model={model}\n--hparams_set={hparams_set}\n--problem=tiny_{kind}\n"
    (folder / "flags_t2t.txt").write_text(flags)
    arrays = examples(random, kind)
    sizes = {"inputs": SYMBOLS, "targets": CLASSES if kind == "class" else SYMBOLS}
    if kind == "text":
        del sizes["inputs"]
    problem = problem_of(sizes, kind == "class", hparams)
    path = str(folder / "model.ckpt-0")
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(number)
        evaluating = tf.estimator.ModeKeys.EVAL  # without dropout
        made = models.model(model)(hparams, evaluating, problem)
        logits, _ = made({**features(arrays), "target_space_id": tf.constant(SPACE)})
        session.run(tf.global_variables_initializer())
        for variable in tf.global_variables():
            # Far from where training starts, so that no two can be confused.
            value = session.run(variable)
            variable.load(value + random.normal(0, 0.2, value.shape), session)
        saver = tf.train.Saver(tf.global_variables(f"{model}/"))
        saver.save(session, path, write_meta_graph=False)
        arrays["logits"] = session.run(logits)[:, :, 0, 0]
    if kind in ("pair", "text"):
        with tf.Graph().as_default(), tf.Session() as session:
            predicting = tf.estimator.ModeKeys.PREDICT
            made = models.model(model)(hparams, predicting, problem)
            arrays |= decoded(session, made, path, arrays, random)
    # A text has no encoder, which would add the row of the target space.
    arrays["target_space_id"] = np.int32(0 if kind == "text" else SPACE)
    np.savez_compressed(folder / "reference.npz", **arrays)


def examples(random, kind):
    """Returns the ids of a batch by the name of their feature."""
    if kind == "packed":
        return {k: v for n in ("inputs", "targets") for k, v in packed(random, n)}
    arrays = {"inputs": ids(random, LENGTH), "targets": ids(random, LENGTH)}
    if kind == "class":
        arrays["targets"] = random.integers(0, CLASSES, (ROWS, 1)).astype("int32")
    if kind == "text":
        del arrays["inputs"]
    return arrays


def ids(random, length):
    """Returns rows with an end (1) and padding (0)."""
    rows = random.integers(2, SYMBOLS, (ROWS, length)).astype("int32")
    ends = random.integers(3, length, ROWS)
    ends[0] = length - 1  # The longest has no padding.
    for row, end in zip(rows, ends, strict=True):
        row[end] = 1
        row[end + 1 :] = 0
    return rows


def packed(random, name):
    """Yields ids of two examples in each row, their segments and positions."""
    pair = [ids(random, LENGTH), ids(random, LENGTH)]
    rows = np.zeros((3, ROWS, 2 * LENGTH), "int32")
    for row in range(ROWS):
        at = 0
        for segment, examples_ids in enumerate(pair, start=1):
            found = examples_ids[row][examples_ids[row] > 0]
            places = slice(at, at + len(found))
            rows[:, row, places] = found, [segment] * len(found), range(len(found))
            at += len(found)
    ends = ("", "_segmentation", "_position")
    yield from ((name + end, array) for end, array in zip(ends, rows, strict=True))


def features(arrays):
    return {
        # Symbols have two more axes there.
        name: tf.constant(a if "_" in name else a[:, :, None, None])
        for name, a in arrays.items()
    }


def decoded(session, model, path, arrays, random):
    """Returns greedy decodes and beam searches; of a text, of its continuations."""
    if "inputs" in arrays:
        batches, named = [arrays["inputs"]], {}
    else:
        partial = random.integers(2, SYMBOLS, (ROWS, 2)).astype("int32")
        # One at a time: of several rows tensor2tensor mixes up the beginnings.
        batches, named = [row[None] for row in partial], {"partial": partial}
    given = tf.placeholder(tf.int32, (None, None, 1, 1))
    known = {"inputs": given, "target_space_id": tf.constant(SPACE)}
    with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        greedy = model.infer(dict(known), EXTRA)["outputs"]
        # All beams: with fewer asked for it may stop earlier.
        beams = model.infer(dict(known), EXTRA, BEAMS, BEAMS, ALPHA)
    tf.train.Saver(tf.global_variables(f"{model.name}/")).restore(session, path)
    found = [
        session.run(
            [greedy, beams["outputs"], beams["scores"]], {given: b[..., None, None]}
        )
        for b in batches
    ]
    greedy, beams, scores = zip(*found, strict=True)
    return {
        **named,
        "greedy": _together([np.reshape(g, (len(g), -1)) for g in greedy]),
        "beams": _together(beams),
        "scores": np.concatenate(scores),
        "extra_length": np.int32(EXTRA),
    }


def _together(arrays):
    """Returns arrays of several lengths in one, with ends (1) where one has less."""
    longest = max(a.shape[-1] for a in arrays)
    widths = [[(0, 0)] * (a.ndim - 1) + [(0, longest - a.shape[-1])] for a in arrays]
    padded = [
        np.pad(*pair, constant_values=1) for pair in zip(arrays, widths, strict=True)
    ]
    return np.concatenate(padded)


if __name__ == "__main__":
    main(*sys.argv[1:])
