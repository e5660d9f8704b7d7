"""The command `tfpe migrate`: a training folder of tensor2tensor as a Keras model."""

import os
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow starts.

import click
import numpy as np

from tfpe.tools.refused import RefusedError

# How far logits may be from those of another machine, relative to the largest.
TOLERANCE = 1e-4


@click.command()
@click.argument("folder")
@click.option("--vocab", metavar="FILE", help="Vocabulary, of the inputs if of two.")
@click.option("--target-vocab", metavar="FILE", help="That of the targets.")
@click.option("--heads", type=int, metavar="N", help="If no hparams.json tells it.")
@click.option("--target-space", type=int, metavar="N", help="If there are several.")
@click.option("--save", metavar="OUT", help="Folder for model.keras and text encoders.")
@click.option(
    "--decode",
    multiple=True,
    metavar="TEXT",
    help="Decode this text, or without a vocabulary ids with commas between them.",
)
@click.option("--beams", default=1, show_default=True, type=click.IntRange(min=1))
@click.option("--check", metavar="FILE.npz", help="Compare the logits with these.")
def migrate(folder, save, decode, beams, check, **told):
    """Turn a model of tensor2tensor into a Keras model.

    FOLDER is the folder of a training (the newest checkpoint is taken) or of a
    SavedModel, or the common part of the names of a checkpoint's files.

    The exit code is 1 if --check finds other logits, and 2 if the model can't be
    migrated.
    """
    from tfpe import migration

    try:
        loaded = migration.load(folder, **told, progress=_progress)
        for line in loaded.assumed:
            click.echo(f"assumed: {line}")
        click.echo(
            f"{loaded.model.count_params():,} weights, "
            f"from {', '.join(loaded.model.input)} to logits"
        )
        same = _check(loaded.model, check) if check else True
        if save:
            click.echo(f"saving {save}", err=True)
            loaded.save(save)
            click.echo(f"saved in {save}")
        if decode:
            _decode(migration, loaded, decode, beams)
    except (ValueError, OSError) as error:
        raise RefusedError(str(error)) from error
    if not same:
        raise click.exceptions.Exit(1)


def _progress(names):
    """Yields the names of the variables, with a bar in a terminal, which takes long."""
    with click.progressbar(names, label="reading variables", file=sys.stderr) as bar:
        yield from bar


def _check(model, file):
    """Prints how far the logits are from those of a file; returns if they are it."""
    with np.load(file) as archive:
        arrays = dict(archive)
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
