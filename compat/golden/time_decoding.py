"""Times how tensor2tensor decodes, for `python -m benchmarks.decoding` to compare.

    python compat/golden/time_decoding.py FOLDER

writes a checkpoint of random values, `hparams.json` and `reference.npz`: ids, their
decodes and the seconds that these took. It runs in the environment that
`make compat-live` builds.
"""

import sys
import time
from pathlib import Path

import numpy as np
from package import models, problem_of, tf

SIZES = {
    "hidden_size": 256,
    "num_heads": 4,
    "filter_size": 1024,
    "num_hidden_layers": 3,
    "symbol_modality_num_shards": 1,
}
SYMBOLS, ROWS, LENGTH, EXTRA = 8000, 32, 24, 24
BEAMS, ALPHA, TIMES = 4, 0.6, 5


def main(folder):
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    hparams = models.hparams("transformer_base")
    for name, value in SIZES.items():
        hparams.set_hparam(name, value)
    (folder / "hparams.json").write_text(hparams.to_json(indent=0, sort_keys=True))
    random = np.random.default_rng(0)
    rows = random.integers(2, SYMBOLS, (ROWS, LENGTH, 1, 1)).astype("int32")
    rows[:, -1] = 1
    tf.set_random_seed(0)
    problem = problem_of(dict.fromkeys(("inputs", "targets"), SYMBOLS), False, hparams)
    predicting = tf.estimator.ModeKeys.PREDICT
    model = models.model("transformer")(hparams, predicting, problem)
    given = tf.placeholder(tf.int32, rows.shape)
    known = {"inputs": given, "target_space_id": tf.constant(0)}
    with tf.variable_scope(tf.get_variable_scope(), reuse=tf.AUTO_REUSE):
        greedy = model.infer(dict(known), EXTRA)["outputs"]
        beams = model.infer(dict(known), EXTRA, BEAMS, 1, ALPHA)["outputs"]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        variables = tf.global_variables("transformer/")
        for variable in variables:
            value = session.run(variable)
            variable.load(value + random.normal(0, 0.05, value.shape), session)
        tf.train.Saver(variables).save(
            session, str(folder / "model.ckpt-0"), write_meta_graph=False
        )
        found = {"inputs": rows[:, :, 0, 0], "extra_length": EXTRA}
        for name, made in (("greedy", greedy), ("beams", beams)):
            ids, seconds = timed(lambda made=made: session.run(made, {given: rows}))
            found |= {name: ids.reshape(ROWS, -1), f"{name}_seconds": seconds}
            print(f"{name}: {ids.shape} in {seconds:.2f} s", file=sys.stderr)
    np.savez_compressed(folder / "reference.npz", **found)


def timed(function):
    """Returns what a function returns, and its median seconds after a first time."""
    function()
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        result = function()
        seconds.append(time.perf_counter() - start)
    return result, np.median(seconds)


if __name__ == "__main__":
    main(*sys.argv[1:])
