"""Whole models of tensor2tensor, against what the real package computed of them."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest

from tfpe import migration

ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "compat" / "golden"
VARIANTS = GOLDEN / "variants"
FRESH = Path(os.environ.get("TFPE_GOLDENS", GOLDEN))  # see `make compat-live`
NAMES = (
    "postnorm_v1",
    "postnorm_2017",
    "language_model",
    "position_emb",
    "encoder_classifier",
    "universal",
    "universal_sinusoid",
    "packed",
    "silent/silent_pos_none",
    "silent/silent_epsilon",
    "silent/silent_embedding",
)
DECODED = tuple(n for n in NAMES if n not in ("encoder_classifier", "packed"))
TOLERANCE = 2e-5  # of float32, between this machine and that of the references


def reference(name):
    with np.load(VARIANTS / name / "reference.npz") as archive:
        return dict(archive)


@pytest.fixture(scope="module")
def loaded():
    made = {}

    def load(name):
        if name not in made:
            heads = 4 if name == "postnorm_2017" else None
            space = int(reference(name)["target_space_id"])
            made[name] = migration.load(
                VARIANTS / name, heads=heads, target_space=space
            )
        return made[name]

    return load


def logits(model, arrays):
    made = model({name: arrays[name] for name in model.input})
    return keras.ops.convert_to_numpy(made).reshape(arrays["logits"].shape)


def cut(row):
    """Returns ids up to the first end."""
    row = [int(i) for i in row]
    return row[: [*row, 1].index(1)]


@pytest.mark.parametrize("name", NAMES)
def test_logits_are_those_of_tensor2tensor_in_both_layouts(name, loaded):
    model, arrays = loaded(name).model, reference(name)
    made = logits(model, arrays)
    np.testing.assert_allclose(made, arrays["logits"], rtol=0, atol=TOLERANCE)
    other = migration.to_layout(model, "interleaved")
    made = logits(other, arrays)
    np.testing.assert_allclose(made, arrays["logits"], rtol=0, atol=TOLERANCE)
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
    with np.load(FRESH / name / "reference.npz") as archive:
        arrays = dict(archive)
    for layout in ("concatenated", "interleaved"):
        model = migration.to_layout(made.model, layout)
        found = logits(model, arrays)
        np.testing.assert_allclose(found, arrays["logits"], rtol=0, atol=TOLERANCE)
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
    folder = GOLDEN / "g2p_checkpoint"
    made = migration.load(folder, heads=4, target_space=0)
    with np.load(folder / "reference.npz") as archive:
        arrays = dict(archive)
    found = logits(made.model, arrays)
    np.testing.assert_allclose(found, arrays["logits"], rtol=0, atol=TOLERANCE)
    rows = [cut(row) for row in arrays["decode_inputs"]]
    found, _ = migration.decode(made, rows)
    assert found == [cut(row) for row in arrays["decode_outputs"]]
    with np.load(folder / "beams.npz") as archive:
        arrays = dict(archive)
    rows = [cut(row) for row in arrays["inputs"]]
    found, scores = migration.decode(made, rows, beams=4)
    assert found == [cut(row) for row in arrays["beams"][:, 0]]
    np.testing.assert_allclose(scores, arrays["scores"][:, 0], rtol=0, atol=1e-4)


@pytest.mark.parametrize("beams", [1, 4])
@pytest.mark.parametrize("name", DECODED)
def test_decodes_are_those_of_tensor2tensor(name, beams, loaded):
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


def test_without_the_layouts_permutation_the_logits_are_others(loaded):
    model, arrays = loaded("postnorm_v1").model, reference("postnorm_v1")
    other = migration.to_layout(model, "interleaved")
    other.set_weights(model.get_weights())
    assert np.abs(logits(other, arrays) - arrays["logits"]).max() > 0.1


def test_rows_of_several_lengths_are_decoded_as_each_alone(loaded):
    model = loaded("language_model")
    rows = [[5], [7, 8, 9], [], [6]]
    together, scores = migration.decode(model, rows, beams=3, extra_length=4)
    for row, made, score in zip(rows, together, scores, strict=True):
        alone = migration.decode(model, [row], beams=3, extra_length=4)
        assert alone[0] == [made]
        np.testing.assert_allclose(alone[1], [score], atol=1e-5)


def test_a_saved_folder_is_loaded_by_plain_keras_in_another_process(tmp_path):
    made = migration.load(
        VARIANTS / "postnorm_v1",
        vocab=VARIANTS / "vocab.tiny_upper.180.subwords",
        target_space=0,
    )
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
    wanted = reference("postnorm_v1")["logits"]
    found = np.load(tmp_path / "logits.npy")
    np.testing.assert_allclose(found, wanted, rtol=0, atol=TOLERANCE)
    again, texts = migration.load(tmp_path), ["that were", "some of these."]
    ours = migration.decode(made, texts, beams=2, extra_length=3)
    theirs = migration.decode(again, texts, beams=2, extra_length=3)
    assert ours[0] == theirs[0]
    assert all(isinstance(text, str) for text in ours[0])


@pytest.fixture
def changed(tmp_path):
    def copy(name, **hyperparameters):
        folder = tmp_path / "changed"
        shutil.copytree(VARIANTS / name, folder)
        file = folder / "hparams.json"
        said = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**said, **hyperparameters}), encoding="utf-8")
        return folder

    return copy


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unidirectional_encoder", True),
        ("causal_decoder_self_attention", False),
        ("hard_attention_k", 2),
        ("self_attention_type", "dot_product_relative"),
        ("area_key_mode", "mean"),
        ("num_area_layers", 1),
        ("layer_postprocess_sequence", "da"),
        ("layer_preprocess_sequence", "n"),
        ("multiply_embedding_mode", "rsqrt_depth"),
        ("pos", "emb"),
        ("pos", "timing_from_features"),
        ("proximity_bias", True),
        ("norm_type", "batch"),
        ("ffn_layer", "conv_relu_conv"),
        ("prepend_mode", "prepend_inputs_full_attention"),
        ("hidden_size", 64),
        ("filter_size", 128),
        ("num_hidden_layers", 3),
        ("num_decoder_layers", 1),
        ("use_target_space_embedding", False),
        ("invented_by_someone", "yes"),
    ],
)
def test_a_hyperparameter_that_is_not_implemented_is_refused_by_name(
    name, value, changed
):
    folder = changed("postnorm_v1", **{name: value})
    with pytest.raises(ValueError, match=f"hyperparameter `{name}` "):
        migration.load(folder, target_space=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recurrence_type", "act"),
        ("position_start_index", "random"),
        ("add_or_concat_timing_signal", "concat"),
        ("num_rec_steps", 4),
        ("step_timing_signal_type", "sinusoid"),
        ("mix_with_transformer", "before_ut"),
        ("transformer_ffn_type", "sepconv"),
    ],
)
def test_a_universal_transformer_of_another_kind_is_refused_by_name(
    name, value, changed
):
    folder = changed("universal", **{name: value})
    with pytest.raises(ValueError, match=f"`{name}`"):
        migration.load(folder, target_space=0)


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("postnorm_v1", {}, "`target_space` must be the number of the target space"),
        ("postnorm_v1", {"target_space": 32}, "`target_space` must be .* from 0 to 31"),
        ("postnorm_v1", {"target_space": 0, "heads": 8}, "num_heads=4.*heads=8"),
        ("postnorm_2017", {"target_space": 1}, "`heads` must be the number"),
        (
            "postnorm_2017",
            {"target_space": 1, "heads": 5},
            "`heads` must be .* divides",
        ),
        ("nothing", {}, "`folder` must have a checkpoint"),
        (
            "language_model",
            {"vocab": VARIANTS / "vocab.tiny_upper.180.subwords"},
            "as many entries as the model has symbols, 143. Received: 181",
        ),
    ],
)
def test_what_nothing_tells_or_contradicts_is_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        migration.load(VARIANTS / name, **arguments)


@pytest.mark.parametrize(
    ("name", "rows", "arguments", "message"),
    [
        ("encoder_classifier", [[2]], {}, "A classifier can't be decoded"),
        ("packed", [[2]], {}, "packed examples can't be decoded"),
        ("postnorm_v1", ["a text"], {}, "no vocabulary was given"),
        ("postnorm_v1", [[181]], {}, "`rows` must have ids from 0 to 180"),
        ("postnorm_v1", [[2.5]], {}, "`rows` must be lists of ids"),
        ("postnorm_v1", "a text", {}, "`rows` must be a list"),
        ("postnorm_v1", [[2]], {"beams": 0}, "`beams` must be an integer >= 1"),
    ],
)
def test_what_cannot_be_decoded_is_refused(name, rows, arguments, message, loaded):
    with pytest.raises(ValueError, match=message):
        migration.decode(loaded(name), rows, **arguments)


def test_without_hyperparameters_what_is_assumed_is_told(tmp_path):
    shutil.copytree(VARIANTS / "postnorm_v1", tmp_path / "copy")
    (tmp_path / "copy" / "hparams.json").unlink()
    made = migration.load(tmp_path / "copy", heads=4, target_space=0)
    assert any("no hparams.json" in line for line in made.assumed)
    arrays = reference("postnorm_v1")
    found = logits(made.model, arrays)
    np.testing.assert_allclose(found, arrays["logits"], rtol=0, atol=TOLERANCE)


def written(folder, variables):
    """Writes a checkpoint of arrays by name."""
    tf = pytest.importorskip("tensorflow")
    folder.mkdir()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        made = [
            tf.compat.v1.get_variable(name, initializer=np.asarray(value, "float32"))
            for name, value in variables.items()
        ]
        session.run(tf.compat.v1.global_variables_initializer())
        tf.compat.v1.train.Saver(made).save(session, str(folder / "model.ckpt-3"))
    return folder


@pytest.fixture(scope="module")
def ordinary():
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(VARIANTS / "silent" / "silent_epsilon"))
    names = reader.get_variable_to_shape_map()
    return {n: reader.get_tensor(n) for n in names if n.startswith("transformer/")}


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["transformer/body/encoder/layer_0/self_attention/relative_keys"], "relative"),
        (["transformer/body/encoder/layer_0/ffn/moe/x"], "mixture of experts"),
        (["transformer/body/a/sru/kernel"], "is recurrent"),
    ],
)
def test_another_kind_is_told_in_a_sentence(names, message, ordinary, tmp_path):
    folder = written(tmp_path / "x", {**ordinary, **{key: [1.0] for key in names}})
    with pytest.raises(ValueError, match=message) as raised:
        migration.load(folder, heads=4, target_space=0)
    assert len(str(raised.value).splitlines()) == 2


def test_a_model_of_another_name_is_told_with_five_variables(tmp_path):
    names = [f"evolved_transformer/body/part_{n}/kernel" for n in range(9)]
    folder = written(tmp_path / "x", {key: [1.0] for key in names})
    with pytest.raises(ValueError, match="it is tensor2tensor's evolved_tr") as raised:
        migration.load(folder)
    assert str(raised.value).count("kernel") == 5


def test_missing_variables_are_told(ordinary, tmp_path):
    fewer = {n: v for n, v in ordinary.items() if "layer_1/ffn/conv2" not in n}
    with pytest.raises(ValueError, match="lacks 4 variables"):
        migration.load(written(tmp_path / "x", fewer), heads=4, target_space=0)


def test_two_shared_tables_are_told_apart_by_the_vocabularies(ordinary, tmp_path):
    two = {n: v for n, v in ordinary.items() if "symbol_modality" not in n}
    for rows in (143, 181):
        name = f"transformer/symbol_modality_{rows}_32/shared/weights_0"
        two[name] = np.full((rows, 32), rows)
    folder, told = written(tmp_path / "x", two), {"heads": 4, "target_space": 0}
    with pytest.raises(ValueError, match="143 and 181 rows"):
        migration.load(folder, **told)
    made = migration.load(
        folder, target_vocab=VARIANTS / "vocab.tiny_lm.180.subwords", **told
    )
    assert made.model.output.shape[-1] == 143
