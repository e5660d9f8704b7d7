"""The two layouts are one signal in another order, if their spectra are equal.

With each layout's own spectrum they are not: besides the order, tensor2tensor
spaces the timescales otherwise than the paper does.
"""

import functools
import itertools

import numpy as np
import pytest
from contract import FLOAT32
from goldens import THEIRS, golden
from keras import ops

import tfpe

WORDS = ("axis", "frequency", "function")
LAYOUTS = ["interleaved", "concatenated", *itertools.permutations(WORDS)]
FAR = 1_700_000_001
ODD_AND_EVEN = [2, 3, 4, 5, 8, 9, 64, 127]
MEETING = [2, 3, 5, 8, 9, 64]


@functools.cache
def signal(length, channels, **settings):
    return ops.convert_to_numpy(tfpe.timing_signal(length, channels, **settings))


def tensor2tensor(length, channels, start_index):
    """What tensor2tensor itself gave, `(length, channels)`."""
    ends = {"min_timescale": 1.0, "max_timescale": 1e4, "start_index": start_index}
    call = golden("get_timing_signal_1d", length=length, channels=channels, **ends)
    return call.out[0]


def theirs(length, start_index):
    """The error to be allowed between tfpe's and tensor2tensor's values."""
    return FLOAT32 + THEIRS * (start_index + np.arange(length)[:, None])


@pytest.mark.parametrize("start_index", [FAR, -255])
@pytest.mark.parametrize("spectrum", ["vaswani", "tensor2tensor", "geometric"])
@pytest.mark.parametrize("odd_channel", ["zero", "sine"])
@pytest.mark.parametrize("channels", ODD_AND_EVEN)
def test_equal_spectra_give_bit_equal_channels_in_another_order(
    channels, odd_channel, spectrum, start_index
):
    same = {
        "odd_channel": odd_channel,
        "spectrum": spectrum,
        "start_index": start_index,
        "min_timescale": 2.0,
    }
    interleaved = signal(11, channels, layout="interleaved", **same)
    concatenated = signal(11, channels, layout="concatenated", **same)

    def permutation(source, target):
        return tfpe.layout_permutation(
            channels, source, target, odd_channel=odd_channel
        )

    there = permutation("interleaved", "concatenated")
    back = permutation("concatenated", "interleaved")
    np.testing.assert_array_equal(interleaved[:, there], concatenated)
    np.testing.assert_array_equal(concatenated[:, back], interleaved)
    np.testing.assert_array_equal(there[back], np.arange(channels))


@pytest.mark.parametrize("odd_channel", ["zero", "sine"])
@pytest.mark.parametrize("channels", ODD_AND_EVEN)
def test_the_concatenated_layout_has_every_other_channel_of_the_interleaved_first(
    channels, odd_channel
):
    # The same parity without a word from `layout_permutation`.
    same = {"odd_channel": odd_channel, "spectrum": "vaswani", "start_index": 7}
    interleaved = signal(11, channels, layout="interleaved", **same)
    concatenated = signal(11, channels, layout="concatenated", **same)
    paired = channels if odd_channel == "sine" else channels // 2 * 2
    blocks = [
        interleaved[:, 0:paired:2],
        interleaved[:, 1:paired:2],
        interleaved[:, paired:],
    ]
    np.testing.assert_array_equal(concatenated, np.concatenate(blocks, axis=1))


@pytest.mark.parametrize("source", LAYOUTS, ids=str)
@pytest.mark.parametrize(
    ("lengths", "channels"),
    [
        ((5, 3), 8),
        ((5, 3), 9),
        ((5, 3), 15),
        ((7, 5, 3), 12),
        ((7, 5, 3), 16),
        ((7, 5, 3), 23),
    ],
)
def test_every_order_of_several_axes_is_a_permutation_of_every_other(
    lengths, channels, source
):
    axes = len(lengths)
    used = channels // (2 * axes) * 2 * axes
    same = {"spectrum": "geometric", "max_timescale": 50.0, "first_position": 9}
    original = signal(lengths, channels, layout=source, **same)
    for target in LAYOUTS:
        order = tfpe.layout_permutation(channels, source, target, axes=axes)
        wanted = signal(lengths, channels, layout=target, **same)
        np.testing.assert_array_equal(original[..., order], wanted, err_msg=str(target))
        # What is left over stays at the end, and stays zero.
        np.testing.assert_array_equal(order[used:], np.arange(used, channels))
        np.testing.assert_array_equal(wanted[..., used:], 0.0)


@pytest.mark.parametrize("channels", ODD_AND_EVEN)
def test_with_the_cosines_first_the_permutation_is_the_same(channels):
    same = {"cosine_first": True, "spectrum": "tensor2tensor", "start_index": 7}
    order = tfpe.layout_permutation(channels, "interleaved", "concatenated")
    interleaved = signal(11, channels, layout="interleaved", **same)
    concatenated = signal(11, channels, layout="concatenated", **same)
    np.testing.assert_allclose(interleaved[0, 0], np.cos(7.0), rtol=0, atol=FLOAT32)
    np.testing.assert_array_equal(interleaved[:, order], concatenated)


@pytest.mark.parametrize(
    ("channels", "target", "settings", "expected"),
    [
        (5, "concatenated", {}, [0, 2, 1, 3, 4]),
        (5, "concatenated", {"odd_channel": "sine"}, [0, 2, 4, 1, 3]),
        (9, "concatenated", {"axes": 2}, [0, 2, 1, 3, 4, 6, 5, 7, 8]),
        (9, WORDS[::-1], {"axes": 2}, [0, 4, 2, 6, 1, 5, 3, 7, 8]),
    ],
)
def test_the_interleaved_channels_go_where_a_hand_puts_them(
    channels, target, settings, expected
):
    order = tfpe.layout_permutation(channels, "interleaved", target, **settings)
    np.testing.assert_array_equal(order, expected)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float64"])
@pytest.mark.parametrize(("axis", "channels"), [(1, 8), (1, 9), ((1, 2), 11)])
def test_the_layer_of_another_layout_adds_the_same_to_permuted_inputs(
    axis, channels, dtype
):
    shape = (2, 7, channels) if axis == 1 else (2, 7, 5, channels)
    inputs = np.random.default_rng(1).normal(size=shape)
    axes = len(shape) - 2
    order = tfpe.layout_permutation(channels, "interleaved", "concatenated", axes=axes)

    def encoded(layout, x):
        layer = tfpe.SinusoidalPositionalEncoding(
            layout, "vaswani", axis=axis, first_position=300, dtype=dtype
        )
        return ops.convert_to_numpy(ops.cast(layer(ops.cast(x, dtype)), "float64"))

    np.testing.assert_array_equal(
        encoded("concatenated", inputs[..., order]),
        encoded("interleaved", inputs)[..., order],
    )


def test_with_their_own_spectra_one_layout_has_values_the_other_has_nowhere():
    # The values at position 3, worked out apart from tfpe.
    paper = [0.14112001, -0.98999250, 0.29552021, 0.95533649]
    paper += [0.02999550, 0.99955003, 0.00299999, 0.99999550]
    other = [0.14112001, 0.13879810, 0.00646326, 0.00030000]
    other += [-0.98999250, 0.99032070, 0.99997911, 0.99999996]
    interleaved = signal(7, 8, layout="interleaved")[3]
    concatenated = signal(7, 8, layout="concatenated")[3]
    np.testing.assert_allclose(interleaved, paper, rtol=0, atol=FLOAT32 + 5e-9)
    np.testing.assert_allclose(concatenated, other, rtol=0, atol=FLOAT32 + 5e-9)
    for values in (concatenated, tensor2tensor(7, 8, start_index=0)[3]):
        assert np.abs(values - 0.29552021).min() > 0.15


@pytest.mark.parametrize("channels", [4, 5, 8, 9, 64, 127])
def test_with_their_own_spectra_no_permutation_leads_from_one_to_the_other(channels):
    interleaved = signal(50, channels, layout="interleaved")
    own = signal(50, channels, layout="concatenated")
    for values in (own, tensor2tensor(50, channels, start_index=0)):
        # The largest distance in time of each channel to each of the other's.
        distance = np.abs(interleaved[:, :, None] - values[:, None, :]).max(axis=0)
        assert distance.min(axis=1).max() > 0.1


@pytest.mark.parametrize("start_index", [0, 3, 1000])
@pytest.mark.parametrize("channels", ODD_AND_EVEN)
def test_tensor2tensor_interleaved_is_tensor2tensor_permuted(channels, start_index):
    order = tfpe.layout_permutation(channels, "concatenated", "interleaved")
    actual = signal(50, channels, spectrum="tensor2tensor", start_index=start_index)
    error = np.abs(actual - tensor2tensor(50, channels, start_index)[:, order])
    np.testing.assert_array_less(error, theirs(50, start_index) + 0 * error)


@pytest.mark.parametrize("max_paper", [10_000.0, 777.0])
@pytest.mark.parametrize("channels", MEETING)
def test_the_spectra_meet_at_one_choice_of_max_timescale(channels, max_paper):
    pairs = channels // 2
    max_t2t = max_paper ** (2 * (pairs - 1) / channels)  # 1 for a single pair
    np.testing.assert_allclose(
        tfpe.timescales(channels, layout="concatenated", max_timescale=max_t2t),
        tfpe.timescales(channels, layout="interleaved", max_timescale=max_paper),
        rtol=2.0**-50,  # a few roundings in float64
    )
    order = tfpe.layout_permutation(channels, "interleaved", "concatenated")
    for start_index in (0, 60_000):
        same = {"start_index": start_index}
        paper = signal(50, channels, max_timescale=max_paper, **same)
        other = signal(
            50, channels, layout="concatenated", max_timescale=max_t2t, **same
        )
        np.testing.assert_allclose(other, paper[:, order], rtol=0, atol=2 * FLOAT32)


@pytest.mark.parametrize("start_index", [0, 3, 1000])
@pytest.mark.parametrize("channels", [*MEETING, 127, 512])
def test_the_paper_gives_tensor2tensor_with_the_max_timescale_that_meets(
    channels, start_index
):
    pairs = channels // 2
    # Any will do for a single pair, whose timescale is 1.
    max_paper = 10_000.0 ** (channels / (2 * (pairs - 1))) if pairs > 1 else 10_000.0
    order = tfpe.layout_permutation(channels, "interleaved", "concatenated")
    paper = signal(50, channels, max_timescale=max_paper, start_index=start_index)
    error = np.abs(paper[:, order] - tensor2tensor(50, channels, start_index))
    np.testing.assert_array_less(error, theirs(50, start_index) + 0 * error)
