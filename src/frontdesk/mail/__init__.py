"""The way out for mail: sessions with a relay over SMTP. The messages and protocols are in `model`."""
