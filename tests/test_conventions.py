"""The table of conventions: what it holds, and how a name is looked up.

That the conventions have the values of their sources is tested in compat/.
"""

import dataclasses

import numpy as np
import oracle
import pytest
from keras import ops

import tfpe
from tfpe.conventions import OUTSIDE, lookup

NAMES = list(tfpe.CONVENTIONS)


def test_there_are_forty_names_and_fifteen_settings_at_least():
    distinct = {
        (tuple(entry.settings.items()), entry.axis)
        for entry in tfpe.CONVENTIONS.values()
    }
    assert len(NAMES) >= 40
    assert len(distinct) >= 15


@pytest.mark.parametrize("name", NAMES)
def test_an_entry_says_where_it_was_read_and_what_it_is(name):
    entry = tfpe.CONVENTIONS[name]
    assert entry.name == name
    assert all([entry.project, entry.file, entry.revision, entry.reproduces])
    assert entry.axes == np.size(entry.axis)


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_outside_has_a_reason(name):
    entry = OUTSIDE[name]
    assert all([entry.project, entry.file, entry.revision, entry.reason])
    assert name not in tfpe.CONVENTIONS


@pytest.mark.parametrize("name", NAMES)
def test_the_layer_of_a_name_has_its_settings_and_keeps_them(name):
    entry = tfpe.CONVENTIONS[name]
    layer = tfpe.SinusoidalPositionalEncoding.from_convention(name)
    same = tfpe.SinusoidalPositionalEncoding(
        axis=entry.axis, name=layer.name, **entry.settings
    )
    assert layer.get_config() == same.get_config()
    again = tfpe.SinusoidalPositionalEncoding.from_config(layer.get_config())
    assert again.get_config() == layer.get_config()


def test_the_layer_of_a_name_adds_its_signal():
    layer = tfpe.SinusoidalPositionalEncoding.from_convention("fairseq")
    actual = ops.convert_to_numpy(layer(np.zeros((2, 5, 7), "float32")))
    expected = oracle.rows(range(2, 7), 7, layout="concatenated")
    np.testing.assert_allclose(actual, [expected] * 2, rtol=0, atol=1.6e-7)


def test_overrides_replace_settings_and_reach_keras():
    layer = tfpe.SinusoidalPositionalEncoding.from_convention(
        "fairseq", first_position=1, max_timescale=500.0, name="where", dtype="float16"
    )
    config = layer.get_config()
    assert config["layout"] == "concatenated"
    assert config["first_position"] == 1
    assert config["max_timescale"] == 500.0
    assert (layer.name, layer.compute_dtype) == ("where", "float16")


def test_entries_cannot_be_changed():
    entry = tfpe.CONVENTIONS["paper"]
    with pytest.raises(TypeError):
        entry.settings["layout"] = "concatenated"
    with pytest.raises(TypeError):
        tfpe.CONVENTIONS["mine"] = entry
    with pytest.raises(dataclasses.FrozenInstanceError):
        entry.axis = -3


@pytest.mark.parametrize(
    ("name", "suggested"),
    [
        ("fairsec", "'fairseq'"),
        ("Tensor2Tensor", "'tensor2tensor'"),
        ("keras-hub", "'keras_hub'"),
        ("whispr", "'openai_whisper' or 'transformers_whisper'"),
        ("distilbert", "'transformers_distilbert'"),
        ("flux", "'keras_hub_flux'"),
        ("", "'paper'"),
        (7, "'paper'"),
        (None, "'paper'"),
        ([], "'paper'"),
    ],
)
def test_an_unknown_name_is_refused_with_names_that_come_close(name, suggested):
    with pytest.raises(ValueError, match="`name` must be one of") as error:
        tfpe.SinusoidalPositionalEncoding.from_convention(name)
    assert suggested in str(error.value)
    assert f"Received: name={name!r}" in str(error.value)


def test_a_name_that_is_outside_is_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"Unequal blocks.*name='diffusers_3d'"):
        tfpe.SinusoidalPositionalEncoding.from_convention("diffusers_3d")


@pytest.mark.parametrize("name", [*NAMES, *OUTSIDE])
def test_a_name_is_looked_up_by_itself_its_project_its_file_and_its_function(name):
    (found,) = lookup(name)
    assert found.name == name
    for word in (found.project, found.file, found.file.rpartition("/")[2]):
        assert name in [entry.name for entry in lookup(word)]
    assert name in [entry.name for entry in lookup(name.upper().replace("_", "-"))]
    function = found.reproduces.partition(",")[0].partition("(")[0].strip()
    if function and " " not in function:
        assert name in [entry.name for entry in lookup(function)]


@pytest.mark.parametrize("word", ["xyz", "", None, 7])
def test_a_word_that_means_nothing_is_refused(word):
    with pytest.raises(ValueError, match=r"`name` must be one of `tfpe.CONVENTIONS`"):
        lookup(word)


def test_an_entry_says_what_its_project_is_written_with():
    framework = {name: tfpe.CONVENTIONS[name].framework for name in NAMES}
    assert framework["tensor2tensor"] == "TensorFlow"
    assert framework["keras_hub"] == "Keras"
    assert framework["fairseq"] == "PyTorch"
    assert framework["paper"] == ""


def test_keras_hub_s_entry_says_that_it_adds_nothing_and_drops_the_mask():
    beyond = tfpe.CONVENTIONS["keras_hub"].beyond
    assert "returns the encoding and adds nothing" in beyond
    assert "drops the mask" in beyond
