"""The text encoders of tensor2tensor: the same ids of a text, the same text of ids.

References:
    - [tensor2tensor](https://github.com/tensorflow/tensor2tensor) 1.15.7:
      `data_generators/text_encoder.py` and `data_generators/tokenizer.py`
"""

import itertools
import json
import re
import unicodedata
from collections.abc import Iterable
from os import PathLike
from pathlib import Path

RESERVED = ("<pad>", "<EOS>")
# What an escaped token is written with, whatever else the vocabulary has.
ESCAPES = frozenset("\\_u;0123456789")
ESCAPED = re.compile(r"\\u|\\\\|\\([0-9]+);")
UNDEFINED = "\u3013"
QUOTES = ("'", '"')


def text_encoder(
    file: str | PathLike[str] | None = None,
    kind: str = "subword",
    *,
    reverse: bool = False,
    replace_oov: str | None = None,
) -> "TextEncoder":
    """Returns the text encoder of a vocabulary file of tensor2tensor.

    Args:
        file: path of the vocabulary, of "byte" `None`; or a JSON file that `save` of
            an encoder wrote, which says the rest itself.
        kind: "subword", "token" or "byte".
        reverse: bool, of "token", whether the ids stand in reversed order.
        replace_oov: str, of "token", the token that stands for unknown ones.

    Raises:
        ValueError: if the file does not fit the kind or the arguments.
    """
    kinds = {"subword": SubwordEncoder, "token": TokenEncoder, "byte": ByteEncoder}
    if kind not in kinds:
        allowed = ", ".join(map(repr, kinds))
        raise ValueError(f"`kind` must be one of {allowed}. Received: kind={kind!r}")
    if kind != "token" and (reverse or replace_oov is not None):
        raise ValueError(
            '`reverse` and `replace_oov` belong to kind="token". Received: '
            f"kind={kind!r}, reverse={reverse!r}, replace_oov={replace_oov!r}"
        )
    if (file is None) != (kind == "byte"):
        raise ValueError(
            '`file` must be a path, and with kind="byte" there is none. Received: '
            f"file={file!r}, kind={kind!r}"
        )
    saved = {"kind": "byte"} if file is None else _saved(file)
    if saved is not None:
        return kinds[saved.pop("kind")](**saved)
    # Other ends of lines are characters that a vocabulary can have.
    lines = _read(file).split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    if kind == "token":
        tokens = [line.strip() for line in lines]
        return TokenEncoder(tokens, reverse=reverse, replace_oov=replace_oov)
    return SubwordEncoder([_unquoted(line.rstrip()) for line in lines])


class SubwordEncoder:
    """Text as the longest pieces that a vocabulary has.

    Args:
        subwords: list of str, in the order of their ids.
    """

    def __init__(self, subwords: Iterable[str]) -> None:
        self.subwords = list(subwords)
        self._ids = {piece: i for i, piece in enumerate(self.subwords) if piece}
        self._alphabet = ESCAPES.union(*self.subwords)
        self._longest = max(map(len, self.subwords), default=0)

    @property
    def vocab_size(self) -> int:
        return len(self.subwords)

    def encode(self, text: str) -> list[int]:
        ids = []
        for token in _tokens(_as_text(text)):
            ids += self._encode_token(token)
        return ids

    def decode(self, ids: Iterable[int], strip_extraneous: bool = False) -> str:
        """Returns the text of ids; with `strip_extraneous` without ends behind it."""
        ids = _stripped(ids) if strip_extraneous else ids
        known = range(len(self.subwords))
        pieces = "".join(self.subwords[i] if i in known else "" for i in map(int, ids))
        tokens = [ESCAPED.sub(_unescaped, token) for token in pieces.split("_")]
        tokens = [token for token in tokens if token]
        text = tokens[:1]
        for before, token in itertools.pairwise(tokens):
            if _is_alphanumeric(before[0]) and _is_alphanumeric(token[0]):
                text.append(" ")
            text.append(token)
        return "".join(text)

    def save(self, file: str | PathLike[str]) -> None:
        """Writes the encoder to a JSON file, which `text_encoder` reads."""
        _write(file, {"kind": "subword", "subwords": self.subwords})

    def _encode_token(self, token):
        doubled = token.replace("\\", "\\\\").replace("_", "\\u")
        escaped = "".join(
            c if c in self._alphabet and c != "\n" else f"\\{ord(c)};" for c in doubled
        )
        return self._longest_pieces(escaped + "_")

    def _longest_pieces(self, escaped):
        ids, start = [], 0
        while start < len(escaped):
            ends = range(min(len(escaped), start + self._longest), start, -1)
            end = next((e for e in ends if escaped[start:e] in self._ids), None)
            if end is None:
                raise ValueError(
                    f"The vocabulary has no piece for {escaped[start]!r} in "
                    f"{escaped!r}, so the text has no ids. tensor2tensor fails, too"
                )
            ids.append(self._ids[escaped[start:end]])
            start = end
        return ids


class TokenEncoder:
    """Words between spaces as ids.

    Args:
        tokens: list of str, in the order of their ids.
        reverse: bool, whether the ids stand in reversed order.
        replace_oov: str, the token that stands for unknown ones.
    """

    def __init__(
        self,
        tokens: Iterable[str],
        *,
        reverse: bool = False,
        replace_oov: str | None = None,
    ) -> None:
        self.tokens = list(tokens)
        self._ids = {token: i for i, token in enumerate(self.tokens)}
        self._reverse = reverse
        self._replace_oov = replace_oov
        if replace_oov is not None and replace_oov not in self._ids:
            raise ValueError(
                "`replace_oov` must be a token of the vocabulary. Received: "
                f"replace_oov={replace_oov!r}"
            )

    @property
    def vocab_size(self) -> int:
        return len(self.tokens)

    def encode(self, text: str) -> list[int]:
        ids = []
        for token in _as_text(text).split():
            known = token if token in self._ids else self._replace_oov
            if known is None:
                raise ValueError(
                    f"The vocabulary has no token {token!r}, and no `replace_oov` "
                    "stands for it"
                )
            ids.append(self._ids[known])
        return ids[::-1] if self._reverse else ids

    def decode(self, ids: Iterable[int], strip_extraneous: bool = False) -> str:
        """Returns the text of ids; there is nothing that tensor2tensor strips."""
        del strip_extraneous
        ids = [int(i) for i in ids]
        known = range(len(self.tokens))
        words = [self.tokens[i] if i in known else f"ID_{i}" for i in ids]
        return " ".join(words[::-1] if self._reverse else words)

    def save(self, file: str | PathLike[str]) -> None:
        """Writes the encoder to a JSON file, which `text_encoder` reads."""
        settings = {"reverse": self._reverse, "replace_oov": self._replace_oov}
        _write(file, {"kind": "token", "tokens": self.tokens, **settings})


class ByteEncoder:
    """The bytes of a text in UTF-8, behind the reserved ids."""

    vocab_size = 256 + len(RESERVED)

    def encode(self, text: str) -> list[int]:
        return [byte + len(RESERVED) for byte in _as_text(text).encode("utf-8")]

    def decode(self, ids: Iterable[int], strip_extraneous: bool = False) -> str:
        """Returns the text of ids; with `strip_extraneous` without ends behind it."""
        ids = [int(i) for i in (_stripped(ids) if strip_extraneous else ids)]
        outside = [i for i in ids if not 0 <= i < self.vocab_size]
        if outside:
            raise ValueError(
                f"`ids` of bytes must be from 0 to {self.vocab_size - 1}. Received: "
                f"{outside[0]}"
            )
        reserved = [name.encode() for name in RESERVED]
        pieces = [
            reserved[i] if i < len(reserved) else bytes([i - len(reserved)])
            for i in ids
        ]
        return b"".join(pieces).decode("utf-8", "replace")

    def save(self, file: str | PathLike[str]) -> None:
        """Writes the encoder to a JSON file, which `text_encoder` reads."""
        _write(file, {"kind": "byte"})


TextEncoder = SubwordEncoder | TokenEncoder | ByteEncoder


def _tokens(text):
    """Yields runs of alphanumeric and of other characters, without single spaces.

    A space in front of everything or behind it is kept: there it separates nothing.
    """
    runs = ["".join(run) for _, run in itertools.groupby(text, _is_alphanumeric)]
    for number, run in enumerate(runs):
        if run != " " or number in (0, len(runs) - 1):
            yield run


def _is_alphanumeric(character):
    return unicodedata.category(character)[0] in "LN"


def _unescaped(match):
    if match[1] is None:
        return "_" if match[0] == "\\u" else "\\"
    try:
        return chr(int(match[1]))
    except (ValueError, OverflowError):
        return UNDEFINED


def _unquoted(line):
    quoted = line and line[0] in QUOTES and line[-1] == line[0]
    return line[1:-1] if quoted else line


def _stripped(ids):
    ids = list(ids)
    while ids and ids[-1] in range(len(RESERVED)):
        ids.pop()
    return ids


def _as_text(text):
    if not isinstance(text, str):
        raise TypeError(f"`text` must be a str. Received: {text!r}")
    return text


def _read(file):
    try:
        return Path(file).read_bytes().decode("utf-8")
    except OSError as error:
        raise ValueError(f"`file` cannot be read: {error}") from error
    except UnicodeDecodeError as error:
        raise ValueError(
            f"`file` must be text in UTF-8. Received: file={str(file)!r}: {error}"
        ) from error


def _saved(file):
    """Returns what `save` wrote, or `None` for a vocabulary of tensor2tensor."""
    if Path(file).suffix != ".json":
        return None
    try:
        saved = json.loads(_read(file))
    except json.JSONDecodeError as error:
        raise ValueError(f"`file` {file} must be JSON: {error}") from error
    keys = {"subword": "subwords", "token": "tokens", "byte": "kind"}
    if not isinstance(saved, dict) or keys.get(saved.get("kind")) not in saved:
        raise ValueError(
            "`file` must be a vocabulary, or the JSON that `save` of a text encoder "
            f"wrote. Received: {file}"
        )
    return saved


def _write(file, saved):
    Path(file).write_text(json.dumps(saved, indent=1), encoding="utf-8")
