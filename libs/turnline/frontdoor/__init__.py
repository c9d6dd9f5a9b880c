"""The front door: what every client surface shares, from a checked request to frames."""

from turnline.frontdoor.admin import Admin, admin_routes
from turnline.frontdoor.admission import Admission, AdmissionOptions, Admitted, Submission
from turnline.frontdoor.frames import (
    StreamFrames,
    chat_response_frame,
    error_detail,
    reply_body,
)
from turnline.frontdoor.http import (
    error_response,
    failure_headers,
    failure_response,
    json_response,
    web_app,
)

__all__ = [
    "Admin",
    "Admission",
    "AdmissionOptions",
    "Admitted",
    "StreamFrames",
    "Submission",
    "admin_routes",
    "chat_response_frame",
    "error_detail",
    "error_response",
    "failure_headers",
    "failure_response",
    "json_response",
    "reply_body",
    "web_app",
]
