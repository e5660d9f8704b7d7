"""The cases of reports.json: small inputs from fault reports, with right values."""

import json
from pathlib import Path

FILE = Path(__file__).with_name("reports.json")
REPORTS = {report["id"]: report for report in json.loads(FILE.read_text())}


def right(report):
    """Returns the right values of a report, out of the words around them too."""
    value = REPORTS[report]["right"]
    if isinstance(value, str) and "[" in value:
        return json.loads(value[value.index("[") :])
    return value
