"""The command line `tfpe`: what it prints, writes and returns, and its errors."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import safetensors.numpy
from model_files import CONCATENATED, learned, table

import tfpe

ROOT = Path(__file__).parent.parent


def test_a_picture_without_a_suffix_is_a_png(run):
    assert run("plot", "paper", "--output", "it") == (0, "drawn in it.png")
    assert Path("it.png").is_file()


def pictures(path):
    return sorted(file.name for file in path.glob("*.png"))


@pytest.mark.parametrize(
    "name", ["paper", "keras_io_ddim", "mae_2d", "tensor2tensor_3d"]
)
def test_plot_draws_a_convention(run, tmp_path, name):
    code, said = run("plot", name, "--channels", 24)
    assert (code, said) == (0, f"drawn in {name}.png")
    assert pictures(tmp_path) == [f"{name}.png"]


def test_plot_takes_a_word_of_one_kind_of_convention(run):
    assert run("plot", "whisper", "--channels", 8) == (0, "drawn in openai_whisper.png")


@pytest.mark.parametrize(
    ("first", "second", "relation"),
    [
        ("paper", "keras_hub", "are equal"),
        ("paper", "transformers_marian", "are the same channels in another order"),
        ("paper", "tensor2tensor", "are different: from row 0 on"),
        ("paper", "tensor2tensor", "order: sin cos sin cos ..., and sin sin ... cos"),
        ("paper", "tensor2tensor", "spacing: timescales from 1 to 1000, and from 1 to"),
        ("tensor2tensor", "fairseq", "are different: from row 0 on"),
        ("tensor2tensor", "fairseq", "first position: 0, and 2 drawn in"),
        ("mae_2d", "transformers_vit_mae", "are the same channels in another order"),
    ],
)
def test_plot_says_how_two_conventions_differ(run, tmp_path, first, second, relation):
    code, said = run("plot", first, second, "--channels", 8)
    assert code == 0
    assert said.startswith(f"{first} and {second} are ")
    assert relation in said
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
        (["fairsec"], "There is no convention 'fairsec'. Is it fairseq or "),
        (["nerf"], "nerf is not covered by the layer. Its channels hold"),
        (["transformers"], "'transformers' may be several, such as "),
        (["paper", "mae_2d"], "paper has 1 and mae_2d has 2: only those of equally"),
        (["paper", "--length", 3, "--length", 4], "paper has 1: give --length once"),
        (["mae_2d", "dit_2d", "--length", 3], "give --length twice"),
        (["mae_2d", "--channels", 3], "must have at least 4 channels"),
        (["paper", "--channels", 0], "'--channels'"),
        (["paper", "--output", "no/where.png"], "no/where.png cannot be written: No "),
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
    assert "Not covered: nerf" in said


def test_conventions_says_what_is_known_of_one(run):
    code, said = run("conventions", "fairseq")
    assert code == 0
    assert "facebookresearch/fairseq" in said
    assert "(layout='concatenated', first_position=2)" in said
    assert "not covered A `padding_idx` other than 1" in said


def test_conventions_says_why_one_is_outside(run):
    code, said = run("conventions", "nerf")
    assert code == 0
    assert "not covered Its channels hold the coordinates" in said


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("distilbert", "transformers_distilbert project huggingface/transformers"),
        ("add_timing_signal_1d", "tensor2tensor project tensorflow/tensor2tensor"),
        ("SinePositionEncoding", "keras_hub project keras-team/keras-hub"),
        ("rope", "not covered Rotary embeddings (RoPE) add nothing"),
        ("sine_position_encoding.py", "keras_hub project keras-team/keras-hub"),
        ("google/flax", "flax_nlp_seq project google/flax"),
        ("PositionalEncoding", "conventions match 'PositionalEncoding':"),
        ("common_attention.py", "tensor2tensor_2d: tensorflow/tensor2tensor"),
    ],
)
def test_conventions_takes_projects_files_functions_and_classes(run, word, expected):
    code, said = run("conventions", word)
    assert code == 0
    assert expected in said


def test_conventions_knows_what_comes_close(run):
    code, said = run("conventions", "whispr")
    assert code == 2
    assert "Is it openai_whisper or transformers_whisper?" in said
    assert "Received" not in said


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
