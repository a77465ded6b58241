"""A principal, as a forwarded request carries it."""

from klamm.wire.schema import Message, bool_, field, string


class DefaultPrincipalData(Message, versions="0", flexible="0+"):
    type: str = field(string)
    name: str = field(string)
    token_authenticated: bool = field(bool_)
