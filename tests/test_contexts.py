"""What a layer or a function keeps is usable in every context that comes later."""

import subprocess
import sys
import textwrap

import keras
import numpy as np
import oracle
import pytest
from cases import right
from contract import FLOAT32, assert_close, on_jax, on_tensorflow, on_torch, to_float64

import tfpe
from tfpe import tensor2tensor as t2t


def row_three(name, layer, channels=6):
    """Returns what a way to call gives at row 3, with zeros (2, 5, 6)."""
    import tensorflow as tf

    zeros = np.zeros((2, 5, channels), "float32")
    functions = [
        t2t.add_timing_signal_1d,
        layer,
        lambda x: x + tfpe.timing_signal(5, channels, layout="concatenated"),
        lambda x: (
            x + tfpe.timing_signal_at(tf.range(5), channels, layout="concatenated")
        ),
    ]
    if name == "eager":
        found = [f(zeros).numpy() for f in functions]
    elif name in ("function", "xla"):
        found = [
            tf.function(f, jit_compile=name == "xla", autograph=False)(zeros).numpy()
            for f in functions
        ]
    else:
        with tf.Graph().as_default():
            x = tf.compat.v1.placeholder(tf.float32, (None, None, channels))
            outputs = [f(x) for f in functions]
            if name == "loop":
                outputs = [
                    tf.while_loop(
                        lambda i, _: i < 1,
                        lambda i, _, f=f: (i + 1, f(x)),
                        [0, tf.zeros_like(x)],
                        shape_invariants=[tf.TensorShape([]), x.shape],
                    )[1]
                    for f in functions
                ]
            with tf.compat.v1.Session() as session:
                found = session.run(outputs, {x: zeros})
    return [value[1, 3] for value in found]


@pytest.mark.case("v1-graphs")
@on_tensorflow
@pytest.mark.parametrize("first", ["eager", "graph", "function", "xla", "loop"])
def test_graphs_of_tensorflow_1_and_all_else_may_come_in_any_order(first):
    layer = tfpe.SinusoidalPositionalEncoding("concatenated")
    for name in (first, "graph", "eager", "graph", "function", "loop"):
        for got in row_three(name, layer):
            assert_close(got, right("v1-graphs"), FLOAT32)


@on_tensorflow
def test_a_graph_of_tensorflow_1_is_freed_and_holds_each_table_once():
    import gc
    import weakref

    import tensorflow as tf

    layer = tfpe.SinusoidalPositionalEncoding()
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32, (None, None, 512))
        layer(x)
        once = graph.as_graph_def().ByteSize()
        for _ in range(3):
            layer(x)
        assert graph.as_graph_def().ByteSize() - once < 2**18  # less than the tables
    gone = weakref.ref(graph)
    del graph, x
    gc.collect()
    assert gone() is None


@on_tensorflow
def test_without_v2_behavior_two_graphs_are_right():
    code = """
        import numpy as np, tensorflow as tf
        tf.compat.v1.disable_v2_behavior()
        import tfpe
        from tfpe import tensor2tensor as t2t
        layer = tfpe.SinusoidalPositionalEncoding("concatenated")
        for length in (5, 300):
            with tf.Graph().as_default():
                x = tf.compat.v1.placeholder(tf.float32, (None, None, 6))
                outputs = [t2t.add_timing_signal_1d(x), layer(x)]
                with tf.compat.v1.Session() as session:
                    for y in session.run(outputs, {x: np.zeros((2, length, 6))}):
                        print(*y[1, 3])
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    rows = np.array([line.split() for line in ran.stdout.splitlines()], float)
    assert_close(rows, np.tile(right("v1-graphs"), (4, 1)), FLOAT32)


@on_tensorflow
@pytest.mark.parametrize("strategy", [True, False])
def test_each_replica_reads_tables_of_its_own_device(strategy):
    code = f"""
        import numpy as np, tensorflow as tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        two = [tf.config.LogicalDeviceConfiguration()] * 2
        tf.config.set_logical_device_configuration(cpu, two)
        import tfpe
        layer = tfpe.SinusoidalPositionalEncoding()
        names = ["CPU:0", "CPU:1"][: 1 + {strategy}]
        mirrored = tf.distribute.MirroredStrategy(names)

        @tf.function
        def step():
            call = lambda: layer(tf.zeros((1, 3, 8)))
            return mirrored.experimental_local_results(mirrored.run(call))

        for got in step():
            print(*got.numpy()[0, 2])
        captured = step.get_concrete_function().captured_inputs
        print(*sorted({{tensor.device[-5:] for tensor in captured}}))
    """
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=True,
    )
    *rows, devices = ran.stdout.splitlines()
    assert devices.split() == ["CPU:0", "CPU:1"][: 1 + strategy]
    for row in rows:
        assert_close(np.array(row.split(), float), oracle.row(2, 8), FLOAT32)


@on_tensorflow
def test_equal_layers_share_their_tables():
    one, other = (tfpe.SinusoidalPositionalEncoding(dtype="float32") for _ in range(2))
    different = tfpe.SinusoidalPositionalEncoding(amplitude=2.0)
    for layer in (one, other, different):
        layer.build((None, None, 8))
    assert one._sinusoids is other._sinusoids
    assert one._sinusoids is not different._sinusoids


@on_tensorflow
def test_a_compiled_program_has_no_conditional_for_given_positions():
    import tensorflow as tf

    layer = tfpe.SinusoidalPositionalEncoding()
    for dtype in ("int32", "int64", "float32"):
        compiled = tf.function(
            lambda x, p: layer(x, positions=p), jit_compile=True, autograph=False
        )
        given = tf.zeros((2, 3, 8)), tf.zeros((2, 3), dtype)
        text = compiled.experimental_get_compiler_ir(*given)(stage="optimized_hlo")
        assert "conditional(" not in text
        assert "ENTRY" in text


@pytest.mark.case("jax-shard-map")
@on_jax
def test_shard_map_without_jit_and_then_eager():
    import jax
    import jax.numpy as jnp
    from jax.sharding import AxisType, PartitionSpec

    mesh = jax.make_mesh((1,), ("data",), axis_types=(AxisType.Auto,))
    add = jax.shard_map(
        lambda x: x + tfpe.timing_signal(1, 6),
        mesh=mesh,
        in_specs=PartitionSpec("data"),
        out_specs=PartitionSpec("data"),
    )
    assert_close(add(jnp.zeros((1, 6))), right("jax-shard-map")[:1], FLOAT32)
    assert_close(tfpe.timing_signal(3, 6), right("jax-shard-map"), FLOAT32)


@pytest.mark.case("jax-export")
@on_jax
@pytest.mark.parametrize("given", [False, True])
def test_jax_exports_symbolic_sizes(given):
    import jax
    import jax.numpy as jnp
    from jax import export

    layer = tfpe.SinusoidalPositionalEncoding()
    batch, length = export.symbolic_shape("b, n")
    shapes = [jax.ShapeDtypeStruct((batch, length, 8), jnp.float32)]
    if given:
        shapes.append(jax.ShapeDtypeStruct((batch, length), jnp.int32))
    call = jax.jit(lambda x, *p: layer(x, positions=p[0] if p else None))
    exported = export.export(call)(*shapes)
    for length in (3, 7, 300, 5000):
        steps = np.tile(np.arange(length, dtype="int32"), (2, 1))
        arguments = [jnp.zeros((2, length, 8))] + ([steps] if given else [])
        got = to_float64(exported.call(*arguments))[1]
        assert_close(got, oracle.many_rows(range(length), 8), FLOAT32)
        for position, want in right("jax-export").items():
            if int(position) < length:
                assert_close(got[int(position)], want, FLOAT32)


@pytest.mark.case("torch-inference-mode")
@on_torch
def test_inference_mode_and_then_training():
    import torch

    layer = tfpe.SinusoidalPositionalEncoding()
    with torch.inference_mode():
        tfpe.timing_signal(3, 6)
        layer(torch.zeros(1, 3, 6))
    weight = torch.nn.Parameter(torch.ones(6))
    (weight * tfpe.timing_signal(3, 6)).sum().backward()
    want = oracle.rows(range(3), 6).sum(axis=0)
    assert_close(weight.grad, want, 3 * FLOAT32)
    weight.grad = None
    (weight * layer(torch.zeros(1, 3, 6))).sum().backward()
    assert_close(weight.grad, want, 3 * FLOAT32)


@pytest.mark.case("torch-trace")
@on_torch
@pytest.mark.filterwarnings("ignore:.*torch.jit.trace.* is deprecated")
@pytest.mark.filterwarnings("ignore:Converting a tensor to a Python")
def test_a_traced_module_is_right_at_other_positions_and_lengths():
    import torch

    class Given(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = tfpe.SinusoidalPositionalEncoding()

        def forward(self, x, positions):
            return self.layer(x, positions=positions)

    zeros = torch.zeros(1, 2, 8)
    traced = torch.jit.trace(Given(), (zeros, torch.tensor([1, 2])))
    got = traced(zeros, torch.tensor([5000, -3]))[0]
    assert_close(got[0], right("torch-trace")["5000"], FLOAT32)
    assert_close(got[1], right("torch-trace")["-3"], FLOAT32)


@on_torch
@pytest.mark.parametrize("given", [False, True])
def test_torch_exports_a_length_that_varies(given):
    import torch

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = tfpe.SinusoidalPositionalEncoding()

        def forward(self, x, positions=None):
            return self.layer(x, positions=positions)

    length = torch.export.Dim("length", min=2, max=8000)
    example = [torch.zeros(1, 7, 8)] + ([torch.arange(7)] if given else [])
    sizes = ({1: length},) + (({0: length},) if given else ())
    exported = torch.export.export(
        Module(), tuple(example), dynamic_shapes=sizes, strict=False
    ).module()
    for count in (3, 300, 5000):
        arguments = [torch.zeros(1, count, 8)] + ([torch.arange(count)] * given)
        want = oracle.many_rows(range(count), 8)
        assert_close(exported(*arguments)[0], want, FLOAT32)


@pytest.mark.parametrize("policies", [("float32", "float16"), ("float16", "float32")])
def test_a_change_of_policy_changes_the_tables(policies):
    embed = tfpe.SinusoidalEmbedding(8, dtype=policies[0])
    embed(np.arange(3))
    embed.dtype_policy = policies[1]
    got = embed(np.arange(3))
    assert keras.backend.standardize_dtype(got.dtype) == policies[1]
    assert_close(got, oracle.rows(range(3), 8), 2.0**-11)
