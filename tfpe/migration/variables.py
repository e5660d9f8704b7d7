"""The variables of tensor2tensor under one set of names, whatever its version.

The names here are `encoder/0/self/query`, `encoder/0/ffn/in`, `decoder/norm_scale`,
`targets/embedding` and so on; kernels have two axes, tables `(rows, hidden)`.
"""

import re

import numpy as np

from tfpe.migration.checkpoint import kind_of, unsupported

TABLE = re.compile(
    r"symbol_modality_(?P<rows>\d+)_\d+(?:_\d+)?/"
    r"(?P<kind>shared|input_emb|target_emb|softmax)/weights_(?P<shard>\d+)"
)
CLASSES = re.compile(r"class_label_modality[\d_]*/(?:.*/)?dense/(kernel|bias)")
BLOCK = re.compile(
    r"body/(?P<stack>encoder|decoder)/(?:layer_|universal_transformer_basic/rec_layer_)"
    r"(?P<block>\d+)/(?P<rest>.*)"
)
ATTENTIONS = {
    "self_attention": "self",
    "encdec_attention": "cross",
    "encoder_self_attention": "self",
    "decoder_self_attention": "self",
}
PARTS = {"q": "query", "k": "key", "v": "value", "output_transform": "output"}
PARTS_OF_2017 = {
    "q_transform_single": ["query"],
    "kv_transform_single": ["key", "value"],
    "qkv_transform_single": ["query", "key", "value"],
    "output_transform_single": ["output"],
}
OUTSIDE = {
    "body/target_space_embedding/kernel": "spaces",
    "body/inputs_positional_embedding": "inputs/positions",
    "body/targets_positional_embedding": "targets/positions",
    "body/encoder/universal_transformer_basic/layer_embedding": "encoder/steps",
    "body/decoder/universal_transformer_basic/layer_embedding": "decoder/steps",
}
# Along which axis of a variable the residual stream runs, by the end of its name.
RESIDUAL_AXES = {
    **dict.fromkeys(("query", "key", "value", "in", "classes"), 0),
    **dict.fromkeys(("output", "out", "embedding", "softmax"), 1),
    **dict.fromkeys(("space", "spaces", "positions", "steps"), 1),
    **dict.fromkeys(("output_bias", "out_bias"), 0),
    **dict.fromkeys(("before_scale", "before_bias", "after_scale", "after_bias"), 0),
    **dict.fromkeys(("norm_scale", "norm_bias"), 0),
}


def variables(checkpoint, sizes, progress=iter):
    """Returns the arrays of a checkpoint and their names there, by our names.

    Args:
        checkpoint: a `Checkpoint`.
        sizes: numbers of ids of the inputs' and the targets' text encoders, or
            `None` for those that are unknown.
        progress: function that returns an iterable of what it gets.
    """
    tables = {}
    for name in checkpoint.shapes:
        table = TABLE.fullmatch(name)
        if table:
            scope = name.partition("/")[0]
            shards = tables.setdefault((scope, table["kind"]), {})
            shards[int(table["shard"])] = name
    others = [name for name in checkpoint.shapes if not TABLE.fullmatch(name)]
    unknown = [name for name in others if not _names(name)]
    if unknown or not tables:
        unsupported(kind_of(unknown), unknown or list(checkpoint.shapes))
    found, origins = {}, {}
    for name in progress(others):
        value = checkpoint.value(name)
        if value.ndim == 4:  # a kernel of 2017, (1, 1, in, out), or (steps, 1, 1, out)
            value = value.reshape(max(value.shape[:-1]), value.shape[-1])
        names = _names(name)
        found.update(zip(names, np.split(value, len(names), axis=-1), strict=True))
        origins |= dict.fromkeys(names, checkpoint.start + name)
    found.update(_tables(checkpoint, tables, found, sizes))
    return found, origins


def their_name(name, origins):
    """Returns what a checkpoint would call a variable that it lacks.

    Args:
        name: our name of it.
        origins: the checkpoint's names of those that it has, by our names.
    """
    own, rest = name.split("/", 1) if "/" in name else (name, "")
    other = {"encoder": "decoder", "decoder": "encoder"}.get(own, own)
    numbered = re.sub(r"^\d+/", r"(\\d+)/", rest)
    # The same variable of another block has that name with another number.
    for stack in (own, other):
        for ours, theirs in origins.items():
            like = re.fullmatch(f"{stack}/{numbered}", ours)
            if like and like.groups():
                block = rest.partition("/")[0]
                theirs = theirs.replace(f"layer_{like[1]}/", f"layer_{block}/")
            if like:
                return theirs.replace(stack, own)
    start = next(iter(origins.values()), "").partition("body/")[0]
    possible = (t for t in _possible(own, rest) if name in _names(t))
    return start + next(possible, name)


def _possible(stack, rest):
    """Yields names that 1.15.7 may have for a variable of a stack."""
    block = rest.partition("/")[0]
    yield from OUTSIDE
    yield from (f"class_label_modality/dense/{end}" for end in ("kernel", "bias"))
    for end in ("scale", "bias"):
        norm = f"layer_norm/layer_norm_{end}"
        yield f"body/{stack}/layer_prepostprocess/{norm}"
        for sublayer in ("self_attention", "encdec_attention", "ffn"):
            for when in ("prepost", "post"):
                place = f"body/{stack}/layer_{block}/{sublayer}"
                yield f"{place}/layer_{when}process/{norm}"
    for sublayer in ("self_attention", "encdec_attention"):
        attention = f"body/{stack}/layer_{block}/{sublayer}/multihead_attention"
        yield from (f"{attention}/{part}/kernel" for part in PARTS)
    for number in "12":
        dense = f"body/{stack}/layer_{block}/ffn/conv{number}"
        yield from (f"{dense}/{end}" for end in ("kernel", "bias"))


def _names(name):
    """Returns our names of the parts of a variable, [] if it is unknown."""
    if name in OUTSIDE:
        return [OUTSIDE[name]]
    classes = CLASSES.fullmatch(name)
    if classes:
        return ["classes" if classes[1] == "kernel" else "classes_bias"]
    norm = re.fullmatch(
        r"body/(encoder|decoder)/layer_prepostprocess/layer_norm/layer_norm_(\w+)", name
    )
    if norm:
        return [f"{norm[1]}/norm_{norm[2]}"]
    block = BLOCK.fullmatch(name)
    if not block:
        return []
    start = f"{block['stack']}/{block['block']}"
    names = _names_in_block(block["rest"], block["stack"])
    return [f"{start}/{name}" for name in names]


def _names_in_block(rest, stack):
    sublayer, _, inner = rest.partition("/")
    # In 2017 the normalizations of a block were numbered in the order of use.
    numbered = re.fullmatch(r"layer_norm(?:_(\d))?/layer_norm_(scale|bias)", rest)
    if numbered:
        order = ["self", "ffn"] if stack == "encoder" else ["self", "cross", "ffn"]
        number = int(numbered[1] or 0)
        return [f"{order[number]}/after_{numbered[2]}"] if number < len(order) else []
    place = ATTENTIONS.get(sublayer) or (
        "ffn" if sublayer in ("ffn", "conv_hidden_relu") else None
    )
    if place is None:
        return []
    norm = re.fullmatch(
        r"layer_(pre|post)(?:post)?process/layer_norm/layer_norm_(scale|bias)", inner
    )
    if norm:
        when = "before" if norm[1] == "pre" else "after"
        return [f"{place}/{when}_{norm[2]}"]
    if place == "ffn":
        dense = re.fullmatch(r"conv([12])(?:_single)?/(kernel|bias)", inner)
        end = dense and ("_bias" if dense[2] == "bias" else "")
        return [f"ffn/{'in' if dense[1] == '1' else 'out'}{end}"] if dense else []
    kernel = re.fullmatch(r"multihead_attention/(\w+)/kernel", inner)
    if kernel and kernel[1] in PARTS:
        return [f"{place}/{PARTS[kernel[1]]}"]
    old = re.fullmatch(r"(\w+_single)/(kernel|bias)", inner)
    end = old and ("_bias" if old[2] == "bias" else "")
    return [f"{place}/{p}{end}" for p in PARTS_OF_2017.get(old[1], [])] if old else []


def _tables(checkpoint, tables, found, sizes):
    """Returns the tables of the symbols: those of inputs, targets and softmax."""
    whole = {
        key: _whole(checkpoint, shards, int(re.search(r"modality_(\d+)", key[0])[1]))
        for key, shards in tables.items()
    }
    scopes = sorted({scope for scope, _ in whole})
    has_inputs = any(name.startswith("encoder/") for name in found)
    if "classes" in found:
        source, target = scopes[0], None
    elif len(scopes) == 1:
        source = target = scopes[0]
    elif len(scopes) == 2:
        source, target = _source_and_target(scopes, set(whole), sizes)
    else:
        unsupported("has more than two kinds of symbols", scopes)
    chosen = {}
    if has_inputs:
        chosen["inputs/embedding"] = _of(checkpoint, whole, source, "input_emb")
    if target is not None:
        chosen["targets/embedding"] = _of(checkpoint, whole, target, "target_emb")
        softmax = _of(checkpoint, whole, target, "softmax")
        if softmax is not chosen["targets/embedding"]:
            chosen["softmax"] = softmax
        # One table for both is kept once.
        if chosen.get("inputs/embedding") is chosen["targets/embedding"]:
            del chosen["inputs/embedding"]
    return chosen


def _of(checkpoint, whole, scope, kind):
    for known in (kind, "shared"):
        if (scope, known) in whole:
            return whole[scope, known]
    raise ValueError(
        f"The checkpoint lacks the variable {checkpoint.start}{scope}/{kind}/weights_0"
    )


def _source_and_target(scopes, keys, sizes):
    targets = {s for s, kind in keys if kind in ("target_emb", "softmax")}
    sources = {s for s, kind in keys if kind == "input_emb"}
    if len(sources | targets) and len(targets) < 2 and len(sources) < 2:
        target = targets or set(scopes) - sources
        target = next(iter(target))
        return next(s for s in scopes if s != target), target
    rows = {s: int(re.search(r"modality_(\d+)", s)[1]) for s in scopes}
    orders = [scopes, scopes[::-1]]
    # A vocabulary may have fewer ids than the model: their number is rounded up.
    fitting = [
        order
        for order in orders
        if all(n is None or n == rows[s] for n, s in zip(sizes, order, strict=True))
    ]
    if len(fitting) != 1 or sizes == (None, None):
        raise ValueError(
            "`vocab` and `target_vocab` must tell which of the two tables of symbols, "
            f"with {' and '.join(map(str, rows.values()))} rows, the targets have, as "
            f"nothing else does. Received: vocabularies of {sizes} ids"
        )
    return fitting[0]


def _whole(checkpoint, shards, rows):
    gaps = sorted(set(range(max(shards) + 1)) - set(shards))
    if gaps:
        name = re.sub(r"\d+$", str(gaps[0]), next(iter(shards.values())))
        raise ValueError(f"The checkpoint lacks the variable {checkpoint.start}{name}")
    table = np.concatenate([checkpoint.value(shards[n]) for n in sorted(shards)])
    if len(table) != rows:
        raise ValueError(
            f"The shards of {shards[0]} must have {rows} rows in all, as the name "
            f"says. Received: {len(table)}"
        )
    return table
