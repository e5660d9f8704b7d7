"""What the rows of a table say of its pairs of channels, and how settings miss it.

A pair of channels is one number that turns, `cosine + 1j * sine`; its angle is a
straight line over the rows. Least squares give each pair a free wave, with any
frequency and phase. What others leave of the `n` rows beyond it is

    amplitude**2 * sum(n * dphase**2 + s * dfrequency**2)

with `s = sum((row - mean row)**2)`. Divided by the variance of the noise that is chi
squared, `Waves.misfit`: the one measure by which settings are judged. It needs the
table no more.
"""

import math
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np

TURN = 2 * math.pi
# More rows would only make sharper what is sharp already: at most so many rows and
# numbers, but never fewer rows than this.
ROWS, NUMBERS, FEWEST_ROWS = 2048, 2**20, 512
# The part of the amplitude, root mean square, that may be left unexplained.
LARGEST_NOISE = 0.03
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


def wrapped(angle):
    """Returns angles in radian, less whole turns, from -pi to pi."""
    return angle - TURN * np.round(angle / TURN)


@dataclass(frozen=True)
class Waves:
    """The pairs of channels of a table, each `amplitude * exp(1j * angle)`.

    The angle is `phase + frequency * (row - centre)`; at the `centre` the errors of
    phase and frequency are independent. An odd number of channels has a `single` one.
    Variances, `single` and `noise` are relative to the amplitude.
    """

    rows: np.ndarray
    amplitude: float
    amplitude_error: float
    frequency: np.ndarray
    frequency_variance: np.ndarray
    phase: np.ndarray
    phase_variance: np.ndarray
    centre: np.ndarray
    single: np.ndarray
    single_variance: float
    # What the waves leave of the table, root mean square; the last bit of its
    # values; and that of the arithmetic that made it.
    noise: float
    last_bit: float
    unit: float

    def negated(self):
        """Returns the same waves with the other sign of the amplitude."""
        return replace(
            self,
            amplitude=-self.amplitude,
            phase=self.phase + np.pi,
            single=-self.single,
        )

    def turn(self):
        """Returns whether any pair turns: rows all the same tell no timescale."""
        return bool(np.any(self.frequency**2 > 16 * self.frequency_variance))

    def off(self, frequency, first):
        """Returns by how much given waves are off in phase and frequency."""
        # Whole turns a row cannot be seen in the rows; `first` turns by them.
        shown = frequency - TURN * np.round((frequency - self.frequency) / TURN)
        phase = self.phase - shown * self.centre - frequency * first
        return wrapped(phase), self.frequency - shown

    def misfit(self, frequency, first, slack=1.0):
        """Returns chi squared of given waves, 2 a pair and 1 a single row if right.

        Args:
            frequency: array `(n,)`, in radian per position, one for each pair; one
                more for the single channel, or it has to be 0.
            first: the position of row 0.
            slack: 1.0 if code may have rounded the frequencies.
        """
        off, variance, by = self._off(frequency, first, slack)
        pairs = 2 * len(self.phase)
        both, each, weight = (x[:pairs].reshape(2, -1) for x in (off, by, 1 / variance))
        # One error of a frequency moves both; the likeliest is taken away.
        error = np.sum(weight * each * both, 0) / (1 + np.sum(weight * each**2, 0))
        chi = np.sum(weight * (both - error * each) ** 2) + np.sum(error**2)
        return chi + np.sum((off**2 / (variance + by**2))[pairs:])

    def width(self, frequency, first):
        """Returns what to add to the misfit before two of them are compared.

        Rounding allows some more than others, and the one that it allows most would
        always win; so this is the logarithm of how much it allows.
        """
        _, variance, by = self._off(frequency, first)
        pairs = len(self.phase)
        phase, off, single = np.split(by**2 / variance, [pairs, 2 * pairs])
        return np.sum(np.log1p(phase + off)) + np.sum(np.log1p(single))

    def _off(self, frequency, first, slack=1.0):
        """Returns errors, their variance, and what rounded frequencies add."""
        pairs = frequency[: len(self.phase)]
        error = slack * self.rounding(pairs)
        found = [
            (*self.off(pairs, first),),
            (self.phase_variance, self.frequency_variance),
            (error * (self.centre + first), error),
        ]
        if len(self.single):
            last = frequency[-1] if len(frequency) > len(pairs) else 0.0
            arm = self.rows + first
            found[0] += (self.single - np.sin(last * arm),)
            found[1] += (np.full(len(arm), self.single_variance),)
            found[2] += (slack * self.rounding(last) * arm,)
        return map(np.concatenate, found)

    def rounding(self, frequency):
        """Returns the standard error of frequencies that code has worked out.

        Most code takes the exponential of a rounded logarithm.
        """
        frequency = np.clip(frequency, 1e-30, TURN)
        return 2 * self.unit * frequency * (2 + np.abs(np.log(frequency)))

    def given(self, first):
        """Returns the best frequencies if row 0 is at `first`, and their errors."""
        arm = self.centre + first
        phase, _ = self.off(self.frequency, first)
        total = self._variance(arm)
        frequency = self.frequency + arm * phase * self.frequency_variance / total
        return frequency, np.sqrt(self.frequency_variance * self.phase_variance / total)

    def _variance(self, arm):
        """Returns that of the phases at a distance from the centre."""
        return self.phase_variance + arm**2 * self.frequency_variance

    def first_positions(self):
        """Returns the few positions that row 0 is likely to have."""
        if not self.turn():
            return [0]
        frequency = self.frequency % TURN
        start = self.phase - self.frequency * self.centre

        rounding, allowed = self.rounding(frequency), limit(len(frequency))

        def variance(first, j):
            rows = (self.centre[j] + first) ** 2 * self.frequency_variance[j]
            return self.phase_variance[j] + rows + (rounding[j] * first) ** 2

        def misfits(near, j):
            # The measure, with the best frequency of each pair.
            off = wrapped(start[j] - frequency[j] * near[:, None])
            return np.sum(off**2 / variance(near[:, None], j), axis=1)

        firsts = []
        for near in NEAR[:129], NEAR:
            # Most of them miss more than is allowed with a few pairs already.
            near = near[misfits(near, slice(4)) <= allowed]
            misfit = misfits(near, slice(None))
            firsts += near[misfit <= allowed][:3].tolist()
            if firsts:
                firsts.append(int(near[misfit.argmin()]))
                break

        firsts += self._vernier(frequency, start, variance)
        return [first for first in dict.fromkeys(firsts) if abs(first) < FURTHEST]

    def _vernier(self, frequency, start, variance):
        """Yields the position that the slowest pair says roughly, if any turns.

        Each faster one says it more closely.
        """
        first, doubt = 0.0, math.inf
        for j in np.argsort(frequency):
            f = frequency[j]
            if f**2 < 16 * self.frequency_variance[j]:
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
            error = 3 * math.sqrt(doubt) + 4 * self.unit * (1 + abs(first))
            yield roundest(first, lambda v: abs(v - first) <= error, [round(first)])


def measure(table, sine, cosine, single):
    """Returns the `Waves` of a table, or `None` if its pairs do not turn evenly.

    Args:
        table: array `(length, channels)`; rows of zeros are left out.
        sine: the sine channel of each pair.
        cosine: the cosine channel of each pair.
        single: a list of the channel without a pair, if there is one.
    """
    most = max(min(ROWS, NUMBERS // table.shape[1]), FEWEST_ROWS)
    rows = np.flatnonzero(table[:most].any(axis=1))
    table = table[rows].astype("float64")
    phasor = table[:, cosine] + 1j * table[:, sine]
    size, follows = np.abs(phasor), np.diff(rows) == 1
    if np.count_nonzero(follows) < 4:
        return None
    amplitude = size.mean()
    phasor, size = phasor / amplitude, size / amplitude
    # Only where sine and cosine belong together is the size always the same.
    if size.std() > 2 * LARGEST_NOISE or size.min() < 0.5:
        return None

    # A rough line through the angles of each pair, and least squares for the rest.
    frequency = np.angle((phasor[1:] * phasor[:-1].conj())[follows].sum(axis=0))
    arm = (rows - rows.mean())[:, None]
    turned = phasor * np.exp(-1j * frequency * arm)
    phase = np.angle(turned.sum(axis=0))
    ripple = np.angle(turned * np.exp(-1j * phase))
    frequency += (arm * ripple).sum(axis=0) / np.sum(arm**2)
    phase += ripple.mean(axis=0)
    left = phasor - np.exp(1j * (phase + frequency * arm))
    noise = np.sqrt(np.mean(np.abs(left) ** 2) / 2)
    if noise > LARGEST_NOISE:
        return None

    # The mean of many rows is no closer than what rounds all of them to one side.
    last_bit, unit = _last_bits(table)
    shared, count = last_bit / math.sqrt(12), len(rows)
    variance = noise**2 * count / (count - 1.5) + (shared / 10) ** 2
    each = np.ones(len(sine))
    return Waves(
        rows=rows,
        amplitude=amplitude,
        amplitude_error=amplitude * math.sqrt(variance / size.size),
        frequency=frequency,
        frequency_variance=each * (variance / np.sum(arm**2) + (shared / count) ** 2),
        phase=phase,
        phase_variance=each * (variance / count + shared**2),
        centre=each * rows.mean(),
        single=table[:, single].ravel() / amplitude,
        single_variance=variance,
        noise=noise,
        last_bit=last_bit,
        unit=unit,
    )


def _last_bits(table):
    """Returns that of the values of a table, and that of code that made them."""
    mantissa, _ = np.frexp(table)
    for bits in 8, 11, 24:  # bfloat16, float16, float32
        scaled = np.ldexp(mantissa, bits)
        if np.array_equal(np.rint(scaled), scaled):
            return 2.0**-bits, 2.0**-24
    # Of float64 some bits are lost in the arithmetic here.
    return 2.0**-49, 2.0**-49


def joined(several):
    """Returns the waves of several axes as one, or `None` if they do not match."""
    first, *others = several
    if not others or None in several:
        return None if None in several else first
    sizes = [waves.amplitude for waves in several]
    if max(sizes) - min(sizes) > 2 * LARGEST_NOISE * max(sizes):
        return None
    weight = [waves.amplitude_error**-2 for waves in several]
    pairs = "frequency", "frequency_variance", "phase", "phase_variance", "centre"
    return replace(
        max(several, key=lambda waves: len(waves.rows)),
        amplitude=np.average(sizes, weights=weight),
        amplitude_error=np.sum(weight) ** -0.5,
        noise=max(waves.noise for waves in several),
        **{
            name: np.concatenate([getattr(waves, name) for waves in several])
            for name in pairs
        },
    )
