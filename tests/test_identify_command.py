"""`tfpe identify`: what it says of files, and its exit codes."""

import json
from pathlib import Path

import model_files
import numpy as np
import oracle
import pytest
import safetensors.numpy
from model_files import learned, table

import tfpe

ROOT = Path(__file__).parent.parent
LAYER = "layer SinusoidalPositionalEncoding(layout='concatenated', spectrum='vaswani')"


@pytest.mark.parametrize("save", model_files.KINDS)
def test_identify_answers_for_each_kind_of_file(run, tmp_path, save):
    code, said = run("identify", save(tmp_path))
    assert code == 0
    assert ": 1 sinusoidal table " in said
    assert "40 x 12, float32" in said
    assert LAYER in said
    assert "transformers_marian" in said


def test_sinusoidal_tables_come_first_then_learned_ones_and_the_rest_is_counted(run):
    np.savez(
        "it.npz",
        kernel=learned(),
        pe=table()[:, None],
        position_embedding=learned(64),
        bias=np.zeros(40),
    )
    code, said = run("identify", "it.npz")
    assert code == 0
    order = [
        "it.npz: 1 sinusoidal table pe, 40 x 1 x 12, float32",
        "layer SinusoidalPositionalEncoding() names pytorch_example,",
        "position_embedding, 64 x 12, float32: not sinusoidal; learned, by its name",
        "2 other tensors (--all lists them)",
    ]
    found = [said.index(words) for words in order]
    assert found == sorted(found)
    assert "kernel" not in said
    _, said = run("identify", "it.npz", "--all")
    assert "kernel, 40 x 12, float32: not sinusoidal" in said
    assert "bias, 40, float64: not sinusoidal" in said
    assert "--all" not in said


def test_equal_tables_are_one_answer(run):
    np.savez("it.npz", encoder=table(), decoder=table(), other=table(41))
    _, said = run("identify", "it.npz")
    assert (
        "it.npz: 2 sinusoidal tables encoder, 40 x 12, float32 also in decoder" in said
    )


@pytest.mark.parametrize(
    ("save", "first"),
    [
        (model_files.pytorch, "transformers_marian, x_transformers, transformers_ctrl"),
        (model_files.safetensors_file, "transformers_marian, x_transformers"),
        (model_files.hdf5, "tensorflow_tutorial, ctrl, tensorflow_tutorial_2019"),
        (model_files.npy, "transformers_marian, tensorflow_tutorial, trax_sincos"),
    ],
)
def test_names_of_the_file_s_own_framework_come_first(run, tmp_path, save, first):
    _, said = run("identify", save(tmp_path))
    assert f"names {first}" in said


def test_several_files_are_answered_even_if_one_cannot_be_read(run):
    np.save("a.npy", table())
    Path("b.npz").write_bytes(b"PK")
    np.save("c.npy", learned())
    code, said = run("identify", "a.npy", "b.npz", "c.npy")
    assert code == 2
    assert "a.npy: 1 sinusoidal table" in said
    assert "Error: b.npz cannot be read" in said
    assert "c.npy: no sinusoidal table" in said
    assert run("identify", "c.npy")[0] == 1
    assert run("identify", "c.npy", "a.npy")[0] == 0


def test_json_says_the_same_to_programs(run):
    np.savez("it.npz", pe=table(layout="concatenated"), again=table(9), w=np.zeros(3))
    code, said = run("identify", "it.npz", "none.npy", "--json")
    assert code == 2
    first, second = json.loads(said)
    assert [t["names"] for t in first["sinusoidal"]] == [["pe"], ["again"]]
    pe = first["sinusoidal"][0]
    assert (pe["settings"], pe["step"]) == ({"layout": "concatenated"}, 1)
    assert (pe["shape"], pe["dtype"]) == ([40, 12], "float32")
    assert pe["conventions"][0] == "openai_whisper"
    assert [t["name"] for t in first["other_tensors"]] == ["w"]
    assert "none.npy does not exist" in second["error"]


def test_identify_takes_the_tensor_that_is_named(run):
    np.savez("it.npz", pe=table(channels=9, odd_channel="sine"), kernel=learned())
    code, said = run("identify", "it.npz", "--name", "pe")
    assert code == 0
    assert "SinusoidalPositionalEncoding(odd_channel='sine')" in said
    assert "keras_hub" in said
    assert run("identify", "it.npz", "--name", "kernel")[0] == 1
    code, said = run("identify", "it.npz", "--name", "ti")
    assert (code, said) == (2, "Error: it.npz has no tensor ti. It has: pe, kernel")


def test_identify_says_which_other_settings_fit(run):
    np.save("it.npy", table(channels=4))
    _, said = run("identify", "it.npy")
    assert "layer SinusoidalPositionalEncoding()" in said
    assert "also as SinusoidalPositionalEncoding(spectrum='geometric', max_time" in said


def test_rows_that_are_counted_down_are_said_to_be(run):
    np.save("it.npy", table()[::-1])
    code, said = run("identify", "it.npy")
    assert code == 0
    assert "layer SinusoidalPositionalEncoding(first_position=39)" in said
    assert "rows counted down: call it with positions=-np.arange(40)" in said
    assert "names espnet_relative, pytorch_example" in said


def test_identify_says_if_only_the_first_position_is_wrong(run):
    np.save("it.npy", table())
    assert run("identify", "it.npy", "--first-position", 0)[0] == 0
    code, said = run("identify", "it.npy", "--first-position", 1)
    assert code == 1
    assert "No table has row 0 at position 1. One may fit without" in said


@pytest.mark.parametrize("position", ["nan", "1e154"])
def test_a_first_position_that_is_none_is_an_error(run, position):
    np.save("it.npy", table())
    code, said = run("identify", "it.npy", "--first-position", position)
    assert code == 2
    assert "`first_position` must be a finite number in the range of int32" in said


def test_identify_says_what_a_row_of_zeros_may_be(run):
    buffer = table(layout="concatenated")
    buffer[1] = 0
    np.save("it.npy", buffer)
    code, said = run("identify", "it.npy")
    assert code == 0
    assert "zeros row 1 is zeros; ignored" in said
    assert (
        "if row 0 is the first token; if row 2 is, as in fairseq: "
        "SinusoidalPositionalEncoding(layout='concatenated', first_position=2)"
    ) in said
    assert "names fairseq, " in said
    assert "openai_whisper" in said
    _, said = run("identify", "it.npy", "--json")
    (found,) = json.loads(said)[0]["sinusoidal"]
    assert found["rows_of_zeros"] == [1]
    assert found["settings"] == {"layout": "concatenated"}
    assert found["settings_behind_zeros"] == {
        "layout": "concatenated",
        "first_position": 2,
    }
    assert {"fairseq", "tensor2tensor"} <= set(found["conventions"])


def test_rows_of_zeros_far_from_the_start_are_no_padding(run):
    buffer = table(layout="concatenated")
    buffer[[2, 30, 31]] = 0
    np.save("it.npy", buffer)
    _, said = run("identify", "it.npy")
    assert "zeros rows 2, 30 and 31 are zeros; ignored" in said
    assert "fairseq" not in said


def test_the_best_known_of_many_names_come_first_and_the_rest_is_counted(run):
    np.savez("it.npz", pe=table())
    _, said = run("identify", "it.npz")
    assert "names pytorch_example, annotated_transformer, keras_hub, paper, " in said
    assert " that compute the same differs by " in said
    _, said = run("identify", "it.npz", "--all")
    _, names = said.split("names ")
    assert "that compute the same" not in names
    found = tfpe.identify(table()).names
    assert sorted(names.partition(" differs")[0].split(", ")) == sorted(found)


def test_a_table_that_cannot_be_read_is_not_said_to_be_none(run):
    np.savez("it.npz", pe=table(400), bias=np.zeros(3))
    content = bytearray(Path("it.npz").read_bytes())
    content[9000] ^= 255
    Path("it.npz").write_bytes(content)
    code, said = run("identify", "it.npz")
    assert code == 2
    assert "Error: it.npz cannot be read: pe: it is cut short or damaged" in said
    assert "it.npz: no sinusoidal table in what could be read" in said
    assert "Searched" not in said


@pytest.mark.parametrize("value", [5.0, np.nan])
def test_a_table_with_one_bad_value_is_said_to_be_one_in_part(run, value):
    bad = table(60)
    bad[50, 3] = value
    np.savez("it.npz", position_embedding=bad, kernel=learned())
    code, said = run("identify", "it.npz")
    assert code == 1
    assert "position_embedding, 60 x 12, float32: sinusoidal in part; not all" in said
    assert "learned" not in said
    assert "Searched" not in said
    _, said = run("identify", "it.npz", "--json")
    (partly,) = json.loads(said)[0]["sinusoidal_in_part"]
    assert partly["name"] == "position_embedding"


def test_the_model_files_of_a_folder_are_answered(run):
    Path("model").mkdir()
    Path("model", "config.json").write_text("{}")
    for part in "12":
        path = f"model/model-{part}.safetensors"
        safetensors.numpy.save_file({f"pe{part}": table()}, path)
    code, said = run("identify", "model")
    assert code == 0
    assert "model-1.safetensors: 1 sinusoidal table pe1" in said
    assert "model-2.safetensors: 1 sinusoidal table pe2" in said


def test_identify_knows_a_flattened_grid_with_a_class_token(run):
    positions = [(y, x) for y in range(8) for x in range(9)]
    grid = oracle.rows(positions, 12, layout="concatenated", spectrum="vaswani")
    np.save("it.npy", np.concatenate([np.zeros((1, 12)), grid]).astype("float32"))
    code, said = run("identify", "it.npy")
    assert code == 0
    assert "spectrum='vaswani', axis=(-3, -2))" in said
    assert "transformers_vit_mae" in said
    assert "grid 8 x 9 positions, behind the row of zeros of a class token" in said


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("it.npz", "Searched: all arrays"),
        ("it.h5", "Keras files seldom hold such a table"),
        ("it.onnx", "Searched: initializers and Constant nodes"),
    ],
)
def test_if_nothing_is_found_it_says_where_it_searched(run, name, message):
    np.savez("it.npz", w=learned())
    with model_files.h5py.File("it.h5", "w") as file:
        file["w"] = learned()
    node = model_files.helper.make_node("Relu", ["x"], ["y"])
    values = [model_files.helper.make_tensor_value_info(n, 1, [2]) for n in ("x", "y")]
    graph = model_files.helper.make_graph([node], "g", values[:1], values[1:])
    model_files.onnx.save(model_files.helper.make_model(graph), "it.onnx")
    code, said = run("identify", name)
    assert code == 1
    assert f"{name}: no sinusoidal table" in said
    assert message in said


def test_a_checkpoint_of_tensor2tensor_is_told_of_its_signal(run):
    folder = ROOT / "compat" / "golden" / "g2p_checkpoint"
    if model_files.keras.backend.backend() != "tensorflow":
        pytest.skip("of TensorFlow alone")
    code, said = run("identify", folder)
    assert code == 1
    assert "tensor2tensor, which computes its signal and stores no table" in said
    assert "`tfpe migrate`" in said


def test_tables_that_are_not_finite_are_passed_over(run):
    np.savez("it.npz", broken=np.full((9, 4), np.nan), pe=table())
    code, said = run("identify", "it.npz")
    assert code == 0
    assert "1 other tensor" in said
    code, said = run("identify", "it.npz", "--name", "broken")
    assert code == 2
    assert "must be finite" in said
