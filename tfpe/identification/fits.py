"""Numbers that agree with the waves of a table, and are as round as may be."""

import math
from decimal import Decimal

import numpy as np

from tfpe.identification.waves import TURN, wrapped

# By how much a rounder number may raise chi squared, and what surely tells two
# hypotheses apart.
LITTLE, MUCH = 6, 30
# The first positions that are looked at before any others, near ones first.
NEAR = np.array(sorted(range(-4096, 4097), key=lambda p: (abs(p), p < 0)))
FURTHEST = 1e9


def limit(numbers):
    """Returns the chi squared of `numbers` that six standard errors allow."""
    return numbers + 6 * math.sqrt(2 * numbers) + MUCH


def digits(value):
    """Returns how many digits a number has, less zeros at either end."""
    return len(Decimal(repr(float(value))).normalize().as_tuple().digits)


def roundest(value, agrees, usual=()):
    """Returns a usual number that agrees, or the one of the fewest digits."""
    rounder = (float(f"{value:.{places}e}") for places in range(16))
    return next((v for v in (*usual, *rounder) if agrees(v)), float(value))


def first_positions(waves):
    """Returns the few positions that row 0 is likely to have."""
    frequency = waves.frequency % TURN
    start = waves.phase - waves.frequency * waves.centre

    def variance(first, j=slice(None)):
        arm = waves.centre[j] + first
        known = 1 / waves.phase_weight[j] + arm**2 / waves.frequency_weight[j]
        return known + (waves.rounding(frequency[j]) * first) ** 2

    firsts = []
    for near in NEAR[:129], NEAR:
        off = wrapped(start - frequency * near[:, None])
        misfit = np.sum(off**2 / variance(near[:, None]), axis=1)
        firsts += near[misfit <= limit(len(frequency))][:3].tolist()
        if firsts:
            firsts.append(int(near[misfit.argmin()]))
            break

    # A vernier: the slowest pair says roughly, each faster one more closely.
    first, doubt = 0.0, math.inf
    for j in np.argsort(frequency):
        f = frequency[j]
        if f**2 * waves.frequency_weight[j] < 16:
            continue  # too slow to tell
        off = wrapped(start[j] - f * first)
        if doubt == math.inf:
            first = off / f
            doubt = variance(first, j) / f**2
            continue
        own = variance(first, j)
        both = f**2 * doubt + own
        if f**2 * doubt < 1 and off**2 < 25 * both:
            first += f * doubt / both * off
            doubt *= own / both
    if doubt < math.inf:
        error = 3 * math.sqrt(doubt) + 4 * waves.unit * (1 + abs(first))
        firsts.append(
            roundest(first, lambda v: abs(v - first) <= error, [round(first)])
        )
    return [first for first in dict.fromkeys(firsts) if abs(first) < FURTHEST]


def lines(waves, first, frequency, index):
    """Yields lines `log(timescale) = a + b * index` that may agree.

    Args:
        waves: `Waves`.
        first: the position of row 0.
        frequency: array `(n,)`, less whole turns a row, 0 if too slow to tell.
        index: array `(n,)`, the index of the timescale of each pair.

    Yields:
        Tuples `(a, b, c)`; to an `a` that is off, a `b` that is off by `c`
        times as much belongs.
    """
    error = waves.given(first)[1] ** -0.5
    yield _newton(waves, first, frequency, error, index)
    for slow_to_fast in np.argsort(-index), np.argsort(index):
        unfolded = _unfolded(frequency, error, index, slow_to_fast)
        yield _newton(waves, first, unfolded, error, index)


def _unfolded(frequency, error, index, slow_to_fast):
    """Adds the turns that a line from the slow pairs wants."""
    frequency = frequency.copy()
    sums = np.zeros((2, 3))
    for k in slow_to_fast:
        if np.linalg.matrix_rank(sums[:, :2]) == 2:
            a, b = np.linalg.solve(sums[:, :2], sums[:, 2])
            more = math.exp(min(-a - b * index[k], 30)) - frequency[k]
            frequency[k] += TURN * max(round(more / TURN), 0)
        if frequency[k] > 4 * error[k]:
            row = np.array([1, index[k], -math.log(frequency[k])])
            sums += (frequency[k] / error[k]) ** 2 * np.outer(row[:2], row)
    return frequency


def _newton(waves, first, frequency, error, index):
    """Fits a line to frequencies, then to the phases as well."""
    seen = frequency > 4 * error
    if np.count_nonzero(seen) < 2:
        seen[:] = True
    frequency = np.maximum(frequency, error)
    design = np.stack([np.ones(len(index)), index], axis=1)
    root = np.where(seen, frequency / error, 0.0)
    a, b = np.linalg.lstsq(design * root[:, None], -np.log(frequency) * root)[0]
    for _ in range(20):
        f = np.exp(-np.clip(a + b * index, -30, 690))
        phase, off = waves.left(f, first)
        gradient = waves.phase_weight * waves.arm(first) * phase
        gradient = f * (gradient + waves.frequency_weight * off)
        square = (design * (f / error)[:, None] ** 2).T @ design
        step = np.linalg.lstsq(square, design.T @ gradient)[0]
        step *= min(1, 1 / max(np.abs(step).max(), 1e-300))
        a, b = a - step[0], b - step[1]
        if np.abs(step).max() < 1e-15:
            break
    return a, b, -square[0, 1] / square[1, 1] if square[1, 1] else 0.0


def single_timescale(waves, first):
    """Returns the timescale of a sine that has no cosine."""
    size, values, rows = waves.amplitude, waves.single, waves.rows + first
    # As fine a grid as the first rows can tell apart, then Newton's steps.
    few = slice(128)
    grid = np.linspace(0, TURN, min(16 * int(abs(rows[few]).max()) + 1, 2**16))
    off = values[few] - size * np.sin(np.outer(grid, rows[few]))
    likely = np.argsort(np.sum(off**2, axis=1))[:8]
    weight = waves.single_error**-2
    found = []
    for f in (0.0, *np.sort(grid[likely])):
        for _ in range(8):
            slope = size * rows * np.cos(f * rows)
            off = values - size * np.sin(f * rows)
            total = np.sum(weight * slope**2)
            f += np.sum(weight * slope * off) / total
        found.append((np.sum(weight * off**2), f, total**-0.5))
    # Of those that agree the slowest: others may be a turn a row away.
    best = min(found)[0] + LITTLE
    _, f, error = next(entry for entry in found if entry[0] <= best)
    f = max(f, error)
    return roundest(1 / f, lambda v: abs(1 / v - f) <= 2 * error)
