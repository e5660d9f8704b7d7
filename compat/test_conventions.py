"""Every convention gives the values that its source gave.

`golden/conventions.json` has the first rows of each under its name in tfpe, read from
the file and the revision that it names, and most of them run. So a new convention is
an entry there and one in `tfpe/conventions.toml`, and no code. KerasHub and
`positional-encodings` are run here as well.
"""

import itertools
import json
from pathlib import Path

import goldens
import numpy as np
import pytest
from keras import ops

import tfpe
from tfpe.conventions import OUTSIDE

keras_hub = pytest.importorskip("keras_hub")
tf_encodings = pytest.importorskip("positional_encodings.tf_encodings")

FILE = Path(__file__).parent / "golden" / "conventions.json"
RECORDS = json.loads(FILE.read_text())["records"]
EXAMPLES = [
    pytest.param(name, example, id=f"{name}-{label}")
    for name, record in RECORDS.items()
    for label, example in record["examples"].items()
]
GRIDS = [parameter for parameter in EXAMPLES if "grid" in parameter.values[1]]


def positions_of(name, example):
    """Returns the positions of an example's rows, for each block of channels."""
    if "grid" in example:
        steps = list(zip(*itertools.product(*map(range, example["grid"])), strict=True))
        first = -len(steps) - 1
        return tuple(np.array(steps[a - first]) for a in tfpe.CONVENTIONS[name].axis)
    default = np.arange(len(example["rows"]))
    positions = np.array(example.get("positions", default))
    return positions if positions.ndim == 1 else tuple(positions)


def signal(name, positions, channels, dtype="float64", **overrides):
    settings = {**tfpe.CONVENTIONS[name].settings, **overrides}
    found = tfpe.timing_signal_at(positions, channels, dtype=dtype, **settings)
    return ops.convert_to_numpy(found)


def added(name, positions, channels, **overrides):
    """Returns what the layer adds to a sequence or to a flattened grid.

    In float64: a float32 angle of keras_io_ddim's, 628 radian, is off by 1e-5.
    """
    layer = tfpe.SinusoidalPositionalEncoding.from_convention(
        name, dtype="float64", **overrides
    )
    positions = [ops.convert_to_tensor(p, "float64") for p in np.atleast_2d(positions)]
    if len(positions) == 1:
        (positions,) = positions
    inputs = np.ones((1, len(np.atleast_2d(positions)[0]), channels))
    return (ops.convert_to_numpy(layer(inputs, positions=positions)) - inputs)[0]


def test_each_convention_has_an_example_and_each_example_a_convention():
    assert set(RECORDS) == set(tfpe.CONVENTIONS)
    # Fewer channels do not tell the spacings apart.
    assert all(
        len(example["rows"][0]) >= 6
        for record in RECORDS.values()
        for example in record["examples"].values()
    )


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_a_convention_has_the_values_of_its_source(name, example):
    expected = np.array(example["rows"])
    actual = signal(
        name,
        positions_of(name, example),
        expected.shape[1],
        **example.get("settings", {}),
    )
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6, strict=True)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_layer_of_a_convention_adds_them(name, example):
    expected = np.array(example["rows"])
    actual = added(
        name,
        positions_of(name, example),
        expected.shape[1],
        **example.get("settings", {}),
    )
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize(("name", "example"), GRIDS)
def test_the_layer_of_a_convention_adds_them_to_a_grid(name, example):
    expected = np.array(example["rows"])
    layer = tfpe.SinusoidalPositionalEncoding.from_convention(name)
    inputs = np.zeros((1, *example["grid"], expected.shape[1]), "float32")
    actual = ops.convert_to_numpy(layer(inputs))[0].reshape(expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", tfpe.CONVENTIONS)
def test_an_entry_says_where_it_was_read(name):
    entry, record = tfpe.CONVENTIONS[name], RECORDS[name]
    assert (entry.project, entry.file, entry.revision) == (
        record["project"],
        record["file"],
        record["revision"],
    )


@pytest.mark.parametrize(
    "golden",
    goldens.goldens(
        "add_timing_signal_nd", where=lambda golden: golden.arrays["x"].ndim == 5
    ),
)
def test_tensor2tensor_3d_adds_what_tensor2tensor_added_to_a_volume(golden):
    inputs = golden.arrays["x"]
    layer = tfpe.SinusoidalPositionalEncoding.from_convention("tensor2tensor_3d")
    actual = ops.convert_to_numpy(layer(inputs))
    np.testing.assert_allclose(actual, golden.out, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["depthcharge", "depthcharge_mz"])
def test_depthcharge_has_other_cosines_at_an_odd_width(name):
    expected = np.array(RECORDS[name]["differs"]["7"])
    actual = signal(name, np.arange(4), 7, odd_channel="sine")
    np.testing.assert_allclose(actual[:, :4], expected[:, :4], rtol=0, atol=1e-6)
    assert np.abs(actual[1:, 5] - expected[1:, 5]).max() > 0.01


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_outside_is_refused_with_the_reason(name):
    with pytest.raises(ValueError, match=r"`name` must be a convention that the layer"):
        tfpe.SinusoidalPositionalEncoding.from_convention(name)


def keras_hub_rows(length, channels):
    """Returns the rows of what KerasHub has, at the positions 0, 1, 2, ..."""
    inputs = np.zeros((1, length, channels), "float32")
    times = np.arange(length, dtype="float32")
    models = keras_hub.src.models
    video = models.video_prism.video_prism_layers.SinusoidalPositionalEmbedding
    diffusion = models.stable_diffusion_3.mmdit.TimestepEmbedding
    flux = models.flux.flux_maths.TimestepEmbedding
    return {
        "keras_hub": keras_hub.layers.SinePositionEncoding()(inputs)[0],
        "keras_hub_video_prism": video(channels)(inputs)[0],
        "keras_hub_sd3": diffusion(
            4, frequency_dim=channels
        )._create_timestep_embedding(times[:, None]),
        "keras_hub_flux": flux()(times, dim=channels, time_factor=1.0),
    }


@pytest.mark.parametrize("channels", [8, 64])
@pytest.mark.parametrize("length", [5, 300])
def test_keras_hub_runs_as_its_entries_say(length, channels):
    for name, rows in keras_hub_rows(length, channels).items():
        steps = np.arange(length) / (1000 if name == "keras_hub_flux" else 1)
        error = np.abs(ops.convert_to_numpy(rows) - signal(name, steps, channels))
        # Theirs are float32 angles; see test_keras_hub.py.
        tolerance = 1e-6 + 2.0**-23 * np.arange(length)[:, None]
        np.testing.assert_array_less(error, np.broadcast_to(tolerance, error.shape))


@pytest.mark.parametrize(
    ("name", "shape", "encoding"),
    [
        ("positional_encodings_1d", (1, 5, 8), "TFPositionalEncoding1D"),
        ("positional_encodings_2d", (1, 5, 3, 12), "TFPositionalEncoding2D"),
        ("positional_encodings_3d", (1, 5, 3, 4, 18), "TFPositionalEncoding3D"),
    ],
)
def test_positional_encodings_runs_as_its_entries_say(name, shape, encoding):
    inputs = np.zeros(shape, "float32")
    theirs = getattr(tf_encodings, encoding)(shape[-1])(inputs)
    ours = tfpe.SinusoidalPositionalEncoding.from_convention(name)(inputs)
    np.testing.assert_allclose(
        ops.convert_to_numpy(ours), ops.convert_to_numpy(theirs), rtol=0, atol=2e-6
    )
