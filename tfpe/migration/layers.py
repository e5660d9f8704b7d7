"""The arithmetic of tensor2tensor's transformers, as one Keras layer."""

import keras
from keras import ops

from tfpe.layer import SinusoidalPositionalEncoding
from tfpe.signal import timing_signal
from tfpe.tensor2tensor.prepare import (
    attention_bias_ignore_padding,
    attention_bias_same_segment,
)

MASKED = -1e9  # Added to a logit of the attention; its weight is then exactly 0.


@keras.saving.register_keras_serializable(package="tfpe")
class Tensor2TensorTransformer(keras.layers.Layer):
    """A transformer of tensor2tensor, from ids to logits.

    Its weights are tensor2tensor's variables by the names of `variables.py`. What it
    is made of shows in their names: without an encoder it is a language model,
    without a decoder a classifier.

    Args:
        shapes: dict, the shape of each weight by its name.
        heads: int, number of attention heads.
        blocks: dict, the number of blocks of each stack.
        before: str, "n" for layer normalization before each sublayer, or "".
        after: str, what is done behind it, in order: "a" to add its input, "n".
        epsilon: float, added to the variance.
        scaled: bool, whether embeddings are multiplied by sqrt(hidden).
        positions: "timing", "emb" or "none", what is added to the embeddings.
        steps: int, how often the blocks are repeated, of a universal transformer.
        step_positions: bool, whether each repetition adds the positions.
        step_signal: "learned", "sinusoid" or "none", what tells the repetitions.
        drops_padding: bool, whether the encoder's feed-forward gives 0 for padding.
        unidirectional: bool, whether the encoder sees only what stands before.
        layout: layout of the sinusoids.
        sinusoids: layer that adds "timing" positions. `None`: tensor2tensor's.
        **kwargs: `name` and the like, as in `keras.layers.Layer`.

    Call arguments:
        inputs: dict of int32 `(batch, length)`: "inputs", "targets", and of packed
            examples "inputs_segmentation", "inputs_position" and so on.
    """

    def __init__(self, shapes, layout="concatenated", sinusoids=None, **kwargs):
        settings = {name: kwargs.pop(name) for name in SETTINGS}
        super().__init__(**kwargs)
        self.settings = {"shapes": shapes, "layout": layout, **settings}
        self.heads, self.layout = settings["heads"], layout
        self.own_sinusoids = sinusoids is None
        if sinusoids is None:
            sinusoids = SinusoidalPositionalEncoding(layout, "tensor2tensor")
        self.sinusoids = sinusoids

    def build(self, input_shape):
        del input_shape
        self.w = {
            name: self.add_weight(tuple(shape), name=name.replace("/", "_"))
            for name, shape in self.settings["shapes"].items()
        }
        tables = [n for n in self.w if n.endswith("/embedding")]
        self.hidden = self.w[tables[0]].shape[-1]

    def call(self, inputs):
        segments = {k: inputs.get(f"{k}_segmentation") for k in ("inputs", "targets")}
        source, target = segments["inputs"], segments["targets"]
        crossing = None
        if "inputs" in inputs:
            ids = inputs["inputs"]
            bias = padding = padding_bias(ids)
            if source is not None:
                bias = attention_bias_same_segment(source, source)
            memory = self.encode(ids, bias, inputs.get("inputs_position"))
            if "classes" in self.w:
                mean = ops.mean(memory, axis=1, keepdims=True)
                return ops.matmul(mean, self.w["classes"]) + self.w["classes_bias"]
            if source is not None:
                padding = attention_bias_same_segment(target, source)
            crossing = self.crossing(memory), padding
        ids = inputs["targets"]
        # Padding has a zero embedding, so a shift of ids is a shift of embeddings.
        shifted = ops.pad(ids, [[0, 0], [1, 0]])[:, :-1]
        bias = _causal_bias(ids)
        if target is not None:
            bias = bias + attention_bias_same_segment(target, target)
        return self.decode(shifted, bias, crossing, inputs.get("targets_position"))[0]

    def compute_output_spec(self, inputs):
        batch, length = next(iter(inputs.values())).shape
        if "classes_bias" in self.settings["shapes"]:
            rows, length = self.settings["shapes"]["classes_bias"][0], 1
        else:
            shapes = self.settings["shapes"]
            rows = shapes.get("softmax", shapes["targets/embedding"])[0]
            length = inputs["targets"].shape[1]
        return keras.KerasTensor((batch, length, rows), self.compute_dtype)

    def get_config(self):
        config = {**super().get_config(), **self.settings}
        if not self.own_sinusoids:
            config["sinusoids"] = keras.saving.serialize_keras_object(self.sinusoids)
        return config

    @classmethod
    def from_config(cls, config):
        if "sinusoids" in config:
            layer = keras.saving.deserialize_keras_object(config["sinusoids"])
            config = {**config, "sinusoids": layer}
        return cls(**config)

    def encode(self, ids, bias, positions=None):
        """Returns what the encoder makes of ids, `(batch, length, hidden)`."""
        kept = ops.cast(ops.not_equal(ids, 0), "float32")[..., None]
        if self.settings["unidirectional"]:
            bias = _causal_bias(ids)  # Instead of the other: padding is behind.
        x = self._embedded("inputs", ids)
        if "space" in self.w:
            x = x + self.w["space"]
        x = self._with_positions("inputs", x, 0, positions)
        for name, step in self._runs("encoder"):
            x = self._step_signals("encoder", x, step, 0)

            def attention(y, name=name):
                pair = self._keys_values(f"{name}/self", y)
                return self._attention(f"{name}/self", y, pair, bias)

            def feed_forward(y, name=name):
                y = self._feed_forward(name, y)
                return y * kept if self.settings["drops_padding"] else y

            x = self._sublayer(f"{name}/self", x, attention)
            x = self._sublayer(f"{name}/ffn", x, feed_forward)
        return self._normalized("encoder/norm", x)

    def crossing(self, memory):
        """Returns the keys and values of the encoder's output for each block."""
        return {
            f"decoder/{b}": self._keys_values(f"decoder/{b}/cross", memory)
            for b in range(self.settings["blocks"]["decoder"])
        }

    def decode(self, ids, bias, crossing, positions=None, index=0, cache=None):
        """Returns logits and the keys and values of all steps so far.

        Args:
            ids: int32 `(batch, length)`, each the one before that which is asked for.
            bias: bias of the attention of the targets to themselves.
            crossing: keys and values by block, and the bias, or `None`. With a cache
                one row of them serves several rows of `ids` in turn.
            positions: int32 `(batch, length)`, of packed examples.
            index: the step of the first of `ids`.
            cache: list of keys and values, filled before `index`.
        """
        x = self._embedded("targets", ids)
        x = self._with_positions("targets", x, index, positions)
        filled = []
        for run, (name, step) in enumerate(self._runs("decoder")):
            x = self._step_signals("decoder", x, step, index)

            def attention(y, name=name, run=run):
                pair = self._keys_values(f"{name}/self", y)
                if cache is not None:
                    pair = [
                        ops.slice_update(old, (0, 0, index, 0), new)
                        for old, new in zip(cache[run], pair, strict=True)
                    ]
                filled.append(pair)
                return self._attention(f"{name}/self", y, pair, bias)

            def cross(y, name=name):
                pairs, hidden = crossing
                # Beams are rows that attend to the same inputs, as steps do.
                each = y if cache is None else self._by_inputs(y, hidden)
                each = self._attention(f"{name}/cross", each, pairs[name], hidden)
                return each if cache is None else ops.reshape(each, y.shape)

            def feed_forward(y, name=name):
                return self._feed_forward(name, y)

            x = self._sublayer(f"{name}/self", x, attention)
            if crossing is not None:
                x = self._sublayer(f"{name}/cross", x, cross)
            x = self._sublayer(f"{name}/ffn", x, feed_forward)
        x = self._normalized("decoder/norm", x)
        table = self.w.get("softmax", self.w["targets/embedding"])
        return ops.einsum("blc,vc->blv", x, table), filled

    def _by_inputs(self, x, bias):
        return ops.reshape(x, (bias.shape[0], -1, self.hidden))

    def empty_cache(self, rows, length):
        """Returns a cache for `decode` of so many rows and steps."""
        cache = []
        for name, _ in self._runs("decoder"):
            depths = [self.w[f"{name}/self/{p}"].shape[1] for p in ("key", "value")]
            shapes = [(rows, self.heads, length, d // self.heads) for d in depths]
            cache.append([ops.zeros(shape) for shape in shapes])
        return cache

    def _runs(self, stack):
        """Yields the name of each block in the order of use, and its first step."""
        for step in range(self.settings["steps"] or 1):
            for block in range(self.settings["blocks"][stack]):
                yield f"{stack}/{block}", step if block == 0 else None

    def _embedded(self, kind, ids):
        table = self.w.get(f"{kind}/embedding", self.w.get("targets/embedding"))
        x = ops.take(table, ids, axis=0)
        if self.settings["scaled"]:
            x = x * self.hidden**0.5
        return x * ops.cast(ops.not_equal(ids, 0), x.dtype)[..., None]

    def _with_positions(self, kind, x, index, positions):
        if self.settings["positions"] == "timing":
            return self._with_sinusoids(x, index, positions)
        if self.settings["positions"] == "none":
            return x
        table = ops.pad(self.w[f"{kind}/positions"], [[0, 1], [0, 0]])
        if positions is None:
            ones = ops.ones_like(x[:1, :, 0], dtype="int32")
            positions = index + ops.cumsum(ones, axis=1) - 1
        # Positions behind the table get nothing.
        return x + ops.take(table, ops.minimum(positions, len(table) - 1), axis=0)

    def _with_sinusoids(self, x, index, positions):
        if positions is not None:
            return self.sinusoids(x, positions=positions)
        if isinstance(index, int) and index == 0:
            return self.sinusoids(x)
        return self.sinusoids(x, start_index=index)

    def _step_signals(self, stack, x, step, index):
        if step is None or self.settings["steps"] is None:
            return x
        if self.settings["step_positions"]:
            x = self._with_sinusoids(x, index, None)
        if self.settings["step_signal"] == "learned":
            x = x + self.w[f"{stack}/steps"][step] * self.hidden**0.5
        elif self.settings["step_signal"] == "sinusoid":
            x = x + timing_signal(
                1,
                self.hidden,
                start_index=step,
                layout=self.layout,
                spectrum="tensor2tensor",
            )
        return x

    def _sublayer(self, name, x, function):
        y = x
        for _ in self.settings["before"]:
            y = self._normalized(f"{name}/before", y)
        y = function(y)
        for action in self.settings["after"]:
            y = x + y if action == "a" else self._normalized(f"{name}/after", y)
        return y

    def _normalized(self, name, x):
        if f"{name}_scale" not in self.w:
            return x
        centered = x - ops.mean(x, axis=-1, keepdims=True)
        variance = ops.mean(ops.square(centered), axis=-1, keepdims=True)
        normal = centered * ops.rsqrt(variance + self.settings["epsilon"])
        return normal * self.w[f"{name}_scale"] + self.w[f"{name}_bias"]

    def _keys_values(self, name, x):
        return [self._by_heads(f"{name}/{part}", x) for part in ("key", "value")]

    def _by_heads(self, name, x):
        kernel = self.w[name]
        parts = (self.heads, kernel.shape[1] // self.heads)
        y = ops.einsum("blc,chd->bhld", x, ops.reshape(kernel, (-1, *parts)))
        bias = self.w.get(f"{name}_bias")
        return y if bias is None else y + ops.reshape(bias, parts)[:, None]

    def _attention(self, name, x, keys_values, bias):
        keys, values = keys_values
        queries = self._by_heads(f"{name}/query", x)
        queries = queries * queries.shape[-1] ** -0.5
        weights = ops.softmax(ops.einsum("bhqd,bhkd->bhqk", queries, keys) + bias)
        mixed = ops.einsum("bhqk,bhkd->bhqd", weights, values)
        kernel = self.w[f"{name}/output"]
        kernel = ops.reshape(kernel, (self.heads, -1, kernel.shape[1]))
        y = ops.einsum("bhqd,hdc->bqc", mixed, kernel)
        bias = self.w.get(f"{name}/output_bias")
        return y if bias is None else y + bias

    def _feed_forward(self, name, x):
        inner = ops.matmul(x, self.w[f"{name}/ffn/in"]) + self.w[f"{name}/ffn/in_bias"]
        outer = ops.matmul(ops.relu(inner), self.w[f"{name}/ffn/out"])
        return outer + self.w[f"{name}/ffn/out_bias"]


SETTINGS = (
    "heads",
    "blocks",
    "before",
    "after",
    "epsilon",
    "scaled",
    "positions",
    "steps",
    "step_positions",
    "step_signal",
    "drops_padding",
    "unidirectional",
)


def _causal_bias(ids):
    """Returns the bias that hides what stands behind each of the ids."""
    # Not a range: the length may be unknown while the model is built.
    places = ops.cumsum(ops.ones_like(ids[:1]), axis=1)
    later = places[:, None] > places[:, :, None]
    return MASKED * ops.cast(later, "float32")[:, None]


def padding_bias(ids):
    """Returns the bias that hides the padding among ids."""
    return attention_bias_ignore_padding(ops.cast(ops.equal(ids, 0), "float32"))
