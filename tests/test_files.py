"""`tfpe identify` reads model files of every kind, and damaged ones in one line."""

import os
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path

import keras
import model_files
import numpy as np
import onnx
import pytest
from model_files import KINDS, OF_TENSORFLOW, PE, WEIGHTS
from onnx import helper, numpy_helper

from tfpe.tools import files, graphs

ROOT = Path(__file__).parent.parent
needs_tensorflow = pytest.mark.skipif(
    keras.backend.backend() != "tensorflow", reason="of TensorFlow alone"
)
ALL = [*KINDS, *(pytest.param(k, marks=needs_tensorflow) for k in OF_TENSORFLOW)]


def tables(path):
    _, found = files.tensors(path)
    return {name: t for name, t in found.items() if t.is_table}


@pytest.mark.parametrize("save", ALL)
def test_each_kind_of_file_gives_its_tables(tmp_path, save):
    path = save(tmp_path)
    found = [files.read(path, t) for t in tables(path).values() if t.shape == PE.shape]
    assert found
    for values in found:
        np.testing.assert_array_equal(values, PE)


@pytest.mark.parametrize(
    "save",
    [
        model_files.onnx_file,
        model_files.torchscript,
        pytest.param(model_files.saved_model, marks=needs_tensorflow),
    ],
)
def test_a_constant_without_a_name_says_where_it_is_used(tmp_path, save):
    uses = [t.use for t in tables(save(tmp_path)).values() if t.shape == PE.shape]
    expected = {
        "onnx_file": ["used by Add /encoder/Add"],
        "torchscript": ["__torch__.py"],
        "saved_model": ["used by AddV2 add"],
    }[save.__name__]
    assert uses
    assert all(use.startswith(expected[0]) for use in uses)


def test_the_variables_of_a_saved_model_are_read(tmp_path):
    if keras.backend.backend() != "tensorflow":
        pytest.skip("of TensorFlow alone")
    path = model_files.saved_model(tmp_path)
    assert "string" not in {t.dtype for t in files.tensors(path)[1].values()}
    (weights,) = [t for t in tables(path).values() if t.shape == WEIGHTS.shape]
    np.testing.assert_array_equal(files.read(path, weights), WEIGHTS)


def test_integers_and_calls_of_a_graph_are_passed_over(tmp_path):
    graph = graphs._message("Graph")()
    for name, dtype in ("pe", 1), ("shape", 3), ("text", 7):
        value = graph.node.add(name=name, op="Const").attr.add(key="value").value
        value.tensor.dtype, value.tensor.content = dtype, PE.tobytes()
        for size in PE.shape:
            value.tensor.shape.dim.add(size=size)
    graph.node.add(name="call", op="StatefulPartitionedCall", input=["pe"])
    (tmp_path / "it.pb").write_bytes(graph.SerializeToString())
    _, found = files.tensors(tmp_path / "it.pb")
    assert [(t.name, t.use) for t in found.values()] == [("pe", "")]
    np.testing.assert_array_equal(found["pe"].read(), PE)


def test_onnx_subgraphs_are_searched_and_external_data_is_left_alone(tmp_path):
    constant = helper.make_node(
        "Constant", [], ["pe"], value=numpy_helper.from_array(PE)
    )
    output = helper.make_tensor_value_info("pe", 1, PE.shape)
    branch = helper.make_graph([constant], "branch", [], [output])
    choice = helper.make_node(
        "If", ["c"], ["y"], name="choice", then_branch=branch, else_branch=branch
    )
    elsewhere = numpy_helper.from_array(WEIGHTS, "elsewhere")
    onnx.external_data_helper.set_external_data(elsewhere, "not-here.bin")
    elsewhere.ClearField("raw_data")
    inputs = [helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])]
    outputs = [helper.make_tensor_value_info("y", 1, PE.shape)]
    graph = helper.make_graph([choice], "graph", inputs, outputs, [elsewhere])
    onnx.save(helper.make_model(graph), tmp_path / "it.onnx")
    assert list(tables(tmp_path / "it.onnx")) == ["choice/pe"]


def test_bfloat16_is_read_from_pytorch_and_safetensors(tmp_path):
    torch = pytest.importorskip("torch")
    from safetensors.torch import save_file

    rounded = torch.tensor(PE).bfloat16()
    torch.save({"pe": rounded}, tmp_path / "it.pt")
    save_file({"pe": rounded}, tmp_path / "it.safetensors")
    for name in "it.pt", "it.safetensors":
        (tensor,) = tables(tmp_path / name).values()
        assert tensor.dtype == "bfloat16"
        actual = files.read(tmp_path / name, tensor)
        np.testing.assert_array_equal(actual, rounded.float().numpy())


def test_views_of_a_storage_are_read_as_views(tmp_path):
    torch = pytest.importorskip("torch")
    whole = torch.tensor(np.arange(480, dtype="float32").reshape(40, 12))
    torch.save({"turned": whole.T, "part": whole[5:25, 2:9]}, tmp_path / "it.pt")
    found = tables(tmp_path / "it.pt")
    for name, expected in {"turned": whole.T, "part": whole[5:25, 2:9]}.items():
        actual = files.read(tmp_path / "it.pt", found[name])
        np.testing.assert_array_equal(actual, expected.numpy())


def read_all(path):
    for tensor in files.tensors(path)[1].values():
        files.read(path, tensor)


class Bomb:
    """What fails the test as soon as it is unpickled."""

    def __reduce__(self):
        return (pytest.fail, ("a file was unpickled",))


def test_a_pickled_module_is_read_without_running_anything(tmp_path):
    torch = pytest.importorskip("torch")
    torch.save({"pe": torch.tensor(PE), "bomb": Bomb()}, tmp_path / "it.pt")
    assert list(tables(tmp_path / "it.pt")) == ["pe"]


@pytest.mark.parametrize("name", ["it.npy", "it.npz", "it.pt", "it.bin", "it.ckpt"])
def test_pickles_are_never_read(tmp_path, name):
    with open(tmp_path / name, "wb") as file:
        pickle.dump(Bomb(), file)
    with pytest.raises(files.UnreadableError) as error:
        files.tensors(tmp_path / name)
    assert "\n" not in str(error.value)


def test_an_array_of_objects_does_not_hide_the_others(tmp_path):
    np.savez(tmp_path / "it.npz", a=np.array([Bomb()], object), pe=PE)
    _, found = files.tensors(tmp_path / "it.npz")
    np.testing.assert_array_equal(files.read(tmp_path / "it.npz", found["pe"]), PE)
    with pytest.raises(files.UnreadableError, match="pickles, which are never read"):
        files.read(tmp_path / "it.npz", found["a"])


def damaged(path, content):
    """Writes a file anew with other content, or the data of a folder."""
    path = Path(path)
    if path.is_dir():
        path = path / "saved_model.pb"
    if path.suffix == "" or path.suffix.startswith(".ckpt"):
        path = Path(f"{path}.index")
    path.write_bytes(content(path.read_bytes()))


CHANGES = {
    "cut short": lambda content: content[: len(content) // 3],
    "two bytes": lambda content: content[:2],
    "empty": lambda content: b"",
    "overwritten": lambda content: b"\xff" * len(content),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "save",
    [
        *KINDS,
        *(
            pytest.param(k, marks=needs_tensorflow)
            for k in (model_files.checkpoint, model_files.saved_model)
        ),
    ],
)
def test_a_damaged_file_is_one_line(tmp_path, save, change):
    path = save(tmp_path)
    damaged(path, CHANGES[change])
    with pytest.raises(files.UnreadableError) as error:
        read_all(path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def npy_with_a_header(path, shape):
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(117) + "\n"
    content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little")
    path.write_bytes(content + header.encode() + bytes(4 * 12))


@pytest.mark.parametrize("shape", ["(-1, 12)", "(10**18, 12)", "(99, 12)", "'a'"])
@pytest.mark.case("bad-files")
def test_a_header_that_lies_is_one_line(tmp_path, shape):
    npy_with_a_header(tmp_path / "it.npy", shape)
    with pytest.raises(files.UnreadableError, match="cannot be read") as error:
        files.tensors(tmp_path / "it.npy")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("it.npy", "does not exist"),
        ("", "is a folder without a SavedModel, a TensorFlow checkpoint or"),
        ("it.txt", "is not in a supported format: NumPy"),
        ("it.gguf", "save the table with `numpy.save`"),
        ("it.zip", "is a zip archive, but holds no arrays"),
        ("cut.pt", "it is cut short or damaged"),
        ("empty.pt", "is empty"),
        ("text.pt", "is not a PyTorch file"),
        ("it.data-00000-of-00001", "checkpoint. Name all of it: "),
    ],
)
def test_what_is_not_read_is_told_the_way_out(tmp_path, name, message):
    (tmp_path / "it.txt").write_text("nothing")
    (tmp_path / "it.gguf").write_text("nothing")
    (tmp_path / "cut.pt").write_bytes(b"PK\x03\x04 and no more")
    (tmp_path / "empty.pt").touch()
    (tmp_path / "text.pt").write_text("nothing")
    (tmp_path / "it.data-00000-of-00001").write_bytes(b"numbers")
    # The shortest zip archive, which holds nothing.
    (tmp_path / "it.zip").write_bytes(b"PK\x05\x06" + bytes(18))
    with pytest.raises(files.UnreadableError) as error:
        files.tensors(tmp_path / name)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("save", "package"),
    [
        (model_files.safetensors_file, "safetensors"),
        (model_files.onnx_file, "onnx"),
        (model_files.hdf5, "h5py"),
    ],
)
def test_a_package_that_is_missing_is_named(tmp_path, monkeypatch, save, package):
    path = save(tmp_path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(files.UnreadableError, match=f"pip install {package}$"):
        files.tensors(path)


RUN = """
import sys
from _tfpe_command import main
try:
    main()
except SystemExit as end:
    code = end.code
heavy = {"keras", "tensorflow", "torch", "jax", "matplotlib"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else code)
"""


@pytest.mark.parametrize(
    "save",
    [
        model_files.npz,
        model_files.safetensors_file,
        model_files.pytorch,
        model_files.torchscript,
        model_files.onnx_file,
        model_files.keras_file,
        model_files.hdf5,
        model_files.ctranslate2,
        lambda path: None,
    ],
)
def test_the_command_needs_no_backend_and_keeps_stderr_empty(tmp_path, save):
    path = save(tmp_path)
    arguments = ["identify", str(path)] if path else ["conventions"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(RUN), *arguments],
        capture_output=True,
        check=False,
        env=environment,
        text=True,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert "SinusoidalPositionalEncoding(layout='concatenated'" in result.stdout
