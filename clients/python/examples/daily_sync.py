"""Load the full list of a plan's members, every night: python daily_sync.py gold-2027 members.csv

FRONTDESK_URL, FRONTDESK_CLIENT_ID and FRONTDESK_CLIENT_SECRET have the address and the credentials.
Exit status: 0 every row was applied, 1 nothing was loaded, 3 some rows were refused, 4 a person has
to decide about the file.
"""

import os
import sys
from pathlib import Path

from frontdesk_client import Frontdesk, FrontdeskError


def main(address: str, client_id: str, client_secret: str, plan: str, path: str) -> int:
    with Frontdesk(address, client_id, client_secret) as desk:
        plan_ids = {found["external_id"]: found["id"] for found in desk.plans()}
        if plan not in plan_ids:
            sys.exit(f"There is no plan {plan}. The account has: {', '.join(plan_ids)}")
        file = desk.upload(plan_ids[plan], path, mode="full", file_name=Path(path).name)
        file.wait(timeout=3600)
        print(f"File {file.id} is {file.state}: {file.counts}")
        if file.problem:
            print(f"{file.problem['code']}: {file.problem['message']}")
        for line in file.report(outcome="refused"):
            print(f"row {line['row']}, {line['external_id']}: {line['field']} {line['hint']}")
        return {"done": 3 if "refused" in file.counts else 0, "held": 4}.get(file.state, 1)


if __name__ == "__main__":
    settings = [
        os.environ.get(f"FRONTDESK_{name}", "") for name in ("URL", "CLIENT_ID", "CLIENT_SECRET")
    ]
    if len(sys.argv) != 3 or not all(settings):
        sys.exit(__doc__)
    try:
        sys.exit(main(*settings, *sys.argv[1:]))
    except (FrontdeskError, OSError, ValueError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
