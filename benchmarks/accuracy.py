"""Largest error of the signal, against mpmath, at positions near and far."""

import functools

import ml_dtypes
import mpmath
import numpy as np
from keras import ops

from benchmarks.peers import MAX_TIMESCALE, OURS, peers
from benchmarks.report import table, verdict

PLACES = (512, 2048, 8192, 65_536, 10**6, 16_000_000, 2**31 - 1)
STEPS = 48
CHANNELS = 64
# Without a `start_index`, all positions before must be computed as well.
FURTHEST_FROM_0 = 70_000


def measure(seconds=None, quick=False, places=None):
    """Returns plain rows, one for each dtype and place.

    A peer that cannot be asked for the positions has no error in a row, and one
    that gives NaN has the error None.
    """
    rows = []
    for dtype in ("float32", "float16", "bfloat16"):
        for place in places or PLACES:
            start = min(place - STEPS // 2, 2**31 - STEPS)
            errors = {
                peer.name: _error(peer, start, dtype)
                for peer in peers()
                if peer.takes_positions or place <= FURTHEST_FROM_0
            }
            rounding = _rounding(start, dtype)
            if dtype == "float32":
                limit = 1.6e-7 if start + STEPS <= 65_536 else 3.5e-7
            else:
                # A value so near the middle of two that the float32 signal,
                # which is rounded, lies beyond it.
                limit = rounding + 3.5e-7
            rows.append(
                {
                    "dtype": dtype,
                    "place": place,
                    "errors": errors,
                    "rounding": rounding,
                    "limit": limit,
                    "holds": errors[OURS] is not None and errors[OURS] <= limit,
                }
            )
    return rows


def markdown(rows):
    names = [peer.name for peer in peers()]
    cells = [
        [
            row["dtype"],
            f"{row['place']:,}",
            *(_cell(row["errors"].get(name, "-")) for name in names),
            _cell(row["limit"]),
            verdict(row["holds"]),
            _cell(row["rounding"]),
        ]
        for row in rows
    ]
    columns = ["dtype", "around position", *names, "limit", "holds", "rounding alone"]
    return (
        f"Largest error among {STEPS} positions and {CHANNELS} channels, each peer "
        "against its own formula in mpmath. Rounding alone: the exact signal, "
        "rounded once to the dtype.\n\n" + table(columns, cells)
    )


def _cell(error):
    if isinstance(error, str):
        return error
    return "NaN" if error is None else f"{error:.1e}"


def _error(peer, start, dtype):
    """Returns a peer's largest error from `start` on, or None for NaN."""
    added = peer.make(CHANNELS, dtype)
    # Zeros, so that the sum is the signal.
    if peer.takes_positions:
        inputs = ops.zeros((1, STEPS, CHANNELS), dtype)
        signal = added(inputs, start_index=start)
    else:
        signal = added(ops.zeros((1, start + STEPS, CHANNELS), dtype))
    signal = ops.convert_to_numpy(ops.cast(signal, "float32"))[0, -STEPS:]
    error = np.abs(signal.astype("float64") - exact(start, peer.spectrum)).max()
    return None if np.isnan(error) else float(error)


def _rounding(start, dtype):
    wide = exact(start, "vaswani")
    kind = ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype
    return float(np.abs(wide.astype(kind).astype("float64") - wide).max())


@functools.cache
def exact(start, spectrum):
    """Returns the signal of `STEPS` positions from `start` on, in float64.

    "vaswani" is interleaved and "tensor2tensor" concatenated here.
    """
    pairs = CHANNELS // 2
    signal = np.empty((STEPS, pairs, 2))
    with mpmath.workdps(50):
        for j in range(pairs):
            end = pairs if spectrum == "vaswani" else pairs - 1
            timescale = mpmath.mpf(MAX_TIMESCALE) ** (mpmath.mpf(j) / end)
            for step in range(STEPS):
                cosine, sine = mpmath.cos_sin((start + step) / timescale)
                signal[step, j] = float(sine), float(cosine)
    if spectrum == "tensor2tensor":
        signal = signal.swapaxes(1, 2)
    return signal.reshape(STEPS, CHANNELS)
