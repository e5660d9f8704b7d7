"""Markdown tables, and the machine they came from."""

import functools
import os
import platform
import sys
from pathlib import Path

import keras
import numpy as np

from benchmarks.peers import versions


def environment():
    """Returns what the figures depend on, as plain values."""
    backend = keras.backend.backend()
    return {
        "backend": f"{backend} {sys.modules[backend].__version__}",
        "device": gpu() or "CPU",
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "python": platform.python_version(),
        "keras": keras.__version__,
        "numpy": np.__version__,
        **versions(),
    }


@functools.cache
def gpu():
    """Returns the name of the GPU that Keras' backend computes on, or None."""
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        devices = tf.config.list_physical_devices("GPU")
        details = tf.config.experimental.get_device_details
        return details(devices[0]).get("device_name", "GPU") if devices else None
    if backend == "jax":
        import jax

        on_gpu = jax.default_backend() == "gpu"
        return jax.devices()[0].device_kind if on_gpu else None
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else None


def _processor():
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(": ")[1] for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def table(columns, rows):
    """Returns a Markdown table; the first column stands left, the others right."""
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return "\n".join(f"| {' | '.join(str(cell) for cell in line)} |" for line in lines)


def number(value):
    """Returns a number with about three digits, `-` for none."""
    if value is None:
        return "-"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f}"


def verdict(holds):
    """Returns what a table says about a limit; `None` if there is none."""
    return {None: "", True: "yes", False: "**no**"}[holds]
