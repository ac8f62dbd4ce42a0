"""`reverie lab adapters`: one scripted agent in the SDKs of others, with Reverie and without, over the simulator."""
