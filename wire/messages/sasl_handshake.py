"""SaslHandshake (API key 17), versions 0-1, not flexible."""

from klamm.wire.schema import Message, array, field, int16, string


class SaslHandshakeRequest(Message, api_key=17, versions="0-1"):
    mechanism: str = field(string)


class SaslHandshakeResponse(Message, api_key=17, versions="0-1"):
    error_code: int = field(int16)
    mechanisms: list[str] = array(string)
