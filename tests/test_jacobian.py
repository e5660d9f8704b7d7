"""Maps that must keep what they keep with the layer in front of them.

The layer is a translation: its Jacobian is the identity. So a symplectic or a
volume-preserving network stays one.
"""

import keras
import numpy as np
import pytest
import tensorflow as tf
from contract import COMPILED, DTYPES, MODES, dtypes, on_tensorflow, randoms, to_float64

import tfpe

pytestmark = on_tensorflow
LENGTH, CHANNELS = 3, 4
ROUNDING = 1e-12  # of float64 through networks of a few layers


def jacobian(function, inputs):
    """Returns the Jacobian of a function of one tensor, as a square matrix."""
    with tf.GradientTape() as tape:
        tape.watch(inputs)
        outputs = function(inputs)
    size = int(np.prod(inputs.shape))
    return to_float64(tape.jacobian(outputs, inputs)).reshape(size, size)


SETTINGS = [
    {},
    {"layout": "concatenated", "amplitude": 30.0},
    {"spectrum": [0.001, 5.0], "first_position": 2**31 - 1},
]


@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_jacobian_is_exactly_the_identity(settings, dtype):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=dtype, **settings)
    got = jacobian(layer, randoms(2, LENGTH, CHANNELS, dtype=dtype))
    np.testing.assert_array_equal(got, np.eye(2 * LENGTH * CHANNELS))


STEPS = [
    *({"start_index": 70000}, {"start_index": [5, -6]}, {"positions": [4, 0, -7]}),
    *({"positions": [0.5, 9.0, -1.25]}, {"mask": [[True, False, True]] * 2}),
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_jacobian_is_the_identity_from_any_step(steps):
    layer = tfpe.SinusoidalPositionalEncoding(skip_masked=True)
    got = jacobian(lambda x: layer(x, **steps), randoms(2, LENGTH, CHANNELS))
    np.testing.assert_array_equal(got, np.eye(2 * LENGTH * CHANNELS))


@pytest.mark.parametrize("mode", COMPILED)
@pytest.mark.parametrize("dtype", dtypes(*DTYPES))
def test_gradient_passes_through_graphs_as_it_is(dtype, mode):
    layer = tfpe.SinusoidalPositionalEncoding(dtype=dtype)

    @MODES[mode]
    def pulled_back(inputs, slopes):
        with tf.GradientTape() as tape:
            tape.watch(inputs)
            outputs = layer(inputs)
        return tape.gradient(outputs, inputs, output_gradients=slopes)

    inputs, slopes = (randoms(2, 5, 6, dtype=dtype, seed=seed) for seed in (1, 2))
    got = pulled_back(inputs, slopes)
    np.testing.assert_array_equal(to_float64(got), to_float64(slopes))


class Shear(keras.layers.Layer):
    """Adds the gradient of a potential of one half of the channels to the other.

    The potential is `sum(softplus(kernel . half))` over whole sequences, so that
    steps are coupled; its gradient has a symmetric Jacobian.
    """

    def __init__(self, of_first, **kwargs):
        super().__init__(**kwargs)
        self.of_first = of_first

    def build(self, input_shape):
        size = input_shape[1] * input_shape[2] // 2
        self.kernel = self.add_weight(shape=(size, 7))

    def call(self, inputs):
        first, second = keras.ops.split(inputs, 2, axis=-1)
        half = first if self.of_first else second
        flat = keras.ops.reshape(half, (keras.ops.shape(half)[0], -1))
        slope = keras.ops.sigmoid(flat @ self.kernel) @ keras.ops.transpose(self.kernel)
        slope = keras.ops.reshape(slope, keras.ops.shape(half))
        changed = [first, second + slope] if self.of_first else [first + slope, second]
        return keras.ops.concatenate(changed, axis=-1)


class Coupling(keras.layers.Layer):
    """Moves one half of the channels by a network of the other (NICE)."""

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.hidden = keras.layers.Dense(9, "tanh")
        self.outer = keras.layers.Dense(CHANNELS // 2)

    def call(self, inputs):
        first, second = keras.ops.split(inputs, 2, axis=-1)
        return keras.ops.concatenate(
            [second + self.outer(self.hidden(first)), first], axis=-1
        )


def network(*layers, **settings):
    inputs = keras.Input((LENGTH, CHANNELS), dtype="float64")
    encode = tfpe.SinusoidalPositionalEncoding(**settings)
    return keras.Sequential([inputs, encode, *layers])


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_symplectic_network_stays_symplectic_behind_the_layer(settings):
    keras.config.set_dtype_policy("float64")
    model = network(Shear(True), Shear(False), Shear(True), **settings)
    got = jacobian(model, randoms(1, LENGTH, CHANNELS, dtype="float64"))
    half = np.eye(CHANNELS // 2)
    turn = np.block([[0 * half, half], [-half, 0 * half]])
    omega = np.kron(np.eye(LENGTH), turn)
    np.testing.assert_allclose(got.T @ omega @ got, omega, rtol=0, atol=ROUNDING)
    assert np.abs(got - np.eye(len(got))).max() > 0.01
    np.testing.assert_allclose(np.linalg.det(got), 1, rtol=ROUNDING)


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_volume_preserving_network_stays_so_behind_the_layer(settings):
    keras.config.set_dtype_policy("float64")
    model = network(Coupling(), Coupling(), Coupling(), **settings)
    got = jacobian(model, randoms(1, LENGTH, CHANNELS, dtype="float64"))
    np.testing.assert_allclose(abs(np.linalg.det(got)), 1, rtol=ROUNDING)
    assert np.abs(got - np.diag(np.diag(got))).max() > 0.01


def test_layer_moves_what_the_network_computes():
    """The maps above are not the identity in disguise: the layer matters."""
    keras.config.set_dtype_policy("float64")
    model = network(Shear(True))
    inputs = randoms(1, LENGTH, CHANNELS, dtype="float64")
    there = jacobian(model, inputs)
    here = jacobian(model.layers[-1], inputs)
    assert np.abs(there - here).max() > 0.01
