"""The Keras layer: configuration, dtype policy, axes and mask. No arithmetic."""

from dataclasses import asdict

import keras
import numpy as np
from keras import ops

from tfpe.arguments import (
    FLOATS,
    check_dtype,
    check_ids,
    check_positions,
    check_sizes,
    check_steps,
)
from tfpe.channels import number_of_pairs
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
    >>> layer = tfpe.SinusoidalPositionalEncoding(layout="concatenated")
    >>> print(layer(np.zeros((1, 2, 4), "float32")).numpy().round(4))
    [[[0.     0.     1.     1.    ]
      [0.8415 0.0001 0.5403 1.    ]]]

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

    @property
    def _axes(self):
        return 1 if isinstance(self.axis, int) else len(self.axis)

    def build(self, input_shape):
        channels = input_shape[-1] if input_shape else None
        if channels is None:
            raise ValueError(
                "The last axis of `inputs`, the channels, must have a known size. "
                f"Received: inputs.shape={input_shape}"
            )
        self._axes_of(input_shape)
        if not number_of_pairs(channels, self._axes, self.settings.odd_channel):
            raise ValueError(
                f"`inputs` must have at least {2 * self._axes} channels, a sine and "
                f"a cosine for each of {self._axes} positional axes. Received: "
                f"inputs.shape={input_shape}"
            )
        self._sinusoids = Sinusoids(
            channels, self._axes, self.settings, self.compute_dtype
        )
        self.input_spec = keras.layers.InputSpec(axes={-1: channels})

    def call(self, inputs, start_index=0, positions=None, mask=None):
        start_index, entries, mask = self._check_call(
            inputs, start_index, positions, mask
        )
        inputs = ops.cast(inputs, self.compute_dtype)
        shape = ops.shape(inputs)
        axes, batch = self._axes_of(shape)
        if mask is not None:
            mask = _align(mask, range(_rank(mask)), shape[:-1])

        if entries is not None:
            steps = [_align(entry, dims, shape[:-1]) for entry, dims in entries]
        elif mask is not None or _rank(start_index):
            steps = [self._count(shape[:-1], axes[0], batch, start_index, mask)]
        else:
            steps = None
        if steps is not None:
            signals = [self._sinusoids.at(s, block) for block, s in enumerate(steps)]
        else:
            signals = [
                _align(
                    self._sinusoids.consecutive(start_index, shape[axis], block),
                    (axis, len(shape) - 1),
                    shape,
                )
                for block, axis in enumerate(axes)
            ]
        signal = sum_of_blocks(signals)
        if mask is not None:
            signal = ops.where(mask[..., None], signal, ops.zeros_like(signal))
        return inputs + signal

    def _count(self, shape, axis, batch, start_index, mask):
        """Returns steps that differ by row: unmasked ones, or from a start each."""
        if mask is not None:
            steps = positions_from_mask(ops.moveaxis(mask, axis, -1))
            steps = ops.moveaxis(steps, -1, axis)
        else:
            steps = _align(ops.arange(shape[axis], dtype="int32"), (axis,), shape)
        if _rank(start_index):
            start_index = _align(start_index, (batch,), shape)
        return steps + start_index

    def compute_output_spec(self, inputs, start_index=0, positions=None, mask=None):
        # Keras would infer this by a call, with a sparse tensor for what it
        # takes to be sparse, such as `embedding * 8.0`.
        self._check_call(inputs, start_index, positions, mask)
        return keras.KerasTensor(inputs.shape, dtype=self.compute_dtype)

    def compute_output_shape(self, input_shape):
        return input_shape

    def get_config(self):
        own = asdict(self.settings)
        own.update(axis=self.axis, skip_masked=self.skip_masked)
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in own.items()}
        return {**super().get_config(), **plain}

    def _axes_of(self, shape):
        """Returns the positional axes of inputs of a shape and their batch axis."""
        rank = len(shape)
        if self._axes > 1 and rank == 3:
            return (1,) * self._axes, 0  # a flattened grid
        axes = [self.axis] if self._axes == 1 else self.axis
        axes = [axis + rank if axis < 0 else axis for axis in axes]
        if rank < self._axes + 2:
            raise ValueError(
                f"`inputs` must have a rank of at least {self._axes + 2}: batch, "
                f"{self._axes} positional axes, channels. Received: "
                f"inputs.shape={tuple(shape)}"
            )
        if len(set(axes)) < len(axes) or not all(0 <= a < rank - 1 for a in axes):
            raise ValueError(
                "`axis` must name different axes of `inputs` before the last. "
                f"Received: axis={self.axis}, inputs.shape={tuple(shape)}"
            )
        return tuple(axes), next(a for a in range(rank) if a not in axes)

    def _check_call(self, inputs, start_index, positions, mask):
        """Checks what can be seen of a call's arguments.

        Returns:
            `start_index` as an int or an int32 tensor; `None` or a list of
            positions with the axes of the inputs that theirs are; the mask if
            it is of use, else `None`.
        """
        dtype = keras.backend.standardize_dtype(inputs.dtype)
        if dtype not in FLOATS:
            raise TypeError(
                f"`inputs` must be of a floating dtype, one of {FLOATS}. Received: "
                f"inputs.dtype={dtype}"
            )
        shape = tuple(inputs.shape)
        axes, batch = self._axes_of(shape)
        plain_zero = isinstance(start_index, int) and start_index == 0
        if isinstance(start_index, bool):
            plain_zero = False
        if positions is not None and not plain_zero:
            raise ValueError(
                "`start_index` must be left at 0 when `positions` is given. Received: "
                f"start_index={start_index}"
            )
        if self._axes > 1 and not plain_zero:
            raise ValueError(
                "`start_index` is for one axis only. Received: "
                f"start_index={start_index}, axis={self.axis}"
            )
        if not plain_zero:
            start_index = self._check_start_index(start_index, shape, axes[0], batch)
        if positions is not None:
            positions = self._check_positions(positions, shape, axes, batch)
        elif self._axes > 1 and len(shape) == 3:
            raise ValueError(
                "`positions` must be given for inputs of rank 3, a flattened grid, "
                f"with several axes. Received: inputs.shape={shape}, "
                f"axis={self.axis}, positions=None"
            )
        return start_index, positions, self._check_mask(inputs, mask, axes[0])

    def _check_start_index(self, start_index, shape, axis, batch):
        if isinstance(start_index, (int, np.integer)):
            allowed = "an integer inside int32, a scalar or one for each batch row"
            start_index = check_integer(
                start_index, "start_index", INT32_MIN, INT32_MAX, allowed
            )
            check_steps(start_index, shape[axis] or 0)
            return start_index
        start_index = check_positions(start_index, "start_index", floats=False)
        if _rank(start_index) > 1:
            raise ValueError(
                "`start_index` must be a scalar or one integer for each batch row, "
                f"({shape[batch]},). Received: "
                f"start_index.shape={tuple(start_index.shape)}"
            )
        if _rank(start_index):
            check_sizes(start_index, (batch,), shape, "start_index")
        if not keras.utils.is_keras_tensor(start_index):
            start_index = ops.cast(start_index, "int32")
        return start_index

    def _check_positions(self, positions, shape, axes, batch):
        if self._axes == 1:
            positions = (positions,)
        elif not isinstance(positions, (tuple, list)) or len(positions) != self._axes:
            raise ValueError(
                f"`positions` must be a sequence of {self._axes} tensors, one for "
                f"each axis. Received: positions={positions!r}"
            )
        # An entry tells by its rank which axes of the inputs it has.
        grid = (batch, *sorted(set(axes)))
        entries = []
        for p, axis in zip(positions, axes, strict=True):
            p = check_positions(p)
            kinds = {1: (axis,), 2: (batch, axis), len(grid): grid}
            if _rank(p) not in kinds:
                names = ["(length,)", "(batch, length)", "(batch, *grid)"]
                raise ValueError(
                    "`positions` must have the shape "
                    f"{' or '.join(names[: len(kinds)])}. Received: "
                    f"positions.shape={tuple(p.shape)}, inputs.shape={shape}"
                )
            dims = kinds[_rank(p)]
            check_sizes(p, dims, shape, "positions")
            entries.append((p, dims))
        return entries

    def _check_mask(self, inputs, mask, axis):
        if not self.skip_masked:
            return None
        if mask is None:
            # Keras passes a mask on only while there is one tensor argument.
            mask = getattr(inputs, "_keras_mask", None)
        if mask is None or keras.utils.is_keras_tensor(mask):
            return None
        mask = check_ids(mask, "mask")
        if not axis < _rank(mask) < len(inputs.shape):
            raise ValueError(
                "`mask` must have the leading axes of `inputs`, the positional one "
                f"included. Received: mask.shape={tuple(mask.shape)}, "
                f"inputs.shape={tuple(inputs.shape)}, axis={self.axis}"
            )
        check_sizes(mask, range(_rank(mask)), inputs.shape, "mask")
        return ops.cast(mask, "bool")


def _check_axis(axis):
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    allowed = "an int other than -1, the channels, or a tuple of such ints"
    axes = [check_integer(a, "axis", INT32_MIN, INT32_MAX, allowed) for a in axes]
    if not axes or -1 in axes or len(set(axes)) < len(axes):
        raise ValueError(
            f"`axis` must be {allowed}, all different. Received: axis={axis}"
        )
    return axes[0] if len(axes) == 1 else tuple(axes)


def _align(x, dims, shape):
    """Returns `x` with the rank of `shape`, each of its axes where `dims` says.

    A size that is known only in the graph fails there if it differs: a reshape
    stretches nothing.
    """
    dims = list(dims)
    if dims != sorted(dims):
        x = ops.transpose(x, sorted(range(len(dims)), key=dims.__getitem__))
    return ops.reshape(x, [n if d in dims else 1 for d, n in enumerate(shape)])


def _rank(x):
    return len(getattr(x, "shape", ()))
