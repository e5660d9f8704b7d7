"""The command `tfpe migrate`: a training folder of tensor2tensor as a Keras model."""

import os
import re
import sys
import zipfile
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow starts.

import click
import numpy as np

from tfpe.tools.refused import RefusedError

# How far logits may be from those of another machine, relative to the largest.
TOLERANCE = 1e-4
# What messages call the options, which are the arguments of Python.
OPTIONS = {
    "vocab": "--vocab",
    "target_vocab": "--target-vocab",
    "heads": "--heads",
    "target_space": "--target-space",
    "rows": "--decode",
}
FILE = click.Path(exists=True, dir_okay=False)


@click.command()
@click.argument("folder")
@click.option(
    "--vocab", type=FILE, metavar="FILE", help="Vocabulary, of the inputs if of two."
)
@click.option(
    "--target-vocab",
    type=FILE,
    metavar="FILE",
    help="Vocabulary of the targets, if it is another.",
)
@click.option(
    "--heads",
    type=int,
    metavar="N",
    help="Number of attention heads, if no hparams.json tells it.",
)
@click.option(
    "--target-space",
    type=int,
    metavar="N",
    help="Number of the target space, if the model has several; 0 unless its problem "
    "sets another.",
)
@click.option("--save", metavar="OUT", help="Folder for model.keras and text encoders.")
@click.option(
    "--decode",
    multiple=True,
    metavar="TEXT",
    help="Decode this text, or without a vocabulary ids with commas between them.",
)
@click.option("--beams", default=1, show_default=True, type=click.IntRange(min=1))
@click.option(
    "--check",
    type=FILE,
    metavar="FILE.npz",
    help="Compare the logits with these; if they are others, nothing is saved.",
)
def migrate(folder, save, decode, beams, check, **told):
    """Turn a model of tensor2tensor into a Keras model.

    FOLDER is the folder of a training (the newest checkpoint is taken) or of a
    SavedModel, or the common part of the names of a checkpoint's files.

    The exit code is 1 if --check finds other logits, and 2 if the model can't be
    migrated or a file can't be read.
    """
    from tfpe import migration
    from tfpe.migration.model import MODEL

    try:
        wanted = _arrays(check) if check else None
        # What can be refused at once is not refused after a long load.
        if not (
            told["vocab"] or told["target_vocab"] or (Path(folder) / MODEL).exists()
        ):
            for text in decode:
                _ids(text)
        loaded = migration.load(folder, **told, progress=_progress)
        for line in loaded.assumed:
            click.echo(f"assumed: {_with_options(line)}")
        click.echo(
            f"{loaded.model.count_params():,} weights, "
            f"from {', '.join(loaded.model.input)} to logits"
        )
        if check and not _check(loaded.model, check, wanted):
            click.echo(_next_step(wanted, told["target_space"]))
            if save:
                click.echo("nothing was saved")
            raise click.exceptions.Exit(1)
        if save:
            click.echo(f"saving {save}", err=True)
            loaded.save(save)
            click.echo(f"saved in {save}")
        if decode:
            _decode(migration, loaded, decode, beams)
    except (ValueError, OSError) as error:
        raise RefusedError(_with_options(str(error))) from error


def _with_options(message):
    """Returns a message of Python with the options in place of the arguments."""
    for name, option in OPTIONS.items():
        message = message.replace(f"`{name}`", f"`{option}`")
        message = re.sub(rf"\b{name}=None", f"no {option}", message)
        message = re.sub(rf"(?<![-\w]){name}=(?=\S)", f"{option} ", message)
    return message


def _progress(names):
    """Yields the names of the variables, with a bar in a terminal, which takes long."""
    with click.progressbar(names, label="reading variables", file=sys.stderr) as bar:
        yield from bar


def _arrays(file):
    try:
        with np.load(file) as archive:
            return dict(archive)
    except (ValueError, OSError, EOFError, TypeError, zipfile.BadZipFile) as error:
        raise ValueError(
            f"`--check` must be a file that numpy.savez wrote. Received: {file}, which "
            f"cannot be read: {error}"
        ) from error


def _next_step(arrays, given):
    """Returns what to look at when the logits are others."""
    space = arrays.get("target_space_id")
    if None not in (space, given) and int(space) != given:
        return f"they are of --target-space {int(space)}, and here it is {given}"
    return (
        "see whether --target-space, --heads and hparams.json are those of the "
        "training, and whether the logits are of this checkpoint"
    )


def _check(model, file, arrays):
    """Prints how far the logits are from those of a file; returns if they are it."""
    missing = [name for name in (*model.input, "logits") if name not in arrays]
    if missing:
        raise ValueError(
            f"{file} must have the arrays {', '.join([*model.input, 'logits'])}. "
            f"Received: {', '.join(arrays)}"
        )
    logits = np.asarray(model.predict({n: arrays[n] for n in model.input}, verbose=0))
    wanted = arrays["logits"]
    if logits.size != wanted.size:
        raise ValueError(
            f"`logits` of {file} must have the shape {logits.shape}. Received: "
            f"{wanted.shape}"
        )
    wanted = wanted.reshape(logits.shape)
    far = float(np.abs(logits - wanted).max())
    same = far <= TOLERANCE * max(1, float(np.abs(wanted).max()))
    kept = np.mean(logits.argmax(-1) == wanted.argmax(-1))
    click.echo(
        f"the logits are {'' if same else 'NOT '}those of {file}: at most {far:.1e} "
        f"apart, {kept:.1%} of the predictions the same"
    )
    return same


def _decode(migration, loaded, texts, beams):
    reads = loaded.source_text or loaded.target_text
    rows = texts if reads else [_ids(text) for text in texts]
    found, scores = migration.decode(loaded, rows, beams=beams)
    for text, made, score in zip(texts, found, scores, strict=True):
        shown = made if reads else ",".join(map(str, made))
        click.echo(f"{text}\n  {shown}  ({score:.3f})")


def _ids(text):
    try:
        return [int(number) for number in text.split(",")]
    except ValueError:
        raise ValueError(
            "`--decode` must be ids with commas between them, or a text with a "
            f"`--vocab`. Received: {text!r}"
        ) from None
