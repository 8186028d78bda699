"""`blindfit plan`: the accuracy of each epsilon, before any is spent. It opens features, but no label or ledger."""
