"""What a model is made of, as its variables and its hyperparameters tell."""

import numpy as np

from tfpe.migration.hyperparameters import number_of_heads, require_equal, sequences


def settings_of(checkpoint, arrays, said, heads, assumed):
    """Returns the arguments of `Tensor2TensorTransformer` without the shapes.

    Args:
        checkpoint: a `Checkpoint`.
        arrays: dict of its variables by our names.
        said: dict of the hyperparameters, or `None`.
        heads: int, number of heads, or `None`.
        assumed: list that gets what nothing tells.
    """
    told = said or {}
    blocks = {
        stack: number_of_blocks(arrays, stack) for stack in ("encoder", "decoder")
    }
    normalized = {
        place
        for place, word in (("pre", "before"), ("post", "after"))
        if any(name.endswith(f"/{word}_scale") for name in arrays)
    }
    if not normalized and said is None:
        raise ValueError(
            "The model has no layer normalization around its sublayers, and no "
            "hparams.json tells what it has instead"
        )
    before, after = sequences(said, normalized)
    depths = [v.shape[1] for n, v in arrays.items() if n.endswith("/query")]
    depths += [v.shape[0] for n, v in arrays.items() if n.endswith("/output")]
    settings = {
        "heads": number_of_heads(said, heads, depths),
        "blocks": blocks,
        "before": before,
        "after": after,
        "epsilon": float(told.get("norm_epsilon", 1e-6)),
        "scaled": told.get("multiply_embedding_mode", "sqrt_depth") == "sqrt_depth",
        "drops_padding": bool(told.get("use_pad_remover", True)),
        "positions": _positions(arrays, said, checkpoint, assumed),
        **_steps(arrays, said, checkpoint),
    }
    _check_sizes_of_body(arrays, said, settings)
    _require_complete(arrays, settings)
    return settings


def number_of_blocks(arrays, stack):
    """Returns the number of blocks of a stack that have variables."""
    found = {
        int(n.split("/")[1])
        for n in arrays
        if n.startswith(f"{stack}/")
        if n.split("/")[1].isdigit()
    }
    return 1 + max(found, default=-1)


def _positions(arrays, said, checkpoint, assumed):
    learned = any(name.endswith("/positions") for name in arrays)
    if said is None:
        if checkpoint.scope == "universal_transformer":
            return "none"
        guess = "emb" if learned else "timing"
        assumed.append(f"the hyperparameter pos is {guess!r}")
        return guess
    pos = said.get("pos", "timing") or "none"
    if (pos == "emb") != learned:
        raise ValueError(
            f"The hyperparameter `pos` must fit the variables, which "
            f"{'have' if learned else 'lack'} learned positions. Received: pos={pos!r}"
        )
    return pos


def _steps(arrays, said, checkpoint):
    if checkpoint.scope != "universal_transformer":
        return {"steps": None, "step_positions": False, "step_signal": "none"}
    if said is None or "num_rec_steps" not in said:
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
    told = said or {}
    for stack, count in settings["blocks"].items():
        if not count:
            continue
        if settings["steps"] is not None:
            require_equal(said, "num_inrecurrence_layers", count)
            continue
        name = f"num_{stack}_layers"
        name = name if told.get(name) else "num_hidden_layers"
        require_equal(said, name, count)


def _require_complete(arrays, settings):
    """Refuses a checkpoint that lacks variables of the model that the others show."""
    wanted = []
    for stack, count in settings["blocks"].items():
        if not count:
            continue
        kinds = ["self"]
        if stack == "decoder" and settings["blocks"]["encoder"]:
            kinds.append("cross")
        for block in range(count):
            parts = [
                f"{k}/{p}" for k in kinds for p in ("query", "key", "value", "output")
            ]
            parts += ["ffn/in", "ffn/in_bias", "ffn/out", "ffn/out_bias"]
            for place, steps in (("before", "before"), ("after", "after")):
                if "n" in settings[steps]:
                    parts += [
                        f"{k}/{place}_{w}"
                        for k in (*kinds, "ffn")
                        for w in ("scale", "bias")
                    ]
            wanted += [f"{stack}/{block}/{part}" for part in parts]
        if settings["before"]:
            wanted += [f"{stack}/norm_scale", f"{stack}/norm_bias"]
        kind = "inputs" if stack == "encoder" else "targets"
        if settings["positions"] == "emb":
            wanted.append(f"{kind}/positions")
        if settings["step_signal"] == "learned":
            wanted.append(f"{stack}/steps")
    if not settings["blocks"]["decoder"]:
        wanted += ["classes", "classes_bias"]
    missing = [name for name in wanted if name not in arrays]
    if missing:
        shown = "".join(f"\n  {name}" for name in missing[:5])
        raise ValueError(
            f"The checkpoint lacks {len(missing)} variables of its model:{shown}"
        )


def use_target_space(arrays, spaces, said, flags, number):
    """Puts the row of the target space among the arrays."""
    used = (said or {}).get("use_target_space_embedding", True)
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
        raise ValueError(
            f"`target_space` must be the number of the target space{asked}, from 0 to "
            f"{count - 1}, as the rows of the model's table differ and nothing tells "
            "which one it was trained with: 0 if the problem sets none. "
            "Received: target_space=None"
        )
    arrays["space"] = spaces[[number]]
