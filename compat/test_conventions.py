"""Every convention gives the values that its source gave.

`golden/conventions.json` has the first rows of each, 9 digits, read from the
file and the revision that it names, and nearly all of them run. KerasHub and
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
RECORDS = {record["key"]: record for record in json.loads(FILE.read_text())["records"]}
# The record of a name, where the two differ.
KEYS = {
    "depthcharge": "depthcharge_positional",
    "depthcharge_mz": "depthcharge_float",
    "detr": "detr_2d",
    "diffusers_timestep_flip": "diffusers_timestep_flip_shift0",
    "diffusers_timestep_scale_1000": "diffusers_timestep_flip_shift0_scale1000",
    "espnet_relative": "espnet_rel",
    "fairseq_speech": "fairseq_speech_pe",
    "keras_cv_stable_diffusion": "keras_cv_sd",
    "keras_hub": "keras_hub_sine",
    "marian": "marian_cpp",
    "mesh_tensorflow": "mesh_tf",
    "positional_encodings_1d": "tatp22_1d",
    "positional_encodings_2d": "tatp22_2d",
    "positional_encodings_3d": "tatp22_3d",
    "pytorch_example": "pytorch_wlm",
    "tensor2tensor": "t2t_final_1d",
    "tensor2tensor_2017": "t2t_2017_1d",
    "tensor2tensor_2d": "t2t_final_nd",
    "tensor2tensor_common_layers": "t2t_common_layers",
    "tensor2tensor_positions": "t2t_final_given_positions",
    "tensorflow_tutorial": "tf_tutorial_2022_concat",
    "tensorflow_tutorial_2019": "tf_tutorial_2019_concat",
    "tensorflow_tutorial_2020": "tf_tutorial_2021_interleaved",
    "tf_models_relative": "tfmg_relative",
    "tf_models_vision": "tfmg_vision",
    "timm_2d_interleaved": "timm_2d",
    "transformers_detr": "hf_detr_2d",
    "transformers_distilbert": "hf_distilbert",
    "transformers_fsmt": "hf_fsmt",
    "transformers_m2m_100": "hf_m2m100",
    "transformers_marian": "hf_marian",
    "transformers_speech_to_text": "hf_speech2text",
    "transformers_vit_mae": "hf_vit_mae_2d",
    "transformers_whisper": "hf_whisper",
    "transformers_xlm": "hf_xlm",
}


def grid(*lengths):
    """Returns the positions of a flattened grid, for each of its axes."""
    return tuple(np.array(list(itertools.product(*map(range, lengths)))).T)


# The positions of the rows, where they are not 0, 1, 2, 3.
POSITIONS = {
    "diffusers_2d": grid(2, 2)[::-1],
    "diffusers_timestep_scale_1000": np.arange(4) / 1000,
    "detr": grid(2, 3),
    "dit_2d": grid(2, 2)[::-1],
    "espnet_relative": np.arange(3, -4, -1),
    "keras_hub_flux": np.arange(4) / 1000,
    "keras_io_ddim": np.arange(4) / 10,
    "mae_2d": grid(2, 2)[::-1],
    "positional_encodings_2d": grid(2, 3),
    "positional_encodings_3d": grid(2, 2, 2),
    "tensor2tensor_2d": grid(2, 3),
    "tensor2tensor_positions": (np.arange(4), np.arange(4)),
    "timm_2d": grid(2, 3),
    "timm_2d_interleaved": grid(2, 3),
    "transformers_detr": grid(2, 3),
    "transformers_vit_mae": grid(2, 3),
}
# What the user has to give, as the entries say.
OVERRIDES = {
    ("mlx", "8"): {"amplitude": (2 / 8) ** 0.5},
    ("x_transformers", "8"): {"amplitude": 8**-0.5},
    ("positional_encodings_1d", "7"): {
        "odd_channel": "sine",
        "max_timescale": 10_000 ** (7 / 8),
    },
    ("keras_hub_flux", "7"): {"max_timescale": 0.001 * 10_000 ** (7 / 6)},
    **{
        (name, "7"): {"max_timescale": 10_000 ** (7 / 6)}
        for name in (
            "diffusers_timestep_flip",
            "dit_timestep",
            "guided_diffusion",
            "keras_hub_sd3",
        )
    },
}
# Examples that show something else; each has a test of its own below.
OTHERS = {
    ("depthcharge", "7"),
    ("depthcharge_mz", "7"),
    ("detr", "8_norm1"),
    ("transformers_detr", "8_norm1"),
    ("timm_2d", "8_interleave"),
    ("timm_2d_interleaved", "8"),
}


def record(name):
    return RECORDS[KEYS.get(name, name)]


EXAMPLES = [
    pytest.param(name, example, id=f"{name}-{example}")
    for name in tfpe.CONVENTIONS
    if name not in ("moco_v3_2d", "tensor2tensor_3d")  # below
    for example in record(name)["example"]
    if (name, example) not in OTHERS
]


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
    return ops.convert_to_numpy(layer(inputs, positions=positions) - inputs)[0]


def arguments_of(name, example):
    """Returns the values of an example, and what makes them: see `signal`."""
    expected = np.array(record(name)["example"][example])
    positions = POSITIONS.get(name, np.arange(4))
    overrides = OVERRIDES.get((name, example), {})
    return expected, (name, positions, expected.shape[1]), overrides


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_a_convention_has_the_values_of_its_source(name, example):
    expected, arguments, overrides = arguments_of(name, example)
    actual = signal(*arguments, **overrides)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6, strict=True)


@pytest.mark.parametrize(("name", "example"), EXAMPLES)
def test_the_layer_of_a_convention_adds_them(name, example):
    expected, arguments, overrides = arguments_of(name, example)
    actual = added(*arguments, **overrides)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", tfpe.CONVENTIONS)
def test_an_entry_says_where_it_was_read(name):
    if name == "tensor2tensor_3d":
        source = RECORDS["t2t_final_nd"]
    elif name == "paper":
        return
    else:
        source = record(name)
    entry = tfpe.CONVENTIONS[name]
    assert (entry.project, entry.file, entry.revision) == (
        source["repo"],
        source["path"],
        source["commit"],
    )


@pytest.mark.parametrize(
    ("name", "example", "lengths"),
    [
        ("detr", "8_norm0", (2, 3)),
        ("diffusers_2d", "8_base2", (2, 2)),
        ("dit_2d", "8", (2, 2)),
        ("mae_2d", "8", (2, 2)),
        ("positional_encodings_2d", "8", (2, 3)),
        ("positional_encodings_3d", "12", (2, 2, 2)),
        ("tensor2tensor_2d", "2d_8", (2, 3)),
        ("timm_2d", "8", (2, 3)),
        ("timm_2d_interleaved", "8_interleave", (2, 3)),
        ("transformers_detr", "8_norm0", (2, 3)),
        ("transformers_vit_mae", "8", (2, 3)),
    ],
)
def test_the_layer_of_a_convention_adds_them_to_a_grid(name, example, lengths):
    expected = np.array(record(name)["example"][example])
    layer = tfpe.SinusoidalPositionalEncoding.from_convention(name)
    inputs = np.zeros((1, *lengths, expected.shape[1]), "float32")
    actual = ops.convert_to_numpy(layer(inputs))[0].reshape(expected.shape)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


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


def test_tensor2tensor_2d_leaves_the_channels_at_the_end_0():
    expected = np.array(RECORDS["t2t_2017_nd"]["example"]["2d_10"])
    actual = signal("tensor2tensor_2d", grid(2, 3), 10)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6, strict=True)


@pytest.mark.parametrize("example", ["8", "7"])
def test_tensor2tensor_has_the_values_of_given_positions_too(example):
    expected = np.array(RECORDS["t2t_final_given_position"]["example"][example])
    actual = signal("tensor2tensor", np.arange(4), expected.shape[1])
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6, strict=True)


def test_moco_v3_has_the_values_of_its_source_listed_column_by_column():
    class_token, *expected = RECORDS["moco_v3_2d"]["example"]["8"]
    np.testing.assert_array_equal(class_token, np.zeros(8))
    # Two rows of three columns there: w counts 0, 0, 1, 1, 2, 2.
    actual = signal("moco_v3_2d", grid(3, 2), 8)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6)


@pytest.mark.parametrize("name", ["detr", "transformers_detr"])
def test_normalised_coordinates_are_given_as_positions(name):
    expected = np.array(record(name)["example"]["8_norm1"])
    coordinates = [
        (steps + 1) / (length + 1e-6) * 2 * np.pi
        for steps, length in zip(grid(2, 3), (2, 3), strict=True)
    ]
    actual = signal(name, tuple(coordinates), 8, first_position=0)
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-6, strict=True)


@pytest.mark.parametrize("name", ["depthcharge", "depthcharge_mz"])
def test_depthcharge_has_other_cosines_at_an_odd_width(name):
    expected = np.array(record(name)["example"]["7"])
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
