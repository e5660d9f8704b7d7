"""From spelling to pronunciation: a Transformer with and without positions.

    .venv/bin/python examples/g2p.py                          # the whole demo
    .venv/bin/python examples/g2p.py --pronounce keras tensor # the model it saved

Trains three times with the same seed and number of steps: without positions,
with the interleaved layout and with the concatenated one. Without positions the
encoder sees a bag of letters. Before that, a model that tensor2tensor trained on
the same data pronounces some words.
"""

import argparse
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow starts.

import keras
import numpy as np
from pictures import draw_encodings, draw_learning_curves
from pronunciations import InputError, Vocabulary, error_rates, read_words
from training import train
from transformer import transformer

import tfpe
from tfpe import migration

LAYOUTS = {
    "no positions": None,
    "interleaved": "interleaved",
    "concatenated": "concatenated",
}
MODEL = "g2p.keras"
MIGRATED = Path(__file__).parents[1] / "compat" / "golden" / "g2p_checkpoint"


@dataclass
class Run:
    """A trained model and what it makes of the held-out words."""

    model: keras.Model
    losses: dict
    seconds: float
    ids: list
    predictions: list
    phoneme_error: float
    word_error: float


def main(arguments=None):
    options = parse(arguments)
    try:
        words = read_words(options.data)
        vocabulary = Vocabulary(words)
        if options.pronounce:
            pronounce(options, vocabulary)
        else:
            demo(options, words, vocabulary)
    except InputError as error:
        sys.exit(f"g2p.py: {error}")


def demo(options, words, vocabulary):
    start = time.perf_counter()
    held_out, rest = words[: options.held_out], words[options.held_out :]
    training = rest[: options.words]
    if not training:
        raise InputError(
            f"no words to train on: {options.data} has {len(words)} words, "
            f"--held-out takes {options.held_out}"
        )
    if options.hidden % options.heads:
        raise InputError(
            f"--hidden must be a multiple of --heads, not {options.hidden} for "
            f"{options.heads} heads"
        )
    try:
        options.output.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot write to {options.output}: {error}") from error
    print(f"{len(training):,} words to train on, {len(held_out)} held out")
    pronounce_migrated(held_out[:10], vocabulary)

    ids, held_out_ids = encode(vocabulary, training), encode(vocabulary, held_out)
    runs = {}
    for name, layout in LAYOUTS.items():
        print(f"\n{name}: {options.steps} steps of {options.batch} words", flush=True)
        runs[name] = run(options, vocabulary, layout, ids, held_out_ids)

    print_table(runs)
    print_words(held_out, runs)
    save_and_check(runs, held_out_ids[0], options.output / MODEL)
    draw_encodings(options.hidden, options.output / "encodings.png")
    curves = {name: r.losses for name, r in runs.items()}
    wrong = {name: r.word_error for name, r in runs.items()}
    draw_learning_curves(curves, options.output / "learning_curves.png", wrong)
    print(f"Pictures: encodings.png and learning_curves.png in {options.output}")
    print(f"The demo took {(time.perf_counter() - start) / 60:.1f} minutes.")


def pronounce_migrated(words, vocabulary):
    """Has a model that tensor2tensor trained pronounce words, in Keras."""
    loaded = migration.load(MIGRATED, heads=4, target_space=0)
    if loaded.model.output_shape[-1] != len(vocabulary):
        return  # other data than it was trained on
    print(f"\n{MIGRATED.name}, which tensor2tensor trained, in Keras:")
    x, _ = encode(vocabulary, words)
    found = vocabulary.decode(decoded(loaded, x))
    for (word, truth), phonemes in zip(words, found, strict=True):
        right = "" if phonemes == truth else f"   (rather {' '.join(truth)})"
        print(f"{word:15} {' '.join(phonemes)}{right}")


def run(options, vocabulary, layout, training, held_out):
    """Trains one model and has it pronounce the held-out words."""
    start = time.perf_counter()
    keras.utils.set_random_seed(options.seed)
    positions = layout and tfpe.SinusoidalPositionalEncoding(layout)
    model = transformer(
        len(vocabulary),
        options.hidden,
        options.heads,
        options.blocks,
        options.filter_size,
        positions=positions,
    )
    losses = train(
        model,
        training,
        held_out,
        steps=options.steps,
        batch=options.batch,
        rate=options.rate,
        seed=options.seed,
    )
    x, y = held_out
    ids = decoded(migration.Migrated(model), x)
    print("Decoded step by step, with a cache, and as one sequence: ", end="")
    check_equal(chosen_at_once(model, x, ids), ids)
    predictions = vocabulary.decode(ids)
    errors = error_rates(vocabulary.decode(y), predictions)
    seconds = time.perf_counter() - start
    return Run(model, losses, seconds, ids, predictions, *errors)


def decoded(loaded, inputs):
    """Returns the likeliest ids that follow, without the end, for each row."""
    rows = [row[: row.index(1)] for row in inputs.tolist()]
    return migration.decode(loaded, rows, extra_length=inputs.shape[1])[0]


def chosen_at_once(model, inputs, rows):
    """Returns what the model finds likeliest after each beginning of the rows."""
    targets = np.zeros((len(rows), max(map(len, rows))), "int32")
    for ids, row in zip(targets, rows, strict=True):
        ids[: len(row)] = row
    logits = model.predict({"inputs": inputs, "targets": targets}, verbose=0)
    chosen = logits.argmax(axis=-1).tolist()
    return [ids[: len(row)] for ids, row in zip(chosen, rows, strict=True)]


def encode(vocabulary, words):
    spellings, pronunciations = zip(*words, strict=True)
    return (
        vocabulary.encode_words(spellings),
        vocabulary.encode_phonemes(pronunciations),
    )


def check_equal(first, second):
    """Says that two decodings are the same, or stops the demo."""
    same = sum(a == b for a, b in zip(first, second, strict=True))
    print(f"{same} of {len(first)} the same")
    if same < len(first):
        raise RuntimeError("two decodings that must be equal differ")


def save_and_check(runs, inputs, path):
    """Saves the best model, loads it again and compares its predictions."""
    name, best = min(runs.items(), key=lambda item: item[1].word_error)
    best.model.save(path)
    model = keras.models.load_model(path)
    print(f"\n{path} ({name}), loaded again without custom_objects: ", end="")
    check_equal(best.ids, decoded(migration.Migrated(model), inputs))


def pronounce(options, vocabulary):
    path = options.output / MODEL
    words = [word.lower() for word in options.pronounce]
    x = vocabulary.encode_words(words)
    if not path.exists():
        raise InputError(f"no model at {path}: run without --pronounce first")
    try:
        model = keras.models.load_model(path)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()[0]
        raise InputError(f"cannot load {path}: {reason}") from error
    if model.output_shape[-1] != len(vocabulary):
        raise InputError(f"{path} was trained on other data than {options.data}")
    ids = decoded(migration.Migrated(model), x)
    for word, phonemes in zip(words, vocabulary.decode(ids), strict=True):
        print(f"{word:15} {' '.join(phonemes)}")


def print_table(runs):
    print(f"\n{'':15}{'phoneme error':>15}{'word error':>12}{'seconds':>10}")
    for name, r in runs.items():
        print(
            f"{name:15}{r.phoneme_error:>15.1%}{r.word_error:>12.1%}{r.seconds:>10.0f}"
        )


def print_words(held_out, runs, count=6):
    for i, (word, phonemes) in enumerate(held_out[:count]):
        print(f"\n{word:15} {' '.join(phonemes)}")
        for name, r in runs.items():
            right = "" if r.predictions[i] == phonemes else "   (wrong)"
            print(f"  {name:13} {' '.join(r.predictions[i])}{right}")


def parse(arguments):
    parser = argparse.ArgumentParser(
        description="Train and compare models that pronounce English words.",
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    here = Path(__file__).parent
    add = parser.add_argument
    add("--data", type=Path, default=here / "data" / "cmudict.tsv.gz", metavar="FILE")
    add("--output", type=Path, default=Path("demo-output"), metavar="FOLDER")
    add("--steps", type=at_least(1), default=800, help="training steps of each model")
    add("--batch", type=at_least(1), default=256, help="words in a step")
    add(
        "--words",
        type=at_least(1),
        default=None,
        help="words to train on, None for all",
    )
    add(
        "--held-out",
        type=at_least(1),
        default=500,
        help="first words, kept for testing",
    )
    add("--hidden", type=at_least(2), default=64, help="width of the model")
    add("--heads", type=at_least(1), default=4)
    add("--blocks", type=at_least(1), default=2, help="of the encoder and the decoder")
    add("--filter-size", type=at_least(1), default=256)
    add("--rate", type=float, default=6e-3, help="largest learning rate")
    add("--seed", type=at_least(0), default=1)
    add("--pronounce", nargs="+", metavar="WORD", help="use the saved model, and stop")
    return parser.parse_args(arguments)


def at_least(least):
    def number(text):
        if int(text) < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}, not {text}")
        return int(text)

    return number


if __name__ == "__main__":
    main()
