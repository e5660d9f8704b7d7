"""Step numbers of sequences that are padded or packed."""

from typing import Any

from keras import ops

from tfpe._arguments import INT32_MAX
from tfpe._tensor_arguments import as_ids


def positions_from_mask(mask: Any) -> Any:
    """Returns the step of each unmasked element, counted from 0.

    `max(cumsum(mask) - 1, 0)` along the last axis: the unmasked steps get
    0, 1, 2, ... wherever the padding stands.

    Args:
        mask: bool or integer tensor `(..., length)`; True or nonzero where a
            step counts.

    Returns:
        int32 tensor of the shape of `mask`.

    Raises:
        ValueError: if `mask` is a scalar.
        TypeError: if `mask` is neither bool nor integer.

    Example:

    >>> import tfpe
    >>> print(tfpe.positions_from_mask([[False, False, True, True, True]]).numpy())
    [[0 0 0 1 2]]
    """
    counted = ops.cast(ops.cast(as_ids(mask, "mask"), "bool"), "int32")
    return ops.maximum(ops.cumsum(counted, axis=-1) - 1, 0)


def positions_from_segments(segment_ids: Any, mask: Any = None) -> Any:
    """Returns the step of each element within its segment, counted from 0.

    A segment is a run of equal ids along the last axis, so an id may come
    again in a later segment.

    Args:
        segment_ids: integer tensor `(..., length)`.
        mask: `None`, or a bool or integer tensor of the same shape; only the
            unmasked steps of a segment are counted.

    Returns:
        int32 tensor of the shape of `segment_ids`.

    Raises:
        ValueError: if `segment_ids` is a scalar or `mask` has another shape.
        TypeError: if an argument is of another type.

    Example:

    >>> import tfpe
    >>> print(tfpe.positions_from_segments([[1, 1, 1, 2, 2, 2]]).numpy())
    [[0 1 2 0 1 2]]
    """
    ids = as_ids(segment_ids, "segment_ids")
    counted = ops.ones_like(ids, dtype="int32")
    if mask is not None:
        mask = as_ids(mask, "mask")
        if len(mask.shape) != len(ids.shape) or any(
            None not in pair and pair[0] != pair[1]
            for pair in zip(mask.shape, ids.shape, strict=True)
        ):
            raise ValueError(
                "`mask` must have the shape of `segment_ids`, "
                f"{tuple(ids.shape)}. Received: mask.shape={tuple(mask.shape)}"
            )
        # A product, so that shapes known only later are checked by then.
        counted = counted * ops.cast(ops.cast(mask, "bool"), "int32")
    changed = ops.cast(ids[..., 1:] != ids[..., :-1], "int32")
    starts = ops.concatenate(
        [ops.ones_like(ids[..., :1], dtype="int32"), changed], axis=-1
    )
    flat_counted = ops.reshape(counted, (-1,))
    before = ops.cumsum(flat_counted) - flat_counted
    # Sorting brings the flattened indices at which runs start to the front, in the
    # order of the runs. A search would take 100 times as long under XLA.
    starts = ops.reshape(starts, (-1,))
    index = ops.cumsum(ops.ones_like(starts)) - 1
    in_order = ops.sort(ops.where(starts > 0, index, INT32_MAX))
    first = ops.take(in_order, ops.cumsum(starts) - 1)
    steps = before + flat_counted - 1 - ops.take(before, first)
    # One more, since JAX forgets the shape of what is taken from nothing.
    steps = ops.pad(ops.maximum(steps, 0), [(0, 1)])
    return ops.take(steps, _flat_index(counted), axis=0)


def _flat_index(x):
    """Returns the row-major index of each element, in the shape of `x`.

    Taking by it undoes a flattening also where the sizes are symbolic.
    """
    size = ops.ones_like(x, dtype="int32")
    index = ops.cumsum(size, axis=-1) - 1
    for axis in reversed(range(len(x.shape) - 1)):
        size = ops.sum(size, axis=axis + 1, keepdims=True)
        index = index + ops.cumsum(size, axis=axis) - size
    return index
