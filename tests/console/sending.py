"""Sends a file at the console as a form does: the fields first, then the file."""

from tests.console.browsing import Browser

BOUNDARY = "----frontdesk-test"
TYPE = f"multipart/form-data; boundary={BOUNDARY}"


def field(name: str, value: str) -> bytes:
    """A part with a field."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
    return head.encode() + value.encode() + b"\r\n"


def file(content: bytes, file_name: str = "census.csv", name: str = "file") -> bytes:
    """A part with a file."""
    head = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="{file_name}"\r\n'
        "Content-Type: text/csv\r\n\r\n"
    )
    return head.encode() + content + b"\r\n"


END = f"--{BOUNDARY}--\r\n".encode()


def send_file(
    browser: Browser, uploads: str, content: bytes, file_name: str = "census.csv", **fields: str
) -> Browser:
    """Fill in the chooser of this page and send it."""
    filled = browser.form(uploads) | fields
    body = b"".join(field(*pair) for pair in filled.items()) + file(content, file_name) + END
    return post_body(browser, uploads, body)


def post_body(browser: Browser, path: str, body: bytes, content_type: str = TYPE) -> Browser:
    """Send this body, which the service gets in one piece here."""
    headers = browser.headers | {"Content-Type": content_type}
    browser.answer = browser.http.post(path, content=body, headers=headers, follow_redirects=True)
    return browser
