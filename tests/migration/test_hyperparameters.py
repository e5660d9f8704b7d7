"""Hyperparameters: implemented, idle or refused by name and value."""

import json

import numpy as np
import pytest
from variants import (
    UPPER,
    VARIANTS,
    arrays_of,
    changed,
    loaded,
    logits,
    read,
    require_logits,
    written,
)

from tfpe import migration

V1 = arrays_of(VARIANTS / "postnorm_v1" / "reference.npz")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("causal_decoder_self_attention", False),
        ("hard_attention_k", 2),
        ("self_attention_type", "dot_product_relative"),
        ("area_key_mode", "mean"),
        ("num_area_layers", 1),
        ("layer_postprocess_sequence", "da"),
        ("layer_preprocess_sequence", "n"),
        ("multiply_embedding_mode", "rsqrt_depth"),
        ("pos", "emb"),
        ("pos", "timing_from_features"),
        ("proximity_bias", True),
        ("norm_type", "batch"),
        ("ffn_layer", "conv_relu_conv"),
        ("prepend_mode", "prepend_inputs_full_attention"),
        ("prepend_mode", "prepend_inputs_masked_attention"),
        ("weight_dtype", "bfloat16"),
        ("sampling_method", "random"),
        ("symbol_modality_skip_top", True),
        ("attention_key_channels", 64),
        ("attention_value_channels", 64),
        ("hidden_size", 64),
        ("filter_size", 128),
        ("num_hidden_layers", 3),
        ("num_decoder_layers", 1),
        ("use_target_space_embedding", False),
        ("invented_by_someone", "yes"),
        # These sound like settings of training, and are none that is known.
        ("train_time_trick", 1),
        ("label_injection", "inputs"),
        ("batch_norm_in_ffn", True),
        ("model_variant", "b"),
        ("act", "gelu"),
        ("length_penalty_embedding", 0.5),
        ("weight_tying_mode", "transposed"),
    ],
)
def test_one_that_is_not_implemented_is_refused_by_name_and_value(
    name, value, tmp_path
):
    folder = changed("postnorm_v1", tmp_path / "x", **{name: value})
    message = f"hyperparameter `{name}` .*Received: {name}={value!r}"
    with pytest.raises(ValueError, match=message):
        migration.load(folder, target_space=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("recurrence_type", "act"),
        ("position_start_index", "random"),
        ("add_or_concat_timing_signal", "concat"),
        ("num_rec_steps", 4),
        ("step_timing_signal_type", "sinusoid"),
        ("mix_with_transformer", "before_ut"),
        ("transformer_ffn_type", "sepconv"),
        ("unidirectional_encoder", True),
    ],
)
def test_a_universal_transformer_of_another_kind_is_refused_by_name(
    name, value, tmp_path
):
    folder = changed("universal", tmp_path / "x", **{name: value})
    with pytest.raises(ValueError, match=f"`{name}`"):
        migration.load(folder, target_space=0)


def test_what_matters_to_training_and_other_kinds_alone_may_have_any_value(tmp_path):
    idle = {
        "learning_rate": 7.0,
        "some_new_dropout": 0.5,  # tensor2tensor sets all that end so to 0.
        "max_relative_position": 20,
        "moe_num_experts": 64,
        "scheduled_sampling_prob": 1.0,
        "sampling_temp": 0.3,
        "symbol_modality_num_shards": 16,
    }
    folder = changed("postnorm_v1", tmp_path / "x", **idle)
    made = migration.load(folder, target_space=0)
    require_logits(made.model, V1)
    assert made.assumed == []


def test_an_unknown_one_that_is_off_is_told(tmp_path):
    folder = changed("postnorm_v1", tmp_path / "x", invented=False)
    (line,) = migration.load(folder, target_space=0).assumed
    assert line == "the unknown hyperparameter invented does nothing at False"


def test_numbers_stand_for_bools_as_in_older_versions(tmp_path):
    told = {"causal_decoder_self_attention": 1, "proximity_bias": 0}
    folder = changed("postnorm_v1", tmp_path / "x", use_pad_remover=1, **told)
    require_logits(migration.load(folder, target_space=0).model, V1)


def test_positions_of_a_universal_transformer_are_added_in_each_step_alone(tmp_path):
    folder = changed("universal", tmp_path / "x", pos="timing")
    made = migration.load(folder, target_space=0)
    require_logits(made.model, arrays_of(folder / "reference.npz"))


def test_a_vocabulary_that_was_rounded_up_is_told(tmp_path):
    copy = changed("postnorm_v1", tmp_path / "x", without=("vocab_divisor",))
    tokens = [f"word{i}" for i in range(181)]
    for count, fits in ((181, True), (180, False)):
        (tmp_path / "vocab").write_text("\n".join(["<pad>", *tokens[1:count]]))
        if fits:
            made = migration.load(copy, target_space=0, vocab=tmp_path / "vocab")
            assert made.assumed == []
        else:
            with pytest.raises(ValueError, match=r"`vocab` must .* 181.*180 entries"):
                migration.load(copy, target_space=0, vocab=tmp_path / "vocab")
    table = "transformer/symbol_modality_181_32/shared/weights_0"
    every = read(copy)
    every[table.replace("181", "184")] = np.zeros((184, 32), "f")
    del every[table]
    written(copy, {n: v for n, v in every.items() if n.startswith("transformer/")})
    made = migration.load(copy, target_space=0, vocab=tmp_path / "vocab")
    assert any("180 entries of `vocab` were rounded up" in s for s in made.assumed)


def test_an_activation_of_half_precision_is_told(tmp_path):
    folder = changed("postnorm_v1", tmp_path / "x", activation_dtype="bfloat16")
    (line,) = migration.load(folder, target_space=0).assumed
    assert line == "all is computed in float32, in training in bfloat16"


def test_what_the_hyperparameters_leave_out_is_told(tmp_path):
    without = ("norm_epsilon", "pos")
    folder = changed("postnorm_v1", tmp_path / "x", without=without)
    made = migration.load(folder, target_space=0)
    require_logits(made.model, V1)
    assert any("do not say norm_epsilon" in line for line in made.assumed)
    assert "the hyperparameter pos is 'timing'" in made.assumed


def test_without_hyperparameters_what_is_assumed_is_told(tmp_path):
    folder = changed("postnorm_v1", tmp_path / "x")
    (folder / "hparams.json").unlink()
    (folder / "flags_t2t.txt").unlink()
    (folder / "flags.txt").unlink()
    with pytest.raises(ValueError, match="`heads` must be the number of attention"):
        migration.load(folder, target_space=0)
    made = migration.load(folder, heads=4, target_space=0)
    require_logits(made.model, V1)
    assert made.assumed == [
        "no hparams.json: what leaves no trace in the variables is taken to be as in "
        "transformer_base",
        "the hyperparameter pos is 'timing'",
    ]


def test_without_hyperparameters_the_flags_are_believed(tmp_path):
    folder = changed("postnorm_v1", tmp_path / "x")
    (folder / "hparams.json").unlink()
    made = migration.load(folder, target_space=0)
    require_logits(made.model, V1)
    assert "where the flags have transformer_base_v1 with " in made.assumed[0]
    flags = (folder / "flags_t2t.txt").read_text(encoding="utf-8")
    other = flags.replace("--hparams=", "--hparams=pos=none,proximity_bias=true,")
    (folder / "flags_t2t.txt").write_text(other, encoding="utf-8")
    with pytest.raises(ValueError, match=r"`proximity_bias` must be False.*=True"):
        migration.load(folder, target_space=0)
    other = flags.replace("--hparams=", "--hparams=pos=none,")
    (folder / "flags_t2t.txt").write_text(other, encoding="utf-8")
    made = migration.load(folder, target_space=0)
    assert np.abs(logits(made.model, V1) - V1["logits"]).max() > 0.1


def test_hyperparameters_that_are_no_json_are_refused(tmp_path):
    folder = changed("postnorm_v1", tmp_path / "x")
    for text, message in (("{", "must be JSON"), ("[]", "must have names with")):
        (folder / "hparams.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match=f"hparams.json {message}"):
            migration.load(folder, target_space=0)
    assert json.loads((VARIANTS / "postnorm_v1" / "hparams.json").read_text())


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("postnorm_v1", {}, "`target_space` must be the number of the target space"),
        ("postnorm_v1", {"target_space": 32}, "`target_space` must be .* from 0 to 31"),
        ("postnorm_v1", {"target_space": 0, "heads": 8}, "num_heads=4.*heads=8"),
        ("postnorm_2017", {"target_space": 1}, "`heads` must be the number"),
        (
            "postnorm_2017",
            {"target_space": 1, "heads": 5},
            "`heads` must be .* divides",
        ),
        ("nothing", {}, "`folder` must have a checkpoint"),
        (
            "language_model",
            {"vocab": UPPER},
            "as many entries as the model has symbols, 143. Received: 181",
        ),
    ],
)
def test_what_nothing_tells_or_contradicts_is_refused(name, arguments, message):
    with pytest.raises(ValueError, match=message):
        migration.load(VARIANTS / name, **arguments)


def test_the_row_that_training_changed_is_named(tmp_path):
    variables = read(VARIANTS / "postnorm_v1")
    moments = [name for name in variables if "target_space_embedding/kernel/" in name]
    assert len(moments) == 2
    for name in moments:
        variables[name] = np.roll(variables[name], 21, axis=0)  # It was row 0.
    copy = changed("postnorm_v1", tmp_path / "x")
    written(copy, variables)
    with pytest.raises(ValueError, match="most likely target_space=21"):
        migration.load(copy)


@pytest.mark.parametrize(
    ("name", "rows", "arguments", "message"),
    [
        ("encoder_classifier", [[2]], {}, "A classifier can't be decoded"),
        ("packed", [[2]], {}, "packed examples can't be decoded"),
        ("postnorm_v1", ["a text"], {}, "no vocabulary was given"),
        ("postnorm_v1", [[181]], {}, "`rows` must have ids from 0 to "),
        ("postnorm_v1", [[2.5]], {}, "`rows` must be lists of ids"),
        ("postnorm_v1", "a text", {}, "`rows` must be a list"),
        ("postnorm_v1", [[2]], {"beams": 0}, "`beams` must be an integer >= 1"),
        ("postnorm_v1", [[2]], {"alpha": "0.6"}, "`alpha` must be a finite number"),
        ("postnorm_v1", [[2]], {"alpha": np.nan}, "`alpha` must be a finite number"),
    ],
)
def test_what_cannot_be_decoded_is_refused(name, rows, arguments, message):
    with pytest.raises(ValueError, match=message):
        migration.decode(loaded(name), rows, **arguments)
