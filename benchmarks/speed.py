"""Time of a call in that of adding a constant."""

import gc
import sys
import time

from benchmarks.cases import Case, cases_for_this_machine
from benchmarks.peers import (
    KERAS_HUB,
    OURS,
    TENSOR2TENSOR,
    Constant,
    Tensor2tensor,
    peers,
)
from benchmarks.report import number, table, verdict
from benchmarks.timing import modes, prepared, race

RACING = 0.6  # of the time; the rest is for tracing, compiling and warming up.


def measure(seconds, quick=False, cases=None):
    """Races each peer against the constant.

    Args:
        seconds: how long all of it should take; a slow case takes longer.
        quick: bool, whether to leave out all but the most important cases.
        cases: list of `Case`, if not those for this machine.

    Returns:
        List of plain rows, one for each case and mode.
    """
    pairs = [
        (case, mode)
        for case in cases or cases_for_this_machine(quick)
        for mode in modes()
        if case.runs_in(mode)
    ]
    rows = []
    deadline = time.monotonic() + seconds
    for case, mode in pairs:
        print(f"{case}, {mode.name}", file=sys.stderr)
        gc.collect()  # The graphs and constants of the last case.
        left = max(0, deadline - time.monotonic()) / (len(pairs) - len(rows))
        # Ours is raced three times as long as each of the others.
        rows.append(_row(case, mode, RACING * left / (len(peers()) + 2)))
    return rows


def _row(case, mode, share):
    feeds = case.feeds()
    given = case.argument
    base = (
        Tensor2tensor(case.dtype)
        if given == "positions"
        else Constant(case.length, case.channels, case.dtype)
    )
    base = prepared(base, mode, feeds[0], given)
    results, base_seconds = {}, None
    for peer in peers():
        if (given and not peer.takes_positions) or (
            not mode.static and not peer.takes_any_length
        ):
            continue
        ours = peer.name == OURS
        try:
            other = peer.make(case.channels, case.dtype)
            other = prepared(other, mode, feeds[0], given)
            seconds, least = (3 * share, 9) if ours else (share, 3)
            result = race(base, other, feeds, seconds, least)
        except Exception as error:  # what fails is a result, too
            print(f"{peer.name}: {error}", file=sys.stderr)
            results[peer.name] = {"error": type(error).__name__}
            continue
        results[peer.name] = result._asdict()
        base_seconds = base_seconds or result.base_seconds
    limit = case.limit(mode)
    holds = None if limit is None else results[OURS].get("ratio", 1e9) <= limit
    return {
        "case": str(case),
        "mode": mode.name,
        "base": "sines" if given == "positions" else "constant",
        "base_seconds": base_seconds,
        "limit": limit,
        "holds": holds,
        "peers": results,
    }


def markdown(rows):
    names = [peer.name for peer in peers()]
    cells = [
        [
            row["case"],
            row["mode"],
            "" if row["limit"] is None else f"{row['limit']:g}",
            verdict(row["holds"]),
            *(_cell(row["peers"].get(name)) for name in names),
            f"{row['base']}, {number(1000 * (row['base_seconds'] or 0))} ms",
        ]
        for row in rows
    ]
    lines = [
        "Time of `inputs + signal`, median [quartiles], in that of a Keras layer that "
        "adds a constant; with positions given, in that of float32 sines of them.",
        table(["inputs", "mode", "limit", "holds", *names, "1 is"], cells),
    ]
    promises = claims(rows)
    if promises:
        cells = [
            [what, number(value), f"{sign} {limit}", verdict(holds)]
            for what, value, sign, limit, holds in promises
        ]
        lines.append(table(["of these", "measured", "limit", "holds"], cells))
    held = [row["holds"] for row in rows if row["holds"] is not None]
    held += [holds for *_, holds in promises]
    lines.append(f"{sum(held)} of {len(held)} limits hold.")
    return "\n\n".join(lines)


def _cell(result):
    if result is None:
        return "-"
    if "error" in result:
        return f"fails: {result['error']}"
    low, high = number(result["low"]), number(result["high"])
    return f"{number(result['ratio'])} [{low}, {high}]"


def claims(rows):
    """Returns what must hold between rows: (what, value, sign, limit, holds)."""
    ratios = {
        (row["case"], row["mode"], peer): result["ratio"]
        for row in rows
        for peer, result in row["peers"].items()
        if "ratio" in result
    }
    compiled = "jit" if "jit" in {row["mode"] for row in rows} else "XLA static"
    growths = (
        (Case(1, 131_072), Case(1, 8192)),
        (Case(1, 2048, 4096), Case(1, 2048, 64)),
    )
    wanted = [
        (
            f"{peer} in the time of tfpe, {case}, {mode}",
            (case, mode, peer),
            (case, mode, OURS),
            ">=",
            least,
        )
        for case, mode, peer, least in (
            (Case(1, 32_768), compiled, TENSOR2TENSOR, 6),
            (Case(1, 32_768), compiled, KERAS_HUB, 6),
            (Case(1, 4096), "graph unknown", TENSOR2TENSOR, 1.7),
            (Case(1, 4096), "graph unknown", KERAS_HUB, 6),
        )
    ] + [
        (
            f"tfpe's ratio for {large} in that for {small}, {compiled}",
            (large, compiled, OURS),
            (small, compiled, OURS),
            "<=",
            1.3,
        )
        for large, small in growths
    ]
    found = []
    for what, (case, *above), (other, *below), sign, limit in wanted:
        pair = ratios.get((str(case), *above)), ratios.get((str(other), *below))
        if None not in pair:
            value = pair[0] / pair[1]
            holds = value >= limit if sign == ">=" else value <= limit
            found.append((what, value, sign, limit, holds))
    return found
