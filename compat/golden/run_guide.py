"""Runs the guide's lines for a user's old environment, on a variant made anew.

    python compat/golden/run_guide.py FOLDER

takes the lines from the page, puts in what a user would, and leaves `reference.npz`
in FOLDER/guide. `FOLDER/variants` must be there. It runs in the environment that
`make compat-live` builds, with a problem of its own.
"""

import os
import re
import sys
from pathlib import Path

import make_variants
from package import modalities, models, problem

PAGE = Path(__file__).parents[2] / "docs" / "migrating-from-tensor2tensor.md"
NAME = "unidirectional"


@models.register_problem
class TinyPair(problem.Problem):
    """The problem of the variants, with a name."""

    def hparams(self, defaults, _):
        names = ("inputs", "targets")
        defaults.modality = dict.fromkeys(names, modalities.ModalityType.SYMBOL)
        defaults.vocab_size = dict.fromkeys(names, make_variants.SYMBOLS)
        defaults.target_space_id = make_variants.SPACE

    def feature_encoders(self, _):
        return {}


def main(folder):
    folder = Path(folder)
    model, hparams_set, _, settings = make_variants.VARIANTS[NAME]
    told = {**make_variants.SIZES, **settings}
    put_in = {
        "SET": hparams_set,
        "OVERRIDES": ",".join(f"{name}={value}" for name, value in told.items()),
        "DATA": str(folder),
        "PROBLEM": "tiny_pair",
        "MODEL": model,
        "FOLDER": str((folder / "variants" / NAME).absolute()),
    }
    page = PAGE.read_text(encoding="utf-8")
    (lines,) = re.findall(r"```text\n(import numpy.*?)```", page, re.DOTALL)
    for name, value in put_in.items():
        lines = lines.replace(f'"{name}"', repr(value))
    # Not all models and problems can be imported there any more.
    lines = lines.replace("from tensor2tensor import models, problems\n", "")
    (folder / "guide").mkdir(exist_ok=True)
    os.chdir(folder / "guide")
    exec(compile(lines, str(PAGE), "exec"), {})


if __name__ == "__main__":
    main(*sys.argv[1:])
