"""Pictures of signals, as matplotlib figures.

matplotlib is imported only when a picture is drawn. `settings` are those of
`SinusoidalPositionalEncoding`, `axis` included.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tfpe._settings import Settings
from tfpe.comparison import signal_of
from tfpe.layouts import arrangement
from tfpe.spectra import timescales


def heat_map(length: int | Sequence[int], channels: int, **settings: Any) -> Any:
    """Returns a picture of a signal: positions down, channels across.

    Args:
        length: int, or a tuple of ints for several axes, whose positions are
            then listed one after the other.
        channels: int, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure, (axes,) = _figure(1)
    _draw_signal(axes, signal_of(length, channels, **settings))
    return figure


def wavelengths(channels: int, **settings: Any) -> Any:
    """Returns a picture of the wavelengths of the pairs, in positions.

    Args:
        channels: int, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure, (axes,) = _figure(1)
    _draw_wavelengths(axes, channels, settings)
    return figure


def similarity(length: int | Sequence[int], channels: int, **settings: Any) -> Any:
    """Returns a picture of how alike the signals of two positions are.

    The similarity is the cosine of the angle between the two rows. Of several
    axes it is that of each position and the one in the middle.

    Args:
        length: int, or a tuple of ints for several axes.
        channels: int, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure, (axes,) = _figure(1)
    _draw_similarity(axes, signal_of(length, channels, **settings))
    return figure


def overview(length: int | Sequence[int], channels: int, **settings: Any) -> Any:
    """Returns the three pictures of a signal in one figure.

    Args:
        length: int, or a tuple of ints for several axes.
        channels: int, the size of the last axis.
        **settings: as in `SinusoidalPositionalEncoding`.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure, panels = _figure(3)
    _draw_all(panels, signal_of(length, channels, **settings), channels, settings)
    return figure


def difference(
    length: int | Sequence[int],
    channels: int,
    first: Mapping[str, Any],
    second: Mapping[str, Any],
    *,
    labels: Sequence[str] = ("first", "second"),
) -> Any:
    """Returns the pictures of two signals and of their difference.

    Below them are the wavelengths of both in one panel: of the channels as they stand,
    which shows the order, and of the pairs, which shows the spacing.

    Args:
        length: int, or a tuple of ints for several axes.
        channels: int, the size of the last axis.
        first: dict, the settings of one signal.
        second: dict, the settings of the other.
        labels: what to call the two.

    Returns:
        A `matplotlib.figure.Figure`.
    """
    figure, (above, below) = _figure(3, rows=2)
    signals = [signal_of(length, channels, **s) for s in (first, second)]
    apart = signals[1] - signals[0]
    titles = (*labels, f"{labels[1]} - {labels[0]}")
    for panel, signal, title in zip(above, (*signals, apart), titles, strict=True):
        _draw_signal(panel, signal)
        panel.set_title(title)
    # The second is thinner, so that both are seen where they are equal.
    for settings, label, width in zip((first, second), labels, (4, 1.2), strict=True):
        style = {"label": label, "linewidth": width, "markersize": 3 + width}
        _draw_order(below[0], channels, settings, **style)
        _draw_wavelengths(below[1], channels, settings, **style)
    for panel in below[:2]:
        panel.legend()
    below[1].set_title("Spacing: wavelengths of the pairs")
    below[2].plot(np.abs(apart).max(axis=-1).ravel())
    below[2].set(title="Largest difference", xlabel="position")
    return figure


def _draw_all(panels, signal, channels, settings):
    _draw_signal(panels[0], signal)
    _draw_wavelengths(panels[1], channels, settings)
    _draw_similarity(panels[2], signal)


def _figure(panels, rows=1):
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib: pip install 'tfpe[cli]'"
        ) from error

    # Several panels share the width of a page, and their letters stay legible.
    width, height = (5.2, 4.2) if panels == 1 else (3.9, 3.3)
    figure = Figure(figsize=(width * panels, height * rows), layout="constrained")
    axes = figure.subplots(rows, panels, squeeze=False)
    return figure, axes if rows > 1 else axes[0]


def _draw_signal(axes, signal):
    rows = signal.reshape(-1, signal.shape[-1])
    limit = max(np.abs(rows).max(), 1e-6)
    image = axes.imshow(
        rows,
        cmap="RdBu_r",
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
    )
    axes.figure.colorbar(image, ax=axes)
    axes.set(title="Signal", xlabel="channel", ylabel="position")


def _draw_wavelengths(axes, channels, settings, **style):
    settings = dict(settings)
    positional = np.size(settings.pop("axis", -2))
    values = 2 * np.pi * timescales(channels, axes=positional, **settings)
    axes.semilogy(values, ".-", **{"markersize": 4, **style})
    axes.axhline(2, color="grey", linestyle=":", linewidth=1)
    axes.text(0, 2, "two positions", color="grey", fontsize=8, va="bottom")
    axes.grid(axis="y", alpha=0.3)
    axes.set(title="Wavelengths", xlabel="pair", ylabel="wavelength in positions")


def _draw_order(axes, channels, settings, **style):
    settings = dict(settings)
    positional = np.size(settings.pop("axis", -2))
    values = 2 * np.pi * timescales(channels, axes=positional, **settings)
    settings = Settings.of(settings)
    order = arrangement(
        channels,
        positional,
        settings.layout,
        settings.cosine_first,
        settings.odd_channel,
    )
    axes.semilogy(values[order.pair], ".-", **style)
    axes.grid(axis="y", alpha=0.3)
    axes.set(
        title="Order: wavelengths of the channels",
        xlabel="channel",
        ylabel="wavelength in positions",
    )


def _draw_similarity(axes, signal):
    rows = signal.reshape(-1, signal.shape[-1])
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    grid = signal.shape[:-1]
    if len(grid) == 2:
        middle = np.ravel_multi_index([n // 2 for n in grid], grid)
        image, labels = (
            (rows @ rows[middle]).reshape(grid),
            ("second axis", "first axis"),
        )
        title = "Similarity to the middle"
    else:
        image, labels, title = rows @ rows.T, ("position", "position"), "Similarity"
    shown = axes.imshow(image, cmap="viridis", vmax=1, interpolation="nearest")
    axes.figure.colorbar(shown, ax=axes)
    axes.set(title=title, xlabel=labels[0], ylabel=labels[1])
