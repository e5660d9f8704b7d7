"""What a model is made of, as its variables and its hyperparameters tell."""

import numpy as np

from tfpe.migration.checkpoint import unsupported
from tfpe.migration.hyperparameters import number_of_heads, require_equal, sequences
from tfpe.migration.variables import their_name

UNIVERSAL = ("universal_transformer", "universal_transformer_encoder")


def settings_of(checkpoint, arrays, origins, said, heads, assumed):
    """Returns the arguments of `Tensor2TensorTransformer` without the shapes.

    Args:
        checkpoint: a `Checkpoint`.
        arrays: dict of its variables by our names.
        origins: dict of their names in the checkpoint.
        said: dict of the hyperparameters.
        heads: int, number of heads, or `None`.
        assumed: list that gets what nothing tells.
    """
    blocks = {
        stack: number_of_blocks(arrays, stack) for stack in ("encoder", "decoder")
    }
    _require_ends(arrays, blocks)
    normalized = {
        place
        for place, word in (("pre", "before"), ("post", "after"))
        if any(name.endswith(f"/{word}_scale") for name in arrays)
    }
    if not normalized and "layer_postprocess_sequence" not in said:
        raise ValueError(
            "The hyperparameter `layer_postprocess_sequence` must be known, as the "
            "model has no layer normalization around its sublayers"
        )
    before, after = sequences(said, normalized)
    depths = [v.shape[1] for n, v in arrays.items() if n.endswith("/query")]
    depths += [v.shape[0] for n, v in arrays.items() if n.endswith("/output")]
    require_equal(said, "attention_key_channels", depths[0], unset=(0,))
    require_equal(said, "attention_value_channels", depths[-1], unset=(0,))
    settings = {
        "heads": number_of_heads(said, heads, depths),
        "blocks": blocks,
        "before": before,
        "after": after,
        "epsilon": float(said.get("norm_epsilon", 1e-6)),
        "scaled": said.get("multiply_embedding_mode", "sqrt_depth") == "sqrt_depth",
        "drops_padding": bool(said.get("use_pad_remover", True)),
        "unidirectional": _unidirectional(said, checkpoint, blocks),
        "positions": _positions(arrays, said, checkpoint, assumed),
        **_steps(arrays, said, checkpoint),
    }
    _check_sizes_of_body(arrays, said, settings)
    _require_complete(arrays, origins, settings)
    return settings


def _require_ends(arrays, blocks):
    """Refuses a model of classes with a decoder, and an encoder of anything else."""
    classes = "classes" in arrays
    if classes and blocks["decoder"]:
        unsupported("has a decoder whose outputs are classes", list(arrays))
    if not classes and not blocks["decoder"]:
        unsupported("is an encoder whose outputs are no class", list(arrays))


def number_of_blocks(arrays, stack):
    """Returns the number of blocks of a stack that have variables."""
    found = {
        int(n.split("/")[1])
        for n in arrays
        if n.startswith(f"{stack}/")
        if n.split("/")[1].isdigit()
    }
    return 1 + max(found, default=-1)


def _unidirectional(said, checkpoint, blocks):
    """Returns whether the encoder sees only what stands before."""
    wanted = bool(said.get("unidirectional_encoder", False)) and blocks["encoder"] > 0
    if wanted and checkpoint.scope != "transformer":
        raise ValueError(
            "The hyperparameter `unidirectional_encoder` must be False in a model of "
            f"{checkpoint.scope}, where tensor2tensor itself fails with it. Received: "
            "unidirectional_encoder=True"
        )
    return wanted


def _positions(arrays, said, checkpoint, assumed):
    learned = any(name.endswith("/positions") for name in arrays)
    # There each step adds positions, and nothing else does, whatever `pos` is.
    universal = checkpoint.scope in UNIVERSAL
    if universal and said.get("add_position_timing_signal", True):
        return "none"
    if "pos" not in said:
        guess = "emb" if learned else "timing"
        assumed.append(f"the hyperparameter pos is {guess!r}")
        return guess
    pos = said["pos"] or "none"
    if (pos == "emb") != learned:
        raise ValueError(
            f"The hyperparameter `pos` must fit the variables, which "
            f"{'have' if learned else 'lack'} learned positions. Received: pos={pos!r}"
        )
    return pos


def _steps(arrays, said, checkpoint):
    if checkpoint.scope not in UNIVERSAL:
        return {"steps": None, "step_positions": False, "step_signal": "none"}
    if "num_rec_steps" not in said:
        raise ValueError(
            "The hyperparameter `num_rec_steps` must be known of a universal "
            "transformer, as its variables don't show it: put its hparams.json beside "
            "the checkpoint"
        )
    signal = "none"
    if said.get("add_step_timing_signal", True):
        signal = said.get("step_timing_signal_type", "learned")
    learned = [v for n, v in arrays.items() if n.endswith("/steps")]
    if bool(learned) != (signal == "learned"):
        raise ValueError(
            "The hyperparameter `step_timing_signal_type` must fit the variables, "
            f"which {'have' if learned else 'lack'} learned steps. Received: "
            f"step_timing_signal_type={signal!r}"
        )
    for table in learned:
        require_equal(said, "num_rec_steps", len(table))
    return {
        "steps": int(said["num_rec_steps"]),
        "step_positions": bool(said.get("add_position_timing_signal", True)),
        "step_signal": signal,
    }


def _check_sizes_of_body(arrays, said, settings):
    table = next(v for n, v in arrays.items() if n.endswith("/embedding"))
    require_equal(said, "hidden_size", table.shape[1])
    for name, value in arrays.items():
        if name.endswith("/ffn/in"):
            require_equal(said, "filter_size", value.shape[1])
        elif name.endswith("/positions"):
            require_equal(said, "max_length", value.shape[0])
    for stack, count in settings["blocks"].items():
        if not count:
            continue
        if settings["steps"] is not None:
            require_equal(said, "num_inrecurrence_layers", count)
            continue
        name = f"num_{stack}_layers"
        name = name if said.get(name) else "num_hidden_layers"
        require_equal(said, name, count)


def _require_complete(arrays, origins, settings):
    """Refuses a checkpoint that lacks variables of the model that the others show."""
    wanted = []
    for stack, count in settings["blocks"].items():
        if count:
            wanted += variable_names(stack, count, settings)
    if "classes" in arrays:
        wanted.append("classes_bias")
    missing = [their_name(name, origins) for name in wanted if name not in arrays]
    missing = list(dict.fromkeys(missing))  # One of 2017's has several parts.
    if missing:
        shown = "".join(f"\n  {name}" for name in missing[:5])
        more = f"\n  and {len(missing) - 5} more" if len(missing) > 5 else ""
        raise ValueError(
            f"The checkpoint lacks {len(missing)} variables of its model:{shown}{more}"
        )


def variable_names(stack, count, settings):
    """Returns our names of the variables of a stack, of so many blocks."""
    kinds = ["self"]
    if stack == "decoder" and settings["blocks"]["encoder"]:
        kinds.append("cross")
    parts = [f"{k}/{p}" for k in kinds for p in ("query", "key", "value", "output")]
    parts += ["ffn/in", "ffn/in_bias", "ffn/out", "ffn/out_bias"]
    for place in ("before", "after"):
        if "n" in settings[place]:
            ends = (f"{place}_scale", f"{place}_bias")
            parts += [f"{k}/{end}" for k in (*kinds, "ffn") for end in ends]
    wanted = [f"{stack}/{block}/{part}" for block in range(count) for part in parts]
    if settings["before"]:
        wanted += [f"{stack}/norm_scale", f"{stack}/norm_bias"]
    if settings["positions"] == "emb":
        wanted.append("inputs/positions" if stack == "encoder" else "targets/positions")
    if settings["step_signal"] == "learned":
        wanted.append(f"{stack}/steps")
    return wanted


def use_target_space(arrays, checkpoint, said, flags, number):
    """Puts the row of the target space among the arrays instead of all rows."""
    spaces = arrays.pop("spaces", None)
    used = said.get("use_target_space_embedding", True)
    if spaces is not None and not used:
        raise ValueError(
            "The hyperparameter `use_target_space_embedding` must be True, as the "
            "variables have target spaces. Received: use_target_space_embedding=False"
        )
    count = 1 if spaces is None else len(spaces)
    whole = isinstance(number, (int, np.integer)) and not isinstance(number, bool)
    if number is not None and (not whole or not 0 <= number < count):
        raise ValueError(
            f"`target_space` must be an integer from 0 to {count - 1}. Received: "
            f"target_space={number!r}"
        )
    if spaces is None or not number_of_blocks(arrays, "encoder"):
        return
    if number is None and (spaces == spaces[0]).all():
        number = 0
    if number is None:
        problem = flags.get("problem")
        asked = f" of the problem {problem}" if problem else ""
        trained = checkpoint.trained_rows("body/target_space_embedding/kernel")
        hint = ""
        if len(trained) == 1:
            hint = f" Only row {trained[0]} was trained, as the optimizer's moments "
            hint += f"show, so it is most likely target_space={trained[0]}."
        raise ValueError(
            f"`target_space` must be the number of the target space{asked}, from 0 to "
            f"{count - 1}, as the rows of the model's table differ and no file says "
            f"which one it was trained with: 0 if the problem sets none.{hint} "
            "Received: target_space=None"
        )
    arrays["space"] = spaces[[number]]
