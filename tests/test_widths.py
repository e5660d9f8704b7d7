"""Widths that others get wrong: one pair, an odd channel, channels left over."""

import keras
import numpy as np
import pytest
from cases import CASES, at, zeros
from contract import (
    FLOAT32,
    LAYOUTS,
    MODES,
    assert_close,
    needs_float64,
    randoms,
    to_float64,
)

import tfpe


@needs_float64
@pytest.mark.case("odd-many")
@pytest.mark.parametrize("layout", LAYOUTS)
def test_last_of_an_odd_number_of_channels_is_left_alone(layout):
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


@pytest.mark.case("tiny")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("channels", CASES["tiny"]["channels"])
def test_one_pair_is_right_through_every_entry_point(channels, layout, mode):
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


@pytest.mark.case("tiny")
def test_one_pair_on_each_of_two_axes_is_right():
    for channels in (4, 5, 6, 7):
        got = to_float64(tfpe.timing_signal((3, 2), channels))
        rows = [
            [np.sin(h), np.cos(h), np.sin(w), np.cos(w)]
            for h, w in ((0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1))
        ]
        want = np.pad(rows, [(0, 0), (0, channels - 4)]).reshape(3, 2, channels)
        np.testing.assert_allclose(got, want, rtol=0, atol=FLOAT32)
