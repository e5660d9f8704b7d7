"""The speed as a picture, with each limit as a line."""

from matplotlib.figure import Figure


def draw(rows, path):
    """Draws the rows of `speed.measure`, a panel for each mode, into a file."""
    modes = list(dict.fromkeys(row["mode"] for row in rows))
    cases = list(dict.fromkeys(row["case"] for row in rows))
    names = list(dict.fromkeys(name for row in rows for name in row["peers"]))
    figure = Figure(figsize=(11, 2.4 * len(modes) + 1.5), layout="constrained")
    grid = figure.subplots(len(modes), 1, sharex=True, sharey=True, squeeze=False)
    for (ax,), mode in zip(grid, modes, strict=True):
        own = [(cases.index(r["case"]), r) for r in rows if r["mode"] == mode]
        for number, name in enumerate(names):
            aside = 0.15 * (number - (len(names) - 1) / 2)
            points = [
                (place + aside, row["peers"][name])
                for place, row in own
                if "ratio" in row["peers"].get(name, {})
            ]
            ax.errorbar(
                [place for place, _ in points],
                [p["ratio"] for _, p in points],
                yerr=[
                    [p["ratio"] - p["low"] for _, p in points],
                    [p["high"] - p["ratio"] for _, p in points],
                ],
                fmt="o",
                markersize=4,
                color=f"C{number}",
                label=name,
            )
        for place, row in own:
            if row["limit"]:
                ax.hlines(
                    row["limit"], place - 0.4, place + 0.4, "black", label="limit"
                )
        ax.axhline(1, color="grey", linewidth=0.5)
        ax.set(title=mode, yscale="log", ylabel="ratio")
        ax.yaxis.set_major_formatter("{x:g}")
        ax.grid(axis="y", alpha=0.3)
    ax.set_xticks(
        range(len(cases)),
        cases,
        rotation=40,
        rotation_mode="anchor",
        ha="right",
        fontsize=8,
    )
    handles, labels = grid[0, 0].get_legend_handles_labels()
    shown = dict(zip(labels, handles, strict=True))
    figure.legend(
        shown.values(), shown.keys(), loc="outside upper center", ncols=len(shown)
    )
    figure.savefig(path, dpi=120)
