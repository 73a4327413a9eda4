"""The SQL of members and their history."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import Any

import orjson
from sqlalchemy import ColumnElement, Row, and_, exists, func, literal, null, select, tuple_

from frontdesk.clock import account_day
from frontdesk.config import Uniqueness
from frontdesk.db import Tx, sets
from frontdesk.db.sets import Found, SetTransaction
from frontdesk.eligibility import model
from frontdesk.eligibility.fields import STORED_COLUMNS, STORED_FIELDS
from frontdesk.eligibility.tables import (
    distinct_members,
    member_history,
    members,
    uniqueness_holders,
    uniqueness_probes,
)
from frontdesk.plans import find_owners
from frontdesk.reach import Reach

Values = dict[str, Any]
DIGESTS = ("person_digest", "family_digest")  # that similar members share
MOST_RELATIVES = 100  # that are looked at of a family
_OWN = ("id", "account_id", "plan_id", "uniqueness_scope", "merged_into", "updated_at")
_READ = (*_OWN, *STORED_COLUMNS, *DIGESTS)
_OF_RECORD = ("created_at", *STORED_FIELDS, "email_folded", "coverages", "expiry_before_absence")
_RECORD = tuple(members.c[name] for name in (*_OWN, *_OF_RECORD))
_SHOWN = [column for column in members.c if column.name not in ("row_digest", *DIGESTS)]

# Neither withdrawn nor merged.
_IS_THERE = (members.c.uniqueness_scope >= 0, members.c.merged_into.is_(None))


def lock_by_keys(
    tx: SetTransaction, keys: Mapping[int, Mapping[str, set[str]]], *, lock: bool = True
) -> list[Found]:
    """The members that hold any of the keys, which are given by uniqueness scope and column. Set
    reads, which lock the members of a scope in id order.
    """
    return [
        sets.lock_set(
            tx, members, keys[scope], columns=_READ, within={"uniqueness_scope": scope}, lock=lock
        )
        for scope in sorted(keys)
    ]


def with_merged(
    tx: SetTransaction, by_id: dict[int, model.StoredMember], *, lock: bool = True
) -> dict[int, model.StoredMember]:
    """The members, and those that merged ones among them lead to, by id."""
    while True:
        leads_to = {member.values["merged_into"] for member in by_id.values()}
        missing = leads_to - by_id.keys() - {None}
        if not missing:
            return by_id
        by_id = by_id | lock_by_ids(tx, missing, lock=lock)


def lock_by_ids(
    tx: SetTransaction, ids: Collection[int], *, lock: bool = True
) -> dict[int, model.StoredMember]:
    """The members by id, locked in id order."""
    with sets.one_round_trip(tx):
        found = sets.lock_set(tx, members, {"id": ids}, columns=_READ, within={}, lock=lock)
    return stored_members([found])


def lock_renamed(tx: SetTransaction, external_ids: Collection[str]) -> list[dict[str, Any]]:
    """The accounts and plans of the members with these identifiers, without merged and withdrawn
    members.
    """
    found = sets.lock_set(tx, members, {"external_id": external_ids}, columns=_READ, within={})
    return [
        row for row in found.rows if row["uniqueness_scope"] >= 0 and row["merged_into"] is None
    ]


# A member's id, what happened to it, its plan, the changes; by which client, request and file.
NewEntry = tuple[int, str, int, dict[str, list[Any]], str, str, int | None]


def insert_history(tx: SetTransaction, entries: Iterable[NewEntry], at: str) -> None:
    """Add entries to the histories of members, with one time as stored."""
    names = model.HistoryEntry._fields[1:]
    sets.insert_set(
        tx, member_history, [dict(zip(names, (*entry, at), strict=True)) for entry in entries]
    )


def list_similar_pairs(
    tx: Tx, reach: Reach, *, after: tuple[int, int], until: int, today: str, limit: int
) -> list[model.SimilarPair]:
    """Pairs of open members within reach with equal person digests, or equal family and date of
    birth or first name, that are not marked as distinct, by ascending ids; the lower id is at most
    `until`.
    """
    a = members.alias("a")
    b = members.alias("b")
    apart = distinct_members.c
    is_apart = exists().where(sets.SameKey(apart.lower_id, a.c.id), apart.higher_id == b.c.id)
    shown = [table.c[name] for name in ("id", "external_id", "plan_id") for table in (a, b)]
    pairs: set[model.SimilarPair] = set()
    has_same_name = func.lower(a.c.first_name) == func.lower(b.c.first_name)
    alike = (
        ("person_digest", b.c.dob == a.c.dob),
        ("family_digest", b.c.dob == a.c.dob),
        ("family_digest", has_same_name),
    )
    for digest, has_same_value in alike:
        query = select(*shown, a.c.account_id).order_by(a.c.id, b.c.id).limit(limit)
        query = query.where(
            a.c.id >= after[0], a.c.id <= until, tuple_(a.c.id, b.c.id) > tuple_(*after)
        )
        query = query.where(sets.SameKey(b.c[digest], a.c[digest]), has_same_value, b.c.id > a.c.id)
        # The `+ 0` as in `lock_sql`: here the index of account and date of birth finds far more.
        query = query.where(a.c.account_id == b.c.account_id + 0, ~is_apart)
        for table in (a.c, b.c):
            is_open = table.expiry_date.is_(None) | (table.expiry_date >= today)
            query = query.where(table.uniqueness_scope >= 0, table.merged_into.is_(None), is_open)
        if reach.account_id is not None:
            query = query.where(a.c.account_id + 0 == reach.account_id)
        pairs.update(model.SimilarPair._make(row) for row in tx.execute(query))
    return sorted(pairs)[:limit]


def find_end_of_page(tx: Tx, *, after_id: int, rows: int) -> int | None:
    """The last id of the next so many members after an id; None if no member follows."""
    ids = select(members.c.id).where(members.c.id > after_id).order_by(members.c.id).limit(rows)
    return tx.execute(select(func.max(ids.subquery().c.id))).scalar()


def last_member_id(tx: Tx) -> int:
    return tx.execute(select(func.max(members.c.id))).scalar() or 0


def find_similar(tx: SetTransaction, keys: Sequence[str], today: str) -> Found:
    """A member that is open today for each key, a person digest and a date of birth with a space
    between them, as `key` and `id` (None where there is none). A set read.

    At most one member for each key: names of convenience ("Test Test") may have thousands.
    """
    if tx.dialect.name == "sqlite":
        mark = "?"
        values = "json_each(?)"
        cast = ""
        is_same = "m.person_digest = substr(w.value, 1, 32)"
    else:
        mark = "%s"
        values = "json_array_elements_text(%s::json)"
        cast = "::date"
        is_same = sets.by_key("m.person_digest", "substr(w.value, 1, 32)")
    sql = f"""SELECT w.value AS key, (
        SELECT m.id FROM members m WHERE {is_same} AND m.dob = substr(w.value, 34){cast}
        AND m.uniqueness_scope + 0 >= 0 AND m.merged_into IS NULL
        AND (m.expiry_date IS NULL OR m.expiry_date >= {mark}) LIMIT 1
    ) AS id FROM {values} AS w"""  # noqa: S608 - made of names only
    return sets.read_set(tx, sql, parameters=(today, sets.as_json(keys)), columns=("key", "id"))


def find_families(tx: SetTransaction, families: Sequence[str], today: str) -> Found:
    """The members that are open today of the families, which are digests: the
    fields of Relative. A set read.

    At most MOST_RELATIVES of each: some senders give the number of a group to everybody.
    """
    columns = "m.id, m.family_digest AS family, m.first_name, m.dob"
    is_open = """m.uniqueness_scope + 0 >= 0 AND m.merged_into IS NULL
        AND (m.expiry_date IS NULL OR m.expiry_date >= {mark}) LIMIT {limit}"""
    if tx.dialect.name == "sqlite":
        some = is_open.format(mark="?", limit=MOST_RELATIVES)
        sql = f"""SELECT {columns} FROM json_each(?) AS w JOIN members m ON m.id IN (
            SELECT m.id FROM members m WHERE m.family_digest = w.value AND {some})"""  # noqa: S608
        parameters = (sets.as_json(families), today)
    else:
        some = is_open.format(mark="%s", limit=MOST_RELATIVES)
        own = sets.by_key("m.family_digest", "w.value")
        sql = f"""SELECT r.* FROM json_array_elements_text(%s::json) AS w CROSS JOIN LATERAL (
            SELECT {columns} FROM members m WHERE {own} AND {some}) AS r"""  # noqa: S608
        parameters = (sets.as_json(families), today)
    return sets.read_set(tx, sql, parameters=parameters, columns=model.Relative._fields)


def find_histories(tx: Tx, member_ids: Collection[int]) -> dict[int, list[model.HistoryEntry]]:
    """The members' histories by member id, newest first."""
    histories: dict[int, list[model.HistoryEntry]] = {id_: [] for id_ in member_ids}
    found = sets.find_set(
        tx, member_history, "member_id", member_ids, columns=model.HistoryEntry._fields
    )
    for row in sorted(found.rows, key=itemgetter("id"), reverse=True):
        if isinstance(row["changes"], str):  # SQLite keeps JSON and times as text
            row["changes"] = orjson.loads(row["changes"])
            row["changed_at"] = datetime.fromisoformat(row["changed_at"])
        row["outcome"] = model.Outcome(row["outcome"])
        histories[row["member_id"]].append(model.HistoryEntry(**row))
    return histories


def list_ids_under(tx: Tx, plan_id: int, *, after_id: int, limit: int) -> Sequence[int]:
    """The ids of the plan's members in id order, without those that were withdrawn or merged."""
    query = select(members.c.id).where(
        *_range(tx, _OF_PLAN, plan_id, after_id=after_id), *_IS_THERE
    )
    return tx.execute(query.order_by(*_OF_PLAN).limit(limit)).scalars().all()


_OF_PLAN = (members.c.plan_id, members.c.id)
_OF_MEMBER = (member_history.c.member_id, member_history.c.id)


def _range(
    tx: Tx, place: tuple[Any, Any], owner_id: int, *, after_id: int, until_id: int | None = None
) -> Sequence[ColumnElement[bool]]:
    """The conditions for an owner's rows after an id, and up to another: a range of the index over
    `place` in its own order.
    """
    # With `plan_id = 1 ORDER BY id` PostgreSQL read all members in the order of their ids; with row
    # values SQLite uses the plan only, and read all of its members for each batch.
    owner, id_ = place
    if tx.dialect.name == "sqlite":
        return owner == owner_id, id_ > after_id, *(() if until_id is None else (id_ <= until_id,))
    to = owner <= owner_id if until_id is None else tuple_(owner, id_) <= tuple_(owner_id, until_id)
    return tuple_(owner, id_) > tuple_(owner_id, after_id), to


def find_place_after(tx: Tx, plan_id: int, *, after_id: int, rows: int) -> int | None:
    """The id of the plan's row that is so many rows after an id, those of withdrawn and merged
    members counted; None if fewer follow.
    """
    query = select(members.c.id).where(*_range(tx, _OF_PLAN, plan_id, after_id=after_id))
    return tx.execute(query.order_by(*_OF_PLAN).offset(rows - 1).limit(1)).scalar()


def list_records(
    tx: Tx, filter_: model.MemberFilter, *, until_id: int | None, limit: int
) -> list[Values]:
    """The members that the filter wants, by column, in id order up to an id (None: to the plan's
    last). With a day, also those that keep coverages, whatever their days.
    """
    place = _range(tx, _OF_PLAN, filter_.plan_id, after_id=filter_.after_id, until_id=until_id)
    is_own = members.c.account_id + 0 == filter_.account_id
    query = select(*_RECORD).where(*place, *_IS_THERE, is_own).order_by(*_OF_PLAN).limit(limit)
    if filter_.updated_since is not None:
        query = query.where(members.c.updated_at >= filter_.updated_since)
    if (day := filter_.eligible_on) is not None:
        is_open = members.c.expiry_date.is_(None) | (members.c.expiry_date >= day)
        # The days of a member with coverages are more than those of its record.
        has_more = members.c.coverages.is_not(null())
        query = query.where(((members.c.effective_date <= day) & is_open) | has_more)
    return [dict(row) for row in tx.execute(query).mappings()]


def find_record(tx: Tx, account_id: int, column: str, value: Any) -> Values | None:
    """The account's member by its id or a unique column, by column, unless it is withdrawn or
    erased. `merged_into` is that of a merged member.
    """
    named = (
        members.c[column] == value,
        members.c.account_id + 0 == account_id,
        members.c.uniqueness_scope >= 0,
    )
    row = tx.execute(select(*_RECORD).where(*named)).mappings().first()
    return None if row is None else dict(row)


def list_born_on(
    tx: Tx, account_id: int, dob: str, *, after_id: int, limit: int
) -> Sequence[Row[int, str, str, bool]]:
    """The account's rows with this date of birth, in id order after an id: `id`, `last_name`,
    `first_name` and `is_there`, which is False of withdrawn and merged members.
    """
    columns = members.c
    order = (columns.account_id, columns.dob, columns.id)
    if tx.dialect.name == "sqlite":
        born: Sequence[ColumnElement[bool]] = (
            columns.account_id == account_id,
            columns.dob == dob,
            columns.id > after_id,
        )
    else:  # as in `_range`
        day = literal(dob, columns.dob.type)
        born = (
            tuple_(*order) > tuple_(literal(account_id), day, literal(after_id)),
            tuple_(columns.account_id, columns.dob) <= tuple_(literal(account_id), day),
        )
    shown = (columns.id, columns.last_name, columns.first_name)
    query = select(*shown, and_(*_IS_THERE).label("is_there")).where(*born)
    return tx.execute(query.order_by(*order).limit(limit)).all()


def list_namesakes(tx: Tx, account_id: int, digest: str, *, limit: int) -> list[Values]:
    """The account's members with this person digest, by column, in id order, without those that
    were withdrawn or merged: those among `limit` stored rows.
    """
    # Sorted here: for an order by id PostgreSQL may read all members in that order.
    own = members.c.account_id + 0 == account_id
    query = select(*_RECORD).where(members.c.person_digest == digest, own).limit(limit)
    found = [dict(row) for row in tx.execute(query).mappings()]
    there = [
        each for each in found if each["uniqueness_scope"] >= 0 and each["merged_into"] is None
    ]
    return sorted(there, key=itemgetter("id"))


def list_distinct_from(tx: Tx, account_id: int, member_id: int) -> set[int]:
    """The ids of the members that a person has called distinct from this one."""
    columns = distinct_members.c
    own = columns.account_id == account_id
    lower = select(columns.lower_id).where(columns.higher_id == member_id, own)
    higher = select(columns.higher_id).where(columns.lower_id == member_id, own)
    return {*tx.execute(lower).scalars(), *tx.execute(higher).scalars()}


def list_newest_entries(tx: Tx, member_id: int, *, limit: int) -> list[model.HistoryEntry]:
    """The newest entries of the member's history, newest first."""
    columns = member_history.c
    order = columns.member_id.desc(), columns.id.desc()
    query = select(*columns[model.HistoryEntry._fields]).where(columns.member_id == member_id)
    return [model.HistoryEntry(*row) for row in tx.execute(query.order_by(*order).limit(limit))]


def list_records_of(tx: Tx, account_id: int, ids: Collection[int]) -> list[Values]:
    """The account's members with these ids, by column, in id order, without those that were
    withdrawn or merged.
    """
    own = members.c.account_id + 0 == account_id
    named = (members.c.id.in_(sorted(ids)), own, *_IS_THERE)
    query = select(*_RECORD).where(*named).order_by(members.c.id)
    return [dict(row) for row in tx.execute(query).mappings()]


def find_access(tx: Tx, ids: Collection[int]) -> list[model.MemberAccess]:
    """The members in id order, not locked."""
    query = select(*members.c[model.MemberAccess._fields]).where(members.c.id.in_(list(ids)))
    return [model.MemberAccess(*row) for row in tx.execute(query.order_by(members.c.id))]


def find_people(tx: Tx, ids: Collection[int]) -> list[tuple[int, model.StatedPerson]]:
    """The ids and persons of the members, without sex and role. Not locked."""
    columns = members.c["id", "first_name", "last_name", "dob", "family_digest"]
    return [
        (
            row.id,
            model.StatedPerson(
                row.first_name, row.last_name, row.dob, family=row.family_digest or ""
            ),
        )
        for row in tx.execute(select(*columns).where(members.c.id.in_(list(ids))))
    ]


def count_members_open_after(tx: Tx, plan_id: int, day: str) -> int:
    """The number of the plan's members with access after the day."""
    is_open = members.c.expiry_date.is_(None) | (members.c.expiry_date > day)
    query = select(func.count()).where(members.c.plan_id == plan_id, *_IS_THERE, is_open)
    return int(tx.execute(query).scalar_one())


def list_due(
    tx: Tx, day: str, *, after: tuple[str, int] | None, limit: int
) -> list[tuple[str, int]]:
    """The days up to `day` on which members have to be derived from their coverages, with the
    members' ids, in order after one of them; none of withdrawn or merged members.
    """
    place = (members.c.derive_on, members.c.id)
    query = select(*place).where(members.c.derive_on <= day, *_IS_THERE)
    if after is not None:
        on, id_ = after
        is_later = (members.c.derive_on == on) & (members.c.id > id_)
        query = query.where(members.c.derive_on >= on, (members.c.derive_on > on) | is_later)
    return [(on, id_) for on, id_ in tx.execute(query.order_by(*place).limit(limit))]


def find_known(
    tx: Tx, external_ids: Collection[str], *, account_id: int
) -> dict[str, model.KnownMember]:
    """The account's members by these identifiers, a merged member replaced by the kept one. Not
    locked.
    """
    columns = model.KnownMember._fields
    sql = sets.find_sql(
        tx.dialect.name, members, column="external_id", columns=("external_id", *columns)
    )
    # As in `lock_sql`, the `+ 0` keeps conditions on shared values from using an index.
    sql = _marked(tx, f"{sql} AND account_id + 0 = ? AND uniqueness_scope >= 0")
    found = tx.exec_driver_sql(sql, (sets.as_json(list(external_ids)), account_id)).all()
    known = {key: model.KnownMember(*values) for key, *values in found}
    while kept_ids := {member.merged_into for member in known.values()} - {None}:
        query = select(*(members.c[name] for name in columns)).where(
            members.c.id.in_(sorted(kept_ids))
        )
        by_id = {row.id: model.KnownMember(*row) for row in tx.execute(query)}
        known = {key: by_id.get(member.merged_into or 0, member) for key, member in known.items()}
    return known


def has_members(tx: Tx, plan_ids: Sequence[int], count: int) -> bool:
    """True if the plans have at least so many members."""
    some = select(members.c.id).where(members.c.plan_id.in_(plan_ids)).limit(count).subquery()
    return int(tx.execute(select(func.count()).select_from(some)).scalar_one()) == count


def find_last_files(
    tx: SetTransaction, ids: Collection[int], since: datetime
) -> dict[int, int | None]:
    """The file of the last change of each of the members that was changed after the time, by the
    member's id; None of a request. What a worker derived is no change. At once, in a round trip of
    its own.
    """
    columns = ("member_id", "file_id", "client", "id", "changed_at")
    found = sets.find_set(tx, member_history, "member_id", ids, columns=columns)
    rows = sorted(found.rows, key=itemgetter("id"))
    return {
        row["member_id"]: row["file_id"]
        for row in rows
        if datetime.fromisoformat(str(row["changed_at"])) > since
        and row["client"] != model.DERIVATION_CLIENT
    }


def find_written(tx: Tx, ids: Collection[int], file_id: int) -> set[int]:
    """Those of the members that the file has written."""
    of_file = member_history.c.file_id == file_id
    query = select(member_history.c.member_id).where(
        member_history.c.member_id.in_(sorted(ids)), of_file
    )
    return set(tx.execute(query).scalars())


def stored_members(found: Iterable[Found]) -> dict[int, model.StoredMember]:
    """The members of finished set reads, by id."""
    rows = [row for each in found for row in each.rows]
    for row in rows:
        for name in ("metadata", "coverages"):
            if isinstance(row[name], str):  # SQLite keeps JSON as text
                row[name] = orjson.loads(row[name])
    return {row["id"]: model.StoredMember(row) for row in rows}


def find_expired(tx: Tx, member_ids: Collection[int], now: datetime) -> set[int]:
    """The members with an access that ended on an earlier day where they live, and those that were
    withdrawn or merged.
    """
    columns = ("id", "plan_id", "expiry_date", "uniqueness_scope", "merged_into")
    found = sets.find_set(tx, members, "id", member_ids, columns=columns).rows
    owners = find_owners(tx, {row["plan_id"] for row in found}).rows
    days = {owner["id"]: account_day(now, owner["time_zone"]) for owner in owners}
    return {row["id"] for row in found if not is_open(row, days[row["plan_id"]].earliest)}


def find_addresses(tx: Tx, member_ids: Collection[int]) -> dict[int, str]:
    """The e-mail addresses of those of the members that have one, by id."""
    found = sets.find_set(tx, members, "id", member_ids, columns=("id", "email"))
    return {row["id"]: row["email"] for row in found.rows if row["email"] is not None}


def is_open(values: Mapping[str, Any], today: str) -> bool:
    """Whether the member has access today or later, and is neither withdrawn, merged nor erased."""
    is_there = values["uniqueness_scope"] >= 0 and values["merged_into"] is None
    return is_there and (values["expiry_date"] is None or values["expiry_date"] >= today)


def find_row_digests(tx: Tx, external_ids: Collection[str]) -> dict[str, int]:
    """The ids of the members with these identifiers, in any account, by their row digests. Not
    locked.
    """
    found = sets.find_pairs(tx, members, "external_id", external_ids, pair=("row_digest", "id"))
    found.pop(None, None)
    return found


def find_digests_of(tx: Tx, ids: Collection[int]) -> dict[int, str | None]:
    """The row digests of the members, by id. Not locked."""
    return sets.find_pairs(tx, members, "id", ids, pair=("id", "row_digest"))


def external_ids_of(tx: Tx, ids: Collection[int]) -> dict[int, str]:
    """The identifiers of the members by id; "" of an erased member."""
    return sets.find_pairs(tx, members, "id", ids, pair=("id", "external_id"))


def find_members(
    tx: Tx, reach: Reach, value: Any, *, withdrawn: bool = False, column: str = "external_id"
) -> list[dict[str, Any]]:
    """The members within reach with the value in a key's column, by column, in id order; with
    `withdrawn`, also withdrawn members.
    """
    query = select(*_SHOWN).where(members.c[column] == value).order_by(members.c.id)
    if reach.account_id is not None:
        query = query.where(members.c.account_id + 0 == reach.account_id)
    if not withdrawn:
        query = query.where(members.c.uniqueness_scope >= 0)
    return [dict(row) for row in tx.execute(query).mappings()]


def list_history_page(
    tx: Tx, member_id: int, *, after_id: int, limit: int
) -> list[model.HistoryEntry]:
    """Entries of the member's history after an entry's id, oldest first."""
    query = select(*member_history.c[model.HistoryEntry._fields])
    query = query.where(*_range(tx, _OF_MEMBER, member_id, after_id=after_id)).order_by(*_OF_MEMBER)
    return [model.HistoryEntry(*row) for row in tx.execute(query.limit(limit))]


def list_history(tx: Tx, *member_ids: int) -> list[model.HistoryEntry]:
    """The history of a member, or of those that were merged, oldest first."""
    histories = find_histories(tx, member_ids)
    return sorted((entry for each in histories.values() for entry in each), key=attrgetter("id"))


def find_probe_counts(
    tx: SetTransaction, accounts: Collection[int], uniqueness: Uniqueness
) -> Found:
    """The answered probes (`taken`) of each account on its last `day` with any; none where keys are
    unique per account. A set read.
    """
    if uniqueness is Uniqueness.ACCOUNT:
        return Found()
    columns = ("account_id", "day", "taken")
    return sets.find_set(tx, uniqueness_probes, "account_id", accounts, columns=columns)


def count_probes(tx: SetTransaction, account_id: int, day: str, found: int) -> int:
    """Add to the account's count of the day, and lock it; returns the new count."""
    sql = """INSERT INTO uniqueness_probes AS p (account_id, day, taken) VALUES (?, ?, ?)
        ON CONFLICT (account_id) DO UPDATE SET day = excluded.day,
        taken = excluded.taken + CASE WHEN p.day = excluded.day THEN p.taken ELSE 0 END RETURNING taken"""
    return int(tx.exec_driver_sql(_marked(tx, sql), (account_id, day, found)).one()[0])


def count_held(tx: SetTransaction, account_id: int, holder_id: int, day: str, found: int) -> None:
    """Add to the account's records of the day that had a value of the holder, another account."""
    sql = """INSERT INTO uniqueness_holders AS h (account_id, holder_id, day, taken) VALUES (?, ?, ?, ?)
        ON CONFLICT (account_id, holder_id) DO UPDATE SET day = excluded.day,
        taken = excluded.taken + CASE WHEN h.day = excluded.day THEN h.taken ELSE 0 END"""
    tx.exec_driver_sql(_marked(tx, sql), (account_id, holder_id, day, found))


def list_held(
    tx: SetTransaction, account_id: int, day: str, *, limit: int
) -> list[tuple[int, int]]:
    """The holders of most of the values of other accounts that the account has sent on the day, and
    the number of its records.
    """
    sql = """SELECT holder_id, taken FROM uniqueness_holders WHERE account_id = ? AND day = ?
        ORDER BY taken DESC, holder_id LIMIT ?"""
    answer = tx.exec_driver_sql(_marked(tx, sql), (account_id, day, limit))
    return [(int(holder_id), int(taken)) for holder_id, taken in answer]


def list_probes(tx: Tx, day: str) -> Sequence[Row[int, int]]:
    """The day's counts by account: `account_id`, and the answered records `taken`."""
    columns = uniqueness_probes.c
    query = select(columns.account_id, columns.taken).where(columns.day == day)
    return tx.execute(query).all()


def list_holders(tx: Tx, reach: Reach, *, limit: int) -> list[dict[str, Any]]:
    """Whose values accounts have sent, on the last day with any for each pair: `day`, `account_id`,
    `holder_id`, and the number of records, `taken`. The latest day first, and on it the most
    records. Only pairs with an account within reach.
    """
    columns = uniqueness_holders.c
    query = select(columns.day, columns.account_id, columns.holder_id, columns.taken)
    account_id = reach.account_id
    if account_id is not None:
        query = query.where((columns.account_id == account_id) | (columns.holder_id == account_id))
    order = (columns.day.desc(), columns.taken.desc(), columns.account_id, columns.holder_id)
    return [dict(row) for row in tx.execute(query.order_by(*order).limit(limit)).mappings()]


def _marked(tx: SetTransaction, sql: str) -> str:
    """The statement with the database's own marks of parameters in place of `?`."""
    return sql if tx.dialect.name == "sqlite" else sql.replace("?", "%s")


def count_members(tx: Tx, account_ids: Collection[int], *, most: int) -> dict[int, int]:
    """How many members of each account are stored, withdrawn ones too, `most` at most."""
    return sets.count_by_key(tx, "FROM members WHERE account_id = :key", account_ids, most=most)
