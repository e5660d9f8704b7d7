"""Checkpoints that the real tensor2tensor wrote, as Keras models."""

import os
import re
import subprocess
import sys
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf
from contract import on_tensorflow

import tfpe

sys.path.insert(0, str(Path(__file__).parents[1] / "examples"))

import t2t_checkpoint
from beam_search import beam_search
from decoding import greedy
from pronunciations import Vocabulary, read_words
from t2t_checkpoint import decoded, load_transformer, permuted_weights
from transformer import layers_by_name

pytestmark = on_tensorflow
ROOT = Path(tfpe.__file__).parents[1]
GOLDEN = ROOT / "compat" / "golden"
FRESH = Path(os.environ.get("TFPE_GOLDENS", GOLDEN))  # see `make compat-live`
G2P = GOLDEN / "g2p_checkpoint"
CLOSE = 2e-5  # logits, which go up to about 7; float32 sums in another order
NEVER = -1e6  # tensor2tensor's score of a beam that is not there is -1e7
HEADS = {"sixteen_shards": 2, "unshared": 4, "odd_hidden": 3}
LAYOUTS = ["concatenated", "interleaved"]


@pytest.fixture(scope="module", params=LAYOUTS)
def g2p(request):
    return load_transformer(G2P, 4, request.param)


@pytest.fixture(params=HEADS)
def name(request):
    return request.param


def reference(folder):
    return dict(np.load(folder / "reference.npz"))


def logits_of(model, arrays):
    return model({name: arrays[name] for name in ("inputs", "targets")}).numpy()


def before_the_end(ids):
    return [row[: [*row, 1].index(1)] for row in ids.tolist()]


def assert_same_logits(actual, expected):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=CLOSE)
    np.testing.assert_array_equal(actual.argmax(-1), expected.argmax(-1))


def assert_same_beams(model, arrays, inputs):
    ids, scores = beam_search(model, inputs, inputs.shape[1] + 6, beams=4, alpha=0.6)
    there = arrays["scores"] > NEVER
    np.testing.assert_array_equal(scores > NEVER, there)
    np.testing.assert_allclose(scores[there], arrays["scores"][there], atol=CLOSE)
    steps = min(ids.shape[2], arrays["beams"].shape[2])
    for both in (ids, arrays["beams"]):
        assert not both[there][:, steps:].any()
    wanted = arrays["beams"][there][:, :steps]
    np.testing.assert_array_equal(ids[there][:, :steps], wanted)


def test_the_trained_checkpoint_has_tensor2tensors_logits(g2p):
    arrays = reference(G2P)
    assert arrays["logits"].shape == (32, 11, 67)
    assert_same_logits(logits_of(g2p, arrays), arrays["logits"])


def test_the_trained_checkpoint_decodes_200_words_as_tensor2tensor_did(g2p):
    arrays = reference(G2P)
    expected = arrays["decode_outputs"]
    ids, _ = greedy(g2p, arrays["decode_inputs"], expected.shape[1])
    assert len(ids) == 200
    assert before_the_end(ids) == before_the_end(expected)


def test_the_trained_checkpoint_has_tensor2tensors_beams(g2p):
    arrays = dict(np.load(FRESH / "g2p_checkpoint" / "beams.npz"))
    assert_same_beams(g2p, arrays, arrays["inputs"])


def test_without_permuting_the_weights_most_argmaxes_differ_in_another_layout():
    arrays = reference(G2P)
    model = load_transformer(G2P, 4)
    other = load_transformer(G2P, 4, "interleaved")
    assert_same_logits(logits_of(other, arrays), logits_of(model, arrays))
    other.set_weights(model.get_weights())
    same = logits_of(other, arrays).argmax(-1) == arrays["logits"].argmax(-1)
    assert same.mean() < 0.5


def test_permuting_back_gives_the_same_weights():
    model = load_transformer(G2P, 4)
    other = load_transformer(G2P, 4, "interleaved")
    config = layers_by_name(other)["positions"].get_config()
    assert config["spectrum"] == "tensor2tensor"
    back = permuted_weights(other, "concatenated")
    for ours, theirs in zip(back, model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_other_checkpoints_have_tensor2tensors_results(name, layout):
    arrays = reference(FRESH / name)
    model = load_transformer(FRESH / name, HEADS[name], layout, target_space=3)
    assert_same_logits(logits_of(model, arrays), arrays["logits"])
    ids, _ = greedy(model, arrays["inputs"], arrays["greedy"].shape[1])
    assert before_the_end(ids) == before_the_end(arrays["greedy"])
    assert_same_beams(model, arrays, arrays["inputs"])


def test_the_target_space_matters_where_there_is_one(name):
    arrays = reference(FRESH / name)
    model = load_transformer(FRESH / name, HEADS[name], target_space=4)
    same = abs(logits_of(model, arrays) - arrays["logits"]).max() < CLOSE
    assert same == (name == "unshared")


def test_a_model_has_no_more_weights_than_the_checkpoint_had_variables_for(name):
    model = load_transformer(FRESH / name, HEADS[name])
    found = variables(FRESH / name)
    spaces = found.get("transformer/body/target_space_embedding/kernel", np.zeros(0))
    shapes = [v.size for n, v in found.items() if n.startswith("transformer/")]
    slots = any(n.startswith("training/transformer/") for n in found)
    assert slots == (name == "sixteen_shards")
    row = model.get_layer("embedding").output_dim if spaces.size else 0
    assert model.count_params() == sum(shapes) - spaces.size + row


def variables(folder):
    reader = tf.train.load_checkpoint(str(folder / "model.ckpt"))
    return {n: reader.get_tensor(n) for n in reader.get_variable_to_shape_map()}


def write(folder, found):
    names = sorted(found)
    tensors = [tf.constant(found[name]) for name in names]
    prefix = str(folder / "model.ckpt-7")
    tf.raw_ops.SaveV2(
        prefix=prefix,
        tensor_names=names,
        shape_and_slices=[""] * len(names),
        tensors=tensors,
    )
    return prefix


def test_two_shared_vocabularies_are_told_apart_by_the_targets_size(tmp_path):
    renamed = {
        re.sub("(input|target)_emb", "shared", name): value
        for name, value in variables(FRESH / "unshared").items()
        if "softmax" not in name
    }
    prefix = write(tmp_path, renamed)
    with pytest.raises(ValueError, match=r"one of \[29, 41\].*target_vocabulary=None"):
        load_transformer(prefix, 4)
    model = load_transformer(prefix, 4, target_vocabulary=41)

    untied = load_transformer(FRESH / "unshared", 4)
    table, _ = untied.get_layer("embedding").get_weights()
    untied.get_layer("embedding").set_weights([table, table.T])
    arrays = reference(FRESH / "unshared")
    assert_same_logits(logits_of(model, arrays), logits_of(untied, arrays))


LAYER = "transformer/body/encoder/layer_0/"
SHARDS = "transformer/symbol_modality_37_16/shared/weights_"


@pytest.mark.parametrize(
    ("change", "lines"),
    [
        (
            {f"{LAYER}ffn/conv2/bias": None, f"{LAYER}ffn/conv2/scale": (16,)},
            [
                f"missing: {LAYER}ffn/conv2/bias",
                f"unknown: {LAYER}ffn/conv2/scale",
            ],
        ),
        (
            {f"{LAYER}self_attention/multihead_attention/q/kernel": (16, 8)},
            [
                f"misshapen: {LAYER}self_attention/multihead_attention/q/kernel: "
                "(16, 8), not (16, 16)"
            ],
        ),
        (
            {"transformer/body/inputs_positional_embedding": (9, 16)},
            ["unknown: transformer/body/inputs_positional_embedding"],
        ),
        ({f"{SHARDS}11": None}, [f"missing: {SHARDS}11"]),
        ({f"{SHARDS}15": None}, [f"misshapen: {SHARDS}*: 35 rows in all, not 37"]),
        (
            {f"{SHARDS}3": (3, 15)},
            [f"misshapen: {SHARDS}3: (3, 15), not (3, 16)"],
        ),
    ],
    ids=lambda value: value[0][:40] if isinstance(value, list) else "",
)
def test_an_error_lists_the_variables_that_do_not_fit(change, lines, tmp_path):
    found = variables(FRESH / "sixteen_shards")
    for name, shape in change.items():
        found.pop(name, None)
        if shape is not None:
            found[name] = np.zeros(shape, "float32")
    prefix = write(tmp_path, found)
    with pytest.raises(ValueError, match="`checkpoint` must have") as raised:
        load_transformer(prefix, 2)
    message = str(raised.value)
    assert f"Received: checkpoint={prefix}, with" in message
    assert [line.strip() for line in message.splitlines()[1:]] == lines


def test_a_checkpoint_of_another_model_is_refused_with_what_it_has(tmp_path):
    prefix = write(tmp_path, {"lstm/kernel": np.zeros((2, 3), "float32")})
    with pytest.raises(ValueError, match="unknown: lstm/kernel"):
        load_transformer(prefix, 2)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_heads": 3}, "`num_heads` must divide the hidden size, 16.*num_heads=3"),
        ({"num_heads": 0}, "`num_heads` must divide the hidden size, 16.*num_heads=0"),
        ({"target_space": 32}, "`target_space` must be from 0 to 31.*target_space=32"),
        ({"layout": "both"}, "`layout` must be 'interleaved', 'concatenated' or"),
        ({"checkpoint": "nowhere"}, "`checkpoint` must be.*nowhere.* cannot be read"),
    ],
    ids=str,
)
def test_an_argument_that_does_not_fit_is_refused(arguments, message):
    usual = {"checkpoint": FRESH / "sixteen_shards", "num_heads": 2}
    with pytest.raises(ValueError, match=message):
        load_transformer(**{**usual, **arguments})


def test_a_folder_must_hold_one_checkpoint_if_it_does_not_name_the_latest(tmp_path):
    found = variables(FRESH / "odd_hidden")
    prefix = write(tmp_path, found)
    for path in (tmp_path, prefix, f"{prefix}.index"):
        assert load_transformer(path, 3).output_shape == (None, None, 31)
    (tmp_path / "model.ckpt-8.index").touch()
    with pytest.raises(ValueError, match=r"\['model.ckpt-7', 'model.ckpt-8'\]"):
        load_transformer(tmp_path, 3)
    state = f'model_checkpoint_path: "{Path(prefix).name}"\n'
    (tmp_path / "checkpoint").write_text(state)
    assert load_transformer(tmp_path, 3).output_shape == (None, None, 31)


def test_the_vocabulary_beside_the_trained_checkpoint_is_that_of_the_data():
    vocabulary = Vocabulary(read_words(ROOT / "examples" / "data" / "cmudict.tsv.gz"))
    lines = (G2P / "vocab.txt").read_text(encoding="utf-8").splitlines()
    assert lines == vocabulary.symbols


def run(*arguments, heads=4):
    t2t_checkpoint.main([str(G2P), "--heads", str(heads), *arguments])


@pytest.mark.parametrize("how", [[], ["--layout", "interleaved"], ["--beams", "3"]])
def test_the_command_decodes_words(how, capsys):
    vocabulary = ["--vocab", str(G2P / "vocab.txt")]
    run(*vocabulary, *how, "--decode", "cat", "tensor")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("236,544 weights in the ")
    assert lines[1:] == ["cat             K AE T", "tensor          T EH N S ER"]


def test_the_command_decodes_ids_without_a_vocabulary(capsys):
    run("--decode", "4,2,21")
    assert capsys.readouterr().out.splitlines()[-1] == "4,2,21          47,29,58"


@pytest.mark.slow
def test_the_command_saves_a_model_for_plain_keras(tmp_path):
    run("--layout", "interleaved", "--save", str(tmp_path / "model.keras"))
    arrays = reference(G2P)
    np.savez(tmp_path / "ids.npz", inputs=arrays["inputs"], targets=arrays["targets"])
    code = (
        "import sys, keras, numpy, tfpe\n"
        "model, ids, logits = sys.argv[1:]\n"
        "model = keras.models.load_model(model)\n"
        "numpy.save(logits, model(dict(numpy.load(ids))))\n"
    )
    files = [tmp_path / name for name in ("model.keras", "ids.npz", "logits.npy")]
    subprocess.run([sys.executable, "-c", code, *files], cwd=ROOT, check=True)
    assert_same_logits(np.load(files[-1]), arrays["logits"])
    again = keras.models.load_model(files[0])
    assert decoded(again, [[4, 2, 21]], beams=2) == [[47, 29, 58]]
    for ours, theirs in zip(
        permuted_weights(again, "concatenated"),
        load_transformer(G2P, 4).get_weights(),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--decode", "4,200"], "the model has ids below 67, not 200"),
        (["--vocab", str(G2P / "vocab.txt"), "--decode", "a b"], "no symbol for ' '"),
        (["--vocab", "nowhere.txt", "--decode", "a"], "No such file.*nowhere.txt"),
    ],
    ids=lambda value: value[-1] if isinstance(value, list) else "",
)
def test_the_command_says_what_is_wrong_in_one_line(arguments, message):
    with pytest.raises(SystemExit) as stopped:
        run(*arguments)
    assert re.search(f"^t2t_checkpoint.py: .*{message}", stopped.value.code)
    assert "\n" not in stopped.value.code


def test_the_command_prints_what_the_guide_says(monkeypatch, capsys):
    page = ROOT / "docs" / "migrating-from-tensor2tensor.md"
    block = re.search(
        r"```console\n\$ \S+ examples/t2t_checkpoint.py (.*)\n((?:.*\n)*?)```\n",
        page.read_text(encoding="utf-8"),
    )
    monkeypatch.chdir(ROOT)
    t2t_checkpoint.main(block[1].split())
    assert capsys.readouterr().out == block[2]


def test_subwords_lose_their_quotes_and_the_longest_symbol_is_taken(tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_text("'<pad>'\n'<EOS>'\n'the_'\n'th'\n'e'\n'''\n")
    symbols = t2t_checkpoint.Symbols(path)
    assert symbols.encode("thethe_e'") == [3, 4, 2, 4, 5]
    assert symbols.decode([2, 5, 9]) == "the_ ' <9>"
