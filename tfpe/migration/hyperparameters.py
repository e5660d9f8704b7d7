"""What the hyperparameters of tensor2tensor mean for inference, or that they can't.

Each one is implemented, without effect on inference, or refused by name and value.
"""

import numbers
import re

# Values that make the arithmetic of `model.py`; all others are refused.
ALLOWED = {
    "activation_dtype": ("float32", "bfloat16", "float16"),
    "add_or_concat_timing_signal": ("add",),
    "add_ffn_unit_to_the_transition_function": (False,),
    "add_relative_to_values": (False,),
    "add_sru": (False,),
    "area_key_mode": ("none",),
    "area_value_mode": ("none",),
    "attention_variables_3d": (False,),
    "causal_decoder_self_attention": (True,),
    "factored_logits": (False,),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "hard_attention_k": (0,),
    "heads_share_relative_embedding": (False,),
    "max_area_height": (1, 0),
    "max_area_width": (1, 0),
    "max_relative_position": (0, None),
    "mix_with_transformer": (None, "", "none"),
    "multiply_embedding_mode": ("sqrt_depth", "none"),
    "nbr_decoder_problems": (1,),
    "norm_type": ("layer",),
    "num_area_layers": (0,),
    "pos": ("timing", "emb", "none", None),
    "position_features": ("", None),
    "position_start_index": (None, 0, ""),
    "prepend_mode": ("none",),
    "proximity_bias": (False,),
    "recurrence_type": ("basic",),
    "self_attention_type": ("dot_product",),
    "split_targets_chunk_length": (0,),
    "step_timing_signal_type": ("learned", "sinusoid"),
    "transformer_ffn_type": ("fc",),
    "unidirectional_encoder": (False,),
    "use_memory_as_final_state": (False,),
    # These may have any value.
    "scheduled_sampling_prob": None,
    "vocab_divisor": None,
    "name": None,
    "loss": None,
    "weights_fn": None,
    # Other ends of the model than the problem's own; two are of older versions.
    "input_modalities": ("default", "inputs:default", "", None),
    "target_modality": ("default", "", None),
    "modality": ({}, None),
    "bottom": ({}, None),
    "top": ({}, None),
}

# Those that the variables show as well, or that are read in `settings`.
READ = [
    "hidden_size",
    "num_heads",
    "filter_size",
    "num_hidden_layers",
    "num_encoder_layers",
    "num_decoder_layers",
    "layer_preprocess_sequence",
    "layer_postprocess_sequence",
    "norm_epsilon",
    "max_length",
    "use_pad_remover",
    "use_target_space_embedding",
    "attention_key_channels",
    "attention_value_channels",
    "shared_embedding",
    "shared_embedding_and_softmax_weights",
    "symbol_modality_num_shards",
    "num_rec_steps",
    "num_inrecurrence_layers",
    "add_step_timing_signal",
    "add_position_timing_signal",
    "pack_dataset",
]

# Those of training, data and devices, and those of kinds that are refused above.
IDLE = re.compile(
    r"(learning_rate|optimizer|moe|multiproblem|mixed_precision|scheduled_sampling"
    r"|eval|summarize|sampling|video|act|split|min_length|length|label|initializer"
    r"|batch|max_input_seq|max_target_seq|warm_start|parameter_attention|dwa"
    r"|layer_prepostprocess|weight|grad|clip|tpu|gpu|train|data|model|dropout|save)"
    r"(_.*)?"
    r"|.*_dropout(_broadcast_dims)?"
    r"|compress_steps|conv_first_kernel|couple_carry_transform_gates|daisy_chain_.*"
    r"|depth_embedding|force_full_predict|gate_ffn_layer|gumbel_noise_weight"
    r"|kernel_height|kernel_width|lstm_forget_bias|memory_height|mlperf_mode"
    r"|no_data_parallelism|num_mixedin_layers|overload_eval_metric_name|pad_batch"
    r"|pretrained_model_dir|schedule|std_server_protocol|transform_bias_init"
    r"|problem_choice|use_custom_ops|use_fixed_batch_size|num_sampled_classes|unconditional"
    r"|expected_attention_loss_.*|max_.*_seq_length"
)


def require_supported(said):
    """Refuses hyperparameters that make other arithmetic, by name and value."""
    for name, value in said.items():
        if name in ALLOWED:
            allowed = ALLOWED[name]
            if allowed is not None and not any(_same(value, a) for a in allowed):
                listed = " or ".join(map(repr, allowed))
                raise ValueError(
                    f"The hyperparameter `{name}` must be {listed}, as no other one "
                    f"is implemented. Received: {name}={value!r}"
                )
        elif (
            name not in READ
            and not IDLE.fullmatch(name)
            and value not in (*(None, 0, "", "none", {}, []),)
        ):
            raise ValueError(
                f"The hyperparameter `{name}` is unknown, so what it does to the "
                f"model is, too. Received: {name}={value!r}"
            )


def sequences(said, normalized):
    """Returns the sequences of steps around each sublayer, before it and after it.

    Args:
        said: dict of hyperparameters, or `None`.
        normalized: set of the places, "pre" and "post", where the variables have
            layer normalization.
    """
    before = "n" if "pre" in normalized else "none"
    after = "dan" if "post" in normalized else "da"
    told = said or {}
    before = told.get("layer_preprocess_sequence", before) or "none"
    after = told.get("layer_postprocess_sequence", after) or "none"
    for name, value, allowed, place in (
        ("layer_preprocess_sequence", before, "nd", "pre"),
        ("layer_postprocess_sequence", after, "nda", "post"),
    ):
        steps = "" if value == "none" else value
        if set(steps) - set(allowed) or steps.count("n") > 1 or steps.count("a") > 1:
            raise ValueError(
                f"The hyperparameter `{name}` must be 'none' or of the letters "
                f"{', '.join(allowed)}, n and a once. Received: {name}={value!r}"
            )
        if ("n" in steps) != (place in normalized):
            has = "have" if place in normalized else "lack"
            raise ValueError(
                f"The hyperparameter `{name}` must fit the variables, which {has} "
                f"layer normalization there. Received: {name}={value!r}"
            )
    return tuple("" if v == "none" else v.replace("d", "") for v in (before, after))


def require_equal(said, name, found, unset=()):
    """Refuses a hyperparameter that contradicts the variables."""
    value = (said or {}).get(name)
    if value is not None and value not in unset and value != found:
        raise ValueError(
            f"The hyperparameter `{name}` must be what the variables show, {found}. "
            f"Received: {name}={value!r}"
        )


def number_of_heads(said, heads, depths):
    """Returns the number of heads, asked for only if nothing tells it."""
    told = (said or {}).get("num_heads")
    if told is not None and heads is not None and told != heads:
        raise ValueError(
            f"`heads` must be what hparams.json says, num_heads={told}, or be left "
            f"out. Received: heads={heads}"
        )
    number = heads if told is None else told
    if number is None:
        raise ValueError(
            "`heads` must be the number of attention heads, which the variables "
            "don't show and no hparams.json tells. Received: heads=None"
        )
    whole = isinstance(number, numbers.Integral) and not isinstance(number, bool)
    if not whole or number < 1 or any(depth % number for depth in depths):
        raise ValueError(
            "`heads` must be an integer that divides the channels of the attention, "
            f"{sorted(set(depths))}. Received: heads={number!r}"
        )
    return number


def _same(value, allowed):
    return value == allowed and isinstance(value, bool) == isinstance(allowed, bool)
