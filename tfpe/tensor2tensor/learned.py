"""What tensor2tensor learns about positions, as Keras layers.

The weights are tensor2tensor's variables, shape for shape. Names and meaning are
in `tfpe.tensor2tensor`.
"""

import functools
import operator
from typing import Any

import keras
import numpy as np
from keras import ops

from tfpe._backends import visible
from tfpe.tensor2tensor._arguments import (
    as_float_tensor,
    as_layer_number,
    as_positions_of,
    as_positive,
)


@keras.saving.register_keras_serializable(package="tfpe")
class AddPositionalEmbedding(keras.layers.Layer):
    """Adds a learned row for each position: `add_positional_embedding`.

    Its weight is `(max_length, depth)`. Positions outside it get nothing, also
    among those that are given, where tensor2tensor fails or not by the device.

    Args:
        max_length: int >= 1, the number of rows.
        **kwargs: `name` and the like, as in `keras.layers.Layer`.

    Call arguments:
        x: float tensor `(batch, length, depth)`; the result has its dtype.
        positions: integers `(batch, length)`. Defaults to 0, 1, 2, ...

    Example:

    >>> import numpy as np
    >>> from tfpe import tensor2tensor as common_attention
    >>> layer = common_attention.AddPositionalEmbedding(max_length=2)
    >>> y = layer(np.zeros((1, 3, 4), "float32")).numpy()
    >>> np.array_equal(y[0, :2], layer.get_weights()[0]), y[0, 2]
    (True, array([0., 0., 0., 0.], dtype=float32))
    """

    def __init__(self, max_length: int, **kwargs: Any) -> None:
        # Keras would round positions to the compute dtype before `call`.
        super().__init__(**{**kwargs, "autocast": False})
        self.supports_masking = True
        self.max_length = as_positive(max_length, "max_length")

    def build(self, input_shape):
        self.table = self.add_weight((self.max_length, input_shape[-1]), name="table")

    def __call__(self, x: Any, positions: Any = None, **kwargs: Any) -> Any:
        x = _checked(self, x)
        if positions is not None:
            positions = _whole(as_positions_of(positions, "positions", x))
        return super().__call__(x, positions=positions, **kwargs)

    def call(self, x, positions=None):
        if positions is None:
            positions = ops.arange(ops.shape(x)[1], dtype="int32")
        positions = ops.cast(positions, "int32")
        inside = ops.logical_and(positions >= 0, positions < self.max_length)
        table = ops.pad(ops.cast(self.table, x.dtype), [(0, 1), (0, 0)])
        row_of_zeros = self.max_length
        return x + ops.take(table, ops.where(inside, positions, row_of_zeros), axis=0)

    def compute_output_spec(self, x, positions=None):
        return keras.KerasTensor(x.shape, x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "max_length": self.max_length}


@keras.saving.register_keras_serializable(package="tfpe")
class AddPositionalEmbeddingNd(keras.layers.Layer):
    """Adds learned rows of each axis: `add_positional_embedding_nd`.

    It has a weight for each axis, `(1, ..., max_length, ..., 1, depth)`, which
    starts with the standard deviation `depth**-0.5` and is multiplied by
    `depth**0.5`. tensor2tensor's takes float32 only.

    Args:
        max_length: int >= 1, the number of rows. No axis may be longer.
        **kwargs: `name` and the like, as in `keras.layers.Layer`.

    Call arguments:
        x: float tensor `(batch, d1, ..., dn, depth)`; the result has its dtype.
    """

    def __init__(self, max_length: int, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "autocast": False})
        self.supports_masking = True
        self.max_length = as_positive(max_length, "max_length")

    def build(self, input_shape):
        *grid, depth = input_shape[1:]
        self.tables = []
        for axis in range(len(grid)):
            rows = [self.max_length if a == axis else 1 for a in range(len(grid))]
            self.tables.append(
                self.add_weight(
                    (1, *rows, depth),
                    initializer=_unit_rows(depth),
                    name=f"table_{axis}",
                )
            )

    def __call__(self, x: Any, **kwargs: Any) -> Any:
        x = _checked(self, x, rank=None)
        if max(n or 0 for n in x.shape[1:-1]) > self.max_length:
            raise ValueError(
                "`x` must not be longer than `max_length` on any axis. Received: "
                f"x.shape={tuple(x.shape)}, max_length={self.max_length}"
            )
        return super().__call__(x, **kwargs)

    def call(self, x):
        depth = x.shape[-1]
        rows = [
            ops.take(table, ops.arange(ops.shape(x)[axis], dtype="int32"), axis=axis)
            for axis, table in enumerate(self.tables, start=1)
        ]
        return x + ops.cast(functools.reduce(operator.add, rows) * depth**0.5, x.dtype)

    def compute_output_spec(self, x):
        return keras.KerasTensor(x.shape, x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "max_length": self.max_length}


@keras.saving.register_keras_serializable(package="tfpe")
class AddLayerTimingSignalLearned1d(keras.layers.Layer):
    """Adds a learned row of a layer: `add_layer_timing_signal_learned_1d`.

    Its weight is `(num_layers, 1, 1, channels)`, starts with the standard
    deviation `channels**-0.5` and is multiplied by `channels**0.5`.
    tensor2tensor's takes float32 only. On zeros the layer is tensor2tensor's
    `get_layer_timing_signal_learned_1d`.

    Args:
        num_layers: int >= 1, the number of rows.
        **kwargs: `name` and the like, as in `keras.layers.Layer`.

    Call arguments:
        x: float tensor `(batch, length, channels)`; the result has its dtype.
        layer: integer, the number of the row, by keyword.
    """

    def __init__(self, num_layers: int, **kwargs: Any) -> None:
        super().__init__(**{**kwargs, "autocast": False})
        self.supports_masking = True
        self.num_layers = as_positive(num_layers, "num_layers")

    def build(self, input_shape):
        channels = input_shape[-1]
        self.table = self.add_weight(
            (self.num_layers, 1, 1, channels),
            initializer=_unit_rows(channels),
            name="layer_embedding",
        )

    def __call__(self, x: Any, layer: Any, **kwargs: Any) -> Any:
        layer = as_layer_number(layer, self.num_layers)
        return super().__call__(_checked(self, x), layer=layer, **kwargs)

    def call(self, x, layer):
        row = ops.take(self.table, layer, axis=0)
        return x + ops.cast(row * x.shape[-1] ** 0.5, x.dtype)

    def compute_output_spec(self, x, layer):
        return keras.KerasTensor(x.shape, x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {**super().get_config(), "num_layers": self.num_layers}


def _checked(layer, x, rank=3):
    """Returns `x` for a layer; Keras refuses in its own words what is no tensor."""
    dense = as_float_tensor(x, "x", rank)
    channels = layer.weights[0].shape[-1] if layer.built else dense.shape[-1]
    if dense.shape[-1] != channels:
        raise ValueError(
            f"`x` must have {channels} channels, as the layer was built for. Received: "
            f"x.shape={tuple(x.shape)}"
        )
    return x if ops.is_tensor(x) else dense  # a mask belongs to the very tensor


def _unit_rows(depth):
    return keras.initializers.RandomNormal(stddev=depth**-0.5)


def _whole(positions):
    """Returns positions; refuses fractions, which have no row."""
    seen = visible(positions)
    if seen is not None and not np.all(seen == np.floor(seen)):
        raise ValueError(
            f"`positions` must be whole numbers. Received: positions={positions}"
        )
    return positions
