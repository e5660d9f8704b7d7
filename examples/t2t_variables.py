"""The variables of a checkpoint of tensor2tensor's `transformer`: names and shapes."""

import re
from pathlib import Path

import numpy as np
import tensorflow as tf

BODY = "transformer/body/"
TARGET_SPACES = BODY + "target_space_embedding/kernel"
TABLE = re.compile(
    r"(?P<scope>transformer/symbol_modality_(?P<vocabulary>\d+)_\d+/)"
    r"(?P<kind>shared|input_emb|target_emb|softmax)/weights_(?P<shard>\d+)"
)


class Variables:
    """The variables of a checkpoint that belong to the model.

    Those of training, such as the slots of the optimizer, are left out.

    Args:
        checkpoint: folder with a checkpoint, or the common part of its files' names.

    Raises:
        ValueError: if there is none, or it has nothing of a `transformer`.
    """

    def __init__(self, checkpoint):
        self._path = _prefix(checkpoint)
        try:
            self._reader = tf.train.load_checkpoint(self._path)
            every = self._reader.get_variable_to_shape_map()
        except (tf.errors.OpError, ValueError, RuntimeError) as error:
            raise ValueError(
                "`checkpoint` must be a checkpoint of TensorFlow. Received: "
                f"checkpoint={checkpoint}, which cannot be read: {error}"
            ) from error
        self.shapes = {
            name: tuple(every[name])
            for name in sorted(every)
            # A slot has the name of its variable and one word more.
            if name.startswith("transformer/") and name.rpartition("/")[0] not in every
        }
        self._shards = {}
        for match in filter(None, map(TABLE.fullmatch, self.shapes)):
            shards = self._shards.setdefault((match["scope"], match["kind"]), {})
            shards[int(match["shard"])] = match
        if not self._shards:
            missing = ["transformer/symbol_modality_*/*/weights_*"]
            self._refuse(missing=missing, unknown=sorted(every))

    def value(self, name):
        return self._reader.get_tensor(name)

    def table(self, names):
        """Returns a table from its shards."""
        return np.concatenate([self.value(name) for name in names])

    def rows(self, names):
        return sum(self.shapes[name][0] for name in names)

    def sizes(self):
        """Returns the numbers of blocks, encoder's and decoder's, and the filter's."""
        blocks = []
        for stack in ("encoder", "decoder"):
            pattern = re.compile(rf"{BODY}{stack}/layer_(\d+)/")
            found = filter(None, map(pattern.match, self.shapes))
            blocks.append(1 + max((int(match[1]) for match in found), default=0))
        kernels = [n for n in self.shapes if n.endswith("/ffn/conv1/kernel")]
        return tuple(blocks), self.shapes[kernels[0]][-1] if kernels else 1

    def tables(self, target_vocabulary):
        """Returns the names of the shards of each table, by what it is for.

        Args:
            target_vocabulary: int or `None`, as in `load_transformer`.

        Returns:
            Dict with "inputs", "targets" and "softmax". Tables that are shared come
            more than once.
        """
        target = self._target_scope(target_vocabulary)
        source = next((s for s, _ in self._shards if s != target), target)
        found = {}
        for role, scope, kind in (
            ("inputs", source, "input_emb"),
            ("targets", target, "target_emb"),
            ("softmax", target, "softmax"),
        ):
            shards = self._shards.get((scope, kind)) or self._shards.get(
                (scope, "shared")
            )
            if shards is None:
                self._refuse(missing=[f"{scope}{kind}/weights_0"])
            self._check_shards(shards)
            found[role] = [shards[number][0] for number in sorted(shards)]
        return found

    def _target_scope(self, target_vocabulary):
        scopes = {scope for scope, _ in self._shards}
        telling = {s for s, kind in self._shards if kind in ("target_emb", "softmax")}
        if len(scopes) > 1:
            scopes = telling or scopes
        if len(scopes) > 1:
            sizes = {int(re.findall(r"\d+", scope)[-2]): scope for scope in scopes}
            if target_vocabulary not in sizes:
                raise ValueError(
                    f"`target_vocabulary` must be one of {sorted(sizes)}, as the "
                    "checkpoint does not tell which of them the targets have. "
                    f"Received: target_vocabulary={target_vocabulary}"
                )
            return sizes[target_vocabulary]
        return next(iter(scopes))

    def _check_shards(self, shards):
        match = next(iter(shards.values()))
        prefix = match[0].removesuffix(match["shard"])
        gaps = set(range(max(shards))).difference(shards)
        if gaps:
            self._refuse(missing=[f"{prefix}{number}" for number in sorted(gaps)])
        rows = self.rows(match[0] for match in shards.values())
        if rows != int(match["vocabulary"]):
            wanted = f"{rows} rows in all, not {match['vocabulary']}"
            self._refuse(misshapen=[f"{prefix}*: {wanted}"])

    def check(self, expected):
        """Compares the variables with those that are expected, shapes by name."""
        misshapen = [
            f"{name}: {self.shapes[name]}, not {shape}"
            for name, shape in expected.items()
            if self.shapes.get(name, shape) != shape
        ]
        missing = [name for name in expected if name not in self.shapes]
        unknown = [name for name in self.shapes if name not in expected]
        if missing or unknown or misshapen:
            self._refuse(missing=missing, unknown=unknown, misshapen=misshapen)

    def _refuse(self, **problems):
        lines = [f"\n  {kind}: {n}" for kind, names in problems.items() for n in names]
        raise ValueError(
            "`checkpoint` must have the variables of tensor2tensor's `transformer` "
            f"model and no others. Received: checkpoint={self._path}, with"
            + "".join(lines)
        )


def body_variables(encoder_blocks, decoder_blocks):
    """Yields the name of each layer with those of its variables in the body."""
    attentions = {"self": "self_attention", "cross": "encdec_attention"}
    parts = {"query": "q", "key": "k", "value": "v", "output": "output_transform"}

    def norm(scope):
        start = f"{scope}/layer_prepostprocess/layer_norm/layer_norm_"
        return [f"{start}scale", f"{start}bias"]

    for stack, blocks, kinds in (
        ("encoder", encoder_blocks, ["self"]),
        ("decoder", decoder_blocks, ["self", "cross"]),
    ):
        for block in range(blocks):
            layer, scope = f"{stack}_{block}", f"{BODY}{stack}/layer_{block}"
            for kind in kinds:
                attention = f"{scope}/{attentions[kind]}"
                yield f"{layer}_{kind}_norm", norm(attention)
                for part, name in parts.items():
                    kernel = f"{attention}/multihead_attention/{name}/kernel"
                    yield f"{layer}_{kind}_{part}", [kernel]
            yield f"{layer}_ffn_norm", norm(f"{scope}/ffn")
            for part, name in (("in", "conv1"), ("out", "conv2")):
                weights = [f"{scope}/ffn/{name}/{w}" for w in ("kernel", "bias")]
                yield f"{layer}_ffn_{part}", weights
        yield f"{stack}_norm", norm(BODY + stack)


def _prefix(checkpoint):
    """Returns the common part of the names of a checkpoint's files."""
    path = Path(checkpoint)
    if not path.is_dir():
        return str(path).removesuffix(".index")
    latest = tf.train.latest_checkpoint(path)
    if latest:
        return latest
    # The file that names the latest one is not there, or was made elsewhere.
    found = sorted(path.glob("*.index"))
    if len(found) != 1:
        raise ValueError(
            "`checkpoint` must be a folder with a checkpoint, or one of its "
            f"checkpoints. Received: checkpoint={checkpoint}, which has "
            f"{[file.stem for file in found]}"
        )
    return str(found[0].with_suffix(""))
