"""Words and their pronunciations: reading them, ids, error rates."""

import gzip
import string
import zlib

import numpy as np

PADDING, END = "<pad>", "<EOS>"  # Ids 0 and 1.


class InputError(Exception):
    """Something that the user can put right; its text is all there is to say."""


def read_words(path):
    """Returns a list of (word, phonemes) from a file of tab-separated lines."""
    opened = gzip.open if path.suffix == ".gz" else open
    try:
        with opened(path, "rt", encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    words = []
    for number, line in enumerate(lines, start=1):
        word, tab, phonemes = line.partition("\t")
        if not (word and tab and phonemes.split()) or "\t" in phonemes:
            raise InputError(
                f"{path}, line {number}: must be a word, a tab and phonemes with "
                f"spaces between them. Found: {line!r}"
            )
        words.append((word, phonemes.split()))
    return words


class Vocabulary:
    """The ids of letters and phonemes: padding, end, letters, sorted phonemes."""

    def __init__(self, words):
        letters = set().union(*(word for word, _ in words))
        self.letters = string.ascii_lowercase
        self.letters += "".join(sorted(letters.difference(self.letters)))
        phonemes = sorted(set().union(*(phonemes for _, phonemes in words)))
        self.symbols = [PADDING, END, *self.letters, *phonemes]
        # Two tables, for a phoneme may be written as a letter is.
        first = 2 + len(self.letters)
        self._letter_ids = {c: i for i, c in enumerate(self.letters, start=2)}
        self._phoneme_ids = {p: i for i, p in enumerate(phonemes, start=first)}

    def __len__(self):
        return len(self.symbols)

    def encode_words(self, words):
        """Returns int32 ids, a row for each word, with its end and padding."""
        for word in words:
            for letter in word:
                if letter not in self._letter_ids:
                    raise InputError(
                        f"unknown letter {letter!r} in {word!r}; the letters are "
                        f"{self.letters}"
                    )
        return _rows(words, self._letter_ids)

    def encode_phonemes(self, pronunciations):
        """Returns int32 ids, a row for each pronunciation."""
        return _rows(pronunciations, self._phoneme_ids)

    def decode(self, rows):
        """Returns the list of symbols before the first end, for each row of ids."""
        ended = [[self.symbols[i] for i in [*row, 1]] for row in rows]
        return [symbols[: symbols.index(END)] for symbols in ended]


def _rows(sequences, ids):
    rows = np.zeros((len(sequences), max(map(len, sequences)) + 1), "int32")
    for row, symbols in zip(rows, sequences, strict=True):
        row[: len(symbols) + 1] = [ids[symbol] for symbol in symbols] + [1]
    return rows


def error_rates(truths, predictions):
    """Returns wrong phonemes per true phoneme, and wrong words per word."""
    pairs = list(zip(truths, predictions, strict=True))
    phonemes = sum(edit_distance(*pair) for pair in pairs) / sum(map(len, truths))
    return phonemes, sum(a != b for a, b in pairs) / len(pairs)


def edit_distance(first, second):
    """Returns how many insertions, deletions and replacements lie between two lists."""
    distances = list(range(len(second) + 1))
    for i, a in enumerate(first, start=1):
        diagonal, distances[0] = distances[0], i
        for j, b in enumerate(second, start=1):
            replaced = diagonal + (a != b)
            diagonal = distances[j]
            distances[j] = min(replaced, distances[j] + 1, distances[j - 1] + 1)
    return distances[-1]
