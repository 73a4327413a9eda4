"""Requests with an Idempotency-Key, and their stored answers. The types are in `model`."""

from frontdesk.idempotency.store import EarlierAnswers as EarlierAnswers
from frontdesk.idempotency.store import find_answers as find_answers
from frontdesk.idempotency.store import keep_answers as keep_answers
from frontdesk.idempotency.store import refuse_answered as refuse_answered
