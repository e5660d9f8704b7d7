"""The cases of reports.json: small inputs from fault reports, with right values."""

import json
from pathlib import Path

FILE = Path(__file__).with_name("reports.json")
REPORTS = {report["id"]: report for report in json.loads(FILE.read_text())}


def right(report):
    return REPORTS[report]["right"]
