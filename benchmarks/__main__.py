"""python -m benchmarks: prints the tables, as Markdown."""

import argparse
import gc
import json
import logging
import os
import sys
from pathlib import Path

SECTIONS = {
    "speed": "Speed",
    "memory": "Memory, tracing and compilation",
    "accuracy": "Accuracy",
    "sizes": "Files and building",
    "commands": "The command line",
    "model": "In a model",
}


def main(arguments=None):
    options = parse(arguments)
    limit_cores(options.cores)
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # Read when TensorFlow starts.
    # A peer has TensorFlow trace it anew for each length, and TensorFlow warns.
    logging.getLogger("tensorflow").setLevel("ERROR")
    from benchmarks import accuracy, commands, memory, model, report, sizes, speed

    gc.freeze()  # What was imported is no garbage, and takes long to look through.
    results = {"environment": report.environment()}
    print("# Benchmarks\n")
    print(", ".join(f"{key} {value}" for key, value in results["environment"].items()))
    measured = {
        **{"speed": speed, "memory": memory, "accuracy": accuracy},
        **{"sizes": sizes, "commands": commands, "model": model},
    }
    for name, title in SECTIONS.items():
        if name not in options.section:
            continue
        seconds = options.seconds * {"speed": 0.6, "model": 0.1}.get(name, 0)
        results[name] = measured[name].measure(seconds, options.quick)
        print(f"\n## {title}\n\n{measured[name].markdown(results[name])}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")
    if options.plot:
        from benchmarks import picture

        picture.draw(results["speed"], options.plot)


def limit_cores(count):
    """Takes the first cores only; the backend, not yet imported, follows."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def parse(arguments):
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks",
        description="Measure tfpe, and what one would use instead, on Keras' backend.",
    )
    add = parser.add_argument
    add("--quick", action="store_true", help="fewer cases, in about a minute")
    add(
        "--seconds", type=float, help="about how long to take (default: 300, quick: 40)"
    )
    add(
        "--section",
        nargs="+",
        choices=SECTIONS,
        default=list(SECTIONS),
        metavar="NAME",
        help=f"some of {', '.join(SECTIONS)} (default: all)",
    )
    add("--cores", type=int, default=2, help="CPU cores to use (default: 2)")
    add("--json", type=Path, metavar="FILE", help="write all figures to a file")
    add("--plot", type=Path, metavar="FILE", help="draw the speed, as a picture")
    options = parser.parse_args(arguments)
    if options.cores < 1:
        parser.error(f"--cores must be at least 1, not {options.cores}")
    if options.plot and "speed" not in options.section:
        parser.error("--plot draws the section speed, which is not among --section")
    if options.seconds is None:
        options.seconds = 40 if options.quick else 300
    return options


if __name__ == "__main__":
    sys.exit(main())
