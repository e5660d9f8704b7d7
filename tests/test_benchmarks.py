"""The benchmarks run, and what they compare computes what it should."""

import itertools
import json
import shutil
import types

import keras
import numpy as np
import oracle
import pytest
from contract import on_tensorflow
from keras import ops
from variants import VARIANTS, arrays_of

from benchmarks import __main__ as command
from benchmarks import (
    accuracy,
    cases,
    decoding,
    memory,
    model,
    picture,
    sizes,
    speed,
    timing,
)
from benchmarks.cases import Case, cases_for_this_machine
from benchmarks.peers import OURS, TENSOR2TENSOR, Constant, peers

LAYOUTS = {"vaswani": "interleaved", "tensor2tensor": "concatenated"}
PEERS = peers()
STEERED = [peer for peer in PEERS if peer.takes_positions]
EAGER = timing.Mode("eager")


# KerasHub's layer has its own troubles with torch.
not_on_torch = pytest.mark.skipif(
    keras.backend.backend() == "torch", reason="a benchmark of TensorFlow and JAX"
)


@not_on_torch
@pytest.mark.parametrize("peer", PEERS, ids=lambda peer: peer.name)
def test_each_peer_adds_its_formula(peer):
    inputs = np.random.default_rng(1).normal(size=(3, 11, 8)).astype("float32")
    actual = ops.convert_to_numpy(peer.make(8, "float32")(inputs))
    signal = oracle.rows(range(11), 8, layout=LAYOUTS[peer.spectrum])
    np.testing.assert_allclose(actual, inputs + signal, rtol=0, atol=2e-6)


@not_on_torch
@pytest.mark.parametrize("peer", STEERED, ids=lambda peer: peer.name)
def test_peers_take_a_start_index_and_positions(peer):
    inputs = np.random.default_rng(2).normal(size=(3, 5, 8)).astype("float32")
    added = peer.make(8, "float32")
    signal = oracle.rows(range(700, 705), 8, layout=LAYOUTS[peer.spectrum])
    positions = np.tile(np.arange(700, 705, dtype="int32"), (3, 1))
    for given in ({"start_index": 700}, {"positions": positions}):
        actual = ops.convert_to_numpy(added(inputs, **given))
        np.testing.assert_allclose(actual, inputs + signal, rtol=0, atol=1e-4)


@pytest.mark.parametrize("start", [0, 2**31 - accuracy.STEPS])
@pytest.mark.parametrize("spectrum", LAYOUTS)
def test_the_errors_are_against_the_formula(spectrum, start):
    expected = oracle.rows(
        range(start, start + accuracy.STEPS),
        accuracy.CHANNELS,
        layout=LAYOUTS[spectrum],
    )
    np.testing.assert_allclose(
        accuracy.exact(start, spectrum), expected, rtol=0, atol=1e-15
    )


def test_a_race_tells_how_many_times_as_long_a_function_takes(monkeypatch):
    now = 0.0

    def taking(*seconds):
        ahead = itertools.cycle(seconds)

        def call():
            nonlocal now
            now += next(ahead)
            return np.zeros((1, 1, 1))

        return call

    clock = types.SimpleNamespace(perf_counter=lambda: now)
    monkeypatch.setattr(timing, "time", clock)
    race = timing.race(taking(0.5), taking(1, 2, 1, 2), [()], seconds=0, least=8)
    assert (race.low, race.ratio, race.high) == pytest.approx((2, 3, 4))
    assert (race.base_seconds, race.rounds) == pytest.approx((0.5, 8))
    # Short calls are timed by the run, and there are as many runs as time allows.
    race = timing.race(taking(1e-5), taking(3e-5), [()], seconds=0.8, least=8)
    assert (race.ratio, race.base_seconds) == pytest.approx((3, 1e-5))
    assert race.rounds == pytest.approx(0.8 / (4 * timing.RUN_SECONDS), abs=2)


@pytest.mark.parametrize(
    ("case", "eager", "graph", "graph_unknown", "xla", "xla_unknown"),
    [
        (Case(32, 128), None, 1.1, 1.2, 1.1, 1.2),
        (Case(1, 128), 2.6, 1.1, 1.2, 1.1, 1.2),
        (Case(1, 4096), 3.0, 1.1, 1.2, 1.1, 1.2),
        (Case(1, 32_768), 3.8, 2.2, 3.0, 1.2, 1.2),
        (Case(1, 131_072), None, None, None, None, None),
        (Case(8, 1, given="start_index"), 5.9, 1.5, 1.5, None, None),
        (Case(8, 512, given="positions below 4,096"), None, 1.25, 1.25, 0.25, 0.25),
        (Case(8, 512, given="positions below 2**31"), None, 3.3, 3.3, 0.25, 0.25),
        (Case(8, 512, given="positions with fractions"), None, None, None, None, None),
        (Case(1, 2048, 4096), None, None, None, None, None),
    ],
    ids=str,
)
def test_limits_are_those_of_the_contract(
    monkeypatch, case, eager, graph, graph_unknown, xla, xla_unknown
):
    monkeypatch.setattr(cases, "gpu", lambda: None)
    expected = [eager, graph, graph_unknown, xla, xla_unknown]
    assert [case.limit(mode) for mode in timing.MODES["tensorflow"]] == expected


def test_every_limit_of_the_contract_is_measured(monkeypatch):
    monkeypatch.setattr(cases, "gpu", lambda: None)
    limits = {
        case.limit(mode)
        for case in cases_for_this_machine()
        for mode in timing.MODES["tensorflow"]
        if case.runs_in(mode)
    }
    assert limits >= {1.1, 1.2, 2.2, 2.6, 3.0, 3.3, 3.8, 5.9, 1.5, 1.25, 0.25}
    assert set(cases_for_this_machine(quick=True)) < set(cases_for_this_machine())


def test_a_gpu_has_cases_and_a_limit_of_its_own(monkeypatch):
    monkeypatch.setattr(cases, "gpu", lambda: "a GPU")
    limited = [
        (case, mode.name)
        for case in cases_for_this_machine(quick=True)
        for mode in timing.MODES["jax"]
        if case.limit(mode) == 1.1
    ]
    assert [(str(case), mode) for case, mode in limited] == [
        ("(32, 2,048, 512) bfloat16", "jit")
    ]


def test_the_speed_is_a_table_and_a_picture(monkeypatch, tmp_path):
    monkeypatch.setattr(speed, "peers", lambda: PEERS[:2])  # Others compile for long.
    rows = speed.measure(
        seconds=0,
        cases=[
            Case(2, 3, 512),
            Case(2, 1, 6, given="start_index", modes="eager"),
            Case(2, 5, 6, given="positions with fractions", modes="eager"),
        ],
    )
    assert not [p for row in rows for p in row["peers"].values() if "error" in p]
    assert {row["mode"] for row in rows} == {mode.name for mode in timing.modes()}
    assert [row["base"] for row in rows[-2:]] == ["constant", "sines"]
    for row in rows:
        ratio = row["peers"][OURS]["ratio"]
        assert row["holds"] == (row["limit"] and ratio <= row["limit"])
    lines = speed.markdown(rows).splitlines()
    assert sum(line.startswith("| (2, ") for line in lines) == len(rows)
    assert lines[-1].endswith("limits hold.")
    picture.draw(rows, tmp_path / "speed.png")
    assert (tmp_path / "speed.png").stat().st_size > 10_000


def test_a_limit_that_does_not_hold_is_marked():
    measured = {"ratio": 1.3, "low": 1.0, "high": 1.6}
    row = {
        "case": "(1, 4,096, 512)",
        "mode": "graph unknown",
        "base": "constant",
        "base_seconds": 0.002,
        "limit": 1.2,
        "holds": False,
        "peers": {OURS: measured, "KerasHub": {**measured, "ratio": 13.0}},
    }
    printed = speed.markdown([row])
    assert "| 1.2 | **no** | 1.30 [1.00, 1.60] |" in printed
    assert "| KerasHub in the time of tfpe, (1, 4,096, 512), graph unknown" in printed
    assert printed.endswith("1 of 2 limits hold.")


def test_memory_counts_what_the_layer_holds():
    rows = memory.measured_here(OURS, 64)
    assert {row["mode"] for row in rows} == {mode.name for mode in timing.modes()}
    for row in rows:
        assert 4 < row["held"] <= memory.MOST_HELD
    assert OURS in memory.markdown(rows)


def test_memory_counts_a_constant():
    (row,) = (
        r for r in memory.measured_here(memory.CONSTANT, 64) if r["mode"] == "eager"
    )
    np.testing.assert_allclose(row["held"], 64 * 512 * 4 / 2**20)


def test_the_share_in_a_step_of_the_demo_is_a_table(monkeypatch):
    def forward(model, vocabulary, batch):
        ids = np.random.default_rng(3).integers(2, vocabulary, (batch, 5))
        return lambda: model({"inputs": ids, "targets": ids})

    monkeypatch.setattr(model, "_step", forward)  # Training takes long to compile.
    sizes = {"vocabulary": 11, "hidden": 8, "heads": 2, "blocks": 1, "filter_size": 4}
    rows = model.measure(0, sizes=sizes, batch=3)
    names = [peer.name for peer in PEERS if peer.takes_any_length]
    assert [row["positions"] for row in rows] == [model.WITHOUT, *names]
    assert all(row["low"] <= row["share"] <= row["high"] < 1 for row in rows)
    assert f"| {OURS} |" in model.markdown(rows)


def test_the_demo_is_given_the_layer_of_a_peer():
    sizes = {"vocabulary": 11, "hidden": 8, "heads": 2, "blocks": 1, "filter_size": 4}
    constant = Constant(5, 8)
    ids = np.random.default_rng(4).integers(2, 11, (3, 5))
    outputs = []
    for factor in (1, 2):
        constant.constant = constant.constant * factor
        made = model._model(constant, sizes)
        outputs.append(ops.convert_to_numpy(made({"inputs": ids, "targets": ids})))
    assert np.abs(outputs[0] - outputs[1]).max() > 1e-3


def test_decoding_is_compared_with_the_seconds_of_tensor2tensor(monkeypatch, tmp_path):
    monkeypatch.setattr(decoding, "TIMES", 1)
    copy = shutil.copytree(VARIANTS / "position_emb", tmp_path / "copy")
    arrays = arrays_of(copy / "reference.npz")
    arrays["beams"] = arrays["beams"][:, 0]
    np.savez(copy / "reference.npz", **arrays, greedy_seconds=9, beams_seconds=1e-9)
    greedy, beams = decoding.measure(copy)
    assert greedy["times_as_fast"] > 1 > beams["times_as_fast"]
    assert greedy["same"] == beams["same"] == 1
    assert "greedy, 12 rows, 32 steps" in decoding.markdown([greedy, beams])


def test_the_command_prints_and_writes_what_it_measured(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(command, "limit_cores", lambda count: None)
    monkeypatch.setattr(accuracy, "PLACES", (512, 65_536))
    path = tmp_path / "figures.json"
    command.main(["--section", "accuracy", "--json", str(path)])
    printed = capsys.readouterr().out
    for name in ("# Benchmarks", keras.__version__, "cores 2", "## Accuracy"):
        assert name in printed
    rows = json.loads(path.read_text())["accuracy"]
    assert [row["holds"] for row in rows] == [True] * 6
    wide = {row["place"]: row["errors"] for row in rows if row["dtype"] == "float32"}
    for peer in PEERS:
        if peer.name != OURS:  # They compute the angle in float32.
            assert 5e-6 < wide[512][peer.name] < 5e-4 < wide[65_536][peer.name]
    half = {row["place"]: row["errors"] for row in rows if row["dtype"] == "float16"}
    if "KerasHub" in half[65_536]:
        assert half[65_536]["KerasHub"] is None  # NaN


@pytest.mark.parametrize(
    "arguments",
    [
        ["--cores", "0"],
        ["--section", "accuracy", "--plot", "x.png"],
        ["--section", "x"],
    ],
    ids=str,
)
def test_the_command_refuses_what_it_cannot_do(arguments, capsys):
    with pytest.raises(SystemExit):
        command.parse(arguments)
    assert arguments[0] in capsys.readouterr().err


def test_a_constant_costs_one_addition():
    added = timing.prepared(Constant(3, 4), EAGER, ())
    inputs = np.ones((2, 3, 4), "float32")
    difference = ops.convert_to_numpy(added(inputs)) - inputs
    np.testing.assert_allclose(difference[0], difference[1], rtol=0, atol=0)
    assert difference.std() > 0.1


@on_tensorflow
def test_the_size_of_a_file_is_a_row_with_every_peer(monkeypatch):
    monkeypatch.setattr(sizes, "FILES", {"narrow": (8, None, 1, 0.15)})
    row = sizes._file("narrow", "SavedModel")
    assert row["holds"]
    assert {OURS, TENSOR2TENSOR} <= set(row["measured"])
    assert 0 < row["measured"][OURS] < 0.15
    assert "| SavedModel: narrow | MiB | 0.15 | yes |" in sizes.markdown([row])
    assert "| **no** |" in sizes.markdown([{**row, "holds": False}])
