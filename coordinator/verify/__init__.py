"""`blindfit export` and `blindfit verify`: one file of a WALR training, and what an auditor can check of it alone."""
