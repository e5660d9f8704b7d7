"""The Keras layer that returns the signal itself, at given positions."""

import functools
from collections.abc import Sequence
from typing import Any, Self

import keras
from keras import ops

from tfpe._arguments import as_axes, as_channels, as_keras_arguments
from tfpe._settings import Settings
from tfpe._sinusoids import recent_sinusoids, sinusoids
from tfpe._tensor_arguments import (
    as_dtype,
    as_positions,
    is_symbolic,
    received_positions,
)
from tfpe.conventions import convention
from tfpe.layouts import require_pairs


@keras.saving.register_keras_serializable(package="tfpe")
class SinusoidalEmbedding(keras.layers.Layer):
    """Returns the sinusoidal encoding of positions, time steps or coordinates.

    It is the signal that `SinusoidalPositionalEncoding` adds to its inputs, without
    the sum: for the time steps of a diffusion model, for concatenation, for a learned
    scale. The layer has no weights.

    Args:
        channels: int >= 1, the size of the last axis of the result.
        layout: as in `SinusoidalPositionalEncoding`, and so are the next ones.
        spectrum: see there. Defaults to `None`, that of the layout.
        min_timescale: float > 0. Defaults to 1.0.
        max_timescale: float > 0. Defaults to 10,000.0.
        cosine_first: bool. Defaults to `False`.
        odd_channel: "zero" or "sine". Defaults to "zero".
        first_position: a number, added to the positions. Defaults to 0.
        amplitude: a finite number. Defaults to 1.0.
        axes: int >= 1, the number of positional axes, if it is to be fixed. Defaults
            to `None`: as many as a call gives.
        **kwargs: `name`, `dtype` and the like, as in `keras.layers.Layer`.

    Call arguments:
        positions: tensor of integers or floats, of any shape. For several axes a
            tuple, or a list of tensors, one for each axis, whose shapes broadcast;
            a list of numbers or arrays is one tensor. They reach the layer unrounded,
            whatever its dtype policy.

    Returns:
        Tensor of shape `positions.shape + (channels,)` in the compute dtype. A mask
        of the positions is passed on, of several the conjunction.

    Raises:
        ValueError, TypeError: if an argument is not as described, if `channels`
            leave an axis without a pair, or a call gives another number of axes.

    Example:

    >>> import numpy as np
    >>> import tfpe
    >>> time = tfpe.SinusoidalEmbedding(4, layout="concatenated")
    >>> print(time(np.array([0, 1000])).numpy().round(3))
    [[0.    0.    1.    1.   ]
     [0.827 0.1   0.562 0.995]]
    """

    def __init__(
        self,
        channels: int,
        *,
        layout: str | Sequence[str] = "interleaved",
        spectrum: str | Sequence[float] | None = None,
        min_timescale: float = 1.0,
        max_timescale: float = 10_000.0,
        cosine_first: bool = False,
        odd_channel: str = "zero",
        first_position: float = 0,
        amplitude: float = 1.0,
        axes: int | None = None,
        **kwargs: Any,
    ) -> None:
        # Keras would round float positions to the compute dtype before `call`.
        super().__init__(**as_keras_arguments(kwargs), autocast=False)
        self.supports_masking = True
        self.channels = as_channels(channels)
        self.settings = Settings(
            layout=layout,
            spectrum=spectrum,
            min_timescale=min_timescale,
            max_timescale=max_timescale,
            cosine_first=cosine_first,
            odd_channel=odd_channel,
            first_position=first_position,
            amplitude=amplitude,
        )
        self.axes = None if axes is None else as_axes(axes)
        as_dtype(self.compute_dtype)
        self._require_pairs(self.axes or 1)
        # Holds the tables of the likely number of axes; none is made yet.
        key = self.channels, self.axes or 1, self.settings, self.compute_dtype
        self._sinusoids = sinusoids(*key)

    @classmethod
    def from_convention(cls, name: str, /, channels: int, **overrides: Any) -> Self:
        """Returns the layer of a convention of public code.

        Args:
            name: str, a key of `tfpe.CONVENTIONS`, whose number of axes it gets.
            channels: int >= 1, the size of the last axis of the result.
            **overrides: arguments of the layer, which come before those of the
                convention.

        Returns:
            A `SinusoidalEmbedding`.

        Raises:
            ValueError: if there is no such convention, with the names that come
                close, or an argument is not as the layer wants it.

        Example:

        >>> import tfpe
        >>> layer = tfpe.SinusoidalEmbedding.from_convention("fairseq", 8)
        >>> layer.settings.layout, layer.axes
        ('concatenated', 1)
        """
        entry = convention(name)
        return cls(channels, **{"axes": entry.axes, **entry.settings, **overrides})

    def _require_pairs(self, axes):
        received = f"channels={self.channels}"
        require_pairs(self.channels, axes, self.settings.odd_channel, received)

    def build(self, input_shape):
        self.built = True

    @property
    def dtype_policy(self):
        return super().dtype_policy

    @dtype_policy.setter
    def dtype_policy(self, policy):
        policy = keras.dtype_policies.get(policy)
        as_dtype(policy.compute_dtype)
        keras.layers.Layer.dtype_policy.fset(self, policy)

    def __call__(self, positions: Any, **kwargs: Any) -> Any:
        # Arguments are converted here, since Keras would make tensors of arrays in
        # its own way: JAX then wraps integers, and lists are not one tensor.
        return super().__call__(self._as_positions(positions), **kwargs)

    def _as_positions(self, positions):
        """Returns a tensor, or a tuple with one for each of several axes."""
        several = isinstance(positions, tuple) or (
            isinstance(positions, list)
            and any(is_symbolic(p) or ops.is_tensor(p) for p in positions)
        )
        entries = positions if several else (positions,)
        axes = self.axes or len(entries)
        if not entries or len(entries) != axes:
            raise ValueError(
                f"`positions` must have {axes or 'at least one'} positional "
                f"{'axes' if axes > 1 else 'axis'}, a tuple with a tensor for each of "
                "several; a list or an array of numbers is one tensor. Received: "
                f"{len(entries)} of them, {received_positions(positions)}"
            )
        self._require_pairs(axes)
        entries = tuple(as_positions(entry) for entry in entries)
        _broadcast_shape(entries)
        return entries if len(entries) > 1 else entries[0]

    def call(self, positions):
        entries = positions if isinstance(positions, (tuple, list)) else (positions,)
        made, axes, dtype = self._sinusoids, len(entries), self.compute_dtype
        if (made.axes, made.dtype) != (axes, dtype):
            made = recent_sinusoids(self.channels, axes, self.settings, dtype)
        return made.at(tuple(entries))

    def compute_mask(self, positions, previous_mask=None):
        masks = (
            previous_mask
            if isinstance(previous_mask, (tuple, list))
            else (previous_mask,)
        )
        masks = [mask for mask in masks if mask is not None]
        return functools.reduce(ops.logical_and, masks) if masks else None

    def compute_output_spec(self, positions):
        entries = positions if isinstance(positions, (tuple, list)) else (positions,)
        shape = (*_broadcast_shape(entries), self.channels)
        return keras.KerasTensor(shape, dtype=self.compute_dtype)

    def compute_output_shape(self, input_shape):
        several = input_shape and isinstance(input_shape[0], (tuple, list))
        shapes = input_shape if several else (input_shape,)
        entries = [keras.KerasTensor(shape) for shape in shapes]
        return (*_broadcast_shape(entries), self.channels)

    def get_config(self) -> dict[str, Any]:
        own = {"channels": self.channels, **self.settings.config(), "axes": self.axes}
        return {**super().get_config(), **own}


def _broadcast_shape(entries):
    """Returns the shape of all axes' positions together."""
    shapes = [tuple(entry.shape) for entry in entries]
    rank = max(map(len, shapes))
    sizes = []
    for at in zip(*((1,) * (rank - len(s)) + s for s in shapes), strict=True):
        known = {n for n in at if n is not None and n != 1}
        if len(known) > 1:
            raise ValueError(
                "`positions` of several axes must have shapes that broadcast. "
                f"Received: {', '.join(map(str, shapes))}"
            )
        sizes.append(known.pop() if known else (None if None in at else 1))
    return tuple(sizes)
