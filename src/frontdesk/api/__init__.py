"""The customers' door: /v2, /oauth, the reference and health."""
