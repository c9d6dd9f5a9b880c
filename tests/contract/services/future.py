"""What a version that does not exist yet could write into an envelope, as bytes to be appended."""

UNKNOWN_FIELD = b"\xc2\x3e\x06future"
"""Field 1000, a text."""

UNKNOWN_MODE = b"\x28\x63"
"""`delivery_mode` 99."""
