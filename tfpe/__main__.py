"""`python -m tfpe`, the same as the command `tfpe`."""

from tfpe.tools.command_line import main

if __name__ == "__main__":
    main(prog_name="tfpe")
