"""Replicas of one process: `MirroredStrategy` over two logical CPUs."""

import keras
import numpy as np
import oracle
import tensorflow as tf

import tfpe

cpu = tf.config.list_physical_devices("CPU")[0]
logical = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, logical)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
SIGNAL = oracle.rows(range(5), 6).astype("float32")


def trained(encoding):
    """Returns what a model predicts, before and after it was trained."""
    keras.utils.set_random_seed(0)
    with strategy.scope():
        model = keras.Sequential(
            [keras.Input((5, 6)), encoding(), keras.layers.Dense(3)]
        )
        model.compile(keras.optimizers.SGD(0.1), "mse")
    random = np.random.default_rng(0)
    inputs, targets = random.normal(size=(11, 5, 6)), random.normal(size=(11, 5, 3))
    before = model.predict(inputs, batch_size=4, verbose=0)
    # Batches of 4, 4 and 3; then of 4, 4 and 1, which leaves a replica nothing.
    for count in (11, 9):
        data = inputs[:count], targets[:count]
        model.fit(*data, batch_size=4, shuffle=False, verbose=0)
    return before, model.predict(inputs, batch_size=5, verbose=0), *model.get_weights()


def constant():
    return keras.layers.Lambda(lambda x: x + SIGNAL)


found, wanted = trained(tfpe.SinusoidalPositionalEncoding), trained(constant)
worst = max(np.abs(f - w).max() for f, w in zip(found, wanted, strict=True))
# Two layers of sums of 18 products of numbers of about 1, 6 steps of training.
assert worst < 2e-5, worst

with strategy.scope():
    layer = tfpe.SinusoidalPositionalEncoding()


@tf.function
def step(inputs):
    # The first call of the layer is in a replica.
    return strategy.run(layer, (inputs,))


batch = tf.data.Dataset.from_tensor_slices(np.zeros((3, 5, 6), "float32")).batch(3)
for inputs in strategy.experimental_distribute_dataset(batch):
    for part in strategy.experimental_local_results(step(inputs)):
        np.testing.assert_allclose(
            part, np.broadcast_to(SIGNAL, part.shape), atol=3.5e-7
        )
print("largest difference", worst, "equal")
