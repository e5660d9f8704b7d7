"""Whole models of tensor2tensor, against what the real package computed of them."""

import subprocess
import sys

import keras
import numpy as np
import pytest
from variants import (
    FRESH,
    GOLDEN,
    ROOT,
    TOLERANCE,
    UPPER,
    VARIANTS,
    arrays_of,
    cut,
    folder,
    loaded,
    logits,
    reference,
    require_logits,
)

from tfpe import migration

NAMES = (
    "postnorm_v1",
    "postnorm_2017",
    "language_model",
    "position_emb",
    "encoder_classifier",
    "universal",
    "universal_sinusoid",
    "universal_encoder",
    "unidirectional",
    "packed",
    "silent/silent_pos_none",
    "silent/silent_epsilon",
    "silent/silent_embedding",
)
NOT_DECODED = ("encoder_classifier", "universal_encoder", "packed")
DECODED = tuple(name for name in NAMES if name not in NOT_DECODED)
if keras.backend.backend() != "tensorflow":  # Compiled for each, that takes long.
    DECODED = ("postnorm_2017", "language_model", "universal")


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_tensor2tensor_in_both_layouts(name):
    model, arrays = loaded(name).model, reference(name)
    require_logits(model, arrays)
    other = migration.to_layout(model, "interleaved")
    require_logits(other, arrays)
    back = migration.to_layout(other, "concatenated")
    for ours, theirs in zip(back.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("name", "heads", "space"),
    [
        ("sixteen_shards", 2, 3),
        ("unshared", 4, None),
        ("odd_hidden", 3, 3),
    ],
)
def test_tables_in_shards_or_apart_and_odd_sizes_are_migrated(name, heads, space):
    made = migration.load(FRESH / name, heads=heads, target_space=space)
    arrays = arrays_of(FRESH / name / "reference.npz")
    for layout in ("concatenated", "interleaved"):
        require_logits(migration.to_layout(made.model, layout), arrays)
    # The first row of the inputs has no end, which `decode` always appends.
    rows = [cut(row) for row in arrays["inputs"][1:]]
    steps = arrays["greedy"].shape[1]
    told = {"extra_length": steps - 1 - max(map(len, rows))}
    found, _ = migration.decode(made, rows, **told)
    assert found == [cut(row) for row in arrays["greedy"][1:]]
    found, scores = migration.decode(made, rows, beams=4, **told)
    assert found == [cut(row) for row in arrays["beams"][1:, 0]]
    np.testing.assert_allclose(scores, arrays["scores"][1:, 0], rtol=0, atol=1e-4)


def test_a_trained_model_decodes_as_tensor2tensor_did():
    trained = GOLDEN / "g2p_checkpoint"
    made = migration.load(trained, heads=4, target_space=0)
    arrays = arrays_of(trained / "reference.npz")
    require_logits(made.model, arrays)
    rows = [cut(row) for row in arrays["decode_inputs"]]
    found, _ = migration.decode(made, rows)
    assert found == [cut(row) for row in arrays["decode_outputs"]]
    arrays = arrays_of(trained / "beams.npz")
    rows = [cut(row) for row in arrays["inputs"]]
    found, scores = migration.decode(made, rows, beams=4)
    assert found == [cut(row) for row in arrays["beams"][:, 0]]
    np.testing.assert_allclose(scores, arrays["scores"][:, 0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("name", DECODED)
def test_decodes_are_those_of_tensor2tensor(name, beams):
    arrays = reference(name)
    rows = [cut(row) for row in arrays["inputs"]] if "inputs" in arrays else []
    rows = rows or arrays["partial"].tolist()
    # One row of 2017's has no end, which `decode` always appends.
    kept = [i for i in range(12) if name != "postnorm_2017" or 1 in arrays["inputs"][i]]
    found, scores = migration.decode(
        loaded(name), rows, beams=beams, extra_length=int(arrays["extra_length"])
    )
    wanted = arrays["greedy"] if beams == 1 else arrays["beams"][:, 0]
    for i in kept:
        steps = wanted.shape[1]
        assert found[i][:steps] == cut(wanted[i])
    if beams > 1 and "scores" in arrays:
        np.testing.assert_allclose(scores, arrays["scores"][:, 0], rtol=0, atol=1e-4)


def test_weights_that_change_are_decoded_with():
    made = migration.load(folder("language_model"))
    before, _ = migration.decode(made, [[5]], extra_length=2)
    made.model.set_weights([0 * w for w in made.model.get_weights()])
    after, scores = migration.decode(made, [[5]], extra_length=2)
    assert before != after == [[0, 0]]  # All are as likely, and the first is taken.
    wanted = -2 * np.log(made.model.output.shape[-1])
    np.testing.assert_allclose(scores, [wanted], rtol=1e-6)


def test_without_the_layouts_permutation_the_logits_are_others():
    model, arrays = loaded("postnorm_v1").model, reference("postnorm_v1")
    other = migration.to_layout(model, "interleaved")
    other.set_weights(model.get_weights())
    assert np.abs(logits(other, arrays) - arrays["logits"]).max() > 0.1


def test_rows_of_several_lengths_are_decoded_as_each_alone():
    model = loaded("language_model")
    rows = [[5], [7, 8, 9], [], [6]]
    together, scores = migration.decode(model, rows, beams=3, extra_length=4)
    for row, made, score in zip(rows, together, scores, strict=True):
        alone = migration.decode(model, [row], beams=3, extra_length=4)
        assert alone[0] == [made]
        np.testing.assert_allclose(alone[1], [score], atol=1e-5)


@pytest.mark.parametrize("rows", [[[]], [""], [[5], []]])
def test_nothing_is_no_row_to_translate(rows):
    made = migration.load(VARIANTS / "postnorm_v1", vocab=UPPER, target_space=0)
    with pytest.raises(ValueError, match="`rows` must have a text or ids each"):
        migration.decode(made, rows)


def test_a_saved_folder_is_loaded_by_plain_keras_in_another_process(tmp_path):
    made = migration.load(VARIANTS / "postnorm_v1", vocab=UPPER, target_space=0)
    made.save(tmp_path)
    code = """
import sys, keras, numpy as np
import tfpe
model = keras.models.load_model(sys.argv[1] + "/model.keras")
arrays = dict(np.load(sys.argv[2]))
np.save(sys.argv[1] + "/logits.npy", model.predict(
    {name: arrays[name] for name in ("inputs", "targets")}, verbose=0))
"""
    file = VARIANTS / "postnorm_v1" / "reference.npz"
    command = [sys.executable, "-c", code, str(tmp_path), str(file)]
    subprocess.run(command, cwd=ROOT, check=True)
    wanted = arrays_of(file)["logits"]
    found = np.load(tmp_path / "logits.npy")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)
    again, texts = migration.load(tmp_path), ["that were", "some of these."]
    ours = migration.decode(made, texts, beams=2, extra_length=3)
    theirs = migration.decode(again, texts, beams=2, extra_length=3)
    assert ours[0] == theirs[0]
    assert all(isinstance(text, str) for text in ours[0])
