"""The client of AWS that every adapter for AWS uses, and what its errors mean.

Adapters turn an `AwsError` into the error of their port; nothing here knows queues or tables.
"""

from turnline.awssdk.client import AwsOptions, call, open_client
from turnline.awssdk.errors import AwsError, AwsFault, refusal

__all__ = ["AwsError", "AwsFault", "AwsOptions", "call", "open_client", "refusal"]
