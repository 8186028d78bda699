"""`blindfit export` and `blindfit verify`: one file about a WALR training, and what it shows an auditor by itself."""
