"""The headers of a webhook, compared with known answers: the tests' receivers verify with the library
that signs, so they would not see that both are wrong.
"""

import hmac
import os
import time
from base64 import b64decode, b64encode
from collections.abc import Iterator

import pytest

from frontdesk.events.signature import signed_headers

# The example of the standard's own tests.
SECRET = b64decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
EVENT_ID = "msg_p5jXN8AQM9LWM0D4loKWxJek"
TIMESTAMP = 1614265330
BODY = b'{"test": 2432232314}'
SIGNATURE = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.fixture(params=["UTC", "America/New_York"])
def _in_time_zone(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    monkeypatch.setitem(os.environ, "TZ", request.param)
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("_in_time_zone")
def test_the_headers_are_those_of_the_standards_example() -> None:
    found = signed_headers([SECRET], event_id=EVENT_ID, timestamp=TIMESTAMP, body=BODY)
    assert found == {
        "webhook-id": EVENT_ID,
        "webhook-timestamp": "1614265330",
        "webhook-signature": SIGNATURE,
    }


def test_each_secret_signs_the_bytes_of_the_body() -> None:
    body = '{"name": "é\u2028"}'.encode()
    other = bytes(range(32))
    found = signed_headers([SECRET, other], event_id="evt_1", timestamp=7, body=body)
    digests = [hmac.digest(key, b"evt_1.7." + body, "sha256") for key in (SECRET, other)]
    expected = [f"v1,{b64encode(digest).decode()}" for digest in digests]
    assert found["webhook-signature"].split(" ") == expected
