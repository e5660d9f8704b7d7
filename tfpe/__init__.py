"""Sinusoidal positional encodings for Keras: exact, fast, in every convention."""

from tfpe import migration, tensor2tensor
from tfpe.conventions import CONVENTIONS
from tfpe.embedding import SinusoidalEmbedding
from tfpe.identification import identify
from tfpe.layer import SinusoidalPositionalEncoding
from tfpe.layouts import layout_permutation
from tfpe.positions import positions_from_mask, positions_from_segments
from tfpe.signal import timing_signal, timing_signal_at
from tfpe.spectra import timescales
from tfpe.table import shift_matrix

__version__ = "0.2.0"

__all__ = [
    "CONVENTIONS",
    "SinusoidalEmbedding",
    "SinusoidalPositionalEncoding",
    "identify",
    "layout_permutation",
    "migration",
    "positions_from_mask",
    "positions_from_segments",
    "shift_matrix",
    "tensor2tensor",
    "timescales",
    "timing_signal",
    "timing_signal_at",
]
