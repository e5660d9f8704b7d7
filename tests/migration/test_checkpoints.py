"""The folders and files that people have, built from small checkpoints."""

import shutil

import numpy as np
import pytest
from variants import (
    VARIANTS,
    arrays_of,
    changed,
    folder,
    logits,
    read,
    reference,
    require_logits,
    written,
)

from tfpe import migration

TOLD = {"heads": 4, "target_space": 0}
LAYER = "transformer/body/decoder/layer_"
V1 = arrays_of(VARIANTS / "postnorm_v1" / "reference.npz")


@pytest.fixture(scope="module")
def ordinary():
    every = read(VARIANTS / "silent" / "silent_epsilon")
    return {n: v for n, v in every.items() if n.startswith("transformer/")}


@pytest.fixture
def training(tmp_path):
    """A training with two checkpoints, of which the newer is no model."""
    return changed("postnorm_v1", tmp_path / "train")


def test_the_newest_checkpoint_is_taken_or_that_which_is_named(training):
    every = read(training)
    table = "transformer/symbol_modality_181_32/shared/weights_0"
    written(training, {**every, table: 0 * every[table]}, "model.ckpt-70")
    assert not logits(migration.load(training, target_space=0).model, V1).any()
    (training / "checkpoint").unlink()
    assert not logits(migration.load(training, target_space=0).model, V1).any()
    for name in ("model.ckpt-60", "model.ckpt-60.index"):
        require_logits(migration.load(training / name, target_space=0).model, V1)


@pytest.mark.parametrize("place", [".", "avg"])
def test_an_averaged_checkpoint_is_migrated(place, training):
    # tensor2tensor's averages have all variables but the step, which is 0.
    every = {n: v for n, v in read(training).items() if n != "global_step"}
    folder = training / place
    written(folder, {**every, "global_step": np.int64(0)}, "averaged.ckpt-0")
    made = migration.load(folder / "averaged.ckpt-0", target_space=0)
    require_logits(made.model, V1)
    # Of what lies in another folder, it is told.
    assert [line.endswith("is of this model") for line in made.assumed] == (
        [] if place == "." else [True]
    )
    made = migration.load(folder, target_space=0)  # It is the newest there.
    require_logits(made.model, V1)


def test_a_saved_model_is_migrated(training):
    tf = pytest.importorskip("tensorflow")
    folder = training / "export" / "1234567890"
    every = {n: v for n, v in read(training).items() if n.startswith("transformer/")}
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        for name, value in every.items():
            tf.compat.v1.get_variable(name, initializer=tf.constant(value))
        session.run(tf.compat.v1.global_variables_initializer())
        builder = tf.compat.v1.saved_model.Builder(str(folder))
        builder.add_meta_graph_and_variables(session, ["serve"])
        builder.save()
    made = migration.load(folder, target_space=0)
    require_logits(made.model, V1)
    assert "export" not in made.assumed[0]  # The training's hparams.json.


@pytest.mark.parametrize("damage", ["short", "flipped", "missing", "index"])
def test_a_damaged_checkpoint_is_told_with_the_file(damage, training):
    end = "index" if damage == "index" else "data-00000-of-00001"
    file = training / f"model.ckpt-60.{end}"
    whole = file.read_bytes()
    if damage == "missing":
        file.unlink()
    elif damage == "flipped":
        file.write_bytes(bytes(255 - byte for byte in whole))
    else:
        file.write_bytes(whole[: len(whole) // 2])
    name = "model.ckpt-60.data-*" if damage == "missing" else file.name
    with pytest.raises(ValueError, match="copy it again") as raised:
        migration.load(training, target_space=0)
    assert name in str(raised.value)
    assert str(raised.value).startswith("`folder` must have a ")


def test_a_path_without_a_checkpoint_is_told_with_what_lies_there(training):
    for path, told in (
        (training.parent / "trian", "there is no such folder or checkpoint"),
        (training / "model.ckpt-99", "the checkpoints there are model.ckpt-60"),
        (training.parent, "its folders with one are train"),
    ):
        with pytest.raises(ValueError, match=told):
            migration.load(path)
    (training / "model.ckpt-60.index").unlink()
    for path in (training, training / "model.ckpt-60"):
        with pytest.raises(ValueError, match=r"without its file \*.index"):
            migration.load(path)


def test_stacks_may_have_different_numbers_of_blocks(ordinary, tmp_path):
    third = {
        name.replace(f"{LAYER}1/", f"{LAYER}2/"): np.zeros_like(value)
        for name, value in ordinary.items()
        if name.startswith(f"{LAYER}1/")
    }
    # Sublayers of zeros add nothing, so that the logits stay.
    folder = written(tmp_path / "x", {**ordinary, **third})
    name = "silent/silent_epsilon"
    told = changed(name, tmp_path / "y", num_decoder_layers=3, num_encoder_layers=2)
    shutil.copy(told / "hparams.json", folder)
    model = migration.load(folder, target_space=0).model
    require_logits(model, arrays_of(VARIANTS / name / "reference.npz"))
    assert model.layers[-1].settings["blocks"] == {"encoder": 2, "decoder": 3}


def test_flags_of_another_model_are_refused(training):
    (training / "flags_t2t.txt").write_text("--model=transformer_scorer\n")
    with pytest.raises(ValueError, match="--model=transformer_scorer contradicts"):
        migration.load(training, target_space=0)


def test_variables_beside_the_model_are_told(ordinary, tmp_path):
    folder = written(tmp_path / "x", {**ordinary, "teacher/kernel": np.float32(1)})
    made = migration.load(folder, **TOLD)
    assert "these variables are of training only: teacher/kernel" in made.assumed


def test_weights_in_codes_are_refused(ordinary, tmp_path):
    tf = pytest.importorskip("tensorflow")
    coded = {n: v.astype(tf.bfloat16.as_numpy_dtype) for n, v in ordinary.items()}
    with pytest.raises(ValueError, match="`weight_dtype`='bfloat16'"):
        migration.load(written(tmp_path / "x", coded), **TOLD)


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["transformer/body/encoder/layer_0/self_attention/relative_keys"], "relative"),
        (["transformer/body/encoder/layer_0/ffn/moe/x"], "mixture of experts"),
        (["transformer/body/a/sru/kernel"], "is recurrent"),
    ],
)
def test_another_kind_is_told_in_a_sentence(names, message, ordinary, tmp_path):
    others = {key: np.float32([1]) for key in names}
    folder = written(tmp_path / "x", {**ordinary, **others})
    with pytest.raises(ValueError, match=message) as raised:
        migration.load(folder, **TOLD)
    assert len(str(raised.value).splitlines()) == 2


def test_a_model_of_another_name_is_told_with_five_variables(tmp_path):
    names = [f"evolved_transformer/body/part_{n}/kernel" for n in range(9)]
    folder = written(tmp_path / "x", {key: np.float32([1]) for key in names})
    with pytest.raises(ValueError, match="it is tensor2tensor's evolved_tr") as raised:
        migration.load(folder)
    assert str(raised.value).count("kernel") == 5


@pytest.mark.parametrize(
    ("part", "count", "names"),
    [
        ("decoder/layer_1/ffn/conv2", 2, [f"{LAYER}1/ffn/conv2/kernel"]),
        (
            "encdec_attention/multihead_attention/q",
            2,
            ["body/decoder/layer_0/encdec_attention/multihead_attention/q/k"],
        ),
        (
            "body/encoder/layer_prepostprocess",
            2,
            ["body/encoder/layer_prepostprocess/layer_norm/layer_norm_bias"],
        ),
        (
            "conv1",
            8,
            ["r/body/encoder/layer_0/ffn/conv1/bias\n", "and 3 more"],
        ),
    ],
)
def test_missing_variables_are_told_by_their_names(
    part, count, names, ordinary, tmp_path
):
    fewer = {n: v for n, v in ordinary.items() if part not in n}
    with pytest.raises(ValueError, match=f"lacks {count} variables") as raised:
        migration.load(written(tmp_path / "x", fewer), **TOLD)
    assert all(name in str(raised.value) for name in names)


def test_a_decoder_of_classes_and_an_encoder_of_symbols_are_refused(ordinary, tmp_path):
    top = "transformer/class_label_modality_2_32/dense/"
    ends = {f"{top}kernel": np.ones((32, 2), "f"), f"{top}bias": np.ones(2, "f")}
    folder = written(tmp_path / "x", {**ordinary, **ends})
    with pytest.raises(ValueError, match="it has a decoder whose outputs are classes"):
        migration.load(folder, **TOLD)
    every = read(VARIANTS / "encoder_classifier")
    kept = {n: v for n, v in every.items() if n.startswith("transformer_encoder/")}
    kept = {n.replace("input_emb", "shared"): v for n, v in kept.items()}
    fewer = {n: v for n, v in kept.items() if "class_label" not in n}
    with pytest.raises(ValueError, match="it is an encoder whose outputs are no class"):
        migration.load(written(tmp_path / "y", fewer), **TOLD)


def test_a_missing_softmax_and_a_missing_shard_are_told(tmp_path):
    every = read(VARIANTS.parent / "unshared" / "model.ckpt")
    every = {n: v for n, v in every.items() if n.startswith("transformer/")}
    fewer = {n: v for n, v in every.items() if "/softmax/" not in n}
    with pytest.raises(ValueError, match=r"lacks the variable transformer/.*softmax"):
        migration.load(written(tmp_path / "x", fewer), heads=4)
    every = read(VARIANTS.parent / "sixteen_shards" / "model.ckpt")
    fewer = {n: v for n, v in every.items() if not n.endswith("weights_3")}
    with pytest.raises(ValueError, match=r"lacks the variable transf.*/weights_3"):
        migration.load(written(tmp_path / "y", fewer), heads=2, target_space=3)


def test_two_shared_tables_are_told_apart_by_the_vocabularies(ordinary, tmp_path):
    two = {n: v for n, v in ordinary.items() if "symbol_modality" not in n}
    for rows in (143, 181):
        name = f"transformer/symbol_modality_{rows}_32/shared/weights_0"
        two[name] = np.full((rows, 32), rows, "float32")
    folder = written(tmp_path / "x", two)
    with pytest.raises(ValueError, match="143 and 181 rows"):
        migration.load(folder, **TOLD)
    made = migration.load(
        folder, target_vocab=VARIANTS / "vocab.tiny_lm.180.subwords", **TOLD
    )
    assert made.model.output.shape[-1] == 143


def test_how_far_the_reading_is_can_be_shown():
    seen = []

    def progress(names):
        for name in names:
            seen.append(name)
            yield name

    name = "language_model"
    made = migration.load(folder(name), target_space=0, progress=progress)
    require_logits(made.model, reference(name))
    assert len(seen) > 20
