"""Pictures of the encoding in both layouts and of the learning curves."""

from keras import ops
from matplotlib.figure import Figure

import tfpe


def draw_encodings(channels, path, length=64):
    figure = Figure(figsize=(10, 4.5), layout="constrained")
    axes = figure.subplots(1, 2, sharey=True)
    for ax, layout in zip(axes, ("interleaved", "concatenated"), strict=True):
        signal = ops.convert_to_numpy(
            tfpe.timing_signal(length, channels, layout=layout)
        )
        image = ax.imshow(signal, cmap="RdBu", vmin=-1, vmax=1, aspect="auto")
        ax.set(title=layout, xlabel="channel")
    axes[0].set_ylabel("position")
    figure.colorbar(image, ax=axes, label="signal")
    figure.savefig(path, dpi=120)


def draw_learning_curves(curves, path):
    """Draws `{name: {"training": [(step, loss), ...], "held out": [...]}}`."""
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    ax = figure.subplots()
    for number, (name, losses) in enumerate(curves.items()):
        for (part, points), style in zip(losses.items(), ("--", "-"), strict=True):
            label = f"{name}, {part}"
            ax.plot(*zip(*points, strict=True), style, color=f"C{number}", label=label)
    ax.set(xlabel="step", ylabel="loss per phoneme (nats)", ylim=(0, None))
    ax.grid(alpha=0.3)
    ax.legend()
    figure.savefig(path, dpi=120)
