"""`blindfit plan`: what an epsilon would buy, before any is spent. It opens features; no label, no ledger, no peer."""
