"""Content that arrives and does not stay: nothing of it is left, and its id is given to no other."""

from frontdesk.files.actions import Upload, begin_file
from frontdesk.files.drafts.steps import DraftUpload, NewDraft, begin_draft
from frontdesk.files.model import NewFile
from tests.files.loading import Desk


def broken_off(desk: Desk) -> int:
    """The id of a file that was discarded after its first part."""
    new = NewFile(desk.customer.account_id, desk.customer.plan_ids[0])
    with desk.db.write() as tx:
        file = begin_file(tx, new, desk.requester())
    upload = Upload(desk.db, file)
    upload.write(b"external_id\n")
    upload.flush()
    upload.discard()
    return file.id


def broken_off_draft(desk: Desk) -> int:
    with desk.db.write() as tx:
        draft = begin_draft(tx, NewDraft(desk.customer.account_id), desk.requester())
    upload = DraftUpload(desk.db, draft, desk.clock)
    upload.write(b"external_id\n")
    upload.flush()
    upload.discard()
    return draft.id


def test_the_id_of_what_broke_off_is_given_to_no_other(desk: Desk) -> None:
    assert broken_off(desk) < broken_off(desk) < broken_off(desk)
    assert broken_off_draft(desk) < broken_off_draft(desk) < broken_off_draft(desk)


def test_nothing_is_left_of_what_broke_off(desk: Desk) -> None:
    broken_off(desk)
    broken_off_draft(desk)
    for table in ("eligibility_files", "file_parts", "file_drafts", "draft_parts"):
        assert desk.count(table) == 0
