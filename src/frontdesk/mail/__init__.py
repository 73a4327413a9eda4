"""The way out for mail: SMTP, and the sandbox's catcher; the messages and protocols are in `model`."""
