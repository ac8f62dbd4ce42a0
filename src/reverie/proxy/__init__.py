"""The proxy (`reverie proxy`): the layers under any client, by one environment variable. See docs/decisions/0053."""
