"""Training on pairs of ids, in batches of about equally long words."""

import sys

import keras
import numpy as np
import tensorflow as tf


def train(model, training, held_out, *, steps, batch, rate, seed):
    """Trains a model of `transformer.py`.

    Args:
        model: the model, which is compiled here.
        training: pair of int32 arrays, inputs and targets.
        held_out: such a pair, for the loss on words never trained on.
        steps: int, number of training steps.
        batch: int, number of words in a step.
        rate: float, learning rate after the first eighth of the steps, from
            where it falls to 0 along a cosine.
        seed: int, for the order of the batches.

    Returns:
        Dict of the two learning curves, each a list of (step, loss).
    """
    compile_model(model, steps, rate)
    ids = tf.TensorSpec((None, None), "int32")
    data = tf.data.Dataset.from_generator(
        lambda: batches(*training, batch, seed),
        output_signature=({"inputs": ids, "targets": ids}, ids),
    )
    x, y = held_out
    # An epoch is a point of the learning curves here, not a pass over the data.
    epochs = max(n for n in range(1, 11) if steps % n == 0)
    history = model.fit(
        data.prefetch(2),
        epochs=epochs,
        steps_per_epoch=steps // epochs,
        shuffle=False,
        validation_data=({"inputs": x, "targets": y}, y),
        validation_batch_size=len(x),
        verbose=1 if sys.stdout.isatty() else 2,
    ).history
    points = [steps // epochs * (epoch + 1) for epoch in range(epochs)]
    return {
        "training": list(zip(points, history["loss"], strict=True)),
        "held out": list(zip(points, history["val_loss"], strict=True)),
    }


def compile_model(model, steps, rate):
    warmup = steps // 8
    schedule = keras.optimizers.schedules.CosineDecay(
        0.0, steps - warmup, warmup_target=rate, warmup_steps=warmup
    )
    optimizer = keras.optimizers.Adam(schedule, beta_2=0.98, epsilon=1e-9)
    # Made within the first step, its variables would have that step traced twice.
    optimizer.build(model.trainable_variables)
    model.compile(
        optimizer,
        keras.losses.SparseCategoricalCrossentropy(from_logits=True, ignore_class=0),
    )


def batches(inputs, targets, size, seed):
    """Yields `{"inputs": ..., "targets": ...}, targets` for ever, in random order.

    The words of a batch are about equally long, which saves the time that
    padding would take. Widths are multiples of 4, so that there are few of them.
    """
    random = np.random.default_rng(seed)
    lengths = np.maximum((inputs > 0).sum(axis=1), (targets > 0).sum(axis=1))
    while True:
        order = random.permutation(len(inputs))
        order = order[np.argsort(lengths[order], kind="stable")]
        chunks = np.array_split(order, -(-len(order) // size))
        random.shuffle(chunks)
        for rows in chunks:
            width = -(-lengths[rows].max() // 4) * 4
            x, y = inputs[rows, :width], targets[rows, :width]
            yield {"inputs": x, "targets": y}, y
