"""What the hyperparameters of tensor2tensor mean for inference, or that they can't.

Each one is implemented, without effect on inference, or refused by name and value.
The names are those of versions 1.0.14 to 1.15.7.
"""

import ast
import numbers
import re

# Values that make the arithmetic of `layers.py`; all others are refused.
ALLOWED = {
    "activation_dtype": ("float32", "bfloat16", "float16"),
    "add_ffn_unit_to_the_transition_function": (False,),
    "add_or_concat_timing_signal": ("add",),
    "add_sru": (False,),
    "area_key_mode": ("none",),
    "area_value_mode": ("none",),
    "attention_variables_3d": (False,),
    "causal_decoder_self_attention": (True,),
    "factored_logits": (False,),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "hard_attention_k": (0,),
    "layer_norm_epsilon": (1e-6,),
    "max_area_height": (1, 0),
    "max_area_width": (1, 0),
    "mix_with_transformer": (None, "", "none"),
    "multiply_embedding_mode": ("sqrt_depth", "none"),
    "nbr_decoder_problems": (1,),
    "norm_type": ("layer",),
    "num_area_layers": (0,),
    "pos": ("timing", "emb", "none", None),
    "position_features": ("", None),
    "position_start_index": (None, 0, ""),
    "prepend_inputs_to_targets": (False,),
    "prepend_mode": ("none",),
    "proximity_bias": (False,),
    "recurrence_type": ("basic",),
    # Of the decoding only; this one is what `decode` does.
    "sampling_method": ("argmax",),
    "self_attention_type": ("dot_product",),
    "split_targets_chunk_length": (0,),
    "step_timing_signal_type": ("learned", "sinusoid"),
    "symbol_modality_skip_top": (False,),
    "transformer_ffn_type": ("fc",),
    "use_memory_as_final_state": (False,),
    # With "bfloat16" the variables are codes of the weights.
    "weight_dtype": ("float32",),
    # Other ends of the model than the problem's own; three are of older versions.
    "bottom": ({}, None),
    "input_modalities": ("default", "inputs:default", "", None),
    "modality": ({}, None),
    "target_modality": ("default", "", None),
    "top": ({}, None),
}

# Those that the variables show as well, or that are read in `settings`.
READ = """
add_position_timing_signal add_step_timing_signal attention_key_channels
attention_value_channels filter_size hidden_size layer_postprocess_sequence
layer_preprocess_sequence max_length norm_epsilon num_decoder_layers
num_encoder_layers num_heads num_hidden_layers num_inrecurrence_layers
num_rec_steps pack_dataset shared_embedding shared_embedding_and_softmax_weights
symbol_modality_num_shards unidirectional_encoder use_pad_remover
use_target_space_embedding vocab_divisor
"""

# Those of training, evaluation, data and devices, and those that act only on kinds
# of models that are refused above.
IDLE = """
act_epsilon act_halting_bias_init act_loss_weight act_max_steps act_type
add_relative_to_values attention_dropout_broadcast_dims batch_shuffle_size
batch_size batching_mantissa_bits clip_grad_norm compress_steps
conv_first_kernel couple_carry_transform_gates daisy_chain_variables data_dir
depth_embedding dwa_elements eval_drop_long_sequences eval_freq_in_steps
eval_run_autoregressive eval_steps eval_timeout_mins
expected_attention_loss_multiplier expected_attention_loss_type
force_full_predict gate_ffn_layer gates_inputs gpu_automatic_mixed_precision
grad_noise_scale gru_transformation gumbel_noise_weight
heads_share_relative_embedding initializer initializer_gain
inputs_states_combination kernel_height kernel_width label_smoothing
layer_prepostprocess_dropout_broadcast_dims learning_rate
learning_rate_constant learning_rate_cosine_cycle_steps
learning_rate_decay_rate learning_rate_decay_scheme
learning_rate_decay_staircase learning_rate_decay_steps learning_rate_minimum
learning_rate_schedule learning_rate_warmup_steps length_bucket_step loss
lstm_forget_bias lstm_transformation max_input_seq_length
max_relative_position max_target_seq_length memory_height min_length
min_length_bucket mixed_precision_optimizer_init_loss_scale
mixed_precision_optimizer_loss_scaler mlperf_mode model_dir moe_hidden_sizes
moe_k moe_loss_coef moe_num_experts moe_overhead_eval moe_overhead_train
multiproblem_class_loss_multiplier multiproblem_fixed_train_length
multiproblem_label_weight multiproblem_max_input_length
multiproblem_max_target_length multiproblem_mixing_schedule
multiproblem_per_task_threshold multiproblem_reweight_label_loss
multiproblem_schedule_max_examples multiproblem_schedule_threshold
multiproblem_target_eval_only multiproblem_vocab_size name
no_data_parallelism num_mixedin_layers num_sampled_classes optimizer
optimizer_adafactor_beta1 optimizer_adafactor_beta2
optimizer_adafactor_clipping_threshold optimizer_adafactor_decay_type
optimizer_adafactor_factored optimizer_adafactor_memory_exponent
optimizer_adafactor_multiply_by_parameter_scale optimizer_adam_beta1
optimizer_adam_beta2 optimizer_adam_epsilon optimizer_momentum_momentum
optimizer_momentum_nesterov optimizer_multistep_accumulate_steps
optimizer_zero_grads overload_eval_metric_name pad_batch
parameter_attention_key_channels parameter_attention_value_channels
pretrained_model_dir problem_choice relu_dropout_broadcast_dims
sampling_keep_top_k sampling_temp schedule scheduled_sampling_gold_mixin_prob
scheduled_sampling_method scheduled_sampling_num_passes
scheduled_sampling_prob scheduled_sampling_warmup_schedule
scheduled_sampling_warmup_steps shared_source_target_embedding
split_targets_max_chunks split_targets_strided_training split_to_length
std_server_protocol summarize_grads summarize_vars tpu_batch_size_per_shard
tpu_enable_host_call train_steps transform_bias_init use_custom_ops
use_eager_mode use_fixed_batch_size use_tpu video_num_input_frames
video_num_target_frames warm_start_from warm_start_from_second weight_decay
weight_noise weights_fn
"""

KNOWN = frozenset([*READ.split(), *IDLE.split()])

# What makes other logits without a trace in the variables, if it is not the default.
TRACELESS = (
    "layer_postprocess_sequence",
    "multiply_embedding_mode",
    "norm_epsilon",
    "self_attention_type",
    "use_pad_remover",
)


def require_supported(said, assumed):
    """Refuses hyperparameters that make other arithmetic, by name and value.

    Args:
        said: dict of hyperparameters.
        assumed: list that gets what nothing tells.
    """
    for name, value in said.items():
        allowed = ALLOWED.get(name)
        if allowed is not None and value not in allowed:
            listed = " or ".join(map(repr, allowed))
            raise ValueError(
                f"The hyperparameter `{name}` must be {listed}, as no other one "
                f"is implemented. Received: {name}={value!r}"
            )
        # tensor2tensor sets all that end so to 0 when it does not train.
        if allowed is not None or name in KNOWN or name.endswith("dropout"):
            continue
        if value not in (None, 0, "", "none", {}, []):
            raise ValueError(
                f"The hyperparameter `{name}` is unknown, so what it does to the "
                f"model is, too. Received: {name}={value!r}"
            )
        assumed.append(f"the unknown hyperparameter {name} does nothing at {value!r}")
    lacking = [name for name in TRACELESS if name not in said]
    if said and lacking:
        assumed.append(
            f"the hyperparameters do not say {', '.join(lacking)}, which are taken to "
            "be as in transformer_base"
        )
    if said.get("activation_dtype", "float32") != "float32":
        assumed.append(
            f"all is computed in float32, in training in {said['activation_dtype']}"
        )


def parsed(text):
    """Returns the hyperparameters in the text of the flag `--hparams`."""
    found = re.findall(r"(\w+)=(\[[^]]*\]|[^,]*)", text)
    return {name: _as_value(value) for name, value in found}


def _as_value(text):
    try:
        return ast.literal_eval({"true": "True", "false": "False"}.get(text, text))
    except (ValueError, SyntaxError):
        return text


def sequences(said, normalized):
    """Returns the sequences of steps around each sublayer, before it and after it.

    Args:
        said: dict of hyperparameters.
        normalized: set of the places, "pre" and "post", where the variables have
            layer normalization.
    """
    before = "n" if "pre" in normalized else "none"
    after = "dan" if "post" in normalized else "da"
    before = said.get("layer_preprocess_sequence", before) or "none"
    after = said.get("layer_postprocess_sequence", after) or "none"
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
    value = said.get(name)
    if value is not None and value not in unset and value != found:
        raise ValueError(
            f"The hyperparameter `{name}` must be what the variables show, {found}. "
            f"Received: {name}={value!r}"
        )


def number_of_heads(said, heads, depths):
    """Returns the number of heads, asked for only if nothing tells it."""
    told = said.get("num_heads")
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
