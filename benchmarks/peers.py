"""What a user of Keras can add to his inputs, and the constant that is the limit.

Each is made by `make(channels, dtype)` and called like tfpe's layer:
`inputs + signal = added(inputs, start_index=0, positions=None)`.
"""

import math
from collections.abc import Callable
from importlib import metadata, util
from typing import NamedTuple

import keras
from keras import ops

import tfpe

MAX_TIMESCALE = 10_000.0
OURS, TENSOR2TENSOR, KERAS_HUB = "tfpe", "tensor2tensor's operations", "KerasHub"


class Peer(NamedTuple):
    """A library, and what it can do."""

    name: str
    distribution: str | None  # None: nothing that is installed.
    make: Callable
    spectrum: str
    takes_positions: bool = True  # and `start_index`
    takes_any_length: bool = True  # also a length that is known only in the graph


class Constant(keras.layers.Layer):
    """Adds a constant to its inputs. No positional encoding can cost less."""

    def __init__(self, length, channels, dtype="float32"):
        super().__init__(dtype=dtype, name="positions")
        self.constant = keras.random.normal((length, channels), dtype=dtype)

    def call(self, inputs, start_index=0, positions=None):
        return inputs + self.constant

    def compute_output_shape(self, input_shape):
        return input_shape


class Tensor2tensor(keras.layers.Layer):
    """tensor2tensor's operations, all of them at every call, in float32."""

    def __init__(self, dtype="float32"):
        super().__init__(dtype=dtype, autocast=False, name="positions")

    def call(self, inputs, start_index=0, positions=None):
        _, length, channels = ops.shape(inputs)
        if positions is None:
            positions = ops.arange(length, dtype="int32") + start_index
        pairs = channels // 2
        spacing = math.log(MAX_TIMESCALE) / max(pairs - 1, 1)
        frequency = ops.exp(ops.arange(pairs, dtype="float32") * -spacing)
        angle = ops.cast(positions, "float32")[..., None] * frequency
        signal = ops.concatenate([ops.sin(angle), ops.cos(angle)], axis=-1)
        around = [(0, 0)] * (len(signal.shape) - 1)
        signal = ops.pad(signal, [*around, (0, channels % 2)])
        return inputs + ops.cast(signal, inputs.dtype)

    def compute_output_shape(self, input_shape):
        return input_shape


class KerasHub:
    """KerasHub's layer, whose result its user adds."""

    name = "positions"

    def __init__(self, dtype="float32"):
        import keras_hub

        self.layer = keras_hub.layers.SinePositionEncoding(MAX_TIMESCALE, dtype=dtype)

    def __call__(self, inputs, start_index=0, positions=None):
        return inputs + self.layer(inputs, start_index=start_index, positions=positions)


class PositionalEncodings:
    """The TensorFlow layer of `positional-encodings`, whose result its user adds.

    It knows no `start_index` and no positions, and computes in float32.
    """

    name = "positions"

    def __init__(self, channels):
        from positional_encodings.tf_encodings import TFPositionalEncoding1D

        self.layer = TFPositionalEncoding1D(channels)

    def __call__(self, inputs, start_index=0, positions=None):
        return inputs + ops.cast(self.layer(inputs), inputs.dtype)


def peers():
    """Returns the peers that are installed and run on Keras' backend."""
    found = [
        Peer(
            OURS,
            "tfpe",
            lambda channels, dtype: tfpe.SinusoidalPositionalEncoding(
                dtype=dtype, name="positions"
            ),
            "vaswani",
        ),
        Peer(
            TENSOR2TENSOR,
            None,
            lambda channels, dtype: Tensor2tensor(dtype),
            "tensor2tensor",
        ),
    ]
    if util.find_spec("keras_hub"):
        found.append(
            Peer(
                KERAS_HUB,
                "keras-hub",
                lambda channels, dtype: KerasHub(dtype),
                "vaswani",
            )
        )
    on_tensorflow = keras.backend.backend() == "tensorflow"
    if on_tensorflow and util.find_spec("positional_encodings"):
        found.append(
            Peer(
                "positional-encodings",
                "positional-encodings",
                lambda channels, dtype: PositionalEncodings(channels),
                "vaswani",
                takes_positions=False,
                takes_any_length=False,
            )
        )
    return found


def versions():
    """Returns the version of each library that is there, by name."""
    found = {"tfpe": tfpe.__version__}
    for peer in peers():
        if peer.distribution and peer.name not in found:
            found[peer.distribution] = metadata.version(peer.distribution)
    return found
