"""Identities of parties: certificates, and connections on which both sides have shown theirs."""

CRL_DAYS = 30  # days for which a revocation list is valid


AUTHORITY_VARIABLE = "BLINDFIT_AUTHORITY_PASSPHRASE"


KEY_VARIABLE = "BLINDFIT_KEY_PASSPHRASE"


ROLES = ("active", "passive", "measurement", "key-node", "coordinator")
"""Roles that a certificate may name."""
