"""The command `tfpe migrate`."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tfpe.tools.migrate import migrate

ROOT = Path(__file__).parents[2]
VARIANTS = ROOT / "compat" / "golden" / "variants"
V1 = VARIANTS / "postnorm_v1"
VOCAB = VARIANTS / "vocab.tiny_upper.180.subwords"


def run(*arguments):
    return CliRunner().invoke(migrate, [str(a) for a in arguments])


def test_a_model_is_checked_saved_and_decoded(tmp_path):
    told = ["--vocab", VOCAB, "--target-space", 0, "--check", V1 / "reference.npz"]
    done = run(V1, *told, "--save", tmp_path, "--decode", "that were", "--beams", 2)
    assert done.exit_code == 0, done.output
    assert "the logits are those of" in done.output
    assert "100.0% of the predictions the same" in done.output
    files = {"model.keras", "source_text.json", "target_text.json"}
    assert files == {file.name for file in tmp_path.iterdir()}
    again = run(tmp_path, "--decode", "that were", "--beams", 2)
    assert again.exit_code == 0, again.output
    assert again.output.splitlines()[-2:] == done.output.splitlines()[-2:]


def test_other_logits_are_told_and_end_with_1_and_are_not_saved(tmp_path):
    told = ["--target-space", 1, "--check", V1 / "reference.npz"]
    done = run(V1, *told, "--save", tmp_path / "out")
    assert done.exit_code == 1
    assert "the logits are NOT those of" in done.output
    assert "they are of --target-space 0, and here it is 1" in done.output
    assert not (tmp_path / "out").exists()


def test_ids_are_decoded_without_a_vocabulary():
    done = run(V1, "--target-space", 0, "--decode", "3,4,5")
    assert done.exit_code == 0, done.output
    assert "3,4,5\n" in done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((V1,), "`--target-space` must be"),
        ((V1,), "Received: no --target-space"),
        (("nowhere",), "`folder` must have a checkpoint"),
        # Told before the load, which would ask for the target space.
        ((V1, "--decode", "a b"), "`--decode` must be ids"),
        ((V1, "--check", "nowhere"), "'--check': File 'nowhere' does not exist"),
        ((V1, "--check", VOCAB), "`--check` must be a file that numpy.savez wrote"),
        ((V1, "--vocab", "nowhere"), "'--vocab': File 'nowhere' does not exist"),
        ((V1, "--vocab", V1 / "hparams.json"), "`--vocab` must be a vocabulary, or"),
        ((V1, "--target-vocab", V1 / "hparams.json"), "`--target-vocab` must be a voc"),
        (
            (V1, "--target-space", 0, "--vocab", VOCAB, "--decode", ""),
            "`--decode` must have a text or ids each",
        ),
    ],
)
def test_what_is_wrong_is_told_without_a_traceback(arguments, message):
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.output
    assert isinstance(done.exception, SystemExit)


def test_a_file_to_check_with_must_have_what_the_model_takes(tmp_path):
    np.savez(tmp_path / "few.npz", inputs=np.ones((1, 2), "int32"))
    done = run(V1, "--target-space", 0, "--check", tmp_path / "few.npz")
    assert done.exit_code == 2
    assert "must have the arrays inputs, targets, logits" in done.output


def test_the_command_prints_what_the_guide_says(monkeypatch):
    page = ROOT / "docs" / "migrating-from-tensor2tensor.md"
    blocks = re.findall(
        r"```console\n\$ tfpe migrate (.*)\n((?:[^`].*\n)+)```\n",
        re.sub(r"\\\n *", "", page.read_text(encoding="utf-8")),
    )
    monkeypatch.chdir(ROOT)
    ((arguments, printed),) = blocks
    done = run(*shlex.split(arguments))
    assert done.exit_code == 0, done.output
    # The last digits of the difference are the machine's.
    shown = [re.sub(r"at most \S+ apart", "", text) for text in (done.stdout, printed)]
    assert shown[0] == shown[1]
