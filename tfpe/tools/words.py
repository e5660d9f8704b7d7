"""What the command line prints: a layer as one writes it, and a report in words."""

import textwrap

import click

MARGIN = "    "
# So many names are shown of those that compute the same.
NAMES = 8


def call(settings, axis=-2):
    """Returns the layer with settings, as one writes it."""
    if axis != -2:
        settings = {**settings, "axis": axis}
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return f"SinusoidalPositionalEncoding({arguments})"


def wrap(head, text, margin=MARGIN):
    head = margin + head
    return textwrap.fill(
        text,
        79,
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_long_words=False,
        break_on_hyphens=False,
    )


def print_report(told, show_all, first_position):
    """Prints a `tfpe.tools.report.Report`."""
    if told.error:
        click.echo(f"Error: {told.error}", err=True)
        if not told.sinusoidal and not told.tensors:
            return
    count = len(told.sinusoidal)
    number = f"{count} sinusoidal table" if count else "no sinusoidal table"
    if told.error and not count:
        number += " in what could be read"
    click.echo(f"{told.file}: {number}{'s' if count > 1 else ''}")
    for table in told.sinusoidal:
        _print_table(table, show_all)
    if not (told.sinusoidal or told.partly or told.error):
        _print_hints(told, first_position)
    for tensor in told.partly:
        click.echo(f"  {_shown(tensor)}: sinusoidal in part; not all rows fit")
    for tensor in told.learned:
        click.echo(f"  {_shown(tensor)}: not sinusoidal; learned, by its name")
    others = told.others + told.rest
    if show_all:
        for tensor in others:
            click.echo(f"  {_shown(tensor)}: not sinusoidal")
    elif others:
        plural = "s" if len(others) > 1 else ""
        click.echo(f"  {len(others)} other tensor{plural} (--all lists them)")


def _shown(tensor):
    shape = " x ".join(map(str, tensor.shape)) or "scalar"
    return f"{tensor.name}, {shape}, {tensor.dtype}"


def _print_table(table, show_all):
    click.echo(f"  {_shown(table.tensor)}")
    for head, text in _lines(table, show_all):
        click.echo(wrap(f"{head:10}", text))


def _lines(table, show_all):
    """Yields what is known of a table, each with its heading."""
    found, zeros = table.found, table.rows_of_zeros
    if len(table.names) > 1:
        yield "also in", ", ".join(table.names[1:])
    if table.tensor.use:
        yield "where", table.tensor.use
    yield "layer", call(found.settings)
    if found.step == -1:
        (length,) = found.lengths
        yield "rows", f"counted down: call it with positions=-np.arange({length})"
    if table.tokens:
        yield (
            "",
            f"if row 0 is the first token; if row {zeros[-1] + 1} is, as in fairseq:",
        )
        yield "", call(table.tokens)
    if len(found.lengths) > 1:
        grid = f"{' x '.join(map(str, found.lengths))} positions"
        behind = ", behind the row of zeros of a class token" if zeros == [0] else ""
        yield "grid", grid + behind
    elif zeros:
        yield "zeros", f"{_rows(zeros)} zeros; ignored"
    names = table.conventions
    more = 0 if show_all else max(len(names) - NAMES, 0)
    text = ", ".join(names[: len(names) - more]) or "none"
    yield "names", text + (f" and {more} that compute the same" if more else "")
    yield "differs", f"by {found.residual:.1e}, root mean square"
    for settings in found.candidates[1:4]:
        yield "also as", call(settings)
    if len(found.candidates) > 4:
        yield "also as", f"{len(found.candidates) - 4} more"


def _rows(rows):
    if len(rows) == 1:
        return f"row {rows[0]} is"
    if len(rows) > 5:
        return f"rows {', '.join(map(str, rows[:5]))} and {len(rows) - 5} more are"
    return f"rows {', '.join(map(str, rows[:-1]))} and {rows[-1]} are"


def _print_hints(told, first_position):
    if first_position is not None:
        text = (
            f"No table has row 0 at position {first_position:g}. One may fit without "
            "--first-position, which is the position of row 0, not of the first token."
        )
    elif told.of_tensor2tensor:
        text = (
            "A checkpoint of tensor2tensor, which computes its signal and stores no "
            "table: from_convention('tensor2tensor'). `tfpe migrate` turns the whole "
            "model into a Keras model."
        )
    elif told.kind == "Keras":
        text = (
            "Searched: all weights. Keras files seldom hold such a table, since layers "
            "compute it when they are called; look at the code or the config."
        )
    else:
        where = {
            "ONNX": "initializers and Constant nodes, also of subgraphs and functions",
            "TensorFlow": "variables, and constants of the graph and its functions",
            "PyTorch": "parameters, saved buffers and constants of TorchScript",
        }.get(told.kind, "all arrays")
        text = f"Searched: {where}. The model may compute its signal when it is called."
    click.echo(textwrap.fill(text, 79, initial_indent="  ", subsequent_indent="  "))
