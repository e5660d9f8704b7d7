"""One tensor in a file, and the types of numbers that NumPy lacks."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np


class UnreadableError(ValueError):
    """A file that cannot be read, and why, in one line."""


@dataclass(frozen=True)
class Tensor:
    """A tensor in a file, which `read` reads.

    Attributes:
        name: str, unique in its file.
        shape: tuple of ints.
        dtype: str, NumPy's name of it, or "bfloat16".
        read: returns the values; bfloat16 ones as float32.
        use: str, where a constant without a name of its own is used; may be empty.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    read: Callable[[], np.ndarray]
    use: str = ""

    @property
    def is_table(self):
        """Whether it may be what `identify` takes."""
        *lengths, channels = [n for n in self.shape if n != 1] or [0]
        sizes = 1 <= len(lengths) <= 3 and min(lengths) >= 8 and channels >= 2
        return sizes and "float" in self.dtype


def values(content, dtype, shape):
    """Returns the array of the raw little-endian bytes of a tensor."""
    count = int(np.prod(shape, dtype="int64"))
    if dtype == "bfloat16":
        # The upper half of a float32.
        array = np.frombuffer(content, "<u2", count).astype("uint32") << 16
        return array.view("float32").reshape(shape)
    return np.frombuffer(content, np.dtype(dtype).newbyteorder("<"), count).reshape(
        shape
    )
