"""What a start costs: nothing is compiled again, and a program imports only what it needs."""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src"


def test_a_start_compiles_no_module_of_ours() -> None:
    program = "import frontdesk.server, frontdesk.cli.serve, frontdesk.cli.worker"
    started = subprocess.run(
        [sys.executable, "-v", "-c", program], capture_output=True, text=True, check=True
    )
    loaded = re.findall(r"^# code object from '(.*)'$", started.stderr, re.MULTILINE)
    ours = [Path(name) for name in loaded if Path(name).is_relative_to(SOURCE)]
    assert len(ours) > 100
    assert [path for path in ours if path.suffix == ".py"] == []
