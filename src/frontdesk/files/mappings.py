"""The mappings that an account keeps by name (docs/files.md). A file keeps the content of its mapping as it was when the file
came, so a mapping may change or go at any time."""

import re
from typing import Any

from frontdesk import audit
from frontdesk.audit.model import Requester
from frontdesk.clock import wire_time
from frontdesk.db import Tx
from frontdesk.errors import Fault, Invalid, NotFound
from frontdesk.files import store
from frontdesk.files.model import EligibilityFile, MappingName, NewFile, StoredMapping
from frontdesk.mapping.parser import parse_mapping

MOST_MAPPINGS = 50
DEFAULT_NAME = "default"
# Faults of a file that its mapping may have caused.
MAPPING_FAULTS = frozenset(
    ("no_header", "no_key_column", "missing_column", "repeated_column", "bad_mapping", "no_rows", "all_refused",
     "looks_like_ssn")
)  # fmt: skip
MAPPING_NAME = re.compile("[A-Za-z0-9._-]{1,64}")


def get_mapping(tx: Tx, account_id: int, name: str) -> StoredMapping:
    """Raises NotFound, also for one of another account."""
    found = store.find_mapping(tx, account_id, name) if MAPPING_NAME.fullmatch(name) else None
    if found is None:
        raise NotFound("eligibility mapping")
    return found


def save_mapping(
    tx: Tx,
    key: MappingName,
    content: dict[str, Any],
    requester: Requester,
    *,
    default: bool | None = None,
) -> bool:
    """Store the mapping for the files that come from now on; True if the name is new. `default` makes it the account's
    default, or takes that away; None leaves it as it is. Raises Invalid.

    A race with another writer of the account's mappings is a unique violation: run the transaction again.
    """
    parse_mapping(content)
    if faults := [
        Fault(name, "wrong_type", "must not be null") for name, value in content.items() if value is None
    ]:
        raise Invalid(faults)
    if not MAPPING_NAME.fullmatch(key.name):
        rule = "must have 1 to 64 letters, digits, dots, underscores or hyphens"
        raise Invalid([Fault("name", "not_allowed", rule)])
    known = {mapping.name: mapping.is_default for mapping in store.list_mappings(tx, key.account_id)}
    if key.name not in known and len(known) >= MOST_MAPPINGS:
        rule = f"must be one of the account's {MOST_MAPPINGS} mappings: delete one that is not used"
        raise Invalid([Fault("name", "not_allowed", rule)])
    is_default = known.get(key.name, False) if default is None else default
    store.save_mapping(tx, StoredMapping(key.account_id, key.name, content, is_default, requester.now))
    _record(tx, "mapping.saved", key, requester)
    return key.name not in known


def delete_mapping(tx: Tx, key: MappingName, requester: Requester) -> None:
    """Raises NotFound. Files that came before keep their copy."""
    if not MAPPING_NAME.fullmatch(key.name) or not store.delete_mapping(tx, key.account_id, key.name):
        raise NotFound("eligibility mapping")
    _record(tx, "mapping.deleted", key, requester)


def mapping_of(tx: Tx, new: NewFile) -> tuple[str | None, dict[str, Any] | None]:
    """The mapping for a new file: its own, the one that it names, else the account's default; with the sheet and the row of the
    header that the file comes with. Its name (None: it is not the account's) and its content.

    Raises NotFound, Invalid.
    """
    said = {"sheet": new.sheet, "header_row": new.header_row}
    places = {name: value for name, value in said.items() if value is not None}
    parse_mapping(places)
    name, content = _mapping_of(tx, new)
    return name, {**(content or {}), **places} if places else content


def _mapping_of(tx: Tx, new: NewFile) -> tuple[str | None, dict[str, Any] | None]:
    if new.mapping is not None:
        parse_mapping(new.mapping)
        return None, new.mapping
    if new.mapping_name is not None:
        found: StoredMapping | None = get_mapping(tx, new.account_id, new.mapping_name)
    else:
        found = store.find_mapping(tx, new.account_id, None)
    return (None, None) if found is None else (found.name, found.mapping)


def mapping_origin(file: EligibilityFile, code: str | None) -> str:
    """Names the account's mapping behind a fault that it may have caused; "" for others."""
    if code not in MAPPING_FAULTS or file.mapping_name is None:
        return ""
    remedy = "If that is the cause, correct it, or load the file with another one; `{}` is none."
    return f"The file was read by the account's mapping {file.mapping_name}. {remedy}"


def _record(tx: Tx, action: str, key: MappingName, requester: Requester) -> None:
    audit.record_action(tx, requester, action, key.account_id, name=key.name)


def serialize_mapping(mapping: StoredMapping) -> dict[str, Any]:
    """The mapping as JSON, the same for HTTP and the command line."""
    return {
        "type": "eligibility_mappings",
        "name": mapping.name,
        "is_default": mapping.is_default,
        "changed_at": wire_time(mapping.changed_at),
        "mapping": mapping.mapping,
    }
