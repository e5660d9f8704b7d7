"""Several devices: each test runs a script of `devices/` in processes of their own."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
ROOT = FOLDER.parent
# A block of the guide, with the name of the script that it is a part of.
PART = re.compile(r"```python title=\"(.*?)\"\n(.*?)```", re.DOTALL)
EIGHT = "--xla_force_host_platform_device_count=8"


def start(script, *arguments, backend="tensorflow", **environment):
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", FOLDER / "devices" / script, *arguments],
        env={
            **os.environ,
            "KERAS_BACKEND": backend,
            "CUDA_VISIBLE_DEVICES": "",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(FOLDER)]),
            **environment,
        },
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finish(*processes):
    """Waits for scripts and fails with what they said if one failed."""
    try:
        for process in processes:
            output, _ = process.communicate(timeout=300)
            assert process.returncode == 0, output[-4000:]
            assert output.rstrip().endswith("equal"), output[-4000:]
    finally:
        for process in processes:
            process.kill()


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


@pytest.mark.case("replicas")
@pytest.mark.slow
def test_replicas_of_a_mirrored_strategy_add_the_same():
    finish(start("mirrored.py"))


@pytest.mark.slow
def test_two_workers_on_loopback_add_the_same():
    ports = [str(port) for port in free_ports(2)]
    finish(*(start("workers.py", str(worker), *ports) for worker in range(2)))


@pytest.mark.slow
@pytest.mark.parametrize("script", ["jax_data.py", "jax_model.py", "jax_sequence.py"])
def test_eight_devices_of_jax_add_the_same(script):
    pytest.importorskip("jax")
    finish(start(script, backend="jax", XLA_FLAGS=EIGHT, JAX_PLATFORMS="cpu"))


def test_the_guide_shows_parts_of_these_scripts():
    parts = PART.findall((ROOT / "docs" / "scaling.md").read_text())
    assert {name for name, _ in parts} == {
        str(script.relative_to(ROOT))
        for script in (FOLDER / "devices").glob("*.py")
        if script.name != "conftest.py"
    }
    for name, code in parts:
        assert plain(code) in plain((ROOT / name).read_text()), code


def plain(code):
    """Returns code without its white space, which differs where it is indented."""
    return "".join(code.split())
