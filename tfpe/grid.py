"""The axes of a layer's inputs, and the arguments that must fit them."""

from typing import NamedTuple

import numpy as np
from keras import ops

from tfpe.arguments import check_ids, check_positions, check_steps
from tfpe.settings import INT32_MAX, INT32_MIN, check_integer


class Grid(NamedTuple):
    """Where the positional axes and the batch axis of some inputs stand.

    `shape` is that of the inputs, with `None` or a tensor for a size that is
    known only later. In a flattened grid all positional axes are axis 1.
    """

    shape: tuple
    axes: tuple[int, ...]
    batch: int

    @classmethod
    def of(cls, shape, axis):
        """Returns the `Grid` of inputs of `shape` for a layer's `axis`."""
        shape, rank = tuple(shape), len(shape)
        axes = (axis,) if isinstance(axis, int) else axis
        if len(axes) > 1 and rank == 3:
            return cls(shape, (1,) * len(axes), 0)
        if rank < len(axes) + 2:
            raise ValueError(
                f"`inputs` must have a rank of at least {len(axes) + 2}, a batch axis, "
                f"{len(axes)} positional and the channels. Received: "
                f"inputs.shape={shape}"
            )
        found = tuple(a + rank if a < 0 else a for a in axes)
        if len(set(found)) < len(found) or not all(0 <= a < rank - 1 for a in found):
            raise ValueError(
                "`axis` must name different axes of `inputs` before the last. "
                f"Received: axis={axis}, inputs.shape={shape}"
            )
        return cls(shape, found, next(a for a in range(rank) if a not in found))

    @property
    def is_flattened(self):
        return len(self.axes) > len(set(self.axes))

    def check_start_index(self, start_index):
        """Returns `start_index` as an int or an int32 tensor of rank 0 or 1."""
        several = len(self.axes) > 1
        if several and not is_plain_zero(start_index):
            raise ValueError(
                "`start_index` is for one axis only. Received: "
                f"start_index={start_index} with {len(self.axes)} positional axes"
            )
        length = self.shape[self.axes[0]]
        length = length if isinstance(length, int) else 0
        if isinstance(start_index, (int, np.integer)):
            allowed = "an integer inside int32, a scalar or one for each batch row"
            start_index = check_integer(
                start_index, "start_index", INT32_MIN, INT32_MAX, allowed
            )
            check_steps(start_index, length)
            return start_index
        start_index = check_positions(start_index, "start_index", False, length)
        if rank(start_index) > 1:
            raise ValueError(
                "`start_index` must be a scalar or one integer for each batch row, "
                f"({self.shape[self.batch]},). Received: "
                f"start_index.shape={tuple(start_index.shape)}"
            )
        if rank(start_index):
            self._check_sizes(start_index, (self.batch,), "start_index")
        return start_index

    def check_positions(self, positions):
        """Returns, for each positional axis, steps and the axes that theirs are."""
        count = len(self.axes)
        if count == 1:
            positions = (positions,)
        elif not isinstance(positions, (tuple, list)) or len(positions) != count:
            raise ValueError(
                f"`positions` must be a sequence of {count} tensors, one for each "
                f"axis. Received: positions={positions!r}"
            )
        grid = (self.batch, *sorted(set(self.axes)))
        entries = []
        for steps, axis in zip(positions, self.axes, strict=True):
            steps = check_positions(steps)
            # The rank tells which axes of the inputs the steps have.
            axes = {1: (axis,), 2: (self.batch, axis), len(grid): grid}
            if rank(steps) not in axes:
                shapes = ["(length,)", "(batch, length)", "(batch, *grid)"][: len(axes)]
                raise ValueError(
                    f"`positions` must have the shape {' or '.join(shapes)}. "
                    f"Received: positions.shape={tuple(steps.shape)}, "
                    f"inputs.shape={self.shape}"
                )
            self._check_sizes(steps, axes[rank(steps)], "positions")
            entries.append((steps, axes[rank(steps)]))
        return entries

    def check_mask(self, mask):
        """Returns the mask as 0 and 1; it has leading axes of the inputs."""
        mask = check_ids(mask, "mask")
        if not self.axes[0] < rank(mask) < len(self.shape):
            raise ValueError(
                "`mask` must have the leading axes of `inputs`, the positional one "
                f"included. Received: mask.shape={tuple(mask.shape)}, "
                f"inputs.shape={self.shape}"
            )
        self._check_sizes(mask, range(rank(mask)), "mask")
        return ops.cast(ops.cast(mask, "bool"), "int32")

    def fit(self, x, axes):
        """Returns an argument, whose axes are `axes` of the inputs, aligned.

        Sizes that only the graph knows fail there if they differ.
        """
        sizes = [self.shape[a] for a in axes]
        if not all(isinstance(n, int) for n in (*sizes, *x.shape)):
            # A sum and a reshape would stretch a size of 1, or take (3, 2) for
            # (2, 3); a stack does neither.
            x = ops.sum(ops.stack([x, ops.zeros(sizes, x.dtype)]), axis=0)
        return self.align(x, axes)

    def align(self, x, axes):
        """Returns `x`, whose axes are `axes` of the inputs, ready to broadcast.

        It gets the size 1 along the others; the channels are left out where it
        has none.
        """
        order = sorted(range(len(axes)), key=lambda i: axes[i])
        if order != list(range(len(axes))):
            x = ops.transpose(x, order)
        sizes = [n if a in axes else 1 for a, n in enumerate(self.shape)]
        return ops.reshape(x, sizes if len(sizes) - 1 in axes else sizes[:-1])

    def _check_sizes(self, x, axes, name):
        wanted = tuple(self.shape[a] for a in axes)
        known = [
            (got, want)
            for got, want in zip(x.shape, wanted, strict=True)
            if isinstance(got, int) and isinstance(want, int)
        ]
        if any(got != want for got, want in known):
            raise ValueError(
                f"`{name}` must have the shape {wanted}, as the inputs have it. "
                f"Received: {name}.shape={tuple(x.shape)}, inputs.shape={self.shape}"
            )


def is_plain_zero(start_index):
    return type(start_index) is int and start_index == 0


def rank(x):
    """Returns the rank of a tensor, 0 for an int."""
    return len(getattr(x, "shape", ()))
