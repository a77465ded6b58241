"""Envelope (API key 58), version 0, flexible from 0."""

from klamm.wire.schema import Message, bytes_, field, int16


class EnvelopeRequest(Message, api_key=58, versions="0", flexible="0+"):
    request_data: bytes = field(bytes_)
    request_principal: bytes | None = field(bytes_, nullable="0+")
    client_host_address: bytes = field(bytes_)


class EnvelopeResponse(Message, api_key=58, versions="0", flexible="0+"):
    response_data: bytes | None = field(bytes_, nullable="0+", default=None)
    error_code: int = field(int16)
