"""`tfpe.identify` on images and volumes of positions, also flattened."""

import itertools

import numpy as np
import oracle
import pytest
from tables import noise, rows

import tfpe

GRIDS = {n: c for n, c in tfpe.CONVENTIONS.items() if c.axes > 1}


def grid(lengths, channels, axis, **settings):
    """Returns the rows of a grid whose blocks of channels are for these axes."""
    axes = [a + len(lengths) + 1 for a in axis]
    positions = itertools.product(*(range(n) for n in lengths))
    found = [
        oracle.row(tuple(p[a] for a in axes), channels, **settings) for p in positions
    ]
    return np.array(found).reshape(*lengths, channels)


@pytest.mark.parametrize("name", GRIDS)
def test_it_finds_every_convention_of_a_grid(name):
    entry = GRIDS[name]
    lengths = (8, 9, 10)[: entry.axes]
    table = grid(lengths, 24, entry.axis, **entry.settings).astype("float32")
    found = tfpe.identify(table)
    assert found.settings == {**entry.settings, "axis": entry.axis}
    assert name in found.names
    layer = tfpe.SinusoidalPositionalEncoding(**found.settings)
    signal = np.array(layer(np.zeros((1, *lengths, 24), "float32")))[0]
    np.testing.assert_allclose(signal, table, rtol=0, atol=2e-7)


@pytest.mark.parametrize("name", [n for n, c in GRIDS.items() if c.axes == 2])
def test_it_finds_the_grid_in_a_flattened_table(name):
    entry = GRIDS[name]
    table = grid((12, 9), 16, entry.axis, **entry.settings).reshape(-1, 16)
    wanted = {**entry.settings, "axis": entry.axis}
    assert tfpe.identify(table.astype("float16")).settings == wanted
    assert tfpe.identify(table + noise(table.shape)).settings == wanted
    class_token = np.concatenate([np.zeros((1, 16)), table])
    assert tfpe.identify(class_token).settings == wanted


def test_other_orders_and_spacings_of_a_grid_are_found():
    given = {
        "layout": ("frequency", "function", "axis"),
        "spectrum": "geometric",
        "max_timescale": 50.0,
        "cosine_first": True,
        "first_position": 3,
        "amplitude": 0.5,
    }
    found = tfpe.identify(grid((8, 11), 18, (-2, -3), **given).astype("float32"))
    assert found.settings == {**given, "axis": (-2, -3)}


@pytest.mark.parametrize("shape", [(1, 30, 8), (30, 1, 8), (1, 30, 1, 8)])
def test_axes_of_size_1_are_left_out(shape):
    assert tfpe.identify(rows(30, 8).reshape(shape)).settings == {}


@pytest.mark.case("flattened-volume")
@pytest.mark.parametrize("name", [n for n, c in GRIDS.items() if c.axes == 3])
def test_it_finds_the_volume_in_a_flattened_table(name):
    entry = GRIDS[name]
    table = grid((8, 5, 6), 24, entry.axis, **entry.settings).reshape(-1, 24)
    wanted = {**entry.settings, "axis": entry.axis}
    assert tfpe.identify(table.astype("float32")).settings == wanted
    class_token = np.concatenate([np.zeros((1, 24)), table])
    assert tfpe.identify(class_token).settings == wanted
