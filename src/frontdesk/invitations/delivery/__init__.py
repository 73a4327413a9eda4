"""The delivery of invitations: claimed, offered, settled, in sets and within limits; it knows no SMTP and no text."""
