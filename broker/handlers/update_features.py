"""UpdateFeatures (key 57): change the level of a feature that the cluster has agreed on.

Versions 0-2.

Promise: all updates of a request are made, durably, or none; `validate_only` makes none. A level
below the present one has to be asked for as a downgrade; level 0 switches a feature off. Of several
updates of one feature the last counts.

Version by version: 1 kinds of upgrade, validation alone (version 0 can't downgrade, as in Kafka) ·
2 no results for single features.

Deviation: only the features that klamm has can be changed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from klamm.broker.features import SUPPORTED_FEATURES
from klamm.broker.metadata.topics import Refused
from klamm.broker.steps import Stepwise
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.stored.metadata import FeatureLevelRecord
from klamm.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

if TYPE_CHECKING:
    from klamm.broker.context import RequestContext
    from klamm.broker.metadata.image import MetadataImage

API_KEY = 57
VERSIONS = (0, 2)

RESULTS_UNTIL = 1
UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3
# What Kafka says of a feature that was updated.
NO_ERROR = "NONE"


async def handle(request: UpdateFeaturesRequest, context: RequestContext) -> UpdateFeaturesResponse:
    controller = context.broker.controller
    async with controller.lock:
        try:
            records = await context.broker.steps.run(plan(request, controller.image))
        except Refused as refused:
            return UpdateFeaturesResponse(error_code=refused.code, error_message=refused.message)
        if records and not request.validate_only:
            await controller.commit(records)
    response = UpdateFeaturesResponse(error_message=None)
    if context.api_version <= RESULTS_UNTIL:
        response.results = await context.broker.steps.run(results(request))
    return response


def plan(
    request: UpdateFeaturesRequest, image: MetadataImage
) -> Stepwise[list[FeatureLevelRecord]]:
    """The records of what changes. Raises Refused."""
    updates = {}
    for update in request.feature_updates:
        updates[update.feature] = update
        yield None
    records = []
    for name, update in updates.items():
        current = image.features.get(name, 0)
        check(update, current)
        if update.max_version_level != current:
            records.append(FeatureLevelRecord(name=name, feature_level=update.max_version_level))
        yield None
    return records


def check(update: FeatureUpdateKey, current: int) -> None:
    """Raises Refused."""
    level = update.max_version_level
    supported = SUPPORTED_FEATURES.get(update.feature)
    if update.upgrade_type not in (UPGRADE, SAFE_DOWNGRADE, UNSAFE_DOWNGRADE):
        problem = f"there is no upgrade type {update.upgrade_type}"
    elif supported is None:
        problem = "this broker does not have the feature"
    elif not supported[0] <= level <= supported[1]:
        problem = f"this broker has the levels {supported[0]} to {supported[1]}"
    elif level < current and update.upgrade_type == UPGRADE:
        problem = f"it is below {current}, and no downgrade was asked for"
    elif level > current and update.upgrade_type != UPGRADE:
        problem = f"a downgrade was asked for, but it is above {current}"
    else:
        return
    raise Refused(
        ErrorCode.INVALID_UPDATE_VERSION,
        f"Nothing is updated: level {level} of {update.feature!r} can't be set, because {problem}.",
    )


def results(request: UpdateFeaturesRequest) -> Stepwise[list[UpdatableFeatureResult]]:
    made = []
    for update in request.feature_updates:
        made.append(UpdatableFeatureResult(feature=update.feature, error_message=NO_ERROR))
        yield None
    return made


def error_response(request: UpdateFeaturesRequest, code: ErrorCode) -> UpdateFeaturesResponse:
    return UpdateFeaturesResponse(error_code=code, error_message=None)
