"""Draws one-token mutants of the core at random, and lists those that no test kills.

    make mutants N=60 SEED=1

Each mutant runs in a copy of the tree, on the test files below, the quickest first, and
so does the tree without a mutant. A survivor either changes nothing that anyone can see
or shows what is not tested.
"""

import argparse
import ast
import io
import os
import queue
import random
import shutil
import subprocess
import sys
import tempfile
import tokenize
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
# Without `_backends`, most of which runs on other backends than the tests here.
CORE = (
    *("_arguments", "_channel_order", "_digits", "_input_axes", "_settings"),
    *("_sinusoids", "_tables", "_tensor_arguments", "embedding", "layer", "layouts"),
    *("positions", "signal", "spectra", "table"),
)
TESTS = (
    *("tests/test_widths.py", "tests/test_channels.py", "tests/test_cases.py"),
    *("tests/test_api.py", "tests/refusals", "tests/test_masks.py"),
    *("tests/test_positions.py", "tests/test_layer.py", "tests/test_saving.py"),
    *("tests/test_integers.py", "tests/test_embedding.py", "tests/test_sizes.py"),
    *("tests/test_contexts.py", "compat/test_layouts.py", "tests/test_accuracy.py"),
    *("tests/test_properties.py", "tests/test_graphs.py", "tests/test_memory.py"),
    *("tests/test_keras.py", "tests/test_tensor2tensor.py", "tests/test_exporters.py"),
)
SWAPS = (
    *(("+", "-"), ("*", "/"), ("//", "*"), ("%", "*"), ("<", "<="), (">", ">=")),
    *(("==", "!="), ("and", "or"), ("True", "False"), ("min", "max")),
    *(("minimum", "maximum"), ("sin", "cos")),
)
MEANINGS = {
    token: [other for pair in SWAPS for other in pair if token in pair != other]
    for token in {token for pair in SWAPS for token in pair}
}
LEFT_OUT = shutil.ignore_patterns(".git", ".venv*", "__pycache__", "site", ".*_cache")


class Mutant(NamedTuple):
    """One token of a file, and what stands there instead."""

    file: Path
    line: int
    start: int
    end: int
    new: str

    def source(self):
        lines = (ROOT / self.file).read_text().splitlines(keepends=True)
        line = lines[self.line - 1]
        lines[self.line - 1] = line[: self.start] + self.new + line[self.end :]
        return "".join(lines)

    def __str__(self):
        line = (ROOT / self.file).read_text().splitlines()[self.line - 1]
        old = line[self.start : self.end]
        shown = line.strip().replace("|", r"\|")
        return f"| {self.file}:{self.line} | `{old}` | `{self.new}` | `{shown}` |"


def replacements(token, before):
    """Yields what may stand in place of a token that follows the token `before`."""
    if token.type == tokenize.NUMBER and token.string.isdigit():
        yield from (str(int(token.string) + 1), f"({int(token.string) - 1})")
    unary = before in ("(", "[", "{", ",", "=", ":", "return", "in", "if", "else", "*")
    if token.string == "-" and unary:
        yield ""
    elif token.type in (tokenize.OP, tokenize.NAME):
        yield from (other for other in MEANINGS.get(token.string, ()))


def mutants():
    """Returns every mutant of the core that is Python and differs from it."""
    found = []
    for name in CORE:
        file = Path("tfpe") / f"{name}.py"
        if not (ROOT / file).exists():
            continue
        text, before = (ROOT / file).read_text(), ""
        tree = ast.dump(ast.parse(text))
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            line, start = token.start
            for new in replacements(token, before):
                mutant = Mutant(file, line, start, token.end[1], new)
                try:
                    if ast.dump(ast.parse(mutant.source())) != tree:
                        found.append(mutant)
                except SyntaxError:
                    continue
            before = token.string
    return found


def outcome(tree, seconds, mutant=None):
    """Says what the tests do in a copy of the tree, with a mutant in it."""
    if mutant:
        (tree / mutant.file).write_text(mutant.source())
    files = [file for file in TESTS if (ROOT / file).exists()]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTHONPATH": str(tree), "TF_CPP_MIN_LOG_LEVEL": "3"}
    try:
        done = subprocess.run(
            [*command, *files],
            cwd=tree,
            env=environment,
            timeout=seconds,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        return "timed out"
    finally:
        if mutant:
            shutil.copy(ROOT / mutant.file, tree / mutant.file)
    return "killed" if done.returncode else "survived"


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=60, help="mutants to draw")
    parser.add_argument("--seed", type=int, default=0, help="of the drawing")
    parser.add_argument("--jobs", type=int, default=2, help="mutants at a time")
    parser.add_argument("--seconds", type=float, default=1800, help="for each mutant")
    given = parser.parse_args(arguments)
    everything = mutants()
    drawn = random.Random(given.seed).sample(everything, given.count)
    print(f"{given.count} of {len(everything)} mutants, seed {given.seed}", flush=True)

    with tempfile.TemporaryDirectory() as folder:
        trees = queue.Queue()
        for job in range(given.jobs):
            tree = Path(folder) / str(job)
            shutil.copytree(ROOT, tree, ignore=LEFT_OUT)
            trees.put(tree)

        def tried(mutant=None):
            tree = trees.get()
            result = outcome(tree, given.seconds, mutant)
            trees.put(tree)
            print(f"{result} {mutant or 'without a mutant'}", flush=True)
            return result

        with ThreadPoolExecutor(given.jobs) as pool:
            unchanged = pool.submit(tried)
            results = list(pool.map(tried, drawn))
    if unchanged.result() != "survived":
        raise SystemExit("the tests fail without a mutant, so nothing was shown")
    survivors = [
        mutant
        for mutant, result in zip(drawn, results, strict=True)
        if result == "survived"
    ]
    print(f"\n{len(survivors)} of {given.count} mutants survived,", end=" ")
    print(f"{results.count('timed out')} timed out\n")
    print("| where | token | mutant | line |\n|---|---|---|---|")
    print(*survivors, sep="\n")


if __name__ == "__main__":
    main()
