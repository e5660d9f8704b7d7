"""The axes of a layer's inputs, and the arguments that must fit them."""

from typing import NamedTuple

from keras import ops

from tfpe._arguments import require_steps
from tfpe._backends import mode
from tfpe._tensor_arguments import rank, require_sizes, shown


class InputAxes(NamedTuple):
    """Which axis of some inputs is the batch and which are positional.

    `shape` is that of the inputs, with `None` or a tensor for a size that is
    known only later. In a flattened grid all positional axes are axis 1.
    """

    shape: tuple
    axes: tuple[int, ...]
    batch: int

    @classmethod
    def of(cls, shape, axis):
        """Returns the `InputAxes` of inputs of `shape` for a layer's `axis`."""
        shape, rank_ = tuple(shape), len(shape)
        axes = (axis,) if isinstance(axis, int) else axis
        if len(axes) > 1 and rank_ == 3:
            return cls(shape, (1,) * len(axes), 0)
        if rank_ < len(axes) + 2:
            hint = ""
            if rank_ == len(axes) + 1:
                hint = " Give a single example a batch axis with `x[None]`."
            if rank_ == 2 and len(axes) == 1:
                hint += (
                    " Or add `tfpe.timing_signal(length, channels)` to a sequence "
                    "(length, channels). One vector an example has no positions: see "
                    "`tfpe.SinusoidalEmbedding` for time steps."
                )
            raise ValueError(
                f"`inputs` must have a rank of at least {len(axes) + 2}, a batch axis, "
                f"{len(axes)} positional and the channels.{hint} Received: "
                f"inputs.shape={shown(shape)}"
            )
        counted = tuple(a + rank_ if a < 0 else a for a in axes)
        different = len(set(counted)) == len(counted)
        if not different or not all(0 <= a < rank_ - 1 for a in counted):
            raise ValueError(
                "`axis` must name different axes of `inputs` before the last, the "
                "channels: `ops.moveaxis(x, 1, -1)` puts channels last. Received: "
                f"axis={axis}, inputs.shape={shown(shape)}"
            )
        return cls(shape, counted, next(a for a in range(rank_) if a not in counted))

    @property
    def is_flattened(self):
        return len(self.axes) > len(set(self.axes))

    @property
    def lengths(self):
        return tuple(self.shape[a] for a in self.axes)

    def require_start_index(self, start_index):
        """Refuses a `start_index` that does not fit the inputs."""
        (length,) = self.lengths
        if isinstance(start_index, int):
            require_steps(start_index, length if isinstance(length, int) else 1)
        elif rank(start_index) > 1:
            raise ValueError(
                "`start_index` must be a scalar or one integer for each batch row, "
                f"{shown((self.shape[self.batch],))}. Received: "
                f"start_index.shape={tuple(start_index.shape)}"
            )
        elif rank(start_index):
            self._require_sizes(start_index, (self.batch,), "start_index")

    def require_positions(self, positions):
        """Refuses `positions`, a tuple, that do not fit the inputs."""
        if self.is_flattened and not positions:
            raise ValueError(
                "`positions` must be given for inputs of rank 3, a flattened grid, "
                "with several axes. Received: positions=None, "
                f"inputs.shape={shown(self.shape)}"
            )
        for steps, axis in zip(positions, self.axes, strict=False):
            allowed = self._axes_of_positions(axis)
            # The rank tells which axes of the inputs the steps have.
            if rank(steps) not in allowed:
                names = ["(length,)", "(batch, length)", "(batch, *grid)"]
                raise ValueError(
                    f"`positions` must have the shape "
                    f"{' or '.join(names[: len(allowed)])}. Received: "
                    f"positions.shape={tuple(steps.shape)}, "
                    f"inputs.shape={shown(self.shape)}"
                )
            self._require_sizes(steps, allowed[rank(steps)], "positions")

    def require_mask(self, mask):
        """Refuses a mask that has not the leading axes of the inputs."""
        if not self.axes[0] < rank(mask) < len(self.shape):
            raise ValueError(
                "`mask` must have the leading axes of `inputs`, the positional one "
                f"included. Received: mask.shape={tuple(mask.shape)}, "
                f"inputs.shape={shown(self.shape)}"
            )
        self._require_sizes(mask, range(rank(mask)), "mask")

    def aligned_positions(self, positions):
        """Returns positions of each axis, ready to broadcast against the inputs."""
        return tuple(
            self.fitted(steps, self._axes_of_positions(axis)[rank(steps)])
            for steps, axis in zip(positions, self.axes, strict=True)
        )

    def fitted(self, x, axes):
        """Checks sizes at run time, then reshapes to broadcast."""
        sizes = [self.shape[a] for a in axes]
        if not all(isinstance(n, int) for n in (*sizes, *x.shape)):
            x = _of_sizes(x, sizes)
        return self.aligned(x, axes)

    def aligned(self, x, axes):
        """Returns `x`, whose axes are `axes` of the inputs, ready to broadcast.

        It gets the size 1 along the others, channels left out where it has none.
        """
        ordered = sorted(axes)
        if ordered != list(axes):
            x = ops.transpose(x, [axes.index(a) for a in ordered])
        # No comprehension over `axes`: torch.compile forgets them with dynamic=True.
        sizes = [1] * len(self.shape)
        for a in ordered:
            sizes[a] = self.shape[a]
        return ops.reshape(x, sizes if len(sizes) - 1 in axes else sizes[:-1])

    def _axes_of_positions(self, axis):
        """Returns, by rank, the axes of the inputs that positions of an axis have."""
        grid = (self.batch, *sorted(set(self.axes)))
        return {1: (axis,), 2: (self.batch, axis), len(grid): grid}

    def _require_sizes(self, x, axes, name):
        wanted = tuple(self.shape[a] for a in axes)
        hint = ""
        if name == "positions" and self.is_flattened:
            hint = (
                " Give one entry for each patch, as `np.meshgrid` makes them, and "
                "concatenate a class token after the layer."
            )
        require_sizes(x, name, wanted, f"inputs.shape={shown(self.shape)}", hint)


def _of_sizes(x, sizes):
    """Returns `x`; fails at run time if its sizes are others.

    A sum and a reshape would stretch a size of 1, or take (3, 2) for (2, 3); a stack
    does neither. TensorFlow would remove a stack with a slice behind it.
    """
    both = ops.stack([x, ops.zeros(sizes, x.dtype)])
    if mode() == "exported":  # ONNX rounds sums of int64
        return ops.take(both, 0, axis=0)
    return ops.sum(both, axis=0)
