"""What `tfpe.identify` says are no positional encodings, and what it refuses."""

import numpy as np
import pytest
from tables import rows

import tfpe


def _tables_that_are_no_encodings():
    random = np.random.default_rng(3)
    for length, channels in [(8, 4), (8, 9), (64, 64), (300, 128)]:
        shape = (length, channels)
        steps, index = np.arange(length)[:, None], np.arange(channels)
        half = index - index % 2
        sines = rows(length, channels)
        yield "normal", 0.02 * random.normal(size=shape)
        yield "uniform", random.uniform(-1, 1, shape)
        yield "signs", random.choice([-1.0, 1.0], shape)
        yield "smooth", 0.1 * np.cumsum(random.normal(size=shape), axis=0)
        yield "zeros", np.zeros(shape)
        yield "ones", np.ones(shape)
        yield "equal rows", np.tile(random.normal(size=channels), (length, 1))
        yield "one-hot", np.eye(*shape)
        yield "a line", steps * np.ones(channels) / length
        yield "cosine transform", np.cos(np.pi * (steps + 0.5) * index / length)
        yield "trained", sines + 0.1 * random.normal(size=shape)
        yield "shuffled rows", random.permutation(sines)
        yield (
            "one frequency a channel",
            np.where(
                index % 2 == 0,
                np.sin(steps / 1e4 ** (2 * index / channels)),
                np.cos(steps / 1e4 ** (2 * index / channels)),
            ),
        )
        yield "sines only", np.sin(steps / 1e4 ** (half / channels))
        if channels > 4:
            yield "shuffled channels", random.permutation(sines, axis=1)
            yield "standardised", (sines - sines.mean()) / sines.std()


@pytest.mark.parametrize(
    "table",
    [
        pytest.param(table, id=f"{name}-{table.shape[0]}x{table.shape[1]}")
        for name, table in _tables_that_are_no_encodings()
    ],
)
def test_it_refuses_tables_that_no_settings_make(table):
    found = tfpe.identify(table)
    assert not found.sinusoidal
    assert found.settings is None
    assert found.names == found.candidates == ()
    np.testing.assert_allclose(found.residual, np.sqrt(np.mean(table**2)))


@pytest.mark.parametrize(
    ("table", "error", "message"),
    [
        (np.zeros(8), ValueError, r"shape \(length, channels\).*shape=\(8,\)"),
        (np.zeros((7, 4)), ValueError, r"at least 8 rows.*shape=\(7, 4\)"),
        (np.zeros((8, 1)), ValueError, r"2 channels. Received: table.shape=\(8, 1\)"),
        (np.zeros((8,) * 5), ValueError, r"one length for each axis of a grid"),
        (np.zeros((2, 8, 4)), ValueError, r"shape=\(2, 8, 4\)"),
        (np.full((8, 4), np.nan), ValueError, "finite.*8 of its rows"),
        (np.zeros((8, 4), complex), TypeError, "real numbers.*complex128"),
        (np.zeros((8, 4), bool), TypeError, "real numbers.*bool"),
        (np.full((8, 4), "a"), TypeError, "real numbers"),
        (np.full((8, 4), None), TypeError, "real numbers.*object"),
    ],
)
def test_what_is_no_table_is_an_error(table, error, message):
    with pytest.raises(error, match=message):
        tfpe.identify(table)


def test_a_first_position_that_is_no_number_is_an_error():
    with pytest.raises(TypeError, match="`first_position` must be a finite number"):
        tfpe.identify(rows(8, 4), first_position="0")


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("cosines", ["beside", "behind"])
def test_a_fourier_matrix_is_no_table_of_positions(first, cosines):
    angle = 2 * np.pi / 64 * np.outer(np.arange(64), np.arange(first, 32 + first))
    both = [np.sin(angle), np.cos(angle)]
    matrix = np.stack(both, axis=-1) if cosines == "beside" else np.hstack(both)
    assert not tfpe.identify(matrix.reshape(64, 64)).sinusoidal


@pytest.mark.parametrize("ragged", [[1, [2]], [[1, 2], [3]]])
def test_lists_of_different_lengths_are_refused(ragged):
    with pytest.raises(ValueError, match=r"`table` must be .*different lengths"):
        tfpe.identify(ragged)


@pytest.mark.case("far-first")
@pytest.mark.parametrize("position", [1e154, -(2.0**40), np.inf, np.nan])
def test_a_first_position_beyond_int32_is_refused(position):
    with pytest.raises(ValueError, match="`first_position` must be a finite number in"):
        tfpe.identify(rows(8, 4), first_position=position)
