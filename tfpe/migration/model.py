"""A training folder of tensor2tensor as a Keras model and its text encoders."""

from dataclasses import dataclass, field
from pathlib import Path

import keras
import numpy as np

from tfpe.layouts import layout_permutation
from tfpe.migration import hyperparameters
from tfpe.migration.checkpoint import Checkpoint
from tfpe.migration.layers import Tensor2TensorTransformer
from tfpe.migration.text import text_encoder
from tfpe.migration.variables import RESIDUAL_AXES, variables

LAYER = "transformer"


@dataclass
class Migrated:
    """What was in a training folder of tensor2tensor.

    Attributes:
        model: Keras model from a dict of ids to logits. Targets come unshifted.
        source_text: text encoder of the inputs, or `None`.
        target_text: text encoder of the targets, or `None`.
        assumed: list of str, what nothing in the folder told.
    """

    model: keras.Model
    source_text: object = None
    target_text: object = None
    assumed: list = field(default_factory=list)


def load(folder, *, vocab=None, target_vocab=None, heads=None, target_space=None):
    """Returns the model and the text encoders of a training folder.

    Args:
        folder: folder of a training or of a SavedModel, or the common part of the
            names of a checkpoint's files. `hparams.json` and `flags_t2t.txt` beside
            it are read.
        vocab: vocabulary file, or a text encoder, of the inputs, and of the targets
            if they share a table.
        target_vocab: that of the targets, if another.
        heads: int, number of attention heads, if no `hparams.json` tells it.
        target_space: int, number of the target space, if the model has several.

    Returns:
        A `Migrated`.

    Raises:
        ValueError: if there is no checkpoint, if the model is of no supported kind
            or has a hyperparameter that is not, if an argument contradicts it, or if
            nothing tells what is needed.
    """
    checkpoint = Checkpoint(folder)
    said, flags, assumed = checkpoint.hyperparameters(), checkpoint.flags(), []
    if said is None:
        assumed.append(
            "no hparams.json: what leaves no trace in the variables is taken to be "
            "as in transformer_base"
        )
    hyperparameters.require_supported(said or {})
    named = flags.get("model", checkpoint.scope)
    if checkpoint.scope is not None and named != checkpoint.scope:
        raise ValueError(
            f"The flag --model={named} contradicts the variables, which are of "
            f"{checkpoint.scope}"
        )
    source, target = (_as_encoder(v) for v in (vocab, target_vocab))
    arrays = variables(checkpoint, tuple(t and t.vocab_size for t in (source, target)))
    spaces = arrays.pop("spaces", None)
    _use_spaces(arrays, spaces, said, flags, target_space, assumed)
    settings = _settings(checkpoint, arrays, said, heads, assumed)
    packed = "packed" in flags.get("problem", "").split("_")
    packed = packed or bool((said or {}).get("pack_dataset"))
    model = build(settings, arrays, packed)
    shared = "inputs/embedding" not in arrays
    if "classes" in arrays:
        target = None
    elif shared:
        target = target or source
    if not any(name.startswith("encoder/") for name in arrays):
        source = None
    _check_sizes(arrays, source, target, said)
    return Migrated(model, source, target, assumed)


def build(settings, arrays, packed=False):
    """Returns the functional model of a layer's settings and its weights by name."""
    layer = Tensor2TensorTransformer(
        {name: list(value.shape) for name, value in arrays.items()},
        name=LAYER,
        **settings,
    )
    kinds = [
        kind
        for kind, stack in (("inputs", "encoder"), ("targets", "decoder"))
        if f"{stack}/0/self/query" in arrays
    ]
    if packed:
        kinds = [f"{k}{end}" for k in kinds for end in ("", *PACKED)]
    inputs = {name: keras.Input((None,), dtype="int32", name=name) for name in kinds}
    model = keras.Model(inputs, layer(inputs))
    for name, value in arrays.items():
        layer.w[name].assign(value)
    return model


PACKED = ("_segmentation", "_position")


def to_layout(model, layout):
    """Returns a model with its sinusoids in another layout and the same logits.

    The sinusoids are added to the residual stream, so its channels can be put in any
    order, if every weight that touches them follows.

    Args:
        model: a model of `load`, or its copy from a file.
        layout: the layout that is wanted, "interleaved" or "concatenated".
    """
    layer = layer_of(model)
    order = np.asarray(layout_permutation(layer.hidden, layer.layout, layout))
    arrays = {}
    for name, weight in layer.w.items():
        value = keras.ops.convert_to_numpy(weight)
        axis = RESIDUAL_AXES.get(name.rpartition("/")[2])
        arrays[name] = value if axis is None else value.take(order, axis)
    settings = {**layer.settings, "layout": layout}
    del settings["shapes"]
    packed = any(name.endswith(PACKED) for name in model.input)
    return build(settings, arrays, packed)


def layer_of(model):
    """Returns the layer of a model of `load`, which does all that it does."""
    for layer in getattr(model, "layers", []):
        if isinstance(layer, Tensor2TensorTransformer):
            return layer
    raise ValueError(
        "`model` must be a model of `tfpe.migration.load`, or its copy from a file. "
        f"Received: model={model!r}"
    )


def _settings(checkpoint, arrays, said, heads, assumed):
    told = said or {}
    blocks = {stack: _blocks(arrays, stack) for stack in ("encoder", "decoder")}
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
    before, after = hyperparameters.sequences(said, normalized)
    depths = [v.shape[1] for n, v in arrays.items() if n.endswith("/query")]
    depths += [v.shape[0] for n, v in arrays.items() if n.endswith("/output")]
    settings = {
        "heads": hyperparameters.number_of_heads(said, heads, depths),
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


def _blocks(arrays, stack):
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
        hyperparameters.require_equal(said, "num_rec_steps", len(table))
    return {
        "steps": int(said["num_rec_steps"]),
        "step_positions": bool(said.get("add_position_timing_signal", True)),
        "step_signal": signal,
    }


def _check_sizes_of_body(arrays, said, settings):
    table = next(v for n, v in arrays.items() if n.endswith("/embedding"))
    hyperparameters.require_equal(said, "hidden_size", table.shape[1])
    for name, value in arrays.items():
        if name.endswith("/ffn/in"):
            hyperparameters.require_equal(said, "filter_size", value.shape[1])
        elif name.endswith("/positions"):
            hyperparameters.require_equal(said, "max_length", value.shape[0])
    told = said or {}
    for stack, count in settings["blocks"].items():
        if not count:
            continue
        if settings["steps"] is not None:
            hyperparameters.require_equal(said, "num_inrecurrence_layers", count)
            continue
        name = f"num_{stack}_layers"
        name = name if told.get(name) else "num_hidden_layers"
        hyperparameters.require_equal(said, name, count)


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


def _use_spaces(arrays, spaces, said, flags, number, assumed):
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
    if spaces is None or not _blocks(arrays, "encoder"):
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


def _as_encoder(vocab):
    if vocab is None or hasattr(vocab, "encode"):
        return vocab
    file = Path(vocab)
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"`vocab` cannot be read: {error}") from error
    # Subwords that end a word have an underscore; words have none.
    words = lines[0].strip() == "<pad>" and not any(
        line.rstrip().endswith("_") for line in lines
    )
    if not words:
        return text_encoder(file)
    unknown = next((t for t in ("<UNK>", "UNK", "<unk>") if t in lines), None)
    return text_encoder(file, kind="token", replace_oov=unknown)


def _check_sizes(arrays, source, target, said):
    divisor = (said or {}).get("vocab_divisor") or 1
    for name, text, table in (
        ("vocab", source, arrays.get("inputs/embedding")),
        ("target_vocab", target, arrays.get("targets/embedding")),
    ):
        rows = arrays.get("targets/embedding") if table is None else table
        if text is None or rows is None:
            continue
        padded = -(-text.vocab_size // divisor) * divisor
        if text.vocab_size > len(rows) or (said is not None and padded != len(rows)):
            raise ValueError(
                f"`{name}` must have as many entries as the model has symbols, "
                f"{len(rows)}. Received: {text.vocab_size} entries"
            )
