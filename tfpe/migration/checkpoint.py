"""Where a training folder of tensor2tensor keeps what, and what is in it."""

import json
import re
from pathlib import Path

import numpy as np

SCOPES = (
    "transformer",
    "transformer_encoder",
    "universal_transformer",
    "universal_transformer_encoder",
)
TRAINING = ("global_step", "losses_avg", "train_stats", "training", "train")
# Types whose values are the weights; in bfloat16 tensor2tensor stores codes of them.
DTYPES = ("float16", "float32", "float64")
# How many folders the training's may be above that of the variables.
AVERAGED, EXPORTED = 1, 3
# The words in names of variables that tell what an unsupported model is.
TELLING = {
    "relative": "has relative positions in its attention",
    "embeddings_rel": "has relative positions in its attention",
    "moe": "is a mixture of experts",
    "expert": "is a mixture of experts",
    "memory": "has a memory between the pieces of a text",
    "act_layer": "halts each position on its own (adaptive computation time)",
    "universal_transformer_act": "halts each position on its own",
    "highway": "is a universal transformer with gates",
    "gru": "is recurrent",
    "lstm": "is recurrent",
    "sru": "is recurrent",
    "conv": "has convolutions",
    "area": "has area attention",
    "modality": "reads or writes something else than symbols or a class",
}


class Checkpoint:
    """The variables of a model, without those of its training.

    Args:
        folder: folder of a training or of a SavedModel, or the common part of the
            names of a checkpoint's files.
    """

    def __init__(self, folder):
        import tensorflow as tf

        self.path = _prefix(folder)
        try:
            self._reader = tf.train.load_checkpoint(str(self.path))
            every = self._reader.get_variable_to_shape_map()
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise ValueError(
                f"`folder` must have a checkpoint of TensorFlow. Received: {folder}, "
                f"whose file {self.path.name}.index is damaged: copy it again ({error})"
            ) from error
        found = {
            name: tuple(every[name])
            for name in sorted(every)
            # A slot of the optimizer has the name of its variable and one word more.
            if name.rpartition("/")[0] not in every
        }
        first = {name.partition("/")[0] for name in found}
        self.scope = next((s for s in SCOPES if s in first), None)
        self.of_2017 = self.scope is None and "body" in first
        if self.scope is None and not self.of_2017:
            _refuse_scope(found)
        self.start = "" if self.of_2017 else f"{self.scope}/"
        of_model = self.start or ("body/", "symbol_modality_", "class_label_modality_")
        self.shapes = {
            name.removeprefix(self.start): shape
            for name, shape in found.items()
            if name.startswith(of_model)
        }
        self.passed_over = [
            name
            for name in found
            if not name.startswith(of_model) and name.partition("/")[0] not in TRAINING
        ]
        _require_weights(self._reader, [self.start + name for name in self.shapes])

    def value(self, name):
        return np.asarray(self._tensor(self.start + name), "float32")

    def _tensor(self, name):
        import tensorflow as tf

        try:
            return self._reader.get_tensor(name)
        # Of a file that is too short, it is an IndexError.
        except (tf.errors.OpError, IndexError, ValueError, RuntimeError) as error:
            pattern = f"{self.path.name}.data-*"
            files = [file.name for file in sorted(self.path.parent.glob(pattern))]
            shown = ", ".join(files) or f"{pattern}, which is missing"
            raise ValueError(
                f"`folder` must have a whole checkpoint. Received: {self.path}, of "
                f"which {name} cannot be read: copy it again from where it was "
                f"trained, above all {shown} ({error})"
            ) from error

    def trained_rows(self, name):
        """Returns the rows of a table that the optimizer's slots show as changed."""
        rows = [
            np.flatnonzero(np.any(self._tensor(slot), axis=-1))
            for slot, shape in self._reader.get_variable_to_shape_map().items()
            if f"{self.start}{name}/" in slot and list(shape) == [*self.shapes[name]]
        ]
        return sorted({int(row) for found in rows for row in found})

    def hyperparameters(self):
        """Returns what `hparams.json` says, or `None` without one."""
        file = self.beside("hparams.json")
        if file is None:
            return None
        try:
            said = json.loads(file.read_text(encoding="utf-8"))
        except (ValueError, UnicodeDecodeError) as error:
            raise ValueError(f"{file} must be JSON: {error}") from error
        if not isinstance(said, dict):
            raise ValueError(f"{file} must have names with values. Received: {said!r}")
        return said

    def flags(self):
        """Returns what the files of the trainer's flags say; {} without one."""
        said = {}
        for name in ("flags.txt", "flags_t2t.txt"):
            file = self.beside(name)
            text = file.read_text(encoding="utf-8") if file else ""
            said |= dict(re.findall(r"^--([a-z_0-9]+)=(.*)$", text, re.MULTILINE))
        return said

    def beside(self, name):
        """Returns the path of a file of the training, or `None`.

        Averaged checkpoints may have a folder of their own within that of the
        training, and a SavedModel is `export/<time>/` there.
        """
        folder = self.path.absolute().parent
        far = EXPORTED if folder.name == "variables" else AVERAGED
        places = [folder, *folder.parents][: 1 + far]
        return next((p / name for p in places if (p / name).is_file()), None)

    def far(self, name):
        """Returns whether a file is there, but not in the checkpoint's own folder."""
        file = self.beside(name)
        return file is not None and file.parent != self.path.absolute().parent


def _require_weights(reader, names):
    dtypes = {n: reader.get_variable_to_dtype_map()[n].name for n in names}
    others = [name for name in names if dtypes[name] not in DTYPES]
    if others:
        unsupported(
            f"stores its weights as {dtypes[others[0]]}, as with the hyperparameter "
            f"`weight_dtype`={dtypes[others[0]]!r}",
            others,
        )


def _refuse_scope(found):
    names = [n for n in found if n.partition("/")[0] not in TRAINING]
    of_model = re.compile(r"([^/]+)/(body|parallel_\d+|\w*_modality_[\d_]+)/")
    scopes = [match[1] for match in map(of_model.match, names) if match]
    is_what = f"is tensor2tensor's {scopes[0]}" if scopes else "is of another kind"
    unsupported(f"{is_what}, and not {', '.join(SCOPES)}", names or list(found))


def unsupported(what, names):
    """Refuses a model in a sentence and at most five variables."""
    shown = "".join(f"\n  {name}" for name in names[:5])
    more = f"\n  and {len(names) - 5} more" if len(names) > 5 else ""
    raise ValueError(
        f"This model can't be migrated: it {what}. Its variables:{shown}{more}"
    )


def kind_of(names):
    """Returns what an unsupported model is, told by its unknown variables."""
    if not names:
        return "has no table of symbols"
    for word, what in TELLING.items():
        if any(word in name for name in names):
            return what
    return "has variables that are of no supported kind"


def _prefix(folder):
    path = Path(folder)
    if not path.is_dir():
        prefix = Path(re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", str(path)))
        # Before 2017 a checkpoint was one file, of just this name.
        if not prefix.is_file() and not Path(f"{prefix}.index").is_file():
            _refuse_path(path, prefix.parent, f"{prefix.name}.data-*")
        return prefix
    if (path / "variables" / "variables.index").is_file():
        return path / "variables" / "variables"
    state = path / "checkpoint"
    if state.is_file():
        text = state.read_text(encoding="utf-8")
        said = re.search(r'^model_checkpoint_path: "(.*)"', text, re.MULTILINE)
        # The folder may have been moved since, so only the last part is believed.
        named = said and path / re.split(r"[/\\]", said[1])[-1]
        if named and Path(f"{named}.index").is_file():
            return named
    found = sorted(path.glob("*.index"), key=_step)
    if not found:
        _refuse_path(path, path, "*.data-*")
    return found[-1].with_suffix("")


def _refuse_path(path, folder, pattern):
    """Refuses what has no checkpoint, and says what lies there instead."""
    lone = sorted(file.name for file in folder.glob(pattern))
    steps = [file.stem for file in sorted(folder.glob("*.index"), key=_step)]
    within = sorted({file.parent.name for file in folder.glob("*/*.index")})
    what = "which has no file *.index"
    if not path.is_dir():
        what = "and there is no such folder or checkpoint"
    if lone:
        what = f"which has {lone[0]} without its file *.index: copy that, too"
    elif steps:
        what += f"; the checkpoints there are {', '.join(steps)}"
    elif within and path.is_dir():
        what += f"; its folders with one are {', '.join(within)}"
    raise ValueError(
        f"`folder` must have a checkpoint of TensorFlow. Received: {path}, {what}"
    )


def _step(file):
    number = re.search(r"-(\d+)\.index$", file.name)
    return (int(number[1]) if number else -1, file.name)
