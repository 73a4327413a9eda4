"""What a customer writes with the client of openapi-python-client. Arguments: address, client_id,
client_secret, a file.
"""

import json
import sys
from contextlib import suppress
from io import BytesIO
from pathlib import Path

from client import AuthenticatedClient, Client
from client.api.access import issue_token
from client.api.eligibility import enrol_member
from client.api.files import upload_eligibility_file
from client.models import MemberChange, NewMember, NewMemberMetadataType0, TokenRequest
from client.types import File

address, client_id, client_secret, path = sys.argv[1:]
robin = {"external_id": "E-1", "member_id": "M-1", "first_name": "Robin", "last_name": "Sample"}
robin |= {
    "dob": "1977-01-11",
    "gender": "female",
    "zipcode": "02134",
    "effective_date": "2026-01-01",
}

request = TokenRequest(
    grant_type="client_credentials", client_id=client_id, client_secret=client_secret
)
token = issue_token.sync(client=Client(base_url=address), body=request)
service = AuthenticatedClient(base_url=address, token=token.access_token)
metadata = NewMemberMetadataType0.from_dict({"department": "North"})
created = enrol_member.sync_detailed(1, client=service, body=NewMember(**robin, metadata=metadata))
lee = MemberChange(external_id="E-1", last_name="Sample-Lee")
changed = enrol_member.sync_detailed(1, client=service, body=lee)
with suppress(TypeError):
    NewMember(external_id="E-2")
    raise SystemExit("A new member needs more.")
refused = enrol_member.sync_detailed(1, client=service, body=MemberChange(external_id="E-2"))
file = File(payload=BytesIO(Path(path).read_bytes()), file_name="members.csv")
uploaded = upload_eligibility_file.sync_detailed(1, client=service, body=file, dry_run=True)
result = {
    "created": created.status_code,
    "changed": changed.parsed.last_name,
    "refused": refused.status_code,
    "uploaded": uploaded.status_code,
    "file": uploaded.parsed.to_dict(),
}
sys.stdout.write(json.dumps(result))
