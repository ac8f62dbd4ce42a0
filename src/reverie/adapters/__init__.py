"""The library in the slots of other SDKs, one module per SDK. Nothing is imported here: each module loads its SDK."""
