"""Model parallel: the channels of the weights over four devices, the batch over two."""

import keras
import numpy as np
import oracle

import tfpe

mesh = keras.distribution.DeviceMesh((2, 4), ["batch", "model"])
layout = keras.distribution.LayoutMap(mesh)
layout[".*dense.*kernel"] = (None, "model")
layout[".*dense.*bias"] = ("model",)
keras.distribution.set_distribution(
    keras.distribution.ModelParallel(layout_map=layout, batch_dim_name="batch")
)
keras.utils.set_random_seed(0)
model = keras.Sequential(
    [
        keras.Input((None, 6)),
        keras.layers.Dense(8, name="dense_in"),
        tfpe.SinusoidalPositionalEncoding(layout="concatenated"),
        keras.layers.Dense(4, name="dense_out"),
    ]
)
model.compile(keras.optimizers.SGD(0.1), "mse")
kernel = model.layers[0].kernel.value
assert len(kernel.sharding.device_set) == 8
assert kernel.addressable_shards[0].data.shape == (6, 2)

inputs = np.random.default_rng(0).normal(size=(4, 5, 6)).astype("float32")
first, bias, last, last_bias = model.get_weights()
encoded = inputs @ first + bias + oracle.rows(range(5), 8, layout="concatenated")
want = encoded @ last + last_bias
worst = np.abs(model.predict(inputs, batch_size=2, verbose=0) - want).max()
assert worst < 14 * 2e-6, worst
losses = model.fit(inputs, 0 * want, batch_size=2, epochs=3, verbose=0).history["loss"]
assert np.all(np.diff(losses) < 0)
print("largest difference", worst, "equal")
