"""Which settings could have made the waves of a table.

An order of the channels, a sign, a first position and a spectrum make a
hypothesis. It is tried on what the rows say of frequencies and phases.
"""

import math
from dataclasses import dataclass, replace

import numpy as np

import tfpe.identification.fits as fits
from tfpe._settings import Settings
from tfpe.conventions import CONVENTIONS
from tfpe.identification.orders import entries_of, orders
from tfpe.identification.waves import TURN
from tfpe.spectra import (
    SPECTRUM_OF_LAYOUT,
    first_timescale,
    spaced,
    steps_to_end,
    timescales,
)

DEFAULT = {**vars(Settings()), "axis": -2}
# A number of so few digits that is right to the last is no accident.
FEW = 3
# Beyond these a timescale is an accident.
SHORTEST, LONGEST = 1e-5, 1e15

NAMED, COUNTED_DOWN = {}, {}
for _entry in CONVENTIONS.values():
    _key = Settings(**_entry.settings), _entry.axis
    NAMED.setdefault(_key, [])
    (NAMED if _entry.step == 1 else COUNTED_DOWN).setdefault(_key, []).append(
        _entry.name
    )
# The shortest and longest timescales that somebody has chosen.
ENDS = list(dict.fromkeys((s.min_timescale, s.max_timescale) for s, _ in NAMED))


def names_counted_down(settings):
    """Returns the conventions of settings wherever their rows start.

    Those whose own code counts down come first.
    """
    plain = {k: v for k, v in settings.items() if k not in ("first_position", "axis")}
    key = replace(Settings(**plain), amplitude=1.0), settings.get("axis", -2)
    return (*COUNTED_DOWN.get(key, ()), *NAMED.get(key, ()))


@dataclass(frozen=True)
class Found:
    """Settings that agree with the rows.

    Attributes:
        settings: dict.
        misfit: float, their chi squared.
        width: float, what to add to it for how much the rounding allows.
        rounding: float, what code that rounds them may leave of the table.
        names: tuple of the conventions that they are.
    """

    settings: dict
    misfit: float
    width: float
    rounding: float
    names: tuple = ()

    @property
    def key(self):
        return tuple(self.settings.items())

    @property
    def misfits(self):
        """Chi squared, without and with what is added."""
        return np.array([self.misfit, self.misfit + self.width])

    def rank(self):
        """Returns what is low for settings that are simple and agree well.

        A digit more must make the rows ten times as likely.
        """
        digits = 0
        for name, value in self.settings.items():
            numbers = name not in ("layout", "axis") and not isinstance(value, str)
            if numbers and not self.names:
                digits += sum(map(fits.digits, np.ravel(value)))
        return self.misfits[1] / 2 + 2 * len(self.settings) + math.log(10) * digits


def hypotheses(table, first_position=None):
    """Returns a `Found` for each way to say what made a table.

    Args:
        table: float64 array `(*lengths, channels)`.
        first_position: the position of row 0, or `None`.

    Returns:
        list of `Found`, or `None` if the channels are no pairs that turn evenly.
    """
    *lengths, channels = table.shape
    measured = [
        (order, order.measure(table)) for order in orders(channels, lengths)
    ]
    if not any(waves for _, waves in measured):
        return None
    # Slow channels look like pairs in any order; the right one leaves least.
    least = min((waves.noise for _, waves in measured if waves), default=0.0)
    trials = []
    for order, waves in measured:
        if not waves or waves.noise > 1.5 * least + waves.finest():
            continue
        for signed in (waves, waves.turned()):
            firsts = [first_position]
            if first_position is None:
                firsts = fits.first_positions(signed)
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
        self.limit = fits.limit(2 * self.pairs + len(waves.single))
        # Less whole turns a row. Too slow to be seen, from either side, is 0.
        frequency, weight = waves.given(first)
        frequency, self.error = frequency % TURN, weight**-0.5
        seen = np.minimum(frequency, TURN - frequency) > 4 * self.error
        self.frequency = np.where(seen, frequency, 0.0)

    def misfit(self, timescale, slack=1.0):
        """Returns chi squared of timescales, which code may have rounded."""
        frequency = 1 / timescale
        misfit = self.waves.misfit(frequency[: self.pairs], self.first, slack)
        if self.order.single:
            last = frequency[-1] if len(frequency) > self.pairs else 0.0
            misfit += self.waves.single_misfit(last, self.first, slack)
        return misfit

    def width(self, timescale):
        """Returns what to add to chi squared for how much the rounding allows."""
        frequency = 1 / timescale
        width = self.waves.width(frequency[: self.pairs], self.first)
        if len(frequency) > self.pairs:
            width += self.waves.single_width(frequency[-1], self.first)
        return width

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
            timescale = timescales(self.channels, axes=self.axes, **plain)[self.index]
            if self.misfit(timescale) <= self.limit:
                yield self._found(timescale, plain, tuple(names))

    def geometric(self):
        """Yields each way to say a geometric spectrum that agrees."""
        if not self.waves.turn():
            return
        line = None
        for spectrum in "vaswani", "geometric", "tensor2tensor":
            spaced = {ends: self._spaced(spectrum, *ends) for ends in ENDS}
            agreeing = [e for e in ENDS if self.misfit(spaced[e]) <= self.limit]
            if not agreeing:
                line = line or self._line()
                if line is None:
                    return
                ends = self._round_ends(spectrum, *line)
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
            fits.roundest(1 / f, lambda v, f=f, e=e: abs(1 / v - f) <= 2 * e)
            for f, e in zip(frequency, self.error, strict=True)
        ]
        if len(self.index) > self.pairs:
            values.append(fits.single_timescale(self.waves, self.first))
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
        misfits = self.misfit(timescale), self.width(timescale)
        return Found(plain, *misfits, np.sqrt(np.mean(rounding**2)), names)

    def _amplitude(self):
        size = abs(self.waves.amplitude)
        error = 4 * self.waves.amplitude_error + 2.0**-50 * size
        usual = 1.0, self.channels**0.5, self.channels**-0.5, (2 / self.channels) ** 0.5
        # Constant cosines are all rounded to the same side.
        usual = [
            v for v in usual if abs(v - size) <= error + self.waves.last_bit * size
        ]
        roundest = fits.roundest(size, lambda v: abs(v - size) <= error)
        return math.copysign([*usual, roundest][0], self.waves.amplitude)

    def _spaced(self, spectrum, low, high):
        """Returns the timescales of a spectrum with these ends."""
        scales = spaced(
            spectrum, low, high, self.channels, self.axes, int(self.index[-1]) + 1
        )
        return scales[self.index]

    def _steps(self, spectrum):
        pairs = int(self.index[-1]) + 1
        return float(steps_to_end(spectrum, self.channels, self.axes, pairs))

    def _round_ends(self, spectrum, a, b, follows):
        """Returns the roundest ends of the spectrum near a line."""
        steps = self._steps(spectrum)
        sign = round(math.log(first_timescale(spectrum, math.e)))
        best = self.misfit(np.exp(a + b * self.index), 0.0)

        def agrees(value, line, allowed):
            slack = float(fits.digits(value) <= FEW)
            return self.misfit(np.exp(line), slack) <= best + allowed

        def low_agrees(low):
            moved = sign * math.log(low) - a
            line = a + moved + (b + follows * moved) * self.index
            return agrees(low, line, fits.LITTLE)

        low = fits.roundest(math.exp(sign * a), low_agrees, [1.0])
        first = sign * math.log(low)
        slope = b + follows * (first - a)

        def high_agrees(high):
            line = first + math.log(high / low) / steps * self.index
            return agrees(high, line, 2 * fits.LITTLE)

        return low, fits.roundest(
            low * math.exp(slope * steps), high_agrees, [10_000.0]
        )

    def _line(self):
        index = self.index[: self.pairs]
        for line in fits.lines(self.waves, self.first, self.frequency, index):
            a, b, _ = line
            if self.misfit(np.exp(a + b * self.index)) <= self.limit:
                return line
        return None
