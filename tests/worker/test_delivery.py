from collections.abc import Callable

from frontdesk.mail.model import AnswerLost, RelayRefused
from tests.mail.memory import FaultInjector
from tests.worker.conftest import Post

Refusing = Callable[..., FaultInjector]


def test_an_immediate_invitation_is_sent_and_its_timeline_says_how(post: Post) -> None:
    post.enrol()
    assert post.worker().turn() == 1
    assert post.states() == ["sent"]
    [message] = post.mailer.messages
    assert message.recipient == "robin.1@example.com"
    assert message.message_id == post.row()["message_id"]


def test_what_is_sent_is_never_sent_again(post: Post) -> None:
    post.enrol(3)
    worker = post.worker()
    assert [worker.turn(), worker.turn(), post.worker().turn()] == [3, 0, 0]
    assert len(post.mailer.messages) == 3


def test_a_refusal_for_now_is_tried_again_later_with_the_same_message_id(
    post: Post, refusing: Refusing
) -> None:
    post.enrol()
    refusal = RelayRefused("recipient", permanent=False, code=451)
    worker = post.worker(fault=refusing("offer", refusal))
    worker.turn()
    before = post.row()
    assert (before["state"], before["attempts"], before["relay_code"]) == ("pending", 1, 451)
    assert worker.turn() == 0
    post.mailer.fault = None
    post.clock.advance(80)
    worker.turn()
    assert post.states() == ["sent"]
    assert post.mailer.messages[0].message_id == before["message_id"]


def test_a_refusal_for_good_is_final(post: Post, refusing: Refusing) -> None:
    post.enrol()
    worker = post.worker(fault=refusing("finish", RelayRefused("content", permanent=True, code=554)))
    worker.turn()
    post.clock.advance(90_000)
    worker.turn()
    assert (post.row()["state"], post.row()["relay_code"]) == ("failed", 554)


def test_a_lost_answer_is_held_a_day_and_then_sent_once_more_but_never_a_third_time(
    post: Post, refusing: Refusing
) -> None:
    post.enrol()
    worker = post.worker(fault=refusing("finish", AnswerLost()))
    worker.turn()
    assert post.states() == ["ambiguous"]
    post.clock.advance(86_000)
    assert worker.turn() == 0
    post.clock.advance(500)
    assert worker.turn() == 1
    assert (post.row()["state"], post.row()["losses"]) == ("ambiguous", 2)
    post.clock.advance(1_000_000)
    assert worker.turn() == 0
