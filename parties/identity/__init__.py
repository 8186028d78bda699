"""Who we are, who they are: certificates, and connections on which both sides have shown theirs."""

CRL_DAYS = 30  # how long a list of what was revoked is valid


AUTHORITY_VARIABLE = "BLINDFIT_AUTHORITY_PASSPHRASE"


KEY_VARIABLE = "BLINDFIT_KEY_PASSPHRASE"


ROLES = ("active", "passive", "measurement", "key-node", "coordinator")
"""What a certificate may say its party is."""
