"""How the commands end when what was asked for cannot be done."""

import click


class RefusedError(click.ClickException):
    """What was asked for cannot be done."""

    exit_code = 2
