"""Commands of the memory server: `reverie serve` and `reverie worker`."""
