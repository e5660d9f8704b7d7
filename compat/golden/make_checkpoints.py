"""Has tensor2tensor write small checkpoints, and what it makes of them.

    python compat/golden/make_checkpoints.py FOLDER

writes a folder for each of `MODELS`, with a checkpoint and `reference.npz`:
logits, greedy decodes and beam searches of some random ids. For the trained
checkpoint in `g2p_checkpoint/` beside this script it writes the beam searches
that its own reference lacks, and checks the rest of it. It runs in the
environment that `make compat-live` builds.
"""

import sys
from pathlib import Path

import numpy as np
from package import problem_hparams, tf, transformer

G2P = Path(__file__).parent / "g2p_checkpoint"
EXTRA = 6  # steps of decoding beyond the length of the inputs
BEAMS, ALPHA = 4, 0.6

# What differs from `transformer_base`, besides the two vocabularies.
MODELS = {
    "sixteen_shards": {
        "vocabularies": (37, 37),
        "hidden_size": 16,
        "num_heads": 2,
        "filter_size": 24,
        "num_hidden_layers": 2,
    },
    "unshared": {
        "vocabularies": (29, 41),
        "hidden_size": 12,
        "num_heads": 4,
        "filter_size": 20,
        "num_encoder_layers": 1,
        "num_decoder_layers": 3,
        "symbol_modality_num_shards": 1,
        "shared_embedding_and_softmax_weights": False,
        "use_target_space_embedding": False,
    },
    "odd_hidden": {
        "vocabularies": (31, 31),
        "hidden_size": 15,
        "num_heads": 3,
        "filter_size": 11,
        "num_hidden_layers": 1,
        "symbol_modality_num_shards": 3,
        "shared_embedding": True,
        "shared_embedding_and_softmax_weights": False,
    },
}
TRAINED = {
    "vocabularies": (67, 67),
    "hidden_size": 64,
    "num_heads": 4,
    "filter_size": 256,
    "num_hidden_layers": 2,
    "symbol_modality_num_shards": 1,
}


class Model:
    """tensor2tensor's `transformer` in the default graph.

    Args:
        target_space: int, the number of the target space.
        **settings: as in `MODELS`.
    """

    def __init__(self, target_space, vocabularies, **settings):
        hparams = transformer.transformer_base()
        for name, value in settings.items():
            hparams.set_hparam(name, value)
        problem = problem_hparams.test_problem_hparams(*vocabularies, hparams)
        hparams.problem_hparams = problem
        evaluating = tf.estimator.ModeKeys.EVAL  # without dropout
        model = transformer.Transformer(hparams, evaluating, problem)
        self.ids = {
            name: tf.placeholder(tf.int32, (None, None, 1, 1), name)
            for name in ("inputs", "targets")
        }
        features = {**self.ids, "target_space_id": tf.constant(target_space)}
        self.logits, self.losses = model(features)
        del features["targets"]
        with tf.variable_scope(tf.get_variable_scope(), reuse=True):
            self.greedy = model._greedy_infer(features, EXTRA)
            # All beams: with fewer asked for it may stop earlier.
            self.beams = model._beam_decode(features, EXTRA, BEAMS, BEAMS, ALPHA)
        self.variables = tf.global_variables("transformer/")

    def reference(self, session, inputs, targets):
        """Returns what the model makes of ids, as a dict of arrays."""
        feed = {self.ids["inputs"]: inputs[..., None, None]}
        greedy, beams = session.run([self.greedy["outputs"], self.beams], feed)
        feed[self.ids["targets"]] = targets[..., None, None]
        logits = session.run(self.logits, feed)[:, :, 0, 0]
        return {
            "inputs": inputs,
            "targets": targets,
            "logits": logits,
            "greedy": greedy,
            "beams": beams["outputs"],
            "scores": beams["scores"],
        }


def random_ids(random, rows, length, vocabulary):
    """Returns ids with an end (1) and padding (0) in all rows but the first."""
    ids = random.integers(2, vocabulary, (rows, length)).astype("int32")
    for row, end in zip(ids[1:], random.integers(2, length, rows - 1), strict=True):
        row[end] = 1
        row[end + 1 :] = 0
    return ids


def write(folder, number, settings):
    """Writes a checkpoint with random values, and the model's results."""
    random = np.random.default_rng(number)
    folder.mkdir(parents=True, exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        tf.set_random_seed(number)
        model = Model(3, **settings)
        with tf.variable_scope("training"):  # as in tensor2tensor's own training
            step = tf.train.get_or_create_global_step()
            loss = tf.add_n(list(model.losses.values()))
            train = tf.train.AdamOptimizer(0.0).minimize(loss, step)
        session.run(tf.global_variables_initializer())
        for variable in model.variables:
            # Far from where training starts, so that no two can be confused.
            value = session.run(variable)
            variable.load(value + random.normal(0, 0.3, value.shape), session)
        vocabularies = settings["vocabularies"]
        ids = [
            random_ids(random, 5, length, size)
            for length, size in zip((7, 9), vocabularies, strict=True)
        ]
        feed = zip(model.ids.values(), ids, strict=True)
        session.run(train, {tensor: value[..., None, None] for tensor, value in feed})
        # One has all that training writes, for readers to pass over.
        saver = tf.train.Saver(None if number == 0 else model.variables)
        path = str(folder / "model.ckpt")
        saver.save(session, path, write_meta_graph=False, write_state=False)
        np.savez_compressed(folder / "reference.npz", **model.reference(session, *ids))


def write_trained(folder):
    """Checks the trained checkpoint's reference and adds beam searches."""
    theirs = np.load(G2P / "reference.npz")
    folder.mkdir(parents=True, exist_ok=True)
    with tf.Graph().as_default(), tf.Session() as session:
        model = Model(0, **TRAINED)
        saver = tf.train.Saver(model.variables)
        saver.restore(session, str(G2P / "model.ckpt"))
        made = model.reference(session, theirs["inputs"], theirs["targets"])
    error = abs(made.pop("logits") - theirs["logits"]).max()
    print(f"{G2P.name}: the logits differ from its reference by at most {error:.1e}")
    if error > 1e-5:
        raise SystemExit("this is another model, or another tensor2tensor")
    kept = {name: made[name] for name in ("inputs", "beams", "scores")}
    np.savez_compressed(folder / "beams.npz", **kept)


def main(folder):
    for number, (name, settings) in enumerate(MODELS.items()):
        write(Path(folder) / name, number, settings)
        print(f"{name}: written")
    write_trained(Path(folder) / "g2p_checkpoint")


if __name__ == "__main__":
    main(*sys.argv[1:])
