"""Scripts that talk to the classic protocol, and what it answers.

A script is a text: commands, a line `----`, and what they print, up to an empty line. Then come
the next commands. `#` begins a comment. What is printed: every answer, whenever it comes, with the
fields that are not at their default; every record that is stored; the group whenever it has
changed. A parked request prints nothing until it is answered.

Commands:

    set NAME=VALUE ...          a setting; before everything else
    join CLIENT PROTOCOL:TOPICS ... [member= instance= session= rebalance= type= v= group=]
    sync CLIENT [MEMBER:BYTES ... generation= member= instance= type= protocol= v= group=]
    heartbeat CLIENT [generation= member= instance= group=]
    leave CLIENT ... [v= group=]            clients, members, or /INSTANCE
    commit CLIENT [generation= member= instance= transactional]
    advance N                   milliseconds
    refuse N [CODE]             the log refuses the next N appends
    drop CLIENT                 its connection is closed
    describe | checks | timers
    delete                      the group, by a tombstone
    reload | unload             the shard

A client sends the member id and the generation that it was told last. Member ids are written
`client#number` in place of `client-uuid`; `member=-` sends none.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from itertools import count
from typing import Any
from uuid import UUID

from klamm.coordinator.classic.group import ClassicGroup
from klamm.coordinator.classic.protocol import ClassicProtocol
from klamm.coordinator.errors import CoordinatorError
from klamm.coordinator.ports import Client, CoordinatorRecord
from klamm.coordinator.settings import GroupSettings
from klamm.coordinator.tests.fakes import FakeShard
from klamm.wire.codec import encode
from klamm.wire.errors import ErrorCode
from klamm.wire.messages.describe_groups import DescribedGroupMember
from klamm.wire.messages.heartbeat import HeartbeatRequest
from klamm.wire.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponseMember,
)
from klamm.wire.messages.leave_group import LeaveGroupRequest, MemberIdentity
from klamm.wire.messages.stored.classic_group import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
)
from klamm.wire.messages.stored.consumer_protocol import ConsumerProtocolSubscription
from klamm.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from klamm.wire.schema import Struct

UUID_START = "-00000000-0000-0000-0000-"
SHORT_NAMES = {
    "current_state_timestamp": "at",
    "generation_id": "generation",
    "member_id": "member",
    "protocol_name": "protocol",
    "protocol_type": "type",
}
SUBSCRIPTION_VERSION = b"\0\3"


def consumer_metadata(topics: str) -> bytes:
    """What a consumer says about the topics that it reads."""
    subscription = ConsumerProtocolSubscription(topics=topics.split(","))
    return SUBSCRIPTION_VERSION + encode(subscription, 3)


class Script:
    """The state of one script."""

    def __init__(self) -> None:
        self.world = FakeShard()
        self.output: list[str] = []
        self.shown = ""
        self.told: dict[str, tuple[str, int]] = {}
        self.parked: dict[str, Callable[[Any], None]] = {}
        self.metadata_names: dict[bytes, str] = {}
        self._begin(GroupSettings())

    def _begin(self, settings: GroupSettings) -> None:
        numbers = count(1)
        self.world = FakeShard(settings)
        self.world.shard.new_uuid = lambda: UUID(int=next(numbers))
        self._load()

    def _load(self) -> None:
        self.world.groups.clear()
        self.protocol = ClassicProtocol(self.world.shard)
        for record in self.world.journal.records:
            self._replay(record)
        self.world.journal.replay = self._replay_and_show

    def run(self, line: str) -> list[str]:
        """Run a command, and return what it prints."""
        verb, *words = line.split()
        options = dict(word.split("=", 1) for word in words if "=" in word)
        names = [word for word in words if "=" not in word]
        getattr(self, f"do_{verb}")(names, options)
        self._show_group(options.get("group", "g"))
        output, self.output = self.output, []
        return output

    # Requests.

    def do_join(self, names: list[str], options: dict[str, str]) -> None:
        name, *protocols = names
        version = int(options.get("v", 9))
        protocol_type = options.get("type", "consumer")
        request = JoinGroupRequest(
            group_id=options.get("group", "g"),
            session_timeout_ms=int(options.get("session", 10_000)),
            rebalance_timeout_ms=int(options.get("rebalance", 60_000)),
            member_id=self._member_id(name, options),
            group_instance_id=options.get("instance"),
            protocol_type=protocol_type,
            protocols=[self._protocol(one, protocol_type) for one in protocols],
        )
        reply = self._reply(name, "join", version)
        self.parked[name] = reply
        self.protocol.join(request, self._client(name, version), reply)

    def do_sync(self, names: list[str], options: dict[str, str]) -> None:
        name, *assignments = names
        version = int(options.get("v", 5))
        group = self.world.groups.get("g")
        protocol = group.protocol if isinstance(group, ClassicGroup) else None
        request = SyncGroupRequest(
            group_id=options.get("group", "g"),
            generation_id=self._generation(name, options),
            member_id=self._member_id(name, options),
            group_instance_id=options.get("instance"),
            assignments=[
                SyncGroupRequestAssignment(
                    member_id=_full_id(one.split(":")[0]), assignment=one.split(":")[1].encode()
                )
                for one in assignments
            ],
        )
        if version >= 5:
            request.protocol_type = _null(options.get("type", "consumer"))
            request.protocol_name = _null(options.get("protocol", protocol or "range"))
        reply = self._reply(name, "sync", version)
        self.parked[name] = reply
        self.protocol.sync(request, self._client(name, version), reply)

    def do_heartbeat(self, names: list[str], options: dict[str, str]) -> None:
        request = HeartbeatRequest(
            group_id=options.get("group", "g"),
            generation_id=self._generation(names[0], options),
            member_id=self._member_id(names[0], options),
            group_instance_id=options.get("instance"),
        )
        response = self.protocol.heartbeat(request, self._client(names[0], 4))
        self._reply(names[0], "heartbeat", 4)(response)

    def do_leave(self, names: list[str], options: dict[str, str]) -> None:
        version = int(options.get("v", 5))
        request = LeaveGroupRequest(group_id=options.get("group", "g"))
        if version < 3:
            request.member_id = self._member_id(names[0], options)
        else:
            request.members = [self._identity(name) for name in names]
        response = self.protocol.leave(request, self._client(names[0], version))
        self._reply(",".join(names), "leave", version)(response)

    def _identity(self, name: str) -> MemberIdentity:
        member, slash, instance = name.partition("/")
        member_id = self._member_id(member, {}) if member else ""
        return MemberIdentity(
            member_id=_full_id(member) if "#" in member else member_id,
            group_instance_id=instance if slash else None,
        )

    def do_commit(self, names: list[str], options: dict[str, str]) -> None:
        member_id = self._member_id(names[0], options)
        try:
            self._group().check_offset_commit(
                member_id,
                options.get("instance"),
                self._generation(names[0], options),
                is_transactional="transactional" in names,
                api_version=9,
            )
            self.protocol.on_offset_commit("g", member_id)
            self._print(f"{names[0]} commit NONE")
        except CoordinatorError as error:
            self._print(f"{names[0]} commit {error.code.name}")

    # The world.

    def do_set(self, names: list[str], options: dict[str, str]) -> None:
        settings: dict[str, Any] = {name: int(value) for name, value in options.items()}
        self.world.shard.settings = replace(self.world.shard.settings, **settings)

    def do_advance(self, names: list[str], options: dict[str, str]) -> None:
        self.world.timers.advance(int(names[0]))

    def do_refuse(self, names: list[str], options: dict[str, str]) -> None:
        code = ErrorCode[names[1]] if len(names) > 1 else ErrorCode.NOT_ENOUGH_REPLICAS
        self.world.journal.refuse(code, appends=int(names[0]))

    def do_drop(self, names: list[str], options: dict[str, str]) -> None:
        self.protocol.abandon("g", self.parked[names[0]])

    def do_delete(self, names: list[str], options: dict[str, str]) -> None:
        self.world.journal.append(self._group().tombstones())

    def do_reload(self, names: list[str], options: dict[str, str]) -> None:
        for key in self.world.timers.remaining_ms():
            self.world.timers.cancel(key)
        self._load()
        self.protocol.on_loaded()

    def do_unload(self, names: list[str], options: dict[str, str]) -> None:
        self.protocol.on_unloaded()

    def do_describe(self, names: list[str], options: dict[str, str]) -> None:
        self._print(self._fields(self._group().describe()))

    def do_timers(self, names: list[str], options: dict[str, str]) -> None:
        for key, remaining_ms in sorted(self.world.timers.remaining_ms().items(), key=str):
            assert isinstance(key, tuple)
            self._print(f"{' '.join(key)}: {remaining_ms}")

    def do_checks(self, names: list[str], options: dict[str, str]) -> None:
        group = self._group()
        checks: dict[str, Callable[[], None]] = {
            "fetch": lambda: group.check_offset_fetch(None, -1),
            "delete offsets": group.check_offset_delete,
            "delete group": group.check_deletion,
        }
        results = []
        for name, check in checks.items():
            try:
                check()
                results.append(f"{name} NONE")
            except CoordinatorError as error:
                results.append(f"{name} {error.code.name}")
        expiry = group.offsets_expire_after_ms(1_000)
        start_ms = FakeShard.EPOCH_MS
        after = "never" if expiry is None else expiry(start_ms + 5) - start_ms
        topics = [topic for topic in ("t1", "t2") if group.is_subscribed_to(topic)]
        self._print(
            f"{', '.join(results)}; offsets of 5 expire at {after}; "
            f"reads {' and '.join(topics) or 'nothing'}"
        )

    # Printing.

    def _print(self, text: str) -> None:
        self.output.append(re.sub(f"{UUID_START}0*", "#", text))

    def _reply(self, name: str, verb: str, version: int) -> Callable[[Any], None]:
        answers: list[Any] = []

        def reply(response: Any) -> None:
            assert not answers, f"{name} was answered twice: {answers[0]} and {response}"
            answers.append(response)
            encode(response, version)
            code = ErrorCode(response.error_code)
            if verb == "join" and code in (ErrorCode.NONE, ErrorCode.MEMBER_ID_REQUIRED):
                self.told[name] = (response.member_id, response.generation_id)
            self._print(f"{name} {verb} {code.name} {self._fields(response)}".rstrip())

        return reply

    def _fields(self, struct: Struct) -> str:
        shown = []
        for declared in struct.FIELDS:
            value = getattr(struct, declared.name)
            if value != declared.default_value() and declared.name != "error_code":
                name = SHORT_NAMES.get(declared.name, declared.name)
                shown.append(f"{name}={self._value(value)}")
        return " ".join(shown)

    def _value(self, value: Any) -> str:
        if value is None:
            return "null"
        if isinstance(value, bytes):
            known = self.metadata_names.get(value)
            return value.decode() if known is None else known
        if isinstance(value, list):
            return f"[{', '.join(map(self._member, value))}]"
        return str(value)

    def _member(self, member: Any) -> str:
        text = str(member.member_id)
        if member.group_instance_id is not None:
            text += f"/{member.group_instance_id}"
        match member:
            case JoinGroupResponseMember():
                return f"{text}:{self._value(member.metadata)}"
            case MemberMetadata():
                return f"{text}:{self._value(member.subscription)}:{member.assignment.decode()}"
            case DescribedGroupMember():
                metadata = self._value(member.member_metadata)
                return f"{text}:{metadata}:{member.member_assignment.decode()}"
        return f"{text} {ErrorCode(member.error_code).name}"

    def _replay_and_show(self, record: CoordinatorRecord) -> None:
        value = record.value
        if isinstance(value, GroupMetadataValue):
            value.current_state_timestamp -= FakeShard.EPOCH_MS
            self._print(f"stored v{record.value_version} {self._fields(value)}")
            value.current_state_timestamp += FakeShard.EPOCH_MS
        else:
            self._print("stored tombstone")
        self._replay(record)

    def _replay(self, record: CoordinatorRecord) -> None:
        assert isinstance(record.key, GroupMetadataKey)
        assert record.value is None or isinstance(record.value, GroupMetadataValue)
        self.protocol.replay_group_metadata(record.key, record.value)

    def _show_group(self, group_id: str) -> None:
        group = self.world.groups.get(group_id)
        text = "no group"
        if isinstance(group, ClassicGroup):
            text = f"{group.state_name} generation={group.generation}"
            for name, ids in (("members", group.members), ("pending", group.pending_members)):
                if ids:
                    text += f" {name}={','.join(sorted(ids))}"
        if text != self.shown:
            self.shown = text
            self._print(f"=> {text}")

    # Reading.

    def _group(self) -> ClassicGroup:
        group = self.world.groups["g"]
        assert isinstance(group, ClassicGroup)
        return group

    def _client(self, name: str, version: int) -> Client:
        return Client(client_id=name, host="/10.0.0.1", api_version=version)

    def _member_id(self, name: str, options: dict[str, str]) -> str:
        if "member" in options:
            return "" if options["member"] == "-" else _full_id(options["member"])
        return self.told.get(name, ("", -1))[0]

    def _generation(self, name: str, options: dict[str, str]) -> int:
        return int(options.get("generation", self.told.get(name, ("", -1))[1]))

    def _protocol(self, text: str, protocol_type: str) -> JoinGroupRequestProtocol:
        name, _, said = text.partition(":")
        metadata = consumer_metadata(said) if protocol_type == "consumer" else said.encode()
        if said == "broken":
            metadata = b"broken"
        self.metadata_names[metadata] = said
        return JoinGroupRequestProtocol(name=name, metadata=metadata)


def _full_id(alias: str) -> str:
    name, hash_, number = alias.partition("#")
    return f"{name}{UUID_START}{number:0>12}" if hash_ else alias


def _null(text: str) -> str | None:
    return None if text == "null" else text
