"""Load the full list of a plan's members, every night: python daily_sync.py gold-2027 members.csv

Exit status: 0 every row was applied, 1 the file failed, 3 some rows were refused, 4 a person has to decide about the file.
"""

import os
import sys

from frontdesk_client import Frontdesk, FrontdeskError


def main(plan: str, path: str) -> int:
    names = ("FRONTDESK_URL", "FRONTDESK_CLIENT_ID", "FRONTDESK_CLIENT_SECRET")
    with Frontdesk(*(os.environ[name] for name in names)) as desk:
        plan_id = next(found["id"] for found in desk.plans(external_id=plan))
        file = desk.upload(plan_id, path, mode="full").wait(timeout=3600)
        print(f"File {file.id} is {file.state}: {file.counts}")
        if file.problem:
            print(f"{file.problem['code']}: {file.problem['message']}")
        for line in file.report(outcome="refused"):
            print(f"row {line['row']}, {line['external_id']}: {line['field']} {line['hint']}")
        return {"done": 3 if "refused" in file.counts else 0, "held": 4}.get(file.state, 1)


if __name__ == "__main__":
    try:
        sys.exit(main(*sys.argv[1:]))
    except FrontdeskError as error:
        sys.exit(f"{type(error).__name__}: {error}")
