"""The command line: `tfpe identify`, `tfpe plot`, `tfpe conventions`, `tfpe migrate`.

Nothing here imports Keras or a backend, so that an answer takes no seconds.
"""

import importlib
import importlib.util
import itertools
import json as json_module
import sys
from pathlib import Path

try:
    import click
except ImportError:
    sys.exit("The command line needs more packages: pip install 'tfpe[cli]'")

from tfpe.conventions import CONVENTIONS, OUTSIDE, close_names, lookup
from tfpe.tools.refused import RefusedError
from tfpe.tools.words import MARGIN, call, print_report, wrap

# The positions along each axis of a picture, by the number of axes.
LENGTHS = {1: (64,), 2: (12, 16), 3: (4, 6, 8)}
# The bytes of tables from which on progress is shown.
LARGE = 2**26


class Commands(click.Group):
    """The commands here, and `migrate`, whose imports take seconds."""

    def list_commands(self, context):
        return sorted({*super().list_commands(context), *_migrate_if_there()})

    def get_command(self, context, name):
        if name in _migrate_if_there():
            return importlib.import_module("tfpe.tools.migrate").migrate
        return super().get_command(context, name)

    def format_commands(self, context, formatter):
        with formatter.section("Commands"):
            rows = [
                (name, self.commands[name].get_short_help_str(limit=70))
                if name in self.commands
                else (name, "Turn a model of tensor2tensor into a Keras model.")
                for name in self.list_commands(context)
            ]
            formatter.write_dl(rows)


def _migrate_if_there():
    return ["migrate"] if importlib.util.find_spec("tfpe.tools.migrate") else []


def _examples(*lines):
    # The backspace keeps click from filling the lines.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples(
        "tfpe identify model.safetensors",
        "tfpe plot paper tensor2tensor",
        "tfpe conventions whisper",
    ),
)
@click.version_option(package_name="tfpe", prog_name="tfpe")
def main():
    """Sinusoidal positional encodings: which one is it, and what does it look like?"""


@main.command(
    epilog=_examples(
        "tfpe identify model.safetensors",
        "tfpe identify pytorch_model.bin model.onnx saved_model/",
        "tfpe identify model.pt --all",
        "tfpe identify pe.npy --first-position 2",
    )
)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "--all", "show_all", is_flag=True, help="List the other tensors and all names."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
@click.option("--name", help="Look at this tensor only.")
@click.option(
    "--first-position",
    type=float,
    help="Position of row 0, if known; not of the first token.",
)
def identify(files, show_all, as_json, name, first_position):
    """Tell what each model FILE adds, and the layer that adds the same.

    FILE may be of NumPy, safetensors, PyTorch, TorchScript, ONNX, TensorFlow
    (SavedModel, frozen graph, checkpoint), Keras or CTranslate2, or a folder with
    such files. Nothing is unpickled and no code of the file is run.

    The exit code is 0 if any table is sinusoidal, 1 if none is, and 2 if a file
    could not be read; the other files are answered all the same.
    """
    from tfpe.tools import report
    from tfpe.tools.files import model_files

    reports = []
    for file in itertools.chain.from_iterable(map(model_files, files)):
        try:
            told = report.report(file, first_position, name, _progress)
        except ValueError as error:
            raise RefusedError(str(error)) from error
        reports.append(told)
        if not as_json:
            print_report(told, show_all, first_position)
    if as_json:
        click.echo(json_module.dumps([report.as_json(t) for t in reports], indent=2))
    if any(told.error for told in reports):
        sys.exit(2)
    sys.exit(0 if any(told.sinusoidal for told in reports) else 1)


def _progress(tables):
    size = sum(4 * _elements(tensor) for tensor in tables)
    if size < LARGE or not sys.stderr.isatty():
        yield from tables
        return
    with click.progressbar(
        tables, label="Reading", file=sys.stderr, item_show_func=_name_of
    ) as bar:
        yield from bar


def _elements(tensor):
    count = 1
    for n in tensor.shape:
        count *= n
    return count


def _name_of(tensor):
    return tensor.name if tensor else None


@main.command(
    epilog=_examples(
        "tfpe plot tensor2tensor",
        "tfpe plot paper tensor2tensor --channels 512 --length 128",
        "tfpe plot mae_2d transformers_vit_mae --length 14 --length 14",
    )
)
@click.argument("names", nargs=-1, required=True, metavar="CONVENTION [CONVENTION]")
@click.option(
    "--length",
    type=click.IntRange(min=1),
    multiple=True,
    help="Positions along an axis; repeat it for each axis.  [default: 64; of two "
    "axes 12 and 16; of three 4, 6 and 8]",
)
@click.option("--channels", type=click.IntRange(min=2), default=64, show_default=True)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, writable=True),
    help="The picture: .png, .svg or .pdf.  [default: the names .png]",
)
def plot(names, length, channels, output):
    """Draw a convention, or two and their difference.

    Of one: its signal, its wavelengths and how alike positions are. Of two:
    both and their difference, and in words what differs: the order of the
    channels, the spacing of the timescales, the first position.
    """
    if len(names) > 2:
        raise click.UsageError(
            f"One or two conventions can be drawn, not {len(names)}."
        )
    entries = [_drawable(name) for name in names]
    output = output or "-".join(entry.name for entry in entries)
    if not Path(output).suffix:
        output += ".png"
    try:
        _draw(entries, length, channels, output)
    except OSError as error:
        raise RefusedError(
            f"{output} cannot be written: {error.strerror or error}"
        ) from error
    except (ImportError, ValueError) as error:
        raise RefusedError(str(error)) from error
    click.echo(f"drawn in {output}")


def _drawable(word):
    """Returns the convention of a word, if there is but one kind of it."""
    found = _lookup(word)
    inside = [entry for entry in found if entry.name in CONVENTIONS]
    if not inside:
        raise RefusedError(
            f"{found[0].name} is not covered by the layer. {found[0].reason}"
        )
    if any(
        (e.settings, e.axis) != (inside[0].settings, inside[0].axis) for e in inside
    ):
        names = ", ".join(entry.name for entry in inside[:5])
        raise RefusedError(f"{word!r} may be several, such as {names}: name one.")
    return inside[0]


def _lookup(word):
    try:
        return lookup(word)
    except ValueError as error:
        raise RefusedError(
            f"There is no convention {word!r}. Is it {' or '.join(close_names(word))}? "
            "`tfpe conventions` lists all."
        ) from error


def _draw(entries, length, channels, output):
    import tfpe.plot as pictures
    from tfpe.comparison import compare, in_words, signal_of

    length = length or LENGTHS[entries[0].axes]
    if any(entry.axes != len(length) for entry in entries):
        axes = " and ".join(f"{e.name} has {e.axes}" for e in entries)
        times = {1: "once", 2: "twice"}.get(entries[0].axes, "for each axis")
        way = f"give --length {times}"
        if len({entry.axes for entry in entries}) > 1:
            way = "only those of equally many axes can be compared"
        raise ValueError(f"Of axes {axes}: {way}.")
    names = [entry.name for entry in entries]
    settings = [{"axis": e.axis, **e.settings} for e in entries]
    if len(entries) == 1:
        figure = pictures.overview(length, channels, **settings[0])
    else:
        figure = pictures.difference(length, channels, *settings, labels=names)
    figure.suptitle(f"{' and '.join(names)}, {channels} channels")
    figure.savefig(output)
    if len(entries) == 2:
        first, second = (signal_of(length, channels, **s) for s in settings)
        click.echo(f"{' and '.join(names)} are {compare(first, second)}")
        for line in in_words(channels, *settings):
            click.echo(f"{MARGIN}{line}")


@main.command(epilog=_examples("tfpe conventions", "tfpe conventions fairseq"))
@click.argument("name", required=False)
def conventions(name):
    """List the conventions, or tell all that is known of NAME.

    NAME is a name of the list, or a project, a file, a function or a class.
    """
    if name is None:
        _list_conventions()
        return
    found = _lookup(name)
    for entry in found if len(found) <= 3 else []:
        _print_convention(entry, heading=entry.name != name)
    if len(found) > 3:
        click.echo(f"{len(found)} conventions match {name!r}:")
        for entry in found:
            what = "not covered" if entry.name in OUTSIDE else entry.reproduces
            click.echo(f"{MARGIN}{entry.name}: {entry.project}, {what}")


def _list_conventions():
    groups = {}
    for entry in CONVENTIONS.values():
        layer = call(entry.settings, entry.axis)
        groups.setdefault(layer, []).append(entry.name)
    for layer, names in groups.items():
        click.echo(f"{layer}\n{wrap('', ', '.join(names))}")
    click.echo(wrap("Not covered: ", ", ".join(OUTSIDE), margin=""))


def _print_convention(entry, heading):
    if heading:
        click.echo(entry.name)
    margin = MARGIN if heading else ""
    rows = [("project", entry.project), ("file", entry.file)]
    rows.append(("revision", entry.revision))
    if entry.name in OUTSIDE:
        rows.append(("not covered", entry.reason))
    else:
        rows.append(("layer", call(entry.settings, entry.axis)))
        rows.append(("reproduces", entry.reproduces))
        if entry.beyond:
            rows.append(("not covered", entry.beyond))
    for head, text in rows:
        if head in ("layer", "file"):
            click.echo(f"{margin}{head:12}{text}")
        else:
            click.echo(wrap(f"{head:12}", text, margin))
