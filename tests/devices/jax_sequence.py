"""A sequence over eight devices: each has a part and says where that starts."""

import jax
import numpy as np
import oracle
from jax.sharding import Mesh, NamedSharding
from jax.sharding import PartitionSpec as Spec

import tfpe

mesh = Mesh(np.array(jax.devices()), ["sequence"])
assert mesh.size == 8
layer = tfpe.SinusoidalPositionalEncoding()
inputs = np.random.default_rng(0).normal(size=(2, 4800, 6)).astype("float32")


def encode(part):
    """Encodes the part of one device, whose first step is its `start_index`."""
    start = jax.lax.axis_index("sequence") * part.shape[1]
    return layer(part, start_index=start)


by_part = jax.shard_map(
    encode,
    mesh=mesh,
    in_specs=Spec(None, "sequence"),
    out_specs=Spec(None, "sequence"),
)
want = inputs + oracle.many_rows(range(4800), 6)
whole = np.asarray(layer(inputs))
found = jax.jit(by_part)(inputs)
assert len(found.sharding.device_set) == 8
worst = np.abs(np.asarray(found) - whole).max()
assert worst <= 2 * 3.5e-7, worst
np.testing.assert_allclose(found, want, rtol=0, atol=2 * 3.5e-7)

# The compiler may split the layer too, if told how its inputs lie.
place = NamedSharding(mesh, Spec(None, "sequence"))
found = jax.jit(layer, out_shardings=place)(jax.device_put(inputs, place))
np.testing.assert_allclose(found, want, rtol=0, atol=2 * 3.5e-7)
print("largest difference", worst, "equal")
