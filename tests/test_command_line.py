"""The command line `tfpe`: what it prints, writes and returns, and its errors."""

import pickle
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import oracle
import pytest
import safetensors.numpy
import tensorflow as tf
from click.testing import CliRunner

import tfpe
from tfpe.__main__ import main

ROOT = Path(__file__).parent.parent
CONCATENATED = {"layout": "concatenated", "spectrum": "vaswani"}


def table(length=40, channels=12, **settings):
    return oracle.many_rows(range(length), channels, **settings).astype("float32")


def learned(length=40, channels=12):
    return np.random.default_rng(2).normal(size=(length, channels)).astype("float32")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs a command in an empty folder; returns its exit code and its words."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        result = CliRunner().invoke(main, [str(a) for a in arguments])
        assert result.exception is None or isinstance(result.exception, SystemExit)
        return result.exit_code, " ".join(result.output.split())

    return run


def save_npy(path):
    np.save(path / "it.npy", table(**CONCATENATED))
    return "it.npy"


def save_npz(path):
    np.savez(path / "it.npz", pe=table(**CONCATENATED), bias=np.zeros(40))
    return "it.npz"


def save_safetensors(path):
    tensors = {"pe": table(**CONCATENATED), "bias": np.zeros(40, "float32")}
    safetensors.numpy.save_file(tensors, path / "it.safetensors")
    return "it.safetensors"


def save_checkpoint(path):
    bias = tf.Variable(tf.zeros(40))
    pe = tf.Variable(table(**CONCATENATED))
    return tf.train.Checkpoint(pe=pe, bias=bias).save(path / "it.ckpt")


def checkpoint_index(path):
    return f"{save_checkpoint(path)}.index"


def checkpoint_folder(path):
    save_checkpoint(path)
    return path


@pytest.mark.parametrize(
    "save",
    [
        save_npy,
        save_npz,
        save_safetensors,
        save_checkpoint,
        checkpoint_index,
        checkpoint_folder,
    ],
)
def test_identify_reads_each_kind_of_file(run, tmp_path, save):
    code, said = run("identify", save(tmp_path))
    assert code == 0
    assert "40 x 12, float32" in said
    assert (
        "SinusoidalPositionalEncoding(layout='concatenated', spectrum='vaswani')"
        in said
    )
    assert "transformers_marian" in said


def test_identify_lists_the_variables_that_look_like_tables(run):
    np.savez(
        "it.npz",
        pe=table()[:, None],
        kernel=learned(),
        bias=np.zeros(40),
        ids=[[1]] * 9,
    )
    code, said = run("identify", "it.npz")
    assert code == 0
    assert "choose one with --name" in said
    assert "pe 40 x 1 x 12 float32 sinusoidal" in said
    assert "kernel 40 x 12 float32" in said
    assert "kernel 40 x 12 float32 sinusoidal" not in said
    assert "bias" not in said
    assert "ids" not in said


def test_identify_takes_the_variable_that_is_named(run):
    np.savez("it.npz", pe=table(channels=9, odd_channel="sine"), kernel=learned())
    code, said = run("identify", "it.npz", "--name", "pe")
    assert code == 0
    assert "SinusoidalPositionalEncoding(odd_channel='sine')" in said
    assert "keras_hub" in said


def test_identify_says_which_other_settings_fit(run):
    np.save("it.npy", table(channels=4))
    _, said = run("identify", "it.npy")
    assert "layer SinusoidalPositionalEncoding()" in said
    assert "or SinusoidalPositionalEncoding(spectrum='geometric', max_time" in said


def test_identify_says_if_only_the_first_position_is_wrong(run):
    np.save("it.npy", table())
    code, said = run("identify", "it.npy", "--first-position", 1)
    assert code == 1
    assert "not with --first-position 1, but without it" in said


def test_a_picture_without_a_suffix_is_a_png(run):
    assert run("plot", "paper", "--output", "it") == (0, "drawn in it.png")
    assert Path("it.png").is_file()


def test_identify_returns_1_for_a_table_that_no_settings_make(run):
    np.save("it.npy", learned())
    code, said = run("identify", "it.npy")
    assert code == 1
    assert "No settings make this table" in said


def test_identify_says_what_a_row_of_zeros_may_be(run):
    buffer = table(layout="concatenated")
    buffer[1] = 0
    np.save("it.npy", buffer)
    code, said = run("identify", "it.npy")
    assert code == 0
    assert "zeros row 1, left out" in said
    assert "first_position=2" in said


def test_identify_knows_a_flattened_grid_with_a_class_token(run):
    positions = [(y, x) for y in range(8) for x in range(9)]
    grid = oracle.rows(positions, 12, layout="concatenated", spectrum="vaswani")
    np.save("it.npy", np.concatenate([np.zeros((1, 12)), grid]).astype("float32"))
    code, said = run("identify", "it.npy")
    assert code == 0
    assert "spectrum='vaswani', axis=(-3, -2))" in said
    assert "transformers_vit_mae" in said
    assert "zeros row 0, left out" in said


def test_identify_takes_the_first_position(run):
    np.save("it.npy", table())
    assert run("identify", "it.npy", "--first-position", 0)[0] == 0
    assert run("identify", "it.npy", "--first-position", 3)[0] == 1


class Bomb:
    """What fails the test as soon as it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a file was unpickled",))


def bomb_npy():
    np.save("it.npy", np.array([Bomb()], object), allow_pickle=True)
    return ["it.npy"]


def bomb_npz():
    np.savez("it.npz", a=np.array([Bomb()], object), pe=table())
    return ["it.npz", "--name", "a"]


def bomb_disguised():
    with open("it.npy", "wb") as file:
        pickle.dump(Bomb(), file)
    return ["it.npy"]


def bomb_pytorch():
    with open("it.pt", "wb") as file:
        pickle.dump(Bomb(), file)
    return ["it.pt"]


@pytest.mark.parametrize("bomb", [bomb_npy, bomb_npz, bomb_disguised, bomb_pytorch])
def test_identify_never_unpickles(run, bomb):
    code, said = run("identify", *bomb())
    assert code == 2
    assert "pickles" in said
    assert "never read" in said


def test_an_object_array_does_not_hide_the_others(run):
    bomb_npz()
    code, said = run("identify", "it.npz")
    assert code == 0
    assert "table pe" in said


def write(name, content=b"nothing"):
    def save():
        with open(name, "wb") as file:
            file.write(content)
        return [name]

    return save


def array(values, *more):
    def save():
        np.save("it.npy", values)
        return ["it.npy", *more]

    return save


@pytest.mark.parametrize(
    ("save", "message"),
    [
        (lambda: ["it.npy"], "it.npy is neither a file nor a TensorFlow checkpoint"),
        (lambda: ["."], "is not .npy, .npz, .safetensors or a TensorFlow checkpoint"),
        (write("it.txt"), "it.txt is not .npy, .npz, .safetensors or a TensorFlow"),
        (write("it.npz"), "it.npz cannot be read"),
        (write("it.safetensors"), "it.safetensors cannot be read"),
        (write("it.ckpt.index"), "it.ckpt cannot be read"),
        (array(np.zeros(9)), "No variable looks like a table"),
        (array(np.zeros((9, 4)), "--name", "ti"), "such as it. Received: ti"),
        (array(np.zeros(9), "--name", "it"), "must have the shape (length, channels)"),
        (array(np.full((9, 4), np.nan)), "must be finite"),
    ],
)
def test_what_cannot_be_identified_is_an_error(run, save, message):
    code, said = run("identify", *save())
    assert code == 2
    assert said.startswith("Error: ")
    assert message in said


def pictures(path):
    return sorted(file.name for file in path.glob("*.png"))


@pytest.mark.parametrize(
    "name", ["paper", "keras_io_ddim", "mae_2d", "tensor2tensor_3d"]
)
def test_plot_draws_a_convention(run, tmp_path, name):
    code, said = run("plot", name, "--channels", 24)
    assert (code, said) == (0, f"drawn in {name}.png")
    assert pictures(tmp_path) == [f"{name}.png"]


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("paper", "keras_hub", "are equal"),
        ("paper", "transformers_marian", "are the same channels in another order"),
        ("paper", "tensor2tensor", "are different: from row 0 on"),
        ("tensor2tensor", "fairseq", "are different: from row 0 on"),
        ("mae_2d", "transformers_vit_mae", "are the same channels in another order"),
    ],
)
def test_plot_says_how_two_conventions_differ(run, tmp_path, first, second, relation):
    code, said = run("plot", first, second, "--channels", 8)
    assert code == 0
    assert f"{first} and {second} {relation}" in said
    assert pictures(tmp_path) == [f"{first}-{second}.png"]


def test_plot_takes_lengths_and_a_file(run, tmp_path):
    code, _ = run("plot", "detr", "--length", 3, "--length", 5, "--output", "it.svg")
    assert code == 0
    assert (tmp_path / "it.svg").read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing argument"),
        (["paper", "paper", "paper"], "One or two conventions can be drawn, not 3"),
        (["fairsec"], "such as 'fairseq'"),
        (["nerf"], "must be a convention that the layer covers"),
        (["paper", "mae_2d"], "paper has 1, mae_2d has 2"),
        (["paper", "--length", 3, "--length", 4], "as many axes as lengths"),
        (["mae_2d", "--channels", 3], "must have at least 4 channels"),
        (["paper", "--channels", 0], "'--channels'"),
        (["paper", "--output", "no/where.png"], "No such file or directory"),
        (["paper", "--output", "it.word"], "is not supported"),
    ],
)
def test_what_cannot_be_drawn_is_an_error(run, tmp_path, arguments, message):
    code, said = run("plot", *arguments)
    assert code == 2
    assert message in said
    assert list(tmp_path.iterdir()) == []


def test_conventions_lists_all_of_them(run):
    code, said = run("conventions")
    assert code == 0
    assert set(tfpe.CONVENTIONS) <= set(said.replace(",", "").split())
    assert "Outside: nerf" in said


def test_conventions_says_what_is_known_of_one(run):
    code, said = run("conventions", "fairseq")
    assert code == 0
    assert "facebookresearch/fairseq" in said
    assert "(layout='concatenated', first_position=2)" in said
    assert "beyond A `padding_idx` other than 1" in said


def test_conventions_says_why_one_is_outside(run):
    code, said = run("conventions", "nerf")
    assert code == 0
    assert "outside Its channels hold the coordinates" in said


def test_conventions_knows_what_comes_close(run):
    code, said = run("conventions", "distilbert")
    assert code == 2
    assert "'transformers_distilbert'" in said


@pytest.mark.parametrize("command", [[], ["identify"], ["plot"], ["conventions"]])
def test_help_has_examples(run, command):
    code, said = run(*command, "--help")
    assert code == 0
    assert "Examples: tfpe " in said


def test_it_runs_as_a_module(tmp_path):
    result = subprocess.run(
        [sys.executable, "-m", "tfpe", "--version"],
        capture_output=True,
        check=True,
        text=True,
    )
    assert result.stdout == f"tfpe, version {tfpe.__version__}\n"


PAGES = [ROOT / "docs" / "conventions.md", ROOT / "docs" / "identify.md"]
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_pages_show_what_it_prints(run, page):
    tensors = {
        "embed.weight": learned(100, 16),
        "embed_positions.weight": table(200, 16, **CONCATENATED),
    }
    safetensors.numpy.save_file(tensors, "model.safetensors")
    for session in CONSOLE.findall(page.read_text()):
        for said in re.split(r"^\$ tfpe ", session, flags=re.MULTILINE)[1:]:
            command, _, expected = said.partition("\n")
            assert run(*shlex.split(command)) == (0, " ".join(expected.split()))
