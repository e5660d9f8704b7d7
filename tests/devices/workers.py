"""Workers of a cluster: `MultiWorkerMirroredStrategy`, one process for each.

Arguments: the number of this worker, then the ports of all of them.
"""

import json
import os
import sys

worker, *ports = sys.argv[1:]
os.environ["TF_CONFIG"] = json.dumps(
    {
        "cluster": {"worker": [f"127.0.0.1:{port}" for port in ports]},
        "task": {"type": "worker", "index": int(worker)},
    }
)
import keras  # noqa: E402
import numpy as np  # noqa: E402
import oracle  # noqa: E402
import tensorflow as tf  # noqa: E402

import tfpe  # noqa: E402

strategy = tf.distribute.MultiWorkerMirroredStrategy()
assert strategy.num_replicas_in_sync == len(ports)
layer = tfpe.SinusoidalPositionalEncoding()
with strategy.scope():
    weights = tf.Variable(tf.ones((6, 3)))
random = np.random.default_rng(0)
INPUTS = random.normal(size=(4, 5, 6)).astype("float32")
TARGETS = random.normal(size=(4, 5, 3)).astype("float32")


@tf.function
def train(inputs, targets):
    """Takes one step of descent; `fit` of Keras 3 knows no such strategy."""

    def replica(inputs, targets):
        with tf.GradientTape() as tape:
            error = tf.matmul(layer(inputs), weights) - targets
            loss = tf.reduce_sum(error**2) / TARGETS.size
        slope = tape.gradient(loss, weights)
        total = tf.distribute.get_replica_context().all_reduce("sum", slope)
        weights.assign_sub(0.1 * total)
        return loss

    return strategy.reduce("sum", strategy.run(replica, (inputs, targets)), axis=None)


own = slice(int(worker), None, len(ports))
losses = [float(train(INPUTS[own], TARGETS[own])) for _ in range(5)]

want, wanted_losses = np.ones((6, 3)), []
encoded = INPUTS + oracle.rows(range(5), 6)
for _ in range(5):
    error = encoded @ want - TARGETS
    wanted_losses.append((error**2).mean())
    want -= 0.1 * np.einsum("blc,bld->cd", encoded, 2 * error / TARGETS.size)
worst = np.abs(weights.numpy() - want).max()
np.testing.assert_allclose(losses, wanted_losses, rtol=1e-5)
assert worst < 1e-5, worst
assert keras.backend.backend() == "tensorflow"
print("largest difference", worst, "equal")
