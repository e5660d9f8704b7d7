"""The demo in examples/, on a small slice of its data."""

import re
import subprocess
import sys
from pathlib import Path

import g2p
import keras
import numpy as np
import pytest
from contract import on_tensorflow
from pronunciations import (
    InputError,
    Vocabulary,
    edit_distance,
    error_rates,
    read_words,
)
from training import batches
from transformer import transformer

import tfpe
from tfpe.migration import Migrated

pytestmark = on_tensorflow
DATA = Path(g2p.__file__).parent / "data" / "cmudict.tsv.gz"
LENGTH = 7
VOCABULARY = 23
# NumPy's complaint about how Keras reads the variables of TensorFlow.
SAVES = pytest.mark.filterwarnings("ignore:__array__ implementation doesn't accept")
SMALL = {"hidden": 15, "heads": 3, "blocks": 2, "filter_size": 12}


@pytest.fixture(scope="module")
def words():
    return read_words(DATA)


@pytest.fixture
def sliced(words, tmp_path):
    """The path of a file with the first words of the data."""
    path = tmp_path / "words.tsv"
    rows = [f"{word}\t{' '.join(phonemes)}\n" for word, phonemes in words[:90]]
    path.write_text("".join(rows), encoding="utf-8")
    return path


def model_and_inputs(layout="interleaved"):
    """Returns a model whose random weights make it say different things."""
    keras.utils.set_random_seed(3)
    positions = layout and tfpe.SinusoidalPositionalEncoding(layout)
    model = transformer(VOCABULARY, **SMALL, positions=positions)
    random = np.random.default_rng(4)
    for weight in model.weights:
        if len(weight.shape) == 2 and "embedding" not in weight.name:
            weight.assign(random.normal(size=weight.shape))
    inputs = random.integers(2, VOCABULARY, (5, 9)).astype("int32")
    inputs[1, 4:] = inputs[3, 7:] = 0
    return model, inputs


@pytest.mark.parametrize("layout", [None, "interleaved", "concatenated"])
def test_decoding_step_by_step_is_decoding_the_whole_prefix(layout):
    model, inputs = model_and_inputs(layout)
    inputs[:, -1] = 1  # Each row has an end.
    found = g2p.decoded(Migrated(model), inputs)
    assert len({i for row in found for i in row}) > 3
    assert g2p.chosen_at_once(model, inputs, found) == found


def test_a_logit_depends_on_earlier_targets_only_and_not_on_padding():
    model, inputs = model_and_inputs()
    targets = np.random.default_rng(5).integers(2, VOCABULARY, (5, LENGTH))
    logits = model({"inputs": inputs, "targets": targets}).numpy()
    changed = targets.copy()
    changed[:, 3] = 1
    padded = np.pad(inputs, [(0, 0), (0, 2)])
    others = model({"inputs": padded, "targets": changed}).numpy()
    np.testing.assert_allclose(others[:, :4], logits[:, :4], rtol=0, atol=1e-5)
    assert abs(others[:, 4:] - logits[:, 4:]).max(axis=(1, 2)).min() > 0.1


@pytest.mark.parametrize("layout", [None, "interleaved", "concatenated"])
def test_the_order_of_the_letters_is_lost_without_positions_only(layout):
    model, inputs = model_and_inputs(layout)
    inputs, targets = inputs[:1], inputs[:1, :LENGTH]
    logits = model({"inputs": inputs, "targets": targets}).numpy()
    mirrored = model({"inputs": inputs[:, ::-1], "targets": targets}).numpy()
    assert (abs(mirrored - logits).max() < 1e-4) == (layout is None)


@SAVES
def test_a_saved_model_loads_in_a_process_that_imports_keras_and_tfpe(tmp_path):
    model, inputs = model_and_inputs()
    targets = inputs[:, :LENGTH]
    model.save(tmp_path / "model.keras")
    np.savez(tmp_path / "ids.npz", inputs=inputs, targets=targets)
    code = (
        "import sys, keras, numpy, tfpe\n"
        "model, ids, logits = sys.argv[1:]\n"
        "model = keras.models.load_model(model)\n"
        "numpy.save(logits, model(dict(numpy.load(ids))))\n"
    )
    files = [tmp_path / name for name in ("model.keras", "ids.npz", "logits.npy")]
    root = Path(tfpe.__file__).parents[1]
    subprocess.run([sys.executable, "-c", code, *files], cwd=root, check=True)
    expected = model({"inputs": inputs, "targets": targets}).numpy()
    np.testing.assert_allclose(np.load(files[-1]), expected, rtol=0, atol=1e-6)

    again = keras.models.load_model(tmp_path / "model.keras")
    inputs[:, -1] = 1
    ours, theirs = (g2p.decoded(Migrated(m), inputs) for m in (model, again))
    assert ours == theirs


def test_hidden_must_be_a_multiple_of_heads():
    with pytest.raises(ValueError, match=r"multiple of `heads`.*hidden=16, heads=3"):
        transformer(VOCABULARY, hidden=16, heads=3)


def test_ids_stand_in_the_order_of_the_tensor2tensor_checkpoint(words):
    vocabulary = Vocabulary(words)
    spelling, phonemes = words[0]
    assert len(words) == 116_648
    assert len(vocabulary) == 67
    np.testing.assert_array_equal(
        vocabulary.encode_words([spelling]), [[3, 19, 16, 4, 12, 14, 6, 26, 6, 19, 1]]
    )
    np.testing.assert_array_equal(
        vocabulary.encode_phonemes([phonemes]), [[34, 55, 28, 47, 49, 33, 39, 1]]
    )


def test_letters_beyond_the_alphabet_and_phonemes_like_letters_have_ids_of_their_own():
    vocabulary = Vocabulary([("o'b", ["b", "o"]), ("c", ["c"])])
    assert vocabulary.symbols[-5:] == ["z", "'", "b", "c", "o"]
    ids = vocabulary.encode_phonemes([["o", "b"], ["c"]])
    np.testing.assert_array_equal(ids, [[31, 29, 1], [30, 1, 0]])
    assert vocabulary.decode(ids) == [["o", "b"], ["c"]]


def test_batches_have_each_word_once_per_pass_and_little_padding():
    lengths = np.arange(40) % 13 + 1
    inputs = np.where(np.arange(14) < lengths[:, None], np.arange(40)[:, None] + 1, 0)
    stream = batches(inputs, inputs[:, :13], 10, seed=1)
    first, second = ([next(stream) for _ in range(4)] for _ in range(2))
    for one_pass in (first, second):
        words = np.concatenate([x["inputs"][:, 0] for x, _ in one_pass])
        np.testing.assert_array_equal(np.sort(words), np.arange(40) + 1)
    assert sorted(y.shape[1] for _, y in first) == [4, 8, 12, 13]
    orders = [[x["inputs"][0, 0] for x, _ in batch] for batch in (first, second)]
    assert orders[0] != orders[1]


def test_error_rates_count_phonemes_and_words():
    assert edit_distance("kitten", "sitting") == 3
    assert edit_distance([], ["K"]) == edit_distance(["K"], []) == 1
    truths = [["K", "AE", "T"], ["D", "AO", "G"], ["AW"]]
    predictions = [["K", "AE", "T"], ["D", "AA", "G", "Z"], []]
    assert error_rates(truths, predictions) == (3 / 7, 2 / 3)


@SAVES
def test_the_demo_leaves_a_table_pictures_and_a_model(sliced, tmp_path, capsys):
    common = ["--data", str(sliced), "--output", str(tmp_path)]
    sizes = "--held-out 30 --steps 2 --batch 20 --hidden 9 --heads 3 --blocks 1"
    g2p.main([*common, *sizes.split()])
    printed = capsys.readouterr().out
    for name in ("no positions", "interleaved", "concatenated"):
        assert re.search(rf"^{name} +\d+\.\d% +\d+\.\d% +\d+$", printed, re.MULTILINE)
    assert printed.count("30 of 30 the same") == 4
    assert re.search(r"^brockmeyer +B R AA K M AY ER$", printed, re.MULTILINE)
    for name in ("encodings.png", "learning_curves.png"):
        assert (tmp_path / name).read_bytes().startswith(b"\x89PNG")

    g2p.main([*common, "--pronounce", "Keras", "flow"])
    words = [line.split()[:1] for line in capsys.readouterr().out.splitlines()]
    assert words == [["keras"], ["flow"]]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--pronounce café", "unknown letter 'é' in 'café'; the letters are abc"),
        ("--pronounce keras", "no model at .*g2p.keras: run without --pronounce first"),
        ("--data nowhere.tsv", "cannot read nowhere.tsv: .*No such file"),
        ("--data empty.tsv", "no words to train on: empty.tsv has 0 words"),
        ("--data broken.tsv", r"broken.tsv, line 2: must be a word, a tab .*'dog DH'"),
        ("--data broken.tsv.gz", "cannot read broken.tsv.gz: "),
        ("--held-out 90", "no words to train on: .* has 90 words, --held-out takes 90"),
        ("--held-out 9 --hidden 6", "multiple of --heads, not 6 for 4 heads"),
        ("--held-out 9 --output broken.tsv", "cannot write to broken.tsv: "),
    ],
)
def test_bad_input_gets_one_clear_line(
    arguments, message, sliced, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    Path("empty.tsv").touch()
    for name in ("broken.tsv", "broken.tsv.gz"):
        Path(name).write_text("cat\tK AE T\ndog DH\n")
    usual = ["--data", str(sliced), "--output", "out"]
    with pytest.raises(SystemExit) as stopped:
        g2p.main([*usual, *arguments.split()])
    assert re.search(message, stopped.value.code)
    assert "\n" not in stopped.value.code


def test_a_file_that_is_no_model_is_named(sliced, tmp_path):
    (tmp_path / "g2p.keras").write_text("not a model")
    usual = ["--data", str(sliced), "--output", str(tmp_path)]
    with pytest.raises(SystemExit, match=r"cannot load .*g2p\.keras: "):
        g2p.main([*usual, "--pronounce", "cat"])


def test_an_unknown_letter_is_named_with_its_word():
    with pytest.raises(InputError, match="unknown letter '-' in 'x-ray'"):
        Vocabulary([("ray", ["R", "EY"])]).encode_words(["ray", "x-ray"])
