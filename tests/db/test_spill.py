"""Values by number, in the scratch database of a process."""

from frontdesk.db.engine import scratch_database
from frontdesk.db.spill import ASKED_TOGETHER, READ_TOGETHER, Spill


def test_values_are_replaced_found_and_read_in_order_past_each_page() -> None:
    count = READ_TOGETHER + ASKED_TOGETHER + 1
    with scratch_database([]) as db, db.engine.connect() as scratch:
        spill = Spill(scratch, "some")
        other = Spill(scratch, "other")
        spill.keep(dict.fromkeys(reversed(range(count)), b"first"))
        spill.keep({0: b"second", count: b"last"})
        other.keep({7: b"of another"})
        spill.keep({})
        scratch.rollback()
        found = [*spill]
        assert [number for number, _ in found] == [*range(count + 1)]
        assert (found[0], found[1], found[-1]) == ((0, b"second"), (1, b"first"), (count, b"last"))
        assert spill.find(range(-1, count + 5)) == dict(found)
        assert [*other] == [(7, b"of another")]
