"""The customers' door: /v2, /oauth, the reference, health; what it shares with other HTTP doors is in `web`."""
