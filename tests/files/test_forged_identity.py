"""A file's rows are known by the file's id. No request id that a caller sends makes a POST look like one of them."""

from typing import Any

from tests.conftest import Api
from tests.files.loading import Desk, csv_of, row


def post_as_file(api: Api, desk: Desk, number: int, **changes: Any) -> None:
    body = {"external_id": f"E{number:05d}"} | changes
    answer = api.post(
        f"/v2/plans/{desk.customer.plan_ids[0]}/eligibility", body, headers={"X-Request-ID": "file-1"}
    )
    assert answer.status_code in (200, 201)


def test_an_undo_takes_back_no_post_that_was_sent_under_the_files_name(api: Api, desk: Desk) -> None:
    file = desk.load(csv_of([row(1), row(2)]))
    post_as_file(api, desk, 1, last_name="Posted")
    undo = desk.undo(file)
    assert undo.counts == {"withdrawn": 1, "refused": 1}
    assert (2, "refused", "changed_since") in desk.outcomes(undo)
    assert {key: member["last_name"] for key, member in desk.members().items()} == {"E00001": "Posted"}
