"""From a frame to a filled reply slot: header, gates, decode, handler, encode.

Whatever the bytes are, the outcome is a reply with Kafka's error code or a closed connection with
one log line (`WireError` reaches the connection, which closes). A handler that fails answers
UNKNOWN_SERVER_ERROR, and the process goes on; the traceback goes to the log, never to the client.
The exception is a broken invariant of the log itself: going on could lose data, so the broker
halts.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any

import trio

from klamm.broker.connection import CHUNKS_AT_ONCE_MAX, ReplySlot, joined
from klamm.broker.context import RequestContext
from klamm.broker.handlers import Route, load_routes
from klamm.broker.interception import Interceptors
from klamm.broker.letting_go import structs_of
from klamm.broker.replies import Pending
from klamm.broker.steps import let_go
from klamm.log.errors import LogError
from klamm.wire.codec import decode_in_steps, decoder_for, encode_chunks, encode_in_steps
from klamm.wire.errors import ErrorCode, LimitExceeded, WireError
from klamm.wire.header import (
    RequestHeader,
    UnsupportedVersion,
    decode_request_header,
    encode_response_start,
)
from klamm.wire.limits import Limits
from klamm.wire.schema import Message, Struct

if TYPE_CHECKING:
    from klamm.broker.broker import Broker
    from klamm.broker.connection import Connection

logger = logging.getLogger(__name__)

API_VERSIONS_KEY = 18
# Items of arrays, and tagged fields of one struct, that are read in one go. While a request with
# more is read, handled and answered, others get their turns.
ITEMS_AT_ONCE_MAX = 2_000
TAGGED_FIELDS_AT_ONCE_MAX = 16


class Dispatcher:
    """Finds the handler of a request and sees to its reply."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self._broker = broker
        self._nursery = nursery
        self._steps = broker.steps
        items_max = broker.config.klamm_request_items_max
        self._limits = Limits(array_items_max=items_max)
        self._short_limits = Limits(
            array_items_max=min(items_max, ITEMS_AT_ONCE_MAX),
            tagged_fields_max=TAGGED_FIELDS_AT_ONCE_MAX,
        )
        self.routes = load_routes()
        self.interceptors = Interceptors()
        # Handlers that run in a task of their own now; a shutdown waits for them.
        self.tasks = 0
        self.handler_failures = 0

    def __call__(self, frame: bytes | memoryview, slot: ReplySlot) -> None:
        try:
            header, body_at = decode_request_header(frame, self._limits)
        except UnsupportedVersion as unsupported:
            self._refuse_version(unsupported, slot)
            return
        route = self.routes.get(header.api_key)
        if route is None or not route.min_version <= header.api_version <= route.max_version:
            slot.fail(f"API key {header.api_key} version {header.api_version} is not served")
            return
        context = RequestContext(self._broker, slot.connection, header)
        try:
            # Like Kafka, klamm does not look at bytes behind a request: librdkafka 2.16 sends three
            # when it asks for all topics.
            read = decoder_for(route.request, header.api_version)
            request, _ = read(frame, body_at, self._short_limits)
        except LimitExceeded:
            self._start_task(slot, self._serve_long, route, frame, body_at, context, slot)
            return
        if self.interceptors.active and self._intercept(route, request, context, slot):
            return
        self._handle(route, request, context, slot)

    def _handle(self, route: Route, request: Any, context: RequestContext, slot: ReplySlot) -> None:
        try:
            result = route.handle(request, context)
            if not isinstance(result, Message) and is_stepwise(result):
                result = self._steps.begin(result)
        except Exception as error:
            self._fail(route, request, context, slot, error)
            return
        if isinstance(result, Message):
            self._reply(route, request, context, slot, result)
        elif isinstance(result, Pending):
            self._reply_later(route, request, context, slot, result)
        elif inspect.isawaitable(result):
            self._start_task(slot, self._finish, route, request, context, slot, result)
        else:
            self._reply(route, request, context, slot, result)

    def _reply_later(
        self,
        route: Route,
        request: Any,
        context: RequestContext,
        slot: ReplySlot,
        pending: Pending[Any],
    ) -> None:
        slot.on_close = pending.abandon
        pending.deliver_to(
            lambda response: self._reply(route, request, context, slot, response),
            lambda error: self._fail(route, request, context, slot, error),
        )

    def _start_task(
        self, slot: ReplySlot, function: Callable[..., Awaitable[list[Struct]]], *args: Any
    ) -> None:
        """Go on in a task; the connection handles no further request until the function has ended.

        Args:
            function: returns what it has made and read, to be let go of when nobody waits.
        """
        slot.connection.hold()
        self.tasks += 1
        self._nursery.start_soon(self._run_task, slot.connection, function, args)

    async def _run_task(
        self,
        connection: Connection,
        function: Callable[..., Awaitable[list[Struct]]],
        args: Sequence[Any],
    ) -> None:
        try:
            structs = await function(*args)
        finally:
            self.tasks -= 1
        connection.proceed()
        # They have the request and the response, too.
        args = ()
        await self._steps.run(let_go(structs))

    async def _serve_long(
        self,
        route: Route,
        frame: bytes | memoryview,
        body_at: int,
        context: RequestContext,
        slot: ReplySlot,
    ) -> list[Struct]:
        """Read and handle a request that has much in it."""
        version = context.header.api_version
        steps = decode_in_steps(
            *(route.request, version, frame, self._limits, body_at), exact=False
        )
        try:
            request = await self._steps.run(steps)
        except WireError as error:
            slot.fail(f"unreadable request: {error}")
            return []
        if self.interceptors.active and self._intercept(route, request, context, slot):
            return []
        try:
            result = route.handle(request, context)
        except Exception as error:
            self._fail(route, request, context, slot, error)
            return []
        return await self._finish(route, request, context, slot, result)

    async def _finish(
        self, route: Route, request: Any, context: RequestContext, slot: ReplySlot, result: Any
    ) -> list[Struct]:
        """See to the reply of a handler that may take long, and whose response may be large."""
        try:
            if is_stepwise(result):
                result = await self._steps.run(result)
            while inspect.isawaitable(result):
                result = await result
        except Exception as error:
            self._fail(route, request, context, slot, error)
            return []
        if isinstance(result, Pending):
            slot.on_close = result.abandon
            result.deliver_to(
                lambda response: self._start_task(
                    slot, self._reply_in_steps, route, request, context, slot, response
                ),
                lambda error: self._fail(route, request, context, slot, error),
            )
            return []
        return await self._reply_in_steps(route, request, context, slot, result)

    async def _reply_in_steps(
        self, route: Route, request: Any, context: RequestContext, slot: ReplySlot, response: Any
    ) -> list[Struct]:
        chunks: Sequence[Any] = ()
        if response is not None:
            try:
                chunks = await self._steps.run(encode_reply_in_steps(context.header, response))
            except Exception as error:
                self._fail(route, request, context, slot, error)
                return []
        slot.fill(chunks)
        return await self._steps.run(structs_of(request, response))

    def _reply(
        self, route: Route, request: Any, context: RequestContext, slot: ReplySlot, response: Any
    ) -> None:
        if response is None:
            slot.fill(())
            return
        try:
            chunks = encode_reply(context.header, response)
        except Exception as error:
            # A response that can't be written is a fault of the handler like any other.
            self._fail(route, request, context, slot, error)
        else:
            slot.fill(chunks)

    def _fail(
        self,
        route: Route,
        request: Any,
        context: RequestContext,
        slot: ReplySlot,
        error: Exception,
    ) -> None:
        """Answer for a handler that failed. Never raises: the process goes on."""
        if isinstance(error, LogError):
            # The disk is full, say: the log has refused the metadata that the request needs.
            logger.error("%s: %s", route.name, error)
            code = error.code
        else:
            self.handler_failures += 1
            logger.error("%s failed; answering UNKNOWN_SERVER_ERROR", route.name, exc_info=error)
            code = ErrorCode.UNKNOWN_SERVER_ERROR
            if isinstance(error, AssertionError) and is_raised_in_the_log(error):
                self._broker.halt(f"{route.name}: an invariant of the log is broken")
                return
        try:
            self._refuse(route, request, context, slot, code)
        except Exception:
            logger.exception("%s has no reply for %s", route.name, code.name)
            slot.fail(f"{route.name} failed")

    def _refuse(
        self, route: Route, request: Any, context: RequestContext, slot: ReplySlot, code: ErrorCode
    ) -> None:
        """Answer with an error; a request without a reply has no other way to learn of it than a
        closed connection, as in Kafka."""
        response = route.error_response(request, code)
        if response is None:
            slot.fail(f"{route.name} without a reply failed: {code.name}")
        else:
            slot.fill(encode_reply(context.header, response))

    def _refuse_version(self, unsupported: UnsupportedVersion, slot: ReplySlot) -> None:
        """An unknown version of ApiVersions is answered in version 0, which lists the range that
        would have been right; Kafka closes the connection for any other API (KIP-511)."""
        if unsupported.api_key != API_VERSIONS_KEY:
            slot.fail(
                f"API key {unsupported.api_key} version {unsupported.api_version} is not served"
            )
            return
        response = self.routes[API_VERSIONS_KEY].error_response(None, ErrorCode.UNSUPPORTED_VERSION)
        header = RequestHeader(API_VERSIONS_KEY, 0, unsupported.correlation_id, None)
        slot.fill(encode_reply(header, response))

    def _intercept(
        self, route: Route, request: Any, context: RequestContext, slot: ReplySlot
    ) -> bool:
        """True when a test's hook has taken the request over."""
        action = self.interceptors.action_for(context.header, request)
        if action is None:
            return False
        if action.error is not None:
            self._refuse(route, request, context, slot, action.error)
        elif action.delay_s is not None:
            slot.connection.hold()
            self._nursery.start_soon(self._delay, action.delay_s, route, request, context, slot)
        else:
            slot.fail("dropped by a test hook")
        return True

    async def _delay(
        self, seconds: float, route: Route, request: Any, context: RequestContext, slot: ReplySlot
    ) -> None:
        await trio.sleep(seconds)
        if not slot.connection.closed:
            self._handle(route, request, context, slot)
            slot.connection.proceed()


def is_stepwise(result: Any) -> bool:
    """Whether a handler has returned steps to be taken. Compiled coroutines are iterators, too."""
    return isinstance(result, Generator) and not isinstance(result, Awaitable)


def is_raised_in_the_log(error: BaseException) -> bool:
    """Whether the failed assertion stands in the log or in a coordinator: the keepers of data."""
    traceback = error.__traceback__
    module = ""
    while traceback is not None:
        module = traceback.tb_frame.f_globals.get("__name__", "")
        traceback = traceback.tb_next
    return module.startswith(("klamm.log.", "klamm.coordinator."))


def encode_reply(header: RequestHeader, response: Any) -> Sequence[Any]:
    """The reply as chunks: bytes, and ranges of files that are sent without being copied."""
    return _framed(header, encode_chunks(response, header.api_version))


def encode_reply_in_steps(
    header: RequestHeader, response: Any
) -> Generator[None, None, Sequence[Any]]:
    """The same, and others may have their turn meanwhile."""
    chunks = yield from encode_in_steps(response, header.api_version)
    return _framed(header, chunks)


def _framed(header: RequestHeader, chunks: list[Any]) -> Sequence[Any]:
    key, version, correlation_id, _ = header
    if len(chunks) == 1 and type(chunks[0]) is bytes:
        # Almost every reply but that of a fetch.
        body = chunks[0]
        return (encode_response_start(key, version, correlation_id, len(body)) + body,)
    start = encode_response_start(key, version, correlation_id, sum(map(len, chunks)))
    if len(chunks) <= CHUNKS_AT_ONCE_MAX:
        return joined([start, *chunks])
    return [start, *chunks]
