"""The peers: the same work, written the ordinary way."""
