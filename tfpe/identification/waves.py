"""What the rows of a table say of its pairs of channels: frequencies and phases.

A pair of channels is one number that turns, `cosine + 1j * sine`. Its angle is
a straight line over the rows, so a line fitted with weights says all there is
to say: the frequency, the phase, and how sure the rows are of both. What is
then tried on these few numbers needs the table no more.
"""

from dataclasses import dataclass, replace

import numpy as np

TURN = 2 * np.pi
# More rows would only make sharper what is sharp already: at most so many rows and
# numbers, but never fewer rows than this.
ROWS, NUMBERS, FEWEST_ROWS = 2048, 2**20, 512
# The part of the amplitude, root mean square, that may be left unexplained.
LARGEST_NOISE = 0.03


@dataclass(frozen=True)
class Waves:
    """The pairs of channels of a table, each `amplitude * exp(1j * angle)`.

    The angle is `phase + frequency * (row - centre)`. The weights are inverse
    variances; at `centre` phase and frequency are independent. An odd number of
    channels has a `single` one, with a standard error for each row.
    """

    rows: np.ndarray
    amplitude: float
    amplitude_error: float
    frequency: np.ndarray
    phase: np.ndarray
    centre: np.ndarray
    frequency_weight: np.ndarray
    phase_weight: np.ndarray
    single: np.ndarray
    single_error: np.ndarray
    # What the waves leave of the table, root mean square; the last bit of its
    # values, relative to them; and that of the arithmetic that made it.
    noise: float
    last_bit: float
    unit: float

    def turned(self):
        """Returns the same waves with the negative amplitude."""
        return replace(self, amplitude=-self.amplitude, phase=self.phase + np.pi)

    def turn(self):
        """Returns whether any pair turns: rows all the same tell no timescale."""
        return bool(np.any(self.frequency**2 * self.frequency_weight > 16))

    def finest(self):
        """Returns what the last bit and the arithmetic here leave at least."""
        return (self.last_bit + 2.0**-38) * abs(self.amplitude)

    def arm(self, first):
        """Returns the distance of each centre from position 0."""
        return self.centre + first

    def left(self, frequency, first):
        """Returns the phases and frequencies that given frequencies leave over."""
        # Whole turns a row cannot be seen in the rows; `first` turns by them.
        shown = frequency - TURN * np.round((frequency - self.frequency) / TURN)
        phase = self.phase - shown * self.centre - frequency * first
        return wrapped(phase), self.frequency - shown

    def misfit(self, frequency, first, slack=1.0):
        """Returns chi squared of a frequency for each pair, 2 a pair if right.

        Args:
            frequency: array `(n,)`, in radian per position.
            first: the position of row 0.
            slack: 1.0 if code may have rounded the frequencies.
        """
        phase, off = self.left(frequency, first)
        # One error of a frequency moves both; the likeliest is taken away.
        by = slack * self.rounding(frequency)
        both = np.stack([phase, off])
        each = np.stack([by * self.arm(first), by])
        weight = np.stack([self.phase_weight, self.frequency_weight])
        error = np.sum(weight * each * both, 0) / (1 + np.sum(weight * each**2, 0))
        return np.sum(weight * (both - error * each) ** 2) + np.sum(error**2)

    def single_misfit(self, frequency, first, slack=1.0):
        """Returns chi squared of the single channel, 1 a row if right."""
        arm = self.rows + first
        left = self.single - self.amplitude * np.sin(frequency * arm)
        error = self.amplitude * slack * self.rounding(frequency) * arm
        return np.sum(left**2 / (self.single_error**2 + error**2))

    def width(self, frequency, first):
        """Returns by how much likelier rounding makes any phases and frequencies.

        It is to be added to chi squared when two hypotheses are compared, as the
        one of coarser rounding would always win.
        """
        by = self.rounding(frequency)
        each = np.stack([by * self.arm(first), by])
        weight = np.stack([self.phase_weight, self.frequency_weight])
        return np.sum(np.log1p(np.sum(weight * each**2, axis=0)))

    def single_width(self, frequency, first):
        """Returns the same for the single channel."""
        error = self.amplitude * self.rounding(frequency) * (self.rows + first)
        return np.sum(np.log1p((error / self.single_error) ** 2))

    def rounding(self, frequency):
        """Returns the standard error of frequencies that code has worked out.

        Most code takes the exponential of a rounded logarithm.
        """
        frequency = np.clip(frequency, 1e-30, TURN)
        return 2 * self.unit * frequency * (2 + np.abs(np.log(frequency)))

    def given(self, first):
        """Returns the frequencies if row 0 has position `first`, and their weights."""
        arm = self.arm(first)
        weight = self.frequency_weight + self.phase_weight * arm**2
        phase, _ = self.left(self.frequency, first)
        return self.frequency + self.phase_weight * arm * phase / weight, weight


def joined(several):
    """Returns the waves of several axes as one, or `None` if they do not match."""
    first, *others = several
    if not others or None in several:
        return None if None in several else first
    sizes = [waves.amplitude for waves in several]
    if max(sizes) - min(sizes) > 2 * LARGEST_NOISE * max(sizes):
        return None
    pairs = "frequency", "phase", "centre", "frequency_weight", "phase_weight"
    weight = [waves.amplitude_error**-2 for waves in several]
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


def wrapped(angle):
    """Returns angles in radian, less whole turns, from -pi to pi."""
    return angle - TURN * np.round(angle / TURN)


def measure(table, sine, cosine, single):
    """Returns the `Waves` of a table, or `None` if its pairs do not turn evenly.

    Args:
        table: float64 array `(length, channels)`; rows of zeros are left out.
        sine: the sine channel of each pair.
        cosine: the cosine channel of each pair.
        single: a list of the channel without a pair, if there is one.
    """
    most = max(min(ROWS, NUMBERS // table.shape[1]), FEWEST_ROWS)
    rows = np.flatnonzero(table[:most].any(axis=1))
    table = table[rows]
    phasor = table[:, cosine] + 1j * table[:, sine]
    size, follows = np.abs(phasor), np.diff(rows) == 1
    if np.count_nonzero(follows) < 4:
        return None
    amplitude = size.mean()
    # Only where sine and cosine belong together is the size always the same.
    if size.std() > 2 * LARGEST_NOISE * amplitude or size.min() < amplitude / 2:
        return None

    # A rough line through the angles of each pair, and least squares for the rest.
    frequency = np.angle((phasor[1:] * phasor[:-1].conj())[follows].sum(axis=0))
    centre = rows.mean()
    arm = (rows - centre)[:, None]
    turned = phasor * np.exp(-1j * frequency * arm)
    phase = np.angle(turned.sum(axis=0))
    ripple = np.angle(turned * np.exp(-1j * phase))
    square = np.sum(arm**2)
    frequency = frequency + (arm * ripple).sum(axis=0) / square
    phase = phase + ripple.mean(axis=0)
    left = phasor - amplitude * np.exp(1j * (phase + frequency * arm))
    noise = np.sqrt(np.mean(np.abs(left) ** 2) / 2)
    if noise > LARGEST_NOISE * amplitude:
        return None
    bits = _bits(table)
    unit = 2.0**-24 if bits <= 24 else 2.0**-49
    last_bit = max(2.0**-bits, 2.0**-49)
    dof = len(rows)/(len(rows)-1.5)
    variance = dof*(noise / amplitude) ** 2 + last_bit**2 / 12/100
    each = np.ones(len(sine))
    return Waves(
        rows=rows,
        amplitude=amplitude,
        amplitude_error=amplitude*np.sqrt(variance / size.size + 0*last_bit**2/12),
        frequency=frequency,
        phase=phase,
        centre=centre * each,
        phase_weight=each / (variance / len(rows) + SHARED*last_bit**2),
        frequency_weight=each / (variance / square + SHARED*(last_bit / len(rows)) ** 2),
        single=table[:, single].ravel(),
        single_error=amplitude * np.sqrt(variance),
        noise=noise,
        last_bit=last_bit,
        unit=unit,
    )
import os
SHARED=float(os.environ.get('SHARED','0.08'))


def _bits(table):
    """Returns how many bits the numbers of a table have."""
    mantissa, _ = np.frexp(table)
    for bits in 8, 11, 24:  # bfloat16, float16, float32
        scaled = np.ldexp(mantissa, bits)
        if np.array_equal(np.rint(scaled), scaled):
            return bits
    return 53
