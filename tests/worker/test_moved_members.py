"""A member that moves to another plan takes its invitation along: it waits for that plan, names it, and leads to it."""

from frontdesk.config import Uniqueness
from frontdesk.eligibility import enrol, parse_member
from frontdesk.eligibility.enrol import UndoRequest, restore
from frontdesk.eligibility.model import Submission
from tests.conftest import Api
from tests.factories import close_plan, member_body
from tests.worker.conftest import Post
from tests.worker.test_around_delivery import links_of, text_of


def move(post: Post, number: int, *plans: int, file_id: int | None = None) -> None:
    """The member as `post.enrol` made it, under these plans one after the other, in one chunk."""
    record = parse_member(member_body(number), today=post.clock().date().isoformat())
    account_id = post.customer.account_id
    submissions = [Submission(account_id, plan, record, "c", "the move", file_id=file_id) for plan in plans]
    with post.db.write() as tx:
        enrol(tx, submissions, now=post.clock(), uniqueness=Uniqueness.SERVICE)


def test_the_invitation_names_the_plan_that_the_member_has_when_it_is_sent(post: Post, api: Api) -> None:
    first, second = post.customer.plan_ids
    body = member_body(1, invite_immediately=True)
    answers = [api.post(f"/v2/plans/{plan}/eligibility", json=body) for plan in (first, second)]
    assert [answer.headers["Eligibility-Outcome"] for answer in answers] == ["created", "moved"]
    assert post.row()["plan_id"] == second
    post.worker().turn()
    [message] = post.mailer.messages
    assert "Example Health Plan 1" in text_of(message)
    assert "Plan 0" not in text_of(message)


def test_a_move_there_and_back_in_one_chunk_changes_nothing(post: Post) -> None:
    first, second = post.customer.plan_ids
    post.enrol(2)
    move(post, 1, second, first)
    assert [row["plan_id"] for row in post.rows()] == [first, first]


def test_the_new_plan_decides_whether_a_batched_one_is_held_back(post: Post) -> None:
    first, second = post.customer.plan_ids
    post.batches()
    close_plan(post.db, first)
    post.enrol(2, immediate=False)
    assert post.worker().turn() == 0
    move(post, 1, second)
    assert post.worker().turn() == 1
    assert post.states() == ["sent", "pending"]


def test_the_link_of_a_sent_one_leads_to_the_new_plan(post: Post, api: Api) -> None:
    _, second = post.customer.plan_ids
    post.enrol()
    post.worker().turn()
    move(post, 1, second)
    register, _ = links_of(post.mailer.messages[0])
    assert "Example Health Plan 1" in api.as_(None).get(register).text


def test_a_move_that_is_undone_takes_the_invitation_back(post: Post) -> None:
    first, second = post.customer.plan_ids
    post.enrol()
    move(post, 1, second, file_id=1)
    undoing = UndoRequest(1, 2, "c", "undo", post.clock(), Uniqueness.SERVICE)
    with post.db.write() as tx:
        restore(tx, [post.row()["member_id"]], undoing)
    assert post.row()["plan_id"] == first
