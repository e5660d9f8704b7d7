"""An encoder-decoder Transformer with the positional encoding of `tfpe`.

The arithmetic is that of tensor2tensor's `transformer_base`: layer normalization
in front of each sublayer and behind each stack, attention without biases, one
matrix for embeddings and softmax if not told otherwise, embeddings times
sqrt(hidden), zeros for padding (id 0), targets shifted right.

The layers are plain Keras layers, found by name, and the arithmetic is functions
over them. So the same lines build the model that is trained and decode step by
step with it, also after it came back from a file.
"""

import keras
from keras import ops

import tfpe

MASKED = -1e9  # Added to a logit of the attention; its weight is then exactly 0.


def transformer(
    vocabulary,
    hidden=64,
    heads=4,
    blocks=2,
    filter_size=256,
    *,
    layout="interleaved",
    spectrum=None,
    dropout=0.0,
    target_space=False,
    inputs_vocabulary=None,
    tied=True,
):
    """Returns a model from `{"inputs": ids, "targets": ids}` to logits.

    Ids are int32 `(batch, length)`, 0 is padding, and the two lengths may differ.
    The model shifts the targets itself: its logits at a step, of shape
    `(batch, target length, vocabulary)`, depend on the targets before that step.

    Args:
        vocabulary: int, number of ids.
        hidden: int, width of the residual stream, a multiple of `heads`.
        heads: int, number of attention heads.
        blocks: int, number of blocks in the encoder, and in the decoder, or a pair.
        filter_size: int, width inside the feed-forward sublayers.
        layout: layout of the positional encoding, or `None` for no positions.
        spectrum: spectrum of the positional encoding, or `None` for the layout's.
        dropout: float, the rate at each of the places where tensor2tensor drops.
        target_space: bool, whether a learned vector is added to each input of the
            encoder: the row of tensor2tensor's table that belongs to its problem.
        inputs_vocabulary: int, number of ids of the inputs, if they have others and
            an embedding of their own. Defaults to `None`.
        tied: bool, whether the softmax has the matrix of the targets' embedding.

    Raises:
        ValueError: if `hidden` is not a multiple of `heads`.
    """
    if hidden % heads:
        raise ValueError(
            "`hidden` must be a multiple of `heads`. Received: "
            f"hidden={hidden}, heads={heads}"
        )
    made = [
        _embedding(vocabulary, hidden, "embedding", tie_weights=tied),
        keras.layers.Dropout(dropout, name="dropout"),
    ]
    if inputs_vocabulary is not None:
        made.append(_embedding(inputs_vocabulary, hidden, "inputs_embedding"))
    if layout is not None:
        made.append(
            tfpe.SinusoidalPositionalEncoding(layout, spectrum, name="positions")
        )
    if target_space:
        made.append(keras.layers.Embedding(1, hidden, name="target_space"))
    pair = (blocks, blocks) if isinstance(blocks, int) else blocks
    kinds_of = {"encoder": ("self",), "decoder": ("self", "cross")}
    for (stack, kinds), count in zip(kinds_of.items(), pair, strict=True):
        for block in range(count):
            for kind in kinds:
                made += _attention_layers(f"{stack}_{block}_{kind}", hidden, heads)
            made += _feed_forward_layers(f"{stack}_{block}_ffn", hidden, filter_size)
        made.append(_normalization(f"{stack}_norm"))
    layers = {layer.name: layer for layer in made}

    inputs = keras.Input((None,), dtype="int32", name="inputs")
    targets = keras.Input((None,), dtype="int32", name="targets")
    # Padding has a zero embedding, so a shift of ids is a shift of embeddings.
    shifted = ops.pad(targets, [[0, 0], [1, 0]])[:, :-1]
    logits, _ = decode(layers, shifted, encode(layers, inputs))
    return keras.Model({"inputs": inputs, "targets": targets}, logits)


def layers_by_name(model):
    return {layer.name: layer for layer in model.layers}


def encode(layers, inputs):
    """Returns what a decoder attends to.

    That is, keys and values for each of its blocks, and the bias that hides the
    padding among the inputs.
    """
    bias = MASKED * ops.cast(ops.equal(inputs, 0), "float32")[:, None, None, :]
    x = _embed(layers.get("inputs_embedding", layers["embedding"]), inputs)
    if "target_space" in layers:
        x = x + layers["target_space"](ops.zeros_like(inputs[:, :1]))
    x = _add_positions(layers, x, 0)
    for name in _blocks(layers, "encoder"):
        normal = layers[f"{name}_self_norm"](x)
        keys_values = _keys_values(layers, f"{name}_self", normal)
        x = x + _attend(layers, f"{name}_self", normal, keys_values, bias)
        x = x + _feed_forward(layers, f"{name}_ffn", x)
    x = layers["encoder_norm"](x)
    cross = [_keys_values(layers, f"{n}_cross", x) for n in _blocks(layers, "decoder")]
    return cross, bias


def decode(layers, ids, encoded, index=0, cache=None):
    """Returns logits for what follows each of the ids, and keys and values of these.

    Args:
        layers: dict of layers by name.
        ids: int32 `(batch, length)`; with a cache, the one id of step `index`.
        encoded: what `encode` returned.
        index: int or integer scalar, the step of the first id.
        cache: for each block, keys and values of all steps, right before `index`.
    """
    if cache is None:
        # Not a range: the length may be unknown while the model is built.
        steps = ops.cumsum(ops.ones_like(ids[:1, :]), axis=1)
        later = ops.greater(steps[:, None, None, :], steps[:, None, :, None])
    else:
        steps = ops.arange(cache[0][0].shape[1])
        later = ops.greater(steps, index)
        current = ops.equal(steps, index)[:, None, None]
    bias = MASKED * ops.cast(later, "float32")

    cross, cross_bias = encoded
    x = _add_positions(layers, _embed(layers["embedding"], ids), index)
    seen = []
    for block, name in enumerate(_blocks(layers, "decoder")):
        normal = layers[f"{name}_self_norm"](x)
        keys_values = _keys_values(layers, f"{name}_self", normal)
        if cache is not None:
            pairs = zip(keys_values, cache[block], strict=True)
            keys_values = [ops.where(current, new, old) for new, old in pairs]
        seen.append(keys_values)
        x = x + _attend(layers, f"{name}_self", normal, keys_values, bias)
        normal = layers[f"{name}_cross_norm"](x)
        x = x + _attend(layers, f"{name}_cross", normal, cross[block], cross_bias)
        x = x + _feed_forward(layers, f"{name}_ffn", x)
    return layers["embedding"](layers["decoder_norm"](x), reverse=True), seen


def _embedding(vocabulary, hidden, name, **kwargs):
    initializer = keras.initializers.RandomNormal(stddev=hidden**-0.5)
    return keras.layers.ReversibleEmbedding(
        vocabulary, hidden, embeddings_initializer=initializer, name=name, **kwargs
    )


def _normalization(name):
    return keras.layers.LayerNormalization(epsilon=1e-6, name=name)


def _attention_layers(name, hidden, heads):
    def projection(part, equation, shape):
        # Glorot's limit for the whole matrix, which is (hidden, hidden). Keras
        # would take the three axes of the kernel for those of a convolution.
        limit = (3 / hidden) ** 0.5
        return keras.layers.EinsumDense(
            equation,
            shape,
            kernel_initializer=keras.initializers.RandomUniform(-limit, limit),
            name=f"{name}_{part}",
        )

    split = "bth,hnd->btnd", (None, heads, hidden // heads)
    return [
        _normalization(f"{name}_norm"),
        projection("query", *split),
        projection("key", *split),
        projection("value", *split),
        projection("output", "btnd,ndh->bth", (None, hidden)),
    ]


def _feed_forward_layers(name, hidden, filter_size):
    return [
        _normalization(f"{name}_norm"),
        keras.layers.Dense(filter_size, activation="relu", name=f"{name}_in"),
        keras.layers.Dense(hidden, name=f"{name}_out"),
    ]


def _blocks(layers, stack):
    """Returns the names of the blocks of a stack."""
    ends = [name for name in layers if name.startswith(stack) and "ffn_out" in name]
    return [f"{stack}_{block}" for block in range(len(ends))]


def _embed(table, ids):
    x = table(ids) * table.output_dim**0.5
    return x * ops.cast(ops.not_equal(ids, 0), x.dtype)[..., None]


def _add_positions(layers, x, start_index):
    if "positions" in layers:
        x = layers["positions"](x, start_index=start_index)
    return layers["dropout"](x)


def _keys_values(layers, name, x):
    return [layers[f"{name}_key"](x), layers[f"{name}_value"](x)]


def _attend(layers, name, x, keys_values, bias):
    keys, values = keys_values
    queries = layers[f"{name}_query"](x)
    queries = queries * queries.shape[-1] ** -0.5
    weights = ops.softmax(ops.einsum("bqnd,bknd->bnqk", queries, keys) + bias)
    mixed = ops.einsum("bnqk,bknd->bqnd", layers["dropout"](weights), values)
    return layers["dropout"](layers[f"{name}_output"](mixed))


def _feed_forward(layers, name, x):
    x = layers[f"{name}_in"](layers[f"{name}_norm"](x))
    return layers["dropout"](layers[f"{name}_out"](layers["dropout"](x)))
