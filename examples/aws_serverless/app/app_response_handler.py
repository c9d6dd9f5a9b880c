"""Function `response-handler`: keeps answers, or pushes them to sockets."""

from turnline.aws import ResponseHandler

handler = ResponseHandler.handle
