"""The text encoders of tensor2tensor, against the ids and texts that it made itself."""

import json
from pathlib import Path

import pytest

from tfpe.migration.text import text_encoder

DATA = Path(__file__).parent / "data" / "tokenizer"
CASES = json.loads((DATA / "cases.json").read_text(encoding="utf-8"))
KINDS = {
    "subwords": {"kind": "subword"},
    "unquoted": {"kind": "subword"},
    "tokens": {"kind": "token"},
    "tokens_reversed": {"kind": "token", "reverse": True},
    "bytes": {"kind": "byte"},
}


def encoder(name):
    case = CASES[name]
    settings = {k: case[k] for k in ("replace_oov",) if k in case}
    file = case["file"] and DATA / case["file"]
    return text_encoder(file, **KINDS[name], **settings)


@pytest.mark.parametrize("name", KINDS)
def test_ids_and_texts_are_those_of_tensor2tensor(name, tmp_path):
    made = encoder(name)
    made.save(tmp_path / "text.json")
    made = text_encoder(tmp_path / "text.json")
    assert made.vocab_size == CASES[name]["vocab_size"]
    for case in CASES[name]["encode"]:
        if "error" in case:
            with pytest.raises(ValueError, match="no piece for"):
                made.encode(case["text"])
            continue
        assert made.encode(case["text"]) == case["ids"], case
        assert made.decode(case["ids"]) == case["decoded"], case
    for case in CASES[name]["decode"]:
        assert made.decode(case["ids"]) == case["text"], case
        if "stripped" in case:
            ended = [*case["ids"], 1, 0, 0]
            stripped = made.decode(ended, strip_extraneous=True)
            assert stripped == case["stripped"], case


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"file": "nowhere"}, "`file` cannot be read"),
        ({"kind": "words"}, "`kind` must be one of 'subword', 'token', 'byte'"),
        ({"file": "x", "kind": "byte"}, "`file` must be a path, and with kind=.byte."),
        ({"file": "x", "reverse": True}, "`reverse` and `replace_oov` belong to"),
    ],
)
def test_what_does_not_fit_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        text_encoder(**arguments)


def test_an_unknown_token_is_refused_by_name():
    tokens = text_encoder(DATA / "vocab.tiny.tokens", kind="token")
    with pytest.raises(ValueError, match="no token 'Zebra'"):
        tokens.encode("Zebra")
    with pytest.raises(ValueError, match="`replace_oov` must be a token"):
        text_encoder(DATA / "vocab.tiny.tokens", kind="token", replace_oov="Zebra")
