"""Which settings could have made the waves of a table.

An order of the channels, a sign, a first position and a spectrum make a hypothesis.
`Waves.misfit` finds, accepts, rounds and ranks them.
"""

import math
from dataclasses import dataclass

import numpy as np

from tfpe._settings import Settings
from tfpe.identification._names import ENDS, NAMED
from tfpe.identification._orders import entries_of, orders
from tfpe.identification._waves import (
    LITTLE,
    TURN,
    digits,
    limit,
    roundest,
)
from tfpe.spectra import (
    SPECTRUM_OF_LAYOUT,
    first_timescale,
    spaced,
    steps_to_end,
)

DEFAULT = {**vars(Settings()), "axis": -2}
# A number of so few digits that is right to the last is no accident.
FEW = 3
# Beyond these a timescale is an accident.
SHORTEST, LONGEST = 1e-5, 1e15
# Below it two equations are one, up to rounding.
SINGULAR = 2 * np.finfo(float).eps


@dataclass(frozen=True)
class Found:
    """Settings that agree with the rows.

    Attributes:
        settings: dict.
        misfits: array `(2,)`, their chi squared, and with `Waves.width` added.
        rounding: float, what code that rounds them may leave of the table.
        names: tuple of the conventions that they are.
    """

    settings: dict
    misfits: np.ndarray
    rounding: float
    names: tuple = ()

    @property
    def key(self):
        return tuple(self.settings.items())

    @property
    def free(self):
        """Whether each timescale is free, which fits better by chance."""
        return isinstance(self.settings.get("spectrum"), tuple)

    @property
    def rank(self):
        """Sort key: lower is simpler and fits better.

        A digit more must make the rows ten times as likely.
        """
        count = 0
        for name, value in self.settings.items():
            numbers = name not in ("layout", "axis") and not isinstance(value, str)
            if numbers and not self.names:
                count += sum(map(digits, np.ravel(value)))
        return self.misfits[1] / 2 + 2 * len(self.settings) + math.log(10) * count


def hypotheses(table, first_position=None):
    """Returns a list of `Found`, one for each way to say what made a table.

    Args:
        table: array `(*lengths, channels)`.
        first_position: the position of row 0, or `None`.
    """
    *lengths, channels = table.shape
    measured = [(order, order.measure(table)) for order in orders(channels, lengths)]
    measured = [(order, waves) for order, waves in measured if waves]
    # Slow channels look like pairs in any order; the right one leaves least.
    least = min((waves.noise for _, waves in measured), default=0.0)
    trials = []
    for order, waves in measured:
        if waves.noise > 1.5 * least + waves.last_bit:
            continue
        for signed in waves, waves.negated():
            firsts = [first_position]
            if first_position is None:
                firsts = signed.first_positions()
            trials += [Trial(order, signed, first) for first in firsts]
    found = [f for trial in trials for f in (*trial.named(), *trial.geometric())]
    if not found or channels < 10:  # few points agree with many a line
        found += [f for trial in trials for f in trial.sequence()]
    return found


class Trial:
    """An order, a sign and a first position, to be tried with every spectrum."""

    def __init__(self, order, waves, first):
        self.order, self.waves, self.first = order, waves, first
        self.channels, self.axes = order.channels, len(order.axes)
        self.index, self.pairs = order.index, len(waves.frequency)
        self.limit = limit(2 * self.pairs + len(waves.single))
        # Less whole turns a row. Too slow to be seen, from either side, is 0.
        frequency, self.error = waves.given(first)
        frequency = frequency % TURN
        seen = np.minimum(frequency, TURN - frequency) > 4 * self.error
        self.frequency = np.where(seen, frequency, 0.0)

    def misfit(self, timescale, slack=1.0):
        """Returns chi squared of timescales, which code may have rounded."""
        return self.waves.misfit(1 / timescale, self.first, slack)

    def named(self):
        """Yields the conventions that agree."""
        for (settings, axis), names in NAMED.items():
            if (axis, settings.first_position) != (
                self.order.settings.get("axis", -2),
                self.first,
            ):
                continue
            plain = vars(settings)
            order = {k: plain[k] for k in ("layout", "cosine_first", "odd_channel")}
            if entries_of(self.channels, self.axes, **order) != self.order.entries:
                continue
            spectrum = settings.spectrum or SPECTRUM_OF_LAYOUT[settings.layout]
            ends = settings.min_timescale, settings.max_timescale
            timescale = self._spaced(spectrum, *ends)
            if self.misfit(timescale) <= self.limit:
                yield self._found(timescale, plain, tuple(names))

    def geometric(self):
        """Yields each way to say a geometric spectrum that agrees."""
        if not self.waves.turn():
            return
        line = None
        # Not the order of `SPECTRA`: of those that tie, the first is the answer.
        for spectrum in "vaswani", "geometric", "tensor2tensor":
            spaced = {ends: self._spaced(spectrum, *ends) for ends in ENDS}
            agreeing = [e for e in ENDS if self.misfit(spaced[e]) <= self.limit]
            if not agreeing:
                line = self._line() if line is None else line
                if line is None:
                    return
                ends = self._round_ends(spectrum, line)
                if min(ends) < SHORTEST or max(ends) > LONGEST:
                    continue
                spaced[ends] = self._spaced(spectrum, *ends)
                agreeing = [ends]
            for low, high in agreeing:
                ends = {"min_timescale": low, "max_timescale": high}
                yield self._found(spaced[low, high], {"spectrum": spectrum, **ends})

    def sequence(self):
        """Yields the timescales one by one, if they agree."""
        if not self.waves.turn() or self.axes > 1 or self._is_fourier():
            return
        frequency = np.maximum(self.frequency, self.error)
        values = [
            roundest(1 / f, lambda v, f=f, e=e: abs(1 / v - f) <= 2 * e)
            for f, e in zip(frequency, self.error, strict=True)
        ]
        if len(self.index) > self.pairs:
            values.append(self._single_timescale())
        if self.misfit(np.array(values)) <= self.limit:
            yield self._found(np.array(values), {"spectrum": tuple(values)})

    def _is_fourier(self):
        """Returns whether the rows are those of a discrete Fourier transform."""
        turns = self.frequency * (self.waves.rows[-1] + 1) / TURN
        return self.pairs > 3 and np.abs(turns - np.round(turns)).max() < 1e-3

    def _found(self, timescale, spectrum, names=()):
        settings = {**DEFAULT, **self.order.settings, **spectrum}
        if settings["spectrum"] == SPECTRUM_OF_LAYOUT.get(settings["layout"]):
            settings["spectrum"] = None
        if self.channels % 2 == 0:
            settings["odd_channel"] = "zero"  # it makes no difference
        settings["first_position"] = self.first
        settings["amplitude"] = self._amplitude()
        plain = {k: v for k, v in settings.items() if v != DEFAULT[k]}
        arm = np.sqrt(np.mean((self.waves.rows + self.first) ** 2))
        rounding = self.waves.rounding(1 / timescale) * abs(self.waves.amplitude) * arm
        misfit, width = (
            self.misfit(timescale),
            self.waves.width(1 / timescale, self.first),
        )
        misfits = np.array([misfit, misfit + width])
        return Found(plain, misfits, np.sqrt(np.mean(rounding**2)), names)

    def _amplitude(self):
        size, error = abs(self.waves.amplitude), 4 * self.waves.amplitude_error
        # Constant cosines are all rounded to the same side.
        error += self.waves.last_bit / 2 * size
        usual = 1.0, self.channels**0.5, self.channels**-0.5, (2 / self.channels) ** 0.5
        size = roundest(size, lambda v: abs(v - size) <= error, usual)
        return math.copysign(size, self.waves.amplitude)

    def _spaced(self, spectrum, low, high):
        """Returns the timescales of a spectrum with these ends."""
        pairs = int(self.index[-1]) + 1
        return spaced(spectrum, low, high, self.channels, self.axes, pairs)[self.index]

    def _round_ends(self, spectrum, line):
        """Returns the roundest ends of the spectrum near a line."""
        pairs = int(self.index[-1]) + 1
        steps = float(steps_to_end(spectrum, self.channels, self.axes, pairs))
        sign = round(math.log(first_timescale(spectrum, math.e)))
        best = self.misfit(self._on(line), 0.0)

        def from_low(low):
            return self._newton((sign * math.log(low), line[1]), [1])

        def low_agrees(low):
            slack = float(digits(low) <= FEW)
            return self.misfit(self._on(from_low(low)), slack) <= best + LITTLE

        def high_agrees(high):
            slack = float(digits(high) <= FEW)
            there = first, math.log(high / low) / steps
            return self.misfit(self._on(there), slack) <= best + 2 * LITTLE

        low = roundest(math.exp(sign * line[0]), low_agrees, [1.0])
        first, slope = from_low(low)
        high = low * math.exp(slope * steps)
        return low, roundest(high, high_agrees, [10_000.0])

    def _on(self, line):
        """Returns the timescales of a line, `exp(a + b * index)`."""
        return np.exp(line[0] + line[1] * self.index)

    def _line(self):
        """Returns a line of logarithmic timescales that agrees, or `None`."""
        index = self.index[: self.pairs]
        for slow_to_fast in (), np.argsort(-index), np.argsort(index):
            frequency = self._unfolded(slow_to_fast)
            seen = frequency > 4 * self.error
            if np.count_nonzero(seen) < 2:
                seen[:] = True
            frequency = np.maximum(frequency, self.error)
            weight = np.where(seen, frequency / self.error, 0.0)
            slope, start = np.polyfit(index, -np.log(frequency), 1, w=weight)
            line = self._newton((start, slope), [0, 1])
            if self.misfit(self._on(line)) <= self.limit:
                return line
        return None

    def _unfolded(self, slow_to_fast):
        """Adds the turns a row that a line from the slow pairs wants."""
        frequency, index = self.frequency.copy(), self.index
        # The weighted sums of 1, x, x * x, y and x * y, in plain numbers for speed.
        n = sx = sxx = sy = sxy = 0.0
        for k in slow_to_fast:
            x, f, error = map(float, (index[k], frequency[k], self.error[k]))
            determinant = n * sxx - sx**2
            if determinant > SINGULAR * (n + sxx) ** 2:
                start = (sxx * sy - sx * sxy) / determinant
                slope = (n * sxy - sx * sy) / determinant
                more = math.exp(min(start + slope * x, 30)) - f
                frequency[k] = f = f + TURN * max(round(more / TURN), 0)
            if f > 4 * error:
                weight, y = (f / error) ** 2, math.log(f)
                n, sx, sxx = n + weight, sx + weight * x, sxx + weight * x * x
                sy, sxy = sy + weight * y, sxy + weight * x * y
        return frequency

    def _newton(self, line, free):
        """Returns the line of the least misfit; only what is `free` of it is fitted."""
        waves, line, index = self.waves, np.array(line), self.index[: self.pairs]
        design = np.stack([np.ones(len(index)), index], axis=1)[:, free]
        arm = waves.centre + self.first
        for _ in range(20):
            f = np.exp(-np.clip(line[0] + line[1] * index, -30, 690))
            phase, off = waves.off(f, self.first)
            gradient = arm * phase / waves.phase_variance
            gradient = f * (gradient + off / waves.frequency_variance)
            square = (design * (f / self.error)[:, None] ** 2).T @ design
            step = np.linalg.lstsq(square, design.T @ gradient)[0]
            step *= min(1, 1 / max(np.abs(step).max(), 1e-300))
            line[free] -= step
            if np.abs(step).max() < 1e-15:
                break
        return line

    def _single_timescale(self):
        """Returns the timescale of a sine that has no cosine."""
        values, rows = self.waves.single, self.waves.rows + self.first
        # As fine a grid as the first rows can tell apart, then Newton's steps.
        few = slice(128)
        grid = np.linspace(0, TURN, min(16 * int(abs(rows[few]).max()) + 1, 2**16))
        off = values[few] - np.sin(np.outer(grid, rows[few]))
        likely = np.argsort(np.sum(off**2, axis=1))[:8]
        variance = self.waves.single_variance
        found = []
        for f in (0.0, *np.sort(grid[likely])):
            for _ in range(8):
                slope, off = rows * np.cos(f * rows), values - np.sin(f * rows)
                f += np.sum(slope * off) / np.sum(slope**2)
            error = math.sqrt(variance / np.sum(slope**2))
            found.append((np.sum(off**2) / variance, f, error))
        # Of those that agree the slowest: others may be a turn a row away.
        best = min(found)[0] + LITTLE
        _, f, error = next(entry for entry in found if entry[0] <= best)
        f = max(f, error)
        return roundest(1 / f, lambda v: abs(1 / v - f) <= 2 * error)
