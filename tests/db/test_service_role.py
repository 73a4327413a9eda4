"""Least privilege on PostgreSQL: what the role of the service may do, how it gets it, and what
`check` says of it.
"""

import pytest

from frontdesk.config import Config, read_config
from frontdesk.db import Database
from frontdesk.db.checks import problems, role_failures
from frontdesk.db.service_role import current_role, grant_rights, renew_rights
from frontdesk.errors import FrontdeskError, Unavailable
from tests.cli.conftest import CommandLine
from tests.postgres import OWNER, SERVICE, as_role

pytestmark = pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)


@pytest.mark.parametrize(
    "statement",
    [
        "DROP TABLE members CASCADE",
        "DROP TRIGGER audit_entries_append_only ON audit_entries",
        "ALTER TABLE audit_entries DISABLE TRIGGER ALL",
        "TRUNCATE audit_entries",
        "DELETE FROM erasures",
        "UPDATE erasures SET actor = 'nobody'",
        "DELETE FROM audit_prunings",
        "DELETE FROM members",
        "UPDATE audit_entries SET actor = 'nobody'",
        "UPDATE member_history SET client = 'nobody'",
        "DELETE FROM member_history",
        "UPDATE alembic_version SET version_num = '0001'",
        "UPDATE installation SET row_digest_key = NULL",
        "DELETE FROM plans",
        "CREATE TRIGGER t BEFORE INSERT ON members EXECUTE FUNCTION suppress_redundant_updates_trigger()",
        ("CREATE OR REPLACE FUNCTION refuse_change() RETURNS trigger LANGUAGE plpgsql "
         "AS 'BEGIN RETURN NEW; END'"),
        "SET session_replication_role = replica",
        f"SET ROLE {OWNER}",
    ],
)  # fmt: skip
def test_the_service_role_can_not(db: Database, statement: str) -> None:
    with pytest.raises(Unavailable) as refused, db.write() as tx:
        tx.exec_driver_sql(statement)
    assert refused.value.code == "database_rights"


def production(database_url: str) -> Config:
    return read_config(
        {"FRONTDESK_DATABASE_URL": database_url, "FRONTDESK_ENVIRONMENT": "production"}
    )


def test_one_role_works_as_before_and_is_warned_of_in_production(
    owner: Database, database_url: str
) -> None:
    url = as_role(database_url, OWNER)
    assert problems(owner, read_config({"FRONTDESK_DATABASE_URL": url})) == []
    [warning] = role_failures(owner, production(url))
    assert warning.is_warning
    assert OWNER in warning.what
    assert "--service-role" in warning.remedy


def test_missing_rights_are_problems_others_warnings(
    owner: Database, db: Database, database_url: str
) -> None:
    with owner.write() as tx:
        tx.exec_driver_sql(f"REVOKE INSERT ON members FROM {SERVICE}")
        tx.exec_driver_sql(f"GRANT TRUNCATE ON audit_entries TO {SERVICE}")
    config = production(database_url)
    lacking, excess, *_ = role_failures(db, config)
    assert (lacking.is_warning, excess.is_warning) == (False, True)
    assert "INSERT on members" in lacking.what
    assert "TRUNCATE on audit_entries" in excess.what
    of_sandbox = read_config({"FRONTDESK_DATABASE_URL": database_url})
    assert [failure.is_warning for failure in role_failures(db, of_sandbox)] == [False]
    with owner.write_schema() as tx:
        renew_rights(tx)  # as a migration does
    assert current_role(db) == (SERVICE, False)
    assert not [failure for failure in role_failures(db, config) if not failure.is_warning]


def test_an_unknown_role_or_the_owner_is_refused(
    owner: Database, superuser: Database, db: Database
) -> None:
    for role, code in (("nobody here", "no_role"), (OWNER, "owner"), ("postgres", "owner")):
        with pytest.raises(FrontdeskError) as refused:
            grant_rights(superuser, role)
        assert refused.value.code == code
    with pytest.raises(FrontdeskError) as refused:  # a service can't give itself anything
        grant_rights(db, SERVICE)
    assert refused.value.code == "not_owner"


def test_the_owner_gives_the_rights_by_a_command_which_is_audited(database_url: str) -> None:
    give = ("migrate", "--service-role", SERVICE)
    as_owner = CommandLine(as_role(database_url, OWNER))
    assert f"The role {SERVICE} has the rights" in as_owner.text(*give)
    [entry] = as_owner.audit_trail()
    assert (entry["action"], entry["detail"]) == ("database.rights_given", {"role": SERVICE})
    assert "Only the owner of the tables" in CommandLine(database_url).refused(*give)
