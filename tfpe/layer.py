"""The Keras layers: configuration, dtype policy, axes and mask. No arithmetic."""

from collections.abc import Sequence
from typing import Any, Self

import keras
from keras import ops

from tfpe._arguments import as_axis, as_bool, as_keras_arguments
from tfpe._input_axes import InputAxes
from tfpe._settings import Settings
from tfpe._sinusoids import sinusoids
from tfpe._tensor_arguments import (
    as_dtype,
    as_ids,
    as_positions,
    as_start_index,
    as_tensor,
    rank,
    received_positions,
    require_inputs,
)
from tfpe.conventions import convention
from tfpe.layouts import number_of_pairs, require_pairs
from tfpe.positions import positions_from_mask


@keras.saving.register_keras_serializable(package="tfpe")
class SinusoidalPositionalEncoding(keras.layers.Layer):
    """Adds a sinusoidal positional encoding to its inputs.

    Channel `c` of what is added at position `p` is

        amplitude * sin(frequency[c] * p + phase[c])

    where each pair of channels, a sine (phase 0) and a cosine (phase pi / 2),
    has one timescale, `frequency = 1 / timescale`. The *layout* is the order in
    which the channels stand; the *spectrum* is how the timescales are spaced.
    With `n = channels // 2` pairs, `j = 0, ..., n - 1`:

    | spectrum | timescale of pair j |
    |---|---|
    | "vaswani" | `min * (max / min) ** (2 * j / channels)` |
    | "tensor2tensor" | `1 / (min * (max / min) ** (-j / max(n - 1, 1)))` |
    | "geometric" | `min * (max / min) ** (j / max(n - 1, 1))` |

    The layer has no weights. Its inputs are not scaled.

    Args:
        layout: "interleaved" (sine and cosine of one timescale side by side,
            the paper's), "concatenated" (all sines, then all cosines,
            tensor2tensor's), or the order itself as a tuple of "axis",
            "frequency" and "function", slowest first, which wants an explicit
            `spectrum`. Defaults to "interleaved".
        spectrum: "vaswani", "tensor2tensor", "geometric", or a sequence of
            timescales, one for each pair. "tensor2tensor" multiplies by
            `min_timescale`, as that library does: its timescales run from
            `1 / min` to `max / min**2`, and "geometric" has the same spacing
            from `min` to `max`. Defaults to `None`: "vaswani" for the
            interleaved layout, "tensor2tensor" for the concatenated one.
        min_timescale: float > 0, in positions per radian. Defaults to 1.0.
        max_timescale: float > 0, in positions per radian; may be less than
            `min_timescale`. Defaults to 10,000.0.
        cosine_first: bool, whether cosines stand before sines. Defaults to
            `False`.
        odd_channel: "zero" or "sine", what the last channel of an odd number
            is: 0, or the sine of one more timescale. "sine" is for one axis
            and not with `cosine_first`. Defaults to "zero".
        first_position: a number, the position of step 0. Defaults to 0.
        amplitude: a finite number, multiplied into the signal. Defaults to 1.0.
        axis: int, the positional axis of the inputs, or a tuple of ints. With
            several, each axis has `2 * (channels // (2 * axes))` channels of
            its own, in the order of the tuple, with exponents `j / n` for
            "vaswani", and channels left over at the end are 0. Defaults to -2.
        skip_masked: bool, for one axis: count unmasked steps only and add
            nothing at masked ones. Without a mask nothing is skipped, and given
            `positions` are not counted anew. Defaults to `False`.
        **kwargs: `name`, `dtype` and the like, as in `keras.layers.Layer`.

    Call arguments:
        inputs: float tensor of rank 3 or more, channels last. All axes but
            the last and the positional ones are batch axes; the first of them
            is the batch below.
        start_index: int, integer scalar or integers `(batch,)`, the step of
            the first element, for one axis. Defaults to 0.
        positions: the steps themselves, integers or floats, in place of
            0, 1, 2, ...: `(length,)` or `(batch, length)`. For several axes a
            sequence with an entry for each, `(n_i,)`, `(batch, n_i)` or
            `(batch, *grid)` with the axes as the inputs have them. Inputs of
            rank 3 with several axes are flattened grids, whose entries
            `(length,)` or `(batch, length)` must be given. Defaults to `None`.
        mask: bool tensor with the leading axes of the inputs, the positional
            one included; used by `skip_masked` only, and passed on. Defaults
            to the mask that Keras attached to the inputs.

    Returns:
        Tensor of the shape of the inputs in the compute dtype.

    Raises:
        ValueError, TypeError: if an argument is not as described, if the
            number of channels is unknown or leaves an axis without a pair.

    Example:

    >>> import numpy as np
    >>> import tfpe
    >>> layer = tfpe.SinusoidalPositionalEncoding("concatenated", max_timescale=100)
    >>> print(layer(np.zeros((1, 2, 4), "float32")).numpy().round(3))
    [[[0.    0.    1.    1.   ]
      [0.841 0.01  0.54  1.   ]]]

    References:
        - [Attention is all you need](https://arxiv.org/abs/1706.03762), 3.5
        - `add_timing_signal_1d` in tensor2tensor 1.15.7
    """

    def __init__(
        self,
        layout: str | Sequence[str] = "interleaved",
        spectrum: str | Sequence[float] | None = None,
        min_timescale: float = 1.0,
        max_timescale: float = 10_000.0,
        cosine_first: bool = False,
        odd_channel: str = "zero",
        first_position: float = 0,
        amplitude: float = 1.0,
        axis: int | Sequence[int] = -2,
        skip_masked: bool = False,
        **kwargs: Any,
    ) -> None:
        # Keras would round float positions to the compute dtype before `call`. A
        # config may have `autocast`, since Keras writes it for foreign layers.
        super().__init__(**as_keras_arguments(kwargs), autocast=False)
        self.supports_masking = True
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
        self.axis = as_axis(axis)
        self.skip_masked = as_bool(skip_masked, "skip_masked")
        as_dtype(self.compute_dtype)
        if self._axes > 1 and self.skip_masked:
            raise ValueError(
                "`skip_masked=True` is for one axis only. Received: "
                f"skip_masked=True, axis={self.axis}"
            )
        number_of_pairs(1, self._axes, self.settings.odd_channel)

    @classmethod
    def from_convention(cls, name: str, /, **overrides: Any) -> Self:
        """Returns the layer of a convention of public code.

        Args:
            name: str, a key of `tfpe.CONVENTIONS`.
            **overrides: arguments of the layer, which come before those of the
                convention.

        Returns:
            A `SinusoidalPositionalEncoding`.

        Raises:
            ValueError: if there is no such convention, with the names that come
                close, or an argument is not as the layer wants it.

        Example:

        >>> import tfpe
        >>> layer = tfpe.SinusoidalPositionalEncoding.from_convention("fairseq")
        >>> layer.settings.layout, layer.settings.first_position
        ('concatenated', 2)
        """
        entry = convention(name)
        return cls(**{"axis": entry.axis, **entry.settings, **overrides})

    @property
    def _axes(self):
        return 1 if isinstance(self.axis, int) else len(self.axis)

    def build(self, input_shape):
        shape = tuple(input_shape)
        channels = shape[-1]
        if channels is None:
            raise ValueError(
                "`inputs` must have a known number of channels, the size of the last "
                "axis: `ops.moveaxis(x, 1, -1)` puts channels last. Received: "
                f"inputs.shape={shape}"
            )
        received = f"inputs.shape={shape}"
        require_pairs(channels, self._axes, self.settings.odd_channel, received)
        self._sinusoids = self._tables(channels)
        self.input_spec = keras.layers.InputSpec(axes={-1: channels})

    def _tables(self, channels):
        return sinusoids(channels, self._axes, self.settings, self.compute_dtype)

    @property
    def dtype_policy(self):
        return super().dtype_policy

    @dtype_policy.setter
    def dtype_policy(self, policy):
        policy = keras.dtype_policies.get(policy)
        as_dtype(policy.compute_dtype)
        keras.layers.Layer.dtype_policy.fset(self, policy)
        if self.built:
            self._sinusoids = self._tables(self.input_spec.axes[-1])

    def __call__(
        self,
        inputs: Any,
        start_index: Any = 0,
        positions: Any = None,
        mask: Any = None,
        **kwargs: Any,
    ) -> Any:
        # Arguments are converted here, since Keras would make tensors of arrays in
        # its own way: JAX then wraps integers, and a NumPy integer becomes data.
        # What depends on the inputs' shape is checked in `_arguments`.
        require_inputs(inputs)
        given = {}
        if self._axes > 1 and not _is_plain_zero(start_index):
            raise ValueError(
                "`start_index` is for one axis only. Received: "
                f"start_index={start_index} with {self._axes} positional axes"
            )
        if positions is not None:
            if not _is_plain_zero(start_index):
                raise ValueError(
                    "`start_index` must be left at 0 when `positions` is given. "
                    f"Received: start_index={start_index}"
                )
            given["positions"] = self._as_positions(positions)
        elif not _is_plain_zero(start_index):
            given["start_index"] = as_start_index(start_index)
        if mask is not None:
            given["mask"] = as_ids(mask, "mask") if self.skip_masked else mask
        return super().__call__(inputs, **given, **kwargs)

    def _as_positions(self, positions):
        """Returns a tensor, or a tuple with one for each of several axes."""
        if self._axes == 1:
            return as_positions(positions)
        if not isinstance(positions, (tuple, list)) or len(positions) != self._axes:
            raise ValueError(
                f"`positions` must be a sequence of {self._axes} tensors, one for each "
                f"axis. Received: {received_positions(positions)}"
            )
        return tuple(as_positions(entry) for entry in positions)

    def call(self, inputs, start_index=0, positions=None, mask=None):
        axes, positions, mask = self._arguments(inputs, start_index, positions, mask)
        if mask is not None:
            mask = ops.cast(ops.cast(mask, "bool"), "int32")
            mask = axes.fitted(mask, range(rank(mask)))
        signal = self._signal(axes, start_index, positions, mask)
        if mask is not None:
            signal = ops.where(
                ops.expand_dims(mask, -1) > 0, signal, ops.zeros_like(signal)
            )
        return ops.cast(inputs, self.compute_dtype) + signal

    def _signal(self, axes, start_index, positions, mask):
        if positions:
            return self._sinusoids.at(axes.aligned_positions(positions))
        if mask is None and not rank(start_index):
            signal = self._sinusoids.consecutive(start_index, axes.lengths)
            if axes.axes == (len(axes.shape) - 2,):
                return signal  # broadcasts as it is
            return axes.aligned(signal, (*axes.axes, len(axes.shape) - 1))
        (axis,) = axes.axes
        if mask is None:
            steps = ops.arange(axes.shape[axis], dtype="int32")
            steps = axes.aligned(steps, (axis,))
        else:
            steps = positions_from_mask(ops.moveaxis(mask, axis, -1))
            steps = ops.moveaxis(steps, -1, axis)
        if rank(start_index):
            start_index = axes.fitted(start_index, (axes.batch,))
        return self._sinusoids.at((as_tensor(start_index),), steps)

    def _arguments(self, inputs, start_index, positions, mask):
        """Returns the inputs' axes, positions as a tuple and the mask that counts."""
        axes = InputAxes.of(ops.shape(inputs), self.axis)
        if positions is None:
            positions = ()
        elif self._axes == 1:
            positions = (positions,)
        axes.require_positions(positions)
        if not _is_plain_zero(start_index):
            axes.require_start_index(start_index)
        if not self.skip_masked:
            return axes, positions, None
        if mask is None:
            # Keras hands the mask over only if there is no other tensor argument.
            mask = getattr(inputs, "_keras_mask", None)
        if mask is not None:
            axes.require_mask(mask)
        return axes, positions, mask

    def compute_output_spec(self, inputs, start_index=0, positions=None, mask=None):
        # Keras would infer this by a call, with a sparse tensor for what it
        # takes to be sparse, such as `embedding * 8.0`.
        self._arguments(inputs, start_index, positions, mask)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self) -> dict[str, Any]:
        axis = list(self.axis) if isinstance(self.axis, tuple) else self.axis
        own = {"axis": axis, "skip_masked": self.skip_masked}
        return {**super().get_config(), **self.settings.config(), **own}


def _is_plain_zero(start_index):
    return type(start_index) is int and start_index == 0
