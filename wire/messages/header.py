"""Request and response headers; header.py reads and writes them by hand."""

from klamm.wire.schema import Message, field, int16, int32, string


class RequestHeader(Message, versions="1-2", flexible="2+"):
    request_api_key: int = field(int16)
    request_api_version: int = field(int16)
    correlation_id: int = field(int32)
    client_id: str | None = field(string, nullable="1+", flexible="none")


class ResponseHeader(Message, versions="0-1", flexible="1+"):
    correlation_id: int = field(int32)
