import pytest

from frontdesk.mail.model import AnswerLost, RelayRefused
from tests.mail.memory import failing
from tests.worker.conftest import Post


def test_what_is_sent_is_never_sent_again(post: Post) -> None:
    post.enrol(3)
    worker = post.worker()
    assert [worker.turn(), worker.turn(), post.worker().turn()] == [3, 0, 0]
    assert post.states() == ["sent"] * 3
    sent = sorted((message.recipient, message.message_id) for message in post.mailer.messages)
    assert sent == [(f"robin.{n}@example.com", row["message_id"]) for n, row in enumerate(post.rows(), 1)]


def test_a_refusal_for_now_is_tried_again_later_with_the_same_message_id(post: Post) -> None:
    post.enrol()
    worker = post.worker(fault=failing("offer", RelayRefused("recipient", permanent=False, code=451)))
    worker.turn()
    before = post.row()
    assert (before["state"], before["attempts"], before["relay_code"]) == ("pending", 1, 451)
    assert worker.turn() == 0
    post.mailer.fault = None
    post.clock.advance(80)
    worker.turn()
    assert post.states() == ["sent"]
    assert post.mailer.messages[0].message_id == before["message_id"]


@pytest.mark.parametrize(
    ("refusal", "told", "attempts"),
    [
        (RelayRefused("content", permanent=True, code=554), ("refused", 554), 0),
        (RelayRefused("content", permanent=False, code=450), ("too_many_attempts", 450), 3),
    ],
    ids=["for good", "for now, again and again"],
)
def test_a_refusal_is_final_at_once_or_in_the_end(
    post: Post, refusal: RelayRefused, told: tuple[str, int], attempts: int
) -> None:
    post.enrol()
    worker = post.worker(fault=failing("finish", refusal), max_attempts=3)
    for _ in range(5):
        worker.turn()
        post.clock.advance(90_000)
    row = post.row()
    assert (row["state"], row["reason"], row["relay_code"], row["attempts"]) == ("failed", *told, attempts)


def test_a_lost_answer_is_held_a_day_and_then_sent_once_more_but_never_a_third_time(post: Post) -> None:
    post.enrol()
    worker = post.worker(fault=failing("finish", AnswerLost()))
    worker.turn()
    assert post.states() == ["ambiguous"]
    post.clock.advance(86_000)
    assert worker.turn() == 0
    post.clock.advance(500)
    assert worker.turn() == 1
    assert (post.row()["state"], post.row()["losses"]) == ("ambiguous", 2)
    post.clock.advance(1_000_000)
    assert worker.turn() == 0
