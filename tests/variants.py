"""tensor2tensor's checkpoints and what the real package computed of them."""

import functools
import json
import os
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest

from tfpe import migration

ROOT = Path(__file__).parents[1]
GOLDEN = ROOT / "compat" / "golden"
VARIANTS = GOLDEN / "variants"
FRESH = Path(os.environ.get("TFPE_GOLDENS", GOLDEN))  # see `make compat-live`
UPPER = VARIANTS / "vocab.tiny_upper.180.subwords"
TOLERANCE = 2e-5  # of float32, between this machine and that of the references


def folder(name):
    """Returns the folder of a variant, made anew if it can be."""
    fresh = FRESH / "variants" / name
    return fresh if fresh.is_dir() else VARIANTS / name


def arrays_of(path):
    with np.load(path) as archive:
        return dict(archive)


def reference(name):
    return arrays_of(folder(name) / "reference.npz")


@functools.cache
def loaded(name):
    heads = 4 if name == "postnorm_2017" else None
    space = int(reference(name)["target_space_id"])
    return migration.load(folder(name), heads=heads, target_space=space)


def logits(model, arrays):
    made = model({name: arrays[name] for name in model.input})
    return keras.ops.convert_to_numpy(made).reshape(arrays["logits"].shape)


def require_logits(model, arrays):
    """Asserts that a model has the logits of a reference."""
    made = logits(model, arrays)
    np.testing.assert_allclose(made, arrays["logits"], rtol=0, atol=TOLERANCE)


def cut(row):
    """Returns ids up to the first end."""
    row = [int(i) for i in row]
    return row[: [*row, 1].index(1)]


def changed(name, copy, without=(), **hyperparameters):
    """Returns a copy of a variant's folder with other hyperparameters."""
    shutil.copytree(VARIANTS / name, copy)
    file = copy / "hparams.json"
    said = {**json.loads(file.read_text(encoding="utf-8")), **hyperparameters}
    said = {name: value for name, value in said.items() if name not in without}
    file.write_text(json.dumps(said), encoding="utf-8")
    return copy


def read(folder):
    """Returns the variables of a checkpoint by name."""
    tf = pytest.importorskip("tensorflow")
    reader = tf.train.load_checkpoint(str(folder))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def written(folder, variables, name="model.ckpt-3"):
    """Writes a checkpoint of arrays by name, as tensor2tensor's savers do."""
    tf = pytest.importorskip("tensorflow")
    folder.mkdir(parents=True, exist_ok=True)
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [
            tf.compat.v1.get_variable(name, initializer=tf.constant(value))
            for name, value in variables.items()
        ]
        session.run(tf.compat.v1.global_variables_initializer())
        saver = tf.compat.v1.train.Saver(made)
        saver.save(session, str(folder / name), write_meta_graph=False)
    return folder
