"""Shapes, ranges and graphs of cases.json."""

import keras
import numpy as np
import oracle
import pytest
import tensorflow as tf
from cases import CASES, at, zeros
from contract import (
    FLOAT32,
    FLOAT64,
    LAYOUTS,
    MODES,
    POLICIES,
    assert_close,
    assert_promised,
    assert_same_in_dtype,
    conventions,
    randoms,
    to_float64,
)

import tfpe

SUM = 2 * FLOAT32  # of float32 numbers below 4 in size: the signal and one rounding


@pytest.mark.parametrize("layout", LAYOUTS)
def test_odd_many(layout):
    layer = tfpe.SinusoidalPositionalEncoding
    for channels in CASES["odd-many"]["channels"]:
        inputs = randoms(2, 7, channels)
        outputs = layer(layout=layout)(inputs)
        assert outputs.shape == inputs.shape
        last = 2 * (channels // 2)
        np.testing.assert_array_equal(outputs[..., last], inputs[..., last])
        signal = to_float64(at(np.arange(1, 90), channels, layout=layout))
        np.testing.assert_array_equal(signal[:, last], np.zeros(89))
        assert np.all(np.abs(signal[:, :last]).max(axis=0) > 0)
    np.testing.assert_array_equal(at([3, 9], 1, layout=layout), np.zeros((2, 1)))
    with pytest.raises(ValueError, match="at least 2 channels"):
        layer(layout=layout)(randoms(2, 7, 1))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", CASES["tiny"]["channels"])
def test_tiny(channels, layout, mode):
    layer = tfpe.SinusoidalPositionalEncoding(layout=layout)

    @MODES[mode]
    def entry_points(where, segments):
        packed = tfpe.positions_from_segments(segments)
        inputs = zeros(2, 4, channels)
        return [
            layer(inputs)[1],
            layer(inputs, start_index=3)[1],
            layer(inputs, positions=where)[1],
            tfpe.timing_signal(4, channels, start_index=3, layout=layout),
            tfpe.timing_signal_at(where, channels, layout=layout),
            layer(inputs, positions=packed)[1],
        ]

    arguments = np.array([3, 4, 5, 6], "int32"), np.array([[1, 1, 1, 1], [2, 2, 3, 3]])
    plain, *moved, packed = entry_points(*map(keras.ops.convert_to_tensor, arguments))
    assert_close(plain, tiny([0, 1, 2, 3], channels), FLOAT32)
    for got in moved:
        assert_close(got, tiny([3, 4, 5, 6], channels), FLOAT32)
    assert_close(packed, tiny([0, 1, 0, 1], channels), FLOAT32)


def tiny(positions, channels):
    return np.array([[np.sin(p), np.cos(p), 0.0][:channels] for p in positions])


def test_tiny_in_two_dimensions():
    for channels in (4, 5, 6, 7):
        got = to_float64(tfpe.timing_signal((3, 2), channels))
        rows = [
            [np.sin(h), np.cos(h), np.sin(w), np.cos(w)]
            for h, w in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1))
        ]
        want = np.pad(rows, [(0, 0), (0, channels - 4)]).reshape(3, 2, channels)
        np.testing.assert_allclose(got, want, rtol=0, atol=FLOAT32)


def test_nd_remainder():
    for channels in CASES["nd-remainder"]["channels"]:
        signal = to_float64(tfpe.timing_signal((50, 40), channels))
        used = 4 * (channels // 4)
        assert signal.shape == (50, 40, channels)
        np.testing.assert_array_equal(signal[..., used:], 0)
        assert np.all(np.abs(signal[..., :used]).max(axis=(0, 1)) > 0)


def test_nd_blocks():
    settings = {"layout": CASES["nd-blocks"]["layout"]}
    layer = tfpe.SinusoidalPositionalEncoding(axis=(1, 2), **settings)
    got = layer(np.zeros(CASES["nd-blocks"]["shape"], "float32"))[0, 1, 0]
    want = [oracle.row(position, 4, **settings) for position in (1, 0)]
    assert_close(got, np.concatenate(want), FLOAT32)


def test_nd_non_square():
    inputs = randoms(2, 5, 3, 8)
    got = tfpe.SinusoidalPositionalEncoding(axis=(1, 2))(inputs)
    want = oracle.rows(list(np.ndindex(5, 3)), 8).reshape(5, 3, 8)
    assert_close(got, to_float64(inputs) + want, 2 * FLOAT32)


def test_axis():
    got = tfpe.SinusoidalPositionalEncoding()(zeros(*CASES["axis"]["shape"]))
    for row in got:
        assert_close(row, oracle.rows(range(3), 4), FLOAT32)


@pytest.mark.parametrize("mode", MODES)
def test_split(mode):
    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(2, 7, 6)
    whole = layer(inputs)

    @MODES[mode]
    def parts(inputs, cuts, more):
        return [
            (layer(inputs[:, :k]), layer(inputs[:, k:], start_index=start))
            for k in range(8)
            for start in starts(k, cuts, more)
        ]

    def starts(k, cuts, more):
        if k in (0, 3):
            yield from (k, np.int64(k), more[k], keras.ops.stack([cuts[k]] * 2))
        yield cuts[k]

    cuts = (keras.ops.convert_to_tensor(np.arange(8, dtype=d)) for d in ("i4", "i8"))
    for both in parts(inputs, *cuts):
        assert_same_in_dtype(keras.ops.concatenate(both, axis=1), whole)


def test_int32_edge():
    for call in (
        lambda start, n: tfpe.SinusoidalPositionalEncoding()(
            zeros(1, n, 6), start_index=start
        ),
        lambda start, n: tfpe.timing_signal(n, 6, start_index=start),
        lambda start, n: tfpe.SinusoidalPositionalEncoding()(
            keras.Input((n, 6)), start_index=start
        ),
    ):
        # int64 since 0.2: what was refused in 0.1 beyond int32 is right now.
        call(2**31 - 4, 5)
        call(2**63 - 5, 5)
        with pytest.raises(ValueError, match="must not go past 2\\*\\*63 - 1"):
            call(2**63 - 4, 5)


@pytest.mark.parametrize("channels", [2, 8, 65])
def test_pairs(channels):
    n = channels // 2
    for settings in conventions(channels):
        signal = to_float64(tfpe.timing_signal(90, channels, **settings))
        pairs = signal[:, : 2 * n].reshape(90, n, 2)
        if settings["layout"] == "concatenated":
            pairs = signal[:, : 2 * n].reshape(90, 2, n).transpose(0, 2, 1)
        np.testing.assert_allclose((pairs**2).sum(-1), 1, atol=4 * FLOAT32)
        for k in (1, 17):
            moved = signal[:-k] @ tfpe.shift_matrix(k, channels, **settings)
            np.testing.assert_allclose(moved, signal[k:], atol=4 * FLOAT32)


def test_unique_bounded():
    for dtype in ("float32", "bfloat16"):
        rows = to_float64(tfpe.timing_signal(10_000, 64, dtype=dtype))
        assert len(np.unique(rows, axis=0)) == 10_000
        assert np.abs(rows).max() <= 1 + 2**-22
    rows = to_float64(tfpe.timing_signal(300, 64, dtype="float64"))
    for distance in (1, 7, 100):
        dots = np.sum(rows[distance:] * rows[:-distance], axis=1)
        np.testing.assert_allclose(dots, dots[0], rtol=0, atol=64 * FLOAT64)


@pytest.mark.parametrize("policy", POLICIES)
def test_xla(policy):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=policy)
    dtype = layer.compute_dtype
    signature = [tf.TensorSpec([None, None, 8], dtype), tf.TensorSpec([], "int32")]
    call = tf.function(layer, input_signature=signature, jit_compile=True)
    for length, start in ((5, 2047), (9, 70000)):
        got = call(keras.ops.zeros((2, length, 8), dtype), start)
        where = np.arange(start, start + length)
        assert_promised(got[1], oracle.rows(where, 8), where)


def test_retrace():
    layer = tfpe.SinusoidalPositionalEncoding()
    signature = [tf.TensorSpec([None, None, 6]), tf.TensorSpec([], "int32")]
    call = tf.function(lambda x, s: layer(x, s), input_signature=signature)
    for length in range(1, 51):
        got = call(zeros(1, length, 6), 50 - length)
        assert_close(got[0, -1], oracle.row(49, 6), FLOAT32)
    call(zeros(1, 7, 6), 50)
    assert call.experimental_get_tracing_count() == 1


def test_order_of_calls(tmp_path):
    layer = tfpe.SinusoidalPositionalEncoding()
    model = keras.Sequential([keras.Input((None, 6)), layer])
    for call in (tf.function(model), model, tf.function(model), layer):
        for length in (3, 5001, 3):
            want = oracle.many_rows(range(length), 6)
            assert_close(call(zeros(1, length, 6))[0], want, FLOAT32)
    for start in (0, 5):
        got = layer(zeros(1, 3, 6), start_index=start)
        assert_close(got[0], oracle.rows(range(start, start + 3), 6), FLOAT32)
    model.export(tmp_path / "exported", verbose=False)
    served = tf.saved_model.load(str(tmp_path / "exported")).serve
    assert_close(served(zeros(1, 5, 6))[0], oracle.rows(range(5), 6), FLOAT32)
