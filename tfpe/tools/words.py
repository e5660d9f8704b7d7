"""What the command line prints: a layer as one writes it, and a report in words."""

import textwrap

import click

MARGIN = "    "


def call(settings, axis=-2):
    """Returns the layer with settings, as one writes it."""
    if axis != -2:
        settings = {**settings, "axis": axis}
    arguments = ", ".join(f"{name}={value!r}" for name, value in settings.items())
    return f"SinusoidalPositionalEncoding({arguments})"


def wrap(head, text, margin=MARGIN):
    head = margin + head
    return textwrap.fill(
        text, 79, initial_indent=head, subsequent_indent=" " * len(head)
    )


def print_report(told, show_all, first_position):
    """Prints a `tfpe.tools.report.Report`."""
    if told.error:
        click.echo(f"Error: {told.error}", err=True)
        if not told.sinusoidal and not told.tensors:
            return
    count = len(told.sinusoidal)
    number = f"{count} sinusoidal table" if count else "no sinusoidal table"
    click.echo(f"{told.file}: {number}{'s' if count > 1 else ''}")
    for table in told.sinusoidal:
        _print_table(table, table.conventions)
    if not told.sinusoidal:
        _print_hints(told, first_position)
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
    return f"{tensor.name}, {' x '.join(map(str, tensor.shape))}, {tensor.dtype}"


def _print_table(table, names):
    found = table.found
    click.echo(f"  {_shown(table.tensor)}")
    if len(table.names) > 1:
        click.echo(wrap("same      ", ", ".join(table.names[1:])))
    if table.tensor.use:
        click.echo(wrap("where     ", table.tensor.use))
    click.echo(f"{MARGIN}layer     {call(found.settings)}")
    if found.step == -1:
        (length,) = (n for n in table.tensor.shape[:-1] if n != 1)
        text = f"counted down: call it with positions=-np.arange({length})"
        click.echo(wrap("rows      ", text))
    click.echo(wrap("names     ", ", ".join(names) or "none"))
    click.echo(f"{MARGIN}residual  {found.residual:.1e}, root mean square")
    for settings in found.candidates[1:4]:
        click.echo(f"{MARGIN}or        {call(settings)}")
    if len(found.candidates) > 4:
        click.echo(f"{MARGIN}or        {len(found.candidates) - 4} more that fit")
    _print_zeros(table.rows_of_zeros, found.settings)


def _print_zeros(rows, settings):
    if rows:
        shown = ", ".join(map(str, rows[:5])) + (", ..." if len(rows) > 5 else "")
        text = f"row {shown}, left out"
        if "axis" not in settings:
            text += (
                ". If that is padding, as in fairseq, tokens start behind it: "
                f"first_position={settings.get('first_position', 0) + rows[-1] + 1}"
            )
        click.echo(wrap("zeros     ", text))


def _print_hints(told, first_position):
    if first_position is not None:
        text = f"Not with --first-position {first_position:g}; perhaps without it."
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
