"""The Keras layer: configuration, dtype policy, axes and mask. No arithmetic."""

from dataclasses import asdict

import keras
import numpy as np
from keras import ops

from tfpe.arguments import FLOATS, check_array, check_dtype, check_ids
from tfpe.channels import number_of_pairs
from tfpe.conventions import convention
from tfpe.grid import Grid, is_plain_zero, rank
from tfpe.positions import positions_from_mask
from tfpe.settings import INT32_MAX, INT32_MIN, Settings, check_bool, check_integer
from tfpe.signal import Sinusoids, sum_of_blocks


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
            nothing at masked ones. Defaults to `False`.
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
        layout="interleaved",
        spectrum=None,
        min_timescale=1.0,
        max_timescale=10_000.0,
        cosine_first=False,
        odd_channel="zero",
        first_position=0,
        amplitude=1.0,
        axis=-2,
        skip_masked=False,
        **kwargs,
    ):
        # Keras would round float positions to the compute dtype before `call`.
        super().__init__(autocast=False, **kwargs)
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
        self.axis = _check_axis(axis)
        self.skip_masked = check_bool(skip_masked, "skip_masked")
        check_dtype(self.compute_dtype)
        if self._axes > 1 and self.skip_masked:
            raise ValueError(
                "`skip_masked=True` is for one axis only. Received: "
                f"skip_masked=True, axis={self.axis}"
            )
        number_of_pairs(1, self._axes, self.settings.odd_channel)

    @classmethod
    def from_convention(cls, name, /, **overrides):
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
        Grid.of(input_shape, self.axis)
        channels = input_shape[-1]
        if channels is None:
            raise ValueError(
                "`inputs` must have a known number of channels, the size of the last "
                f"axis. Received: inputs.shape={tuple(input_shape)}"
            )
        if not number_of_pairs(channels, self._axes, self.settings.odd_channel):
            raise ValueError(
                f"`inputs` must have at least {2 * self._axes} channels, a sine and a "
                f"cosine for each positional axis. Received: "
                f"inputs.shape={tuple(input_shape)}"
            )
        self._make_tables(channels)
        self.input_spec = keras.layers.InputSpec(axes={-1: channels})

    def _make_tables(self, channels):
        self._sinusoids = Sinusoids(
            channels, self._axes, self.settings, self.compute_dtype
        )

    @property
    def dtype_policy(self):
        return super().dtype_policy

    @dtype_policy.setter
    def dtype_policy(self, policy):
        policy = keras.dtype_policies.get(policy)
        check_dtype(policy.compute_dtype)
        keras.layers.Layer.dtype_policy.fset(self, policy)
        if self.built:
            self._make_tables(self.input_spec.axes[-1])

    def __call__(self, inputs, start_index=0, positions=None, mask=None, **kwargs):
        # Keras makes tensors of arrays before `call`, and JAX then wraps integers.
        given = {}
        if not is_plain_zero(start_index):
            given["start_index"] = check_array(start_index, "start_index", floats=False)
        if positions is not None:
            given["positions"] = check_array(positions, "positions")
        if mask is not None:
            given["mask"] = (
                check_ids(mask, "mask") if isinstance(mask, np.ndarray) else mask
            )
        return super().__call__(inputs, **given, **kwargs)

    def call(self, inputs, start_index=0, positions=None, mask=None):
        start_index, positions = self._check_call(inputs, start_index, positions)
        mask = self._check_mask(inputs, mask)
        inputs = ops.cast(inputs, self.compute_dtype)
        grid = Grid.of(ops.shape(inputs), self.axis)
        if mask is not None:
            mask = grid.fit(mask, range(rank(mask)))

        if positions is not None:
            steps = [grid.fit(p, axes) for p, axes in positions]
        elif mask is not None or rank(start_index):
            steps = [self._count(grid, start_index, mask)]
        else:
            steps = None
        if steps is None:
            rows = (
                self._sinusoids.consecutive(start_index, grid.shape[axis], block)
                for block, axis in enumerate(grid.axes)
            )
            channels = len(grid.shape) - 1
            signals = [
                grid.align(r, (axis, channels))
                for r, axis in zip(rows, grid.axes, strict=True)
            ]
        else:
            signals = [self._sinusoids.at(s, block) for block, s in enumerate(steps)]
        signal = sum_of_blocks(signals)
        if mask is not None:
            signal = ops.where(
                ops.expand_dims(mask, -1) > 0, signal, ops.zeros_like(signal)
            )
        return inputs + signal

    def _count(self, grid, start_index, mask):
        """Returns the steps along the axis, of unmasked elements if masked."""
        (axis,) = grid.axes
        if mask is None:
            steps = grid.align(ops.arange(grid.shape[axis], dtype="int32"), (axis,))
        else:
            steps = positions_from_mask(ops.moveaxis(mask, axis, -1))
            steps = ops.moveaxis(steps, -1, axis)
        if rank(start_index):
            start_index = grid.fit(start_index, (grid.batch,))
        return steps + start_index

    def _check_call(self, inputs, start_index, positions):
        """Refuses what can be seen to be wrong, in symbolic calls too."""
        if not hasattr(inputs, "shape"):
            raise TypeError(
                f"`inputs` must be a tensor of floats. Received: inputs={inputs!r}"
            )
        if hasattr(inputs, "row_lengths"):
            raise TypeError(
                "`inputs` must be dense. Pad a ragged tensor with `inputs.to_tensor()` "
                "and give `mask=tf.sequence_mask(inputs.row_lengths())`, or the "
                f"`positions`. Received: a {type(inputs).__name__}"
            )
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if dtype not in FLOATS:
            raise TypeError(
                f"`inputs` must be of a floating dtype, one of {FLOATS}. Received: "
                f"inputs.dtype={dtype}"
            )
        grid = Grid.of(inputs.shape, self.axis)
        if positions is not None:
            if not is_plain_zero(start_index):
                raise ValueError(
                    "`start_index` must be left at 0 when `positions` is given. "
                    f"Received: start_index={start_index}"
                )
            return 0, grid.check_positions(positions)
        if grid.is_flattened:
            raise ValueError(
                "`positions` must be given for inputs of rank 3, a flattened grid, "
                f"with several axes. Received: positions=None, axis={self.axis}, "
                f"inputs.shape={grid.shape}"
            )
        return grid.check_start_index(start_index), None

    def _check_mask(self, inputs, mask):
        if not self.skip_masked:
            return None
        if mask is None:
            # Keras hands the mask over only if there is no other tensor argument.
            mask = getattr(inputs, "_keras_mask", None)
        return (
            None if mask is None else Grid.of(inputs.shape, self.axis).check_mask(mask)
        )

    def compute_output_spec(self, inputs, start_index=0, positions=None, mask=None):
        # Keras would infer this by a call, with a sparse tensor for what it
        # takes to be sparse, such as `embedding * 8.0`.
        self._check_call(inputs, start_index, positions)
        self._check_mask(inputs, mask)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        own = asdict(self.settings)
        own.update(axis=self.axis, skip_masked=self.skip_masked)
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}
        return {**super().get_config(), **plain}


def _check_axis(axis):
    allowed = "an int other than -1, the channels, or a tuple of different such ints"
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = [check_integer(a, "axis", INT32_MIN, INT32_MAX, allowed) for a in axes]
    if not axes or -1 in axes or len(set(axes)) < len(axes):
        raise ValueError(f"`axis` must be {allowed}. Received: axis={axis}")
    return axes[0] if len(axes) == 1 else tuple(axes)
