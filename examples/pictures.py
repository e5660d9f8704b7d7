"""Pictures of the two layouts and of the demo's learning curves.

python examples/pictures.py FILE draws the two layouts.
"""

import sys

import numpy as np
from keras import ops
from matplotlib.figure import Figure

import tfpe

CHANNELS = 16


def draw_encodings(channels, path, length=64):
    """Draws one signal in two orders, and the two spacings."""
    figure = Figure(figsize=(12, 4), layout="constrained")
    *maps, spacing = figure.subplots(1, 3)
    for ax, layout, order in zip(
        maps,
        ("interleaved", "concatenated"),
        ("sin cos sin cos ...", "sin sin ... cos cos ..."),
        strict=True,
    ):
        signal = ops.convert_to_numpy(
            tfpe.timing_signal(length, channels, layout=layout, spectrum="vaswani")
        )
        image = ax.imshow(signal, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto")
        ax.xaxis.get_major_locator().set_params(integer=True)
        ax.set(title=f"Order: {layout}\n{order}", xlabel="channel", ylabel="position")
    figure.colorbar(image, ax=maps, label="signal")
    for spectrum in ("vaswani", "tensor2tensor"):
        wavelength = 2 * np.pi * tfpe.timescales(channels, spectrum=spectrum)
        spacing.semilogy(wavelength, "o-", label=spectrum)
    spacing.set(title="Spacing: two spectra", xlabel="pair", ylabel="wavelength")
    spacing.xaxis.get_major_locator().set_params(integer=True)
    spacing.grid(alpha=0.3)
    spacing.legend()
    figure.savefig(path, dpi=120)


def draw_learning_curves(curves, path, results=None):
    """Draws `{name: {"training": [(step, loss), ...], "held out": [...]}}`.

    `results`, `{name: share of words that are wrong}`, stand in the legend.
    """
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    ax = figure.subplots()
    for number, (name, losses) in enumerate(curves.items()):
        wrong = f": {results[name]:.0%} of words wrong" if results else ""
        for (part, points), style in zip(losses.items(), ("--", "-"), strict=True):
            label = f"{name}, {part}" + (wrong if style == "-" else "")
            ax.plot(*zip(*points, strict=True), style, color=f"C{number}", label=label)
    ax.set(
        title="Letters to sounds, with and without positions",
        xlabel="training step",
        ylabel="loss per phoneme (nats)",
        ylim=(0, None),
    )
    ax.grid(alpha=0.3)
    ax.legend()
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    draw_encodings(CHANNELS, sys.argv[1])
