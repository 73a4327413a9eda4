"""The operator's door: /operator/v1, for the clinical system, mail relays and operators."""
