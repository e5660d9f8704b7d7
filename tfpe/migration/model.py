"""A training folder of tensor2tensor as a Keras model and its text encoders."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import keras
import numpy as np

import tfpe.migration.hyperparameters as hyperparameters
from tfpe.layouts import layout_permutation
from tfpe.migration.checkpoint import Checkpoint
from tfpe.migration.layers import Tensor2TensorTransformer
from tfpe.migration.settings import settings_of, use_target_space
from tfpe.migration.text import TextEncoder, text_encoder
from tfpe.migration.variables import RESIDUAL_AXES, variables

LAYER = "transformer"
MODEL = "model.keras"
TEXTS = ("source_text.json", "target_text.json")
# What vocabularies may be rounded up to, if no hyperparameter tells it.
ROUNDINGS = (8, 16, 32, 64, 128, 256, 512)


@dataclass
class Migrated:
    """What was in a training folder of tensor2tensor.

    Attributes:
        model: Keras model from a dict of ids to logits. Targets come unshifted.
        source_text: text encoder of the inputs, or `None`.
        target_text: text encoder of the targets, or `None`.
        assumed: list of str, what nothing in the folder told.
    """

    model: Any
    source_text: TextEncoder | None = None
    target_text: TextEncoder | None = None
    assumed: list[str] = field(default_factory=list)

    def save(self, folder: str | PathLike[str]) -> None:
        """Writes `model.keras` and the text encoders as JSON, which `load` reads."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        self.model.save(folder / MODEL)
        for name, text in zip(TEXTS, (self.source_text, self.target_text), strict=True):
            if text is not None:
                text.save(folder / name)


def load(
    folder: str | PathLike[str],
    *,
    vocab: str | PathLike[str] | TextEncoder | None = None,
    target_vocab: str | PathLike[str] | TextEncoder | None = None,
    heads: int | None = None,
    target_space: int | None = None,
    progress: Callable[[list[str]], Iterable[str]] = iter,
) -> Migrated:
    """Returns the model and the text encoders of a training folder.

    Args:
        folder: folder of a training or of a SavedModel, or the common part of the
            names of a checkpoint's files. `hparams.json` and `flags_t2t.txt` beside
            it are read. Or a folder that `Migrated.save` wrote, without arguments.
        vocab: vocabulary file, or a text encoder, of the inputs, and of the targets
            if they share a table.
        target_vocab: that of the targets, if another.
        heads: int, number of attention heads, if no `hparams.json` tells it.
        target_space: int, number of the target space, if the model has several.
        progress: function that gets the list of the variables and returns an iterable
            of them, which shows how far the reading is, such as `tqdm.tqdm`.

    Returns:
        A `Migrated`.

    Raises:
        ValueError: if there is no checkpoint, if the model is of no supported kind
            or has a hyperparameter that is not, if an argument contradicts it, or if
            nothing tells what is needed.
    """
    if (Path(folder) / MODEL).is_file():
        return _saved(Path(folder), vocab, target_vocab, heads, target_space)
    checkpoint, assumed = Checkpoint(folder), []
    said, flags = _told(checkpoint, assumed)
    source = _as_encoder(vocab, "vocab")
    target = _as_encoder(target_vocab, "target_vocab")
    sizes = tuple(t and t.vocab_size for t in (source, target))
    arrays, origins = variables(checkpoint, sizes, progress)
    use_target_space(arrays, checkpoint, said, flags, target_space)
    settings = settings_of(checkpoint, arrays, origins, said, heads, assumed)
    packed = "packed" in flags.get("problem", "").split("_")
    packed = packed or bool(said.get("pack_dataset"))
    model = build(settings, arrays, packed)
    texts = _texts(arrays, source, target, said, assumed)
    return Migrated(model, *texts, assumed)


def _told(checkpoint, assumed):
    """Returns the hyperparameters and the flags, and refuses what is not implemented.

    Without an `hparams.json` the flag `--hparams` has some of them.
    """
    said, flags = checkpoint.hyperparameters(), checkpoint.flags()
    if said is None:
        said = hyperparameters.parsed(flags.get("hparams", ""))
        line = "no hparams.json: what leaves no trace in the variables is taken to be "
        line += "as in transformer_base"
        if "hparams_set" in flags:
            line += f", where the flags have {flags['hparams_set']}"
        if said:
            line += f" with {flags['hparams']}"
        assumed.append(line)
    elif checkpoint.far("hparams.json"):
        assumed.append(f"{checkpoint.beside('hparams.json')} is of this model")
    hyperparameters.require_supported(said, assumed)
    named = flags.get("model", checkpoint.scope)
    if checkpoint.scope is not None and named != checkpoint.scope:
        raise ValueError(
            f"The flag --model={named} contradicts the variables, which are of "
            f"{checkpoint.scope}"
        )
    if checkpoint.passed_over:
        shown = ", ".join(checkpoint.passed_over[:5])
        assumed.append(f"these variables are of training only: {shown}")
    return said, flags


def _texts(arrays, source, target, said, assumed):
    """Returns the text encoders of the model's inputs and of its targets."""
    if "classes" in arrays and target is not None:
        raise ValueError(
            "`target_vocab` must be left out, as the model's targets are classes"
        )
    if "classes" not in arrays and "inputs/embedding" not in arrays:
        source, target = source or target, target or source
    if not any(name.startswith("encoder/") for name in arrays):
        source = None
    _require_sizes(arrays, source, target, said, assumed)
    return source, target


def _saved(folder, *arguments):
    if any(argument is not None for argument in arguments):
        raise ValueError(
            f"`folder` must be given alone if it has a {MODEL}, as that is migrated "
            f"already. Received: folder={folder} and other arguments"
        )
    texts = [
        text_encoder(folder / name) if (folder / name).is_file() else None
        for name in TEXTS
    ]
    return Migrated(keras.models.load_model(folder / MODEL), *texts)


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


def to_layout(model: Any, layout: str) -> Any:
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
    if not layer.own_sinusoids:
        raise ValueError("`model` must have tensor2tensor's positions, not others")
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


def _as_encoder(vocab, name):
    if vocab is None or hasattr(vocab, "vocab_size"):
        return vocab
    file = Path(vocab)
    try:
        lines = file.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"`{name}` cannot be read: {error}") from error
    # Subwords that end a word have an underscore; words have none.
    words = lines[0].strip() == "<pad>" and not any(
        line.rstrip().endswith("_") for line in lines
    )
    if not words:
        try:
            return text_encoder(file)
        except ValueError as error:
            raise ValueError(str(error).replace("`file`", f"`{name}`")) from error
    unknown = next((t for t in ("<UNK>", "UNK", "<unk>") if t in lines), None)
    return text_encoder(file, kind="token", replace_oov=unknown)


def _require_sizes(arrays, source, target, said, assumed):
    told = said.get("vocab_divisor")
    for name, text, table in (
        ("vocab", source, arrays.get("inputs/embedding")),
        ("target_vocab", target, arrays.get("targets/embedding")),
    ):
        rows = arrays.get("targets/embedding") if table is None else table
        if text is None or rows is None or text.vocab_size == len(rows):
            continue
        divisors = ROUNDINGS if told is None else (told or 1,)
        if not any(-(-text.vocab_size // d) * d == len(rows) for d in divisors):
            raise ValueError(
                f"`{name}` must have as many entries as the model has symbols, "
                f"{len(rows)}. Received: {text.vocab_size} entries"
            )
        if told is None:
            assumed.append(
                f"the {text.vocab_size} entries of `{name}` were rounded up to the "
                f"{len(rows)} rows of the table"
            )
