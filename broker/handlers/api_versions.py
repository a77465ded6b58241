"""ApiVersions (key 18): what this broker serves.

Versions 0-4. An unknown version is answered with a version 0 body and UNSUPPORTED_VERSION, so that
any client can find a version that both know (KIP-511).

Promise: exactly what the handlers in this folder say; nothing is listed before it works. The one
exception is Kafka's own: Produce is listed from version 0 (see produce.py).

Version by version: 1 throttle time · 3 flexible, client name, features · 4 features whose lowest
version is 0.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from klamm.broker.features import SUPPORTED_FEATURES
from klamm.broker.handlers import load_routes
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext

API_KEY = 18
VERSIONS = (0, 4)

CLIENT_NAMES_FROM = 3
LEGAL_CLIENT_NAME = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")


def handle(request: ApiVersionsRequest, context: RequestContext) -> ApiVersionsResponse:
    version = context.api_version
    if version >= CLIENT_NAMES_FROM and not (
        LEGAL_CLIENT_NAME.fullmatch(request.client_software_name)
        and LEGAL_CLIENT_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    image = context.broker.metadata.image
    return ApiVersionsResponse(
        api_keys=served(),
        supported_features=[
            SupportedFeatureKey(name=name, min_version=first, max_version=last)
            for name, (first, last) in SUPPORTED_FEATURES.items()
            # Clients before version 4 can't read a lowest version of 0 (KAFKA-17011).
            if first > 0 or version >= 4
        ],
        finalized_features_epoch=context.broker.metadata.log.log_end_offset - 1,
        finalized_features=[
            FinalizedFeatureKey(name=name, max_version_level=level, min_version_level=level)
            for name, level in image.features.items()
            # One at level 0 is off. Others may have come with a directory of Apache Kafka.
            if level > 0 and name in SUPPORTED_FEATURES
        ],
    )


@cache
def served() -> list[ApiVersion]:
    """What is listed: the same in all replies, which nobody changes."""
    return [
        ApiVersion(
            api_key=route.api_key,
            min_version=route.advertised_min_version,
            max_version=route.max_version,
        )
        for route in load_routes().values()
    ]


def error_response(request: ApiVersionsRequest | None, code: ErrorCode) -> ApiVersionsResponse:
    """With UNSUPPORTED_VERSION the reply still says which versions of this API there are."""
    keys = []
    if code is ErrorCode.UNSUPPORTED_VERSION:
        first, last = VERSIONS
        keys = [ApiVersion(api_key=API_KEY, min_version=first, max_version=last)]
    return ApiVersionsResponse(error_code=code, api_keys=keys)
