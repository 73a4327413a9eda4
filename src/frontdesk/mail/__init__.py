"""The way out for mail: to a relay over SMTP, or into the sandbox's catcher. The messages and protocols are in `model`."""
