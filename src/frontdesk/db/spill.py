"""Values that are too many for memory: by a number, in a table of a scratch database
(`engine.scratch_database`), which ends with its file.
"""

from collections.abc import Collection, Iterator, Mapping

from sqlalchemy import Column, Integer, LargeBinary, MetaData, Table, select
from sqlalchemy.dialects.sqlite import insert

from frontdesk.db.engine import Tx

READ_TOGETHER = 5000
ASKED_TOGETHER = 500  # parameters of a statement


class Spill:
    """Bytes by number. `keep` commits what the connection has written so far."""

    def __init__(self, scratch: Tx, name: str) -> None:
        self._scratch = scratch
        number = Column("number", Integer(), primary_key=True)
        self._table = Table(name, MetaData(), number, Column("value", LargeBinary()))
        self._table.create(scratch)
        scratch.commit()

    def keep(self, values: Mapping[int, bytes]) -> None:
        """Keep the values; those of known numbers are replaced."""
        if not values:
            return
        query = insert(self._table)
        query = query.on_conflict_do_update(
            index_elements=["number"], set_={"value": query.excluded.value}
        )
        rows = [{"number": number, "value": value} for number, value in values.items()]
        self._scratch.execute(query, rows)
        self._scratch.commit()

    def find(self, numbers: Collection[int]) -> dict[int, bytes]:
        """The values of those of the numbers that are kept."""
        columns = self._table.c
        found: dict[int, bytes] = {}
        asked = [*numbers]
        for start in range(0, len(asked), ASKED_TOGETHER):
            together = asked[start : start + ASKED_TOGETHER]
            query = select(columns.number, columns.value).where(columns.number.in_(together))
            found.update((number, value) for number, value in self._scratch.execute(query))
        return found

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """All numbers and values, in the order of the numbers."""
        columns = self._table.c
        after = -1
        while True:
            query = select(columns.number, columns.value).where(columns.number > after)
            query = query.order_by(columns.number).limit(READ_TOGETHER)
            page = self._scratch.execute(query).all()
            yield from ((number, value) for number, value in page)
            if len(page) < READ_TOGETHER:
                return
            after = page[-1].number
