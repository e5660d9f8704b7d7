"""The command line: `tfpe identify`, `tfpe plot` and `tfpe conventions`."""

import difflib
import math
import sys
import textwrap
from pathlib import Path

try:
    import click
except ImportError:
    sys.exit("The command line needs more packages: those of the extra `cli`.")

import numpy as np

import tfpe
from tfpe import plot as pictures
from tfpe.comparison import compare, signal_of
from tfpe.conventions import CONVENTIONS, OUTSIDE, convention
from tfpe.files import variables
from tfpe.identification import identify as identify_table

# The positions along each axis of a picture, by the number of axes.
LENGTHS = {1: (64,), 2: (12, 16), 3: (4, 6, 8)}


# The elements of a variable that is still read only to see what it is.
LARGEST = 2**25


class Refused(click.ClickException):
    """What was asked for cannot be done."""

    exit_code = 2


def _examples(*lines):
    # The backspace keeps click from filling the lines.
    return "\b\nExamples:\n" + "\n".join(f"  {line}" for line in lines)


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples(
        "tfpe identify model.safetensors",
        "tfpe plot paper tensor2tensor",
        "tfpe conventions",
    ),
)
@click.version_option(tfpe.__version__, prog_name="tfpe")
def main():
    """Sinusoidal positional encodings: whose is it, and what does it look like?"""


@main.command(
    epilog=_examples(
        "tfpe identify pe.npy",
        "tfpe identify weights.npz",
        "tfpe identify weights.npz --name pe",
        "tfpe identify model.ckpt-1000 --name transformer/position/embeddings",
    )
)
@click.argument("file")
@click.option("--name", help="The variable, needed if several look like tables.")
@click.option("--first-position", type=float, help="Position of row 0, if known.")
def identify(file, name, first_position):
    """Tell which settings made the table in FILE.

    FILE is .npy, .npz, .safetensors or a TensorFlow checkpoint: its prefix, its
    index file or its folder. Nothing is ever unpickled.

    The exit code is 0 if settings were found, 1 if none make this table, and 2
    if there is no such table. Without --name, variables are only listed if
    several look like tables; that is 0.
    """
    try:
        found = variables(file)
        tables = [v for v in found.values() if v.is_table]
        if name is None and len(tables) > 1:
            return _list(tables)
        chosen = _choose(found, tables, name)
        table = np.asarray(chosen.read())
        result = identify_table(table, first_position=first_position)
    except (TypeError, ValueError) as error:
        raise Refused(str(error)) from error
    _print_table(chosen, table)
    if not result.sinusoidal:
        reason = "it is not sinusoidal, or was trained"
        if first_position is not None and identify_table(table).sinusoidal:
            reason = f"not with --first-position {first_position:g}, but without it"
        click.echo(f"No settings make this table: {reason}.")
        sys.exit(1)
    _print_result(result)
    _print_zeros(table, result.settings)
    return None


def _choose(found, tables, name):
    if name is None:
        if tables:
            return tables[0]
        raise ValueError(
            "No variable looks like a table: floating, with at least 8 rows. "
            f"There is: {', '.join(found) or 'nothing'}"
        )
    if name in found:
        return found[name]
    close = difflib.get_close_matches(name, found, cutoff=0.4) or list(found)[:3]
    raise ValueError(
        f"`--name` must be a variable of the file, such as {' or '.join(close)}. "
        f"Received: {name}"
    )


def _list(tables):
    click.echo("Several variables look like tables; choose one with --name:")
    width = max(len(table.name) for table in tables)
    for table in tables:
        shape = " x ".join(map(str, table.shape))
        mark = "  sinusoidal" if _is_sinusoidal(table) else ""
        click.echo(f"  {table.name:{width}}  {shape}  {table.dtype}{mark}")


def _is_sinusoidal(variable):
    if math.prod(variable.shape) > LARGEST:
        return False  # an embedding of words, which would take long to read
    try:
        return identify_table(np.squeeze(variable.read())[:512]).sinusoidal
    except ValueError:
        return False  # not finite


def _print_table(variable, table):
    shape = " x ".join(map(str, table.shape))
    click.echo(f"table     {variable.name}, {shape}, {variable.dtype}")


def _print_zeros(table, settings):
    rows = np.flatnonzero(~np.squeeze(table).astype("float64").any(axis=-1))
    if rows.size:
        shown = ", ".join(map(str, rows[:5])) + (", ..." if rows.size > 5 else "")
        text = f"row {shown}, left out"
        if "axis" not in settings:
            text += (
                ". If that is padding, as in fairseq, tokens start behind it: "
                f"first_position={settings.get('first_position', 0) + rows[-1] + 1}"
            )
        click.echo(_wrap("zeros     ", text))


def _print_result(result):
    click.echo(f"layer     {_call(result.settings)}")
    click.echo(f"residual  {result.residual:.1e}, root mean square")
    click.echo(_wrap("names     ", ", ".join(result.names) or "none"))
    for settings in result.candidates[1:6]:
        click.echo(f"or        {_call(settings)}")
    if len(result.candidates) > 6:
        click.echo(f"or        {len(result.candidates) - 6} more that fit these rows")


def _call(settings, axis=-2):
    """Returns the layer with settings, as one writes it."""
    if axis != -2:
        settings = {**settings, "axis": axis}
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return f"SinusoidalPositionalEncoding({arguments})"


def _wrap(head, text):
    return textwrap.fill(
        text, 79, initial_indent=head, subsequent_indent=" " * len(head)
    )


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
    help="Positions, once for each axis.  [default: 64; 12 16; 4 6 8]",
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
    both and their difference, and whether they are equal, a permutation of each
    other, or different and where.
    """
    if len(names) > 2:
        raise click.UsageError(
            f"One or two conventions can be drawn, not {len(names)}."
        )
    output = output or "-".join(names)
    if not Path(output).suffix:
        output += ".png"
    try:
        entries = [convention(name) for name in names]
        length = length or LENGTHS[entries[0].axes]
        if any(entry.axes != len(length) for entry in entries):
            axes = ", ".join(f"{entry.name} has {entry.axes}" for entry in entries)
            raise ValueError(
                f"All must have as many axes as lengths, {len(length)}: {axes}."
            )
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
    except (ImportError, OSError, ValueError) as error:
        raise Refused(str(error)) from error
    click.echo(f"drawn in {output}")


@main.command(epilog=_examples("tfpe conventions", "tfpe conventions fairseq"))
@click.argument("name", required=False)
def conventions(name):
    """List the conventions, or say all that is known of the one called NAME."""
    if name is None:
        groups = {}
        for entry in CONVENTIONS.values():
            call = _call(entry.settings, entry.axis)
            groups.setdefault(call, []).append(entry.name)
        for call, names in groups.items():
            click.echo(f"{call}\n{_wrap('    ', ', '.join(names))}")
        click.echo(_wrap("Outside: ", ", ".join(OUTSIDE)))
        return
    try:
        entry = OUTSIDE.get(name) or convention(name)
    except ValueError as error:
        raise Refused(str(error)) from error
    click.echo(f"project     {entry.project}")
    click.echo(f"file        {entry.file}")
    click.echo(f"revision    {entry.revision}")
    if name in OUTSIDE:
        click.echo(_wrap("outside     ", entry.reason))
        return
    click.echo(f"layer       {_call(entry.settings, entry.axis)}")
    click.echo(_wrap("reproduces  ", entry.reproduces))
    if entry.beyond:
        click.echo(_wrap("beyond      ", entry.beyond))


if __name__ == "__main__":
    main()
