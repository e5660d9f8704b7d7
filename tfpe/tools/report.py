"""What a file adds: its tables, which of them are sinusoidal, in words or as JSON."""

import re
from dataclasses import dataclass, field

import numpy as np

from tfpe._arguments import as_first_position
from tfpe.conventions import CONVENTIONS
from tfpe.identification import Identification, identify
from tfpe.identification._names import names_from
from tfpe.tools import files

# A word of the name of a table of positions.
POSITION = re.compile(r"(^|[^a-z])(pos|pe|wpe|position|positional|positions)([^a-z]|$)")
# Tables of more numbers are looked at only if their first rows are sinusoidal.
LARGE, FIRST_ROWS = 2**24, 256
# Zeros in so many rows at the start may be padding; tokens start behind them.
PADDING = 8
# The frameworks whose conventions come first for a kind of file.
FRAMEWORKS = {
    "CTranslate2": ["CTranslate2", "PyTorch"],
    "Keras": ["Keras", "TensorFlow"],
    "ONNX": ["PyTorch"],
    "PyTorch": ["PyTorch"],
    "TensorFlow": ["TensorFlow", "Keras"],
    "safetensors": ["PyTorch"],
}
# Those that most models have, among those that compute the same.
WELL_KNOWN = (
    "pytorch_example",
    "annotated_transformer",
    "fairseq",
    "openai_whisper",
    "transformers_whisper",
    "transformers_marian",
    "tensor2tensor",
    "tensorflow_tutorial",
    "keras_hub",
    "paper",
)
TENSOR2TENSOR = re.compile(r"(^|/)(symbol_modality_\d+_|body/\w*(en|de)coder/layer_)")


@dataclass
class Table:
    """Equal tables of a file.

    Attributes:
        names: the names of the tensors.
        tensor: the first of them.
        found: what `identify` says.
        conventions: its names, the likeliest first.
        rows_of_zeros: the rows that are zero.
        tokens: the settings whose signal starts at the first row behind zeros,
            which may be padding, or `None`.
    """

    names: list[str]
    tensor: files.Tensor
    found: Identification
    conventions: list[str]
    rows_of_zeros: list[int]
    tokens: dict | None


@dataclass
class Report:
    """What is known of a file.

    Attributes:
        file: str, its path.
        kind: str, the library that wrote it.
        sinusoidal: list of `Table`s.
        partly: list of `Tensor`s of which half of the rows are sinusoidal.
        learned: list of `Tensor`s that are tables of positions by their names.
        others: list of the other `Tensor`s that look like tables.
        rest: list of the `Tensor`s that do not.
        error: str, why it could not be read, or a part of it; may be empty.
    """

    file: str
    kind: str = ""
    sinusoidal: list[Table] = field(default_factory=list)
    partly: list[files.Tensor] = field(default_factory=list)
    learned: list[files.Tensor] = field(default_factory=list)
    others: list[files.Tensor] = field(default_factory=list)
    rest: list[files.Tensor] = field(default_factory=list)
    error: str = ""

    @property
    def tensors(self):
        """All tensors but the sinusoidal tables."""
        return [*self.partly, *self.learned, *self.others, *self.rest]

    @property
    def of_tensor2tensor(self):
        """Whether it is a checkpoint of a model of tensor2tensor."""
        return any(TENSOR2TENSOR.search(tensor.name) for tensor in self.tensors)


def report(path, first_position=None, name=None, progress=iter):
    """Returns the `Report` of a file.

    Args:
        path: str, the file.
        first_position: the position of the first row of all tables, if known.
        name: str, the only tensor to look at.
        progress: a function from the list of tensors to an iterator over them.
    """
    told = Report(str(path))
    if first_position is not None:
        first_position = as_first_position(first_position)
    try:
        told.kind, tensors = files.tensors(path)
    except files.UnreadableError as error:
        told.error = str(error)
        return told
    if name is not None:
        if name not in tensors:
            told.error = f"{path} has no tensor {name}. It has: {_some(tensors)}"
            return told
        tensors = {name: tensors[name]}
    tables = [t for t in tensors.values() if t.is_table or t.name == name]
    told.rest = [t for t in tensors.values() if t not in tables]
    known = []
    for tensor in progress(tables):
        try:
            _look_at(tensor, told, known, first_position)
        except files.UnreadableError as error:
            told.error = str(error)
        except ValueError as error:  # not finite
            told.others.append(tensor)
            if name is not None:
                told.error = str(error)
    return told


def _some(tensors):
    names = list(tensors)
    return ", ".join(names[:5]) + (", ..." if len(names) > 5 else "") or "nothing"


def _look_at(tensor, told, known, first_position):
    values = np.squeeze(files.read(told.file, tensor))
    if values.size > LARGE and not identify(values[:FIRST_ROWS]).sinusoidal:
        told.others.append(tensor)  # an embedding of words, most likely
        return
    for table, same in known:
        if table.tensor.dtype == tensor.dtype and np.array_equal(values, same):
            table.names.append(tensor.name)
            return
    try:
        found = identify(values, first_position=first_position)
    except ValueError:  # not finite
        if not _half_fits(values):
            raise
        told.partly.append(tensor)
        return
    if not found.sinusoidal and first_position is None and _half_fits(values):
        told.partly.append(tensor)
        return
    if not found.sinusoidal:
        by_name = POSITION.search(tensor.name.lower().replace("_", " "))
        (told.learned if by_name else told.others).append(tensor)
        return
    zeros = np.flatnonzero(~values.any(axis=-1)).tolist() if values.ndim == 2 else []
    tokens, names = _behind(zeros, found)
    others = [name for name in found.names if name not in names]
    names += _ranked(others, told.kind, found.step)
    table = Table([tensor.name], tensor, found, names, zeros, tokens)
    known.append((table, values))
    told.sinusoidal.append(table)


def _half_fits(values):
    """Returns whether the first or the second half of the rows is sinusoidal."""
    if values.ndim != 2 or len(values) < 16:
        return False
    halves = np.split(values, [len(values) // 2])
    return any(np.isfinite(h).all() and identify(h).sinusoidal for h in halves)


def _behind(zeros, found):
    """Returns settings that start behind rows of zeros, and their conventions."""
    if not zeros or zeros[-1] >= PADDING or "axis" in found.settings or found.step != 1:
        return None, []
    first = found.settings.get("first_position", 0) + zeros[-1] + 1
    return {**found.settings, "first_position": first}, [
        name for candidate in found.candidates for name in names_from(candidate, first)
    ]


def _ranked(names, kind, step):
    first = FRAMEWORKS.get(kind, [])

    def rank(name):
        entry = CONVENTIONS[name]
        own = first.index(entry.framework) if entry.framework in first else len(first)
        known = WELL_KNOWN.index(name) if name in WELL_KNOWN else len(WELL_KNOWN)
        return entry.step != step, own, known

    return sorted(names, key=rank)


def as_json(told):
    """Returns a report as plain values for `json.dumps`."""

    def plain(tensor):
        return {
            "name": tensor.name,
            "shape": list(tensor.shape),
            "dtype": tensor.dtype,
        }

    return {
        "file": told.file,
        "kind": told.kind,
        "error": told.error or None,
        "sinusoidal": [
            {
                **plain(table.tensor),
                "names": table.names,
                "use": table.tensor.use or None,
                "settings": table.found.settings,
                "step": table.found.step,
                "residual": table.found.residual,
                "conventions": table.conventions,
                "candidates": list(table.found.candidates),
                "lengths": list(table.found.lengths),
                "rows_of_zeros": table.rows_of_zeros,
                "settings_behind_zeros": table.tokens,
            }
            for table in told.sinusoidal
        ],
        "sinusoidal_in_part": [plain(tensor) for tensor in told.partly],
        "learned_by_name": [plain(tensor) for tensor in told.learned],
        "other_tables": [plain(tensor) for tensor in told.others],
        "other_tensors": [plain(tensor) for tensor in told.rest],
    }
