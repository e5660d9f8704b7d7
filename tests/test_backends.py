"""What JAX and torch do in ways of their own; the other tests run on them as well.

JAX_ENABLE_X64=1 gives JAX float64. Without it the promise for float32 still holds.
"""

import os

import keras
import numpy as np
import oracle
import pytest
from contract import (
    BACKEND,
    FLOAT32,
    FRACTION,
    HAS_FLOAT64,
    POSITIONS,
    SUM,
    assert_close,
    assert_promised,
    dtype_of,
    needs_float64,
    on_jax,
    on_torch,
    randoms,
    refuses,
    to_float64,
)

import tfpe

INTEGERS = np.array(POSITIONS, "int64").astype("int32")


def test_the_backend_is_the_one_that_was_asked_for():
    assert os.environ.get("KERAS_BACKEND", "tensorflow") == BACKEND


def test_any_int32_position_keeps_the_promise_of_float32():
    want = oracle.rows(INTEGERS.tolist(), 64)
    got = tfpe.timing_signal_at(INTEGERS, 64)
    assert_promised(got, want, INTEGERS.astype("int64"))
    for row, start in enumerate(INTEGERS.tolist()):
        got = tfpe.timing_signal(1, 64, start_index=start)
        assert_promised(got[0], want[row])


@on_jax
@pytest.mark.skipif(HAS_FLOAT64, reason="there is float64")
def test_float64_is_refused_by_jax_without_x64():
    words = "can be 'float64' on JAX only with `jax_enable_x64`", "float64"
    with refuses(ValueError, "`dtype`", *words):
        tfpe.SinusoidalPositionalEncoding(dtype="float64")
    with refuses(ValueError, "`dtype`", *words):
        tfpe.timing_signal(3, 6, dtype="float64")
    with refuses(ValueError, "`dtype`", *words):
        tfpe.timing_signal_at([1.5], 6, dtype="float64")
    keras.config.set_dtype_policy("float64")
    with refuses(ValueError, "`dtype`", *words):
        tfpe.SinusoidalPositionalEncoding()


@on_jax
@pytest.mark.skipif(HAS_FLOAT64, reason="there is float64")
def test_a_float64_layer_is_refused_where_x64_was_switched_off_again():
    import jax

    with jax.enable_x64(True):
        layer = tfpe.SinusoidalPositionalEncoding(dtype="float64")
        assert_promised(layer(np.zeros((1, 3, 6)))[0], oracle.rows(range(3), 6))
    words = "can be 'float64' on JAX only with `jax_enable_x64`"
    with refuses(ValueError, "`dtype`", words):
        layer(np.zeros((1, 3, 6), "float32"))


@on_jax
@needs_float64
def test_float64_keeps_its_promise_on_jax_with_x64():
    got = tfpe.timing_signal_at(INTEGERS, 64, dtype="float64")
    assert_promised(got, oracle.rows(INTEGERS.tolist(), 64))


@on_jax
def test_first_call_may_be_under_jit_and_leaks_no_tracer():
    import jax

    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(2, 5, 6)
    want = to_float64(inputs) + oracle.rows(range(5), 6)
    with jax.checking_leaks():
        assert_close(jax.jit(layer)(inputs), want, SUM)
    assert_close(layer(inputs), want, SUM)
    assert_close(jax.jit(lambda x: layer(x, start_index=0))(inputs), want, SUM)


@on_jax
@pytest.mark.parametrize("argument", ["start_index", "rows", "positions", "floats"])
def test_one_compilation_serves_all_steps(argument):
    import jax

    layer, traces = tfpe.SinusoidalPositionalEncoding(), []

    @jax.jit
    def call(inputs, steps):
        traces.append(steps)
        name = "positions" if argument in ("positions", "floats") else "start_index"
        return layer(inputs, **{name: steps})

    for start in (0, 70000, -4, 2**30, 3):
        where = np.array([start + np.arange(5), 7 - np.arange(5)])
        steps = {"start_index": where[0, 0], "rows": where[:, 0]}.get(argument, where)
        if argument in ("start_index", "rows"):
            first = np.broadcast_to(steps, (2,))
            where = first[:, None] + np.arange(5)
        kind = "float32" if argument == "floats" else "int32"
        got = call(np.zeros((2, 5, 6), "float32"), np.asarray(steps, kind))
        want = oracle.rows(where.ravel().astype(kind).astype("float64"), 6)
        assert_promised(got, want.reshape(2, 5, 6))
    assert len(traces) == 1


@on_jax
def test_gradients_of_jax_are_those_of_an_addition_and_of_sines():
    import jax

    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(2, 3, 4)
    where = np.array([0.5, -1.25, 300.75], "float32")
    jacobian = jax.jacobian(layer)(inputs)
    got = np.asarray(jacobian).reshape(24, 24)
    np.testing.assert_array_equal(got, np.eye(24))
    for transformed in (jax.grad, lambda f: jax.jit(jax.grad(f))):
        slope = transformed(lambda p: layer(inputs, positions=p)[..., 0].sum())(where)
        assert_close(slope, 2 * np.cos(where.astype("float64")), 2 * FRACTION)


@on_jax
def test_vmap_adds_the_signal_to_each_of_its_parts():
    import jax

    layer, inputs = tfpe.SinusoidalPositionalEncoding(), randoms(4, 2, 5, 6)
    want = to_float64(inputs) + oracle.rows(range(5), 6)
    assert_close(jax.vmap(layer)(inputs), want, SUM)


@on_torch
def test_gradients_of_torch_are_those_of_an_addition_and_of_sines():
    import torch

    layer = tfpe.SinusoidalPositionalEncoding()
    inputs = randoms(2, 3, 4).clone().requires_grad_()
    where = torch.tensor([0.5, -1.25, 300.75], requires_grad=True)
    weights = randoms(2, 3, 4, seed=1)
    (layer(inputs, positions=where) * weights).sum().backward()
    np.testing.assert_array_equal(to_float64(inputs.grad), to_float64(weights))
    where.grad = None
    layer(inputs, positions=where)[..., 0].sum().backward()
    want = 2 * np.cos(to_float64(where.detach()))
    assert_close(where.grad, want, 2 * FRACTION)


@on_torch
def test_layer_is_a_torch_module_without_parameters():
    import torch

    module = torch.nn.Sequential(tfpe.SinusoidalPositionalEncoding())
    inputs = randoms(2, 5, 6)
    with torch.no_grad():
        assert_close(module(inputs), to_float64(inputs) + oracle.rows(range(5), 6), SUM)
    assert list(module.parameters()) == []
    assert dtype_of(module(inputs.double())) == "float32"


@on_torch
@pytest.mark.parametrize("shape", [(5,), (2, 5)])
def test_positions_may_be_of_dynamic_shapes_of_torch(shape):
    import torch

    layer = tfpe.SinusoidalPositionalEncoding()
    call = torch.compile(
        lambda x, p: layer(x, positions=p), backend="eager", dynamic=True
    )
    positions = torch.arange(100, 100 + int(np.prod(shape))).reshape(shape)
    got = call(torch.zeros(2, 5, 6), positions)
    want = oracle.rows(positions.reshape(-1).tolist(), 6).reshape(*shape, 6)
    assert_close(got, np.broadcast_to(want, (2, 5, 6)), FLOAT32)


@on_torch
def test_first_call_may_be_compiled_by_torch():
    import torch

    layer = tfpe.SinusoidalPositionalEncoding()
    call = torch.compile(layer, backend="aot_eager")  # it needs no C++ compiler
    for length in (5, 7, 4097):
        inputs = randoms(2, length, 6)
        want = to_float64(inputs) + oracle.many_rows(range(length), 6)
        assert_close(call(inputs), want, SUM)
    step = torch.compile(
        lambda start: layer(torch.zeros(2, 3, 6), start_index=start),
        backend="aot_eager",
    )
    for start in (0, 70000, -4):
        want = oracle.rows(range(start, start + 3), 6)
        assert_promised(step(torch.tensor(start))[1], want)
    function = torch.compile(
        lambda positions: tfpe.timing_signal_at(positions, 6), backend="aot_eager"
    )
    where = [0.5, -3.25, 1e6]
    assert_close(function(torch.tensor(where)), oracle.rows(where, 6), FRACTION)


@pytest.mark.gpu
def test_accelerator_keeps_the_promise():
    want = oracle.rows(INTEGERS.tolist(), 64)
    assert_promised(tfpe.timing_signal_at(INTEGERS, 64), want)
    layer = tfpe.SinusoidalPositionalEncoding()
    for length, start in ((9, 0), (5001, 0), (9, 70000)):
        where = np.arange(start, start + length)
        got = layer(np.zeros((2, length, 6), "float32"), start_index=start)
        assert_promised(got[1], oracle.many_rows(where, 6), where)
