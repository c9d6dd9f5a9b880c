"""Function `request-handler`: chat over the HTTP API."""

from turnline.aws import Lambda

handler = Lambda.handler
