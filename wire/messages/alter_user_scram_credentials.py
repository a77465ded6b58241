"""AlterUserScramCredentials (API key 51), version 0, flexible from 0."""

from klamm.wire.schema import Message, Struct, array, bytes_, field, int8, int16, int32, string


class ScramCredentialDeletion(Struct):
    name: str = field(string)
    mechanism: int = field(int8)


class ScramCredentialUpsertion(Struct):
    name: str = field(string)
    mechanism: int = field(int8)
    iterations: int = field(int32)
    salt: bytes = field(bytes_)
    salted_password: bytes = field(bytes_)


class AlterUserScramCredentialsRequest(Message, api_key=51, versions="0", flexible="0+"):
    deletions: list[ScramCredentialDeletion] = array(ScramCredentialDeletion)
    upsertions: list[ScramCredentialUpsertion] = array(ScramCredentialUpsertion)


class AlterUserScramCredentialsResult(Struct):
    user: str = field(string)
    error_code: int = field(int16)
    error_message: str | None = field(string, nullable="0+")


class AlterUserScramCredentialsResponse(Message, api_key=51, versions="0", flexible="0+"):
    throttle_time_ms: int = field(int32)
    results: list[AlterUserScramCredentialsResult] = array(AlterUserScramCredentialsResult)
