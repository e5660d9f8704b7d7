"""Data parallel: a batch over eight devices of JAX."""

import jax
import keras
import numpy as np
import oracle

import tfpe

devices = keras.distribution.list_devices()
assert len(devices) == 8
keras.distribution.set_distribution(keras.distribution.DataParallel(devices=devices))
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((None, 6)),
        tfpe.SinusoidalPositionalEncoding(),
        keras.layers.Dense(3),
    ]
)
model.compile(keras.optimizers.SGD(0.1), "mse")
inputs = np.random.default_rng(0).normal(size=(16, 5, 6)).astype("float32")
kernel, bias = model.get_weights()
want = (inputs + oracle.rows(range(5), 6)) @ kernel + bias
worst = np.abs(model.predict(inputs, batch_size=8, verbose=0) - want).max()
assert worst < 6 * 2e-6, worst
losses = model.fit(inputs, 0 * want, batch_size=8, epochs=3, verbose=0).history["loss"]
assert np.all(np.diff(losses) < 0)
assert jax.device_count() == 8
print("largest difference", worst, "equal")
