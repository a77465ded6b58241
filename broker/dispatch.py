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
import time
from collections.abc import Awaitable, Sequence
from types import GeneratorType
from typing import TYPE_CHECKING, Any

import trio

from klamm.broker.connection import ReplySlot
from klamm.broker.context import RequestContext
from klamm.broker.handlers import Route, load_routes
from klamm.broker.interception import Interceptors
from klamm.broker.reactor import TURN_SECONDS_MAX
from klamm.broker.replies import Pending, Steps, Work
from klamm.log.errors import LogError
from klamm.wire.codec import decode, encode_chunks
from klamm.wire.errors import ErrorCode
from klamm.wire.header import (
    RequestHeader,
    UnsupportedVersion,
    decode_request_header,
    encode_response_header,
)
from klamm.wire.limits import Limits

if TYPE_CHECKING:
    from klamm.broker.broker import Broker

logger = logging.getLogger(__name__)

API_VERSIONS_KEY = 18
# Steps of a handler (partitions, mostly) that are taken without looking at the clock.
STEPS_AT_ONCE_MAX = 200


class Dispatcher:
    """Finds the handler of a request and sees to its reply."""

    def __init__(self, broker: Broker, nursery: trio.Nursery) -> None:
        self._broker = broker
        self._nursery = nursery
        self._limits = Limits(array_items_max=broker.config.klamm_request_items_max)
        self.routes = load_routes()
        self.interceptors = Interceptors()
        # Handlers that run in a task of their own now; a shutdown waits for them.
        self.tasks = 0
        self.handler_failures = 0

    def __call__(self, frame: memoryview, slot: ReplySlot) -> None:
        try:
            header, body_at = decode_request_header(frame, self._limits)
        except UnsupportedVersion as unsupported:
            self._refuse_version(unsupported, slot)
            return
        route = self.routes.get(header.api_key)
        if route is None or not route.min_version <= header.api_version <= route.max_version:
            slot.fail(f"API key {header.api_key} version {header.api_version} is not served")
            return
        request = decode(route.request, header.api_version, frame, self._limits, offset=body_at)
        context = RequestContext(self._broker, slot.connection, header)
        if self.interceptors.active and self._intercept(route, request, context, slot):
            return
        self._handle(route, request, context, slot)

    def _handle(self, route: Route, request: Any, context: RequestContext, slot: ReplySlot) -> None:
        try:
            result = route.handle(request, context)
            if isinstance(result, GeneratorType):
                result = self._run_steps(result)
        except Exception as error:
            self._fail(route, request, context, slot, error)
            return
        if isinstance(result, Pending):
            slot.on_close = result.abandon
            result.deliver_to(
                lambda response: self._reply(route, request, context, slot, response),
                lambda error: self._fail(route, request, context, slot, error),
            )
        elif inspect.isawaitable(result):
            slot.connection.hold()
            self.tasks += 1
            self._nursery.start_soon(self._finish, route, request, context, slot, result)
        else:
            self._reply(route, request, context, slot, result)

    def _run_steps(self, steps: Steps[Any]) -> Any:
        """Run a handler to its end if it is a short one, else leave the rest to a task."""
        try:
            for _ in range(STEPS_AT_ONCE_MAX):
                work = next(steps)
                if work is not None:
                    return self._run_rest(steps, work)
        except StopIteration as end:
            return end.value
        return self._run_rest(steps, None)

    async def _run_rest(self, steps: Steps[Any], work: Work | None) -> Any:
        try:
            while True:
                if work is None:
                    await trio.lowlevel.checkpoint()
                    work = _steps_of_one_turn(steps)
                    continue
                try:
                    result = await trio.to_thread.run_sync(work, limiter=self._broker.opening)
                except Exception as error:
                    work = steps.throw(error)
                else:
                    work = steps.send(result)
        except StopIteration as end:
            result = end.value
        return await result.wait() if isinstance(result, Pending) else result

    async def _finish(
        self,
        route: Route,
        request: Any,
        context: RequestContext,
        slot: ReplySlot,
        result: Awaitable[Any],
    ) -> None:
        """Await the rest of an `async` handler in a task of its own."""
        try:
            response = await result
        except Exception as error:
            self._fail(route, request, context, slot, error)
        else:
            self._reply(route, request, context, slot, response)
        finally:
            self.tasks -= 1
        slot.connection.proceed()

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


def _steps_of_one_turn(steps: Steps[Any]) -> Work | None:
    """Raises StopIteration at the end of the steps."""
    ends_at = time.perf_counter() + TURN_SECONDS_MAX
    work = next(steps)
    while work is None and time.perf_counter() < ends_at:
        work = next(steps)
    return work


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
    chunks = encode_chunks(response, header.api_version)
    reply_header = encode_response_header(header.api_key, header.api_version, header.correlation_id)
    size = len(reply_header) + sum(map(len, chunks))
    first = size.to_bytes(4, "big") + reply_header
    if chunks and isinstance(chunks[0], bytes):
        return [first + chunks[0], *chunks[1:]]
    return [first, *chunks]
