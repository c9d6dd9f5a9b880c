"""KEDA's questions, answered of a backlog.

A trigger's metadata may say `turnsPerReplica`, the turns each runner should have, and
`oldestTurnSeconds`, the age a turn may reach in the queue: with it there is a second metric, and
KEDA follows whichever wants more runners.
"""

import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any

import grpc.aio

from externalscaler import externalscaler_pb2 as pb
from externalscaler.externalscaler_pb2_grpc import (
    ExternalScalerServicer,
    add_ExternalScalerServicer_to_server,
)
from turnline.errors import InvalidRequestError
from turnline.hosting.grpc_server import GrpcService
from turnline.scaler.backlog import Backlog, Measure

SERVICE_NAME = pb.DESCRIPTOR.services_by_name["ExternalScaler"].full_name

TURNS = "turnline-turns"
OLDEST_TURN = "turnline-oldest-turn-seconds"
_TURNS_KEY = "turnsPerReplica"
_OLDEST_KEY = "oldestTurnSeconds"

Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalerDesk:
    """What KEDA's questions are answered with.

    Attributes:
        turns_per_replica: for triggers that do not say it; at least 1.
        knows_ages: False: the broker does not tell how old what it holds is.
    """

    backlog: Backlog
    turns_per_replica: int
    knows_ages: bool = True


def make_service(desk: ScalerDesk) -> GrpcService:
    """Make what a gRPC server serves; `open_grpc` calls it by this name."""
    scaler = KedaScaler(desk)
    return GrpcService(
        name=SERVICE_NAME,
        register=lambda server: add_ExternalScalerServicer_to_server(scaler, server),
    )


class KedaScaler(ExternalScalerServicer):
    """Answers `ExternalScaler`; while the queue cannot be counted KEDA is told so, and holds."""

    def __init__(self, desk: ScalerDesk) -> None:
        self._desk = desk

    async def IsActive(self, request: pb.ScaledObjectRef, context: Context) -> pb.IsActiveResponse:
        """Say whether a runner is needed."""
        return pb.IsActiveResponse(result=_is_active(self._desk.backlog.newest))

    async def StreamIsActive(
        self, request: pb.ScaledObjectRef, context: Context
    ) -> AsyncIterator[pb.IsActiveResponse]:
        """Say it at once, and again whenever it changes."""
        said: bool | None = None
        async for measure in self._desk.backlog.measures():
            active = _is_active(measure)
            if active is not said:
                said = active
                yield pb.IsActiveResponse(result=active)

    async def GetMetricSpec(
        self, request: pb.ScaledObjectRef, context: Context
    ) -> pb.GetMetricSpecResponse:
        """Say what each replica should have."""
        targets = self._targets(request.scalerMetadata)
        return pb.GetMetricSpecResponse(
            metricSpecs=[
                pb.MetricSpec(
                    metricName=name, targetSize=max(1, round(target)), targetSizeFloat=target
                )
                for name, target in targets.items()
            ]
        )

    async def GetMetrics(
        self, request: pb.GetMetricsRequest, context: Context
    ) -> pb.GetMetricsResponse:
        """Say what a metric is now."""
        values = self._values(self._desk.backlog.newest)
        value = values.get(request.metricName)
        if value is None:
            raise InvalidRequestError(
                f"there is no such metric; ask for {' or '.join(values)}", field="metricName"
            )
        answer = pb.MetricValue(
            metricName=request.metricName, metricValue=math.ceil(value), metricValueFloat=value
        )
        return pb.GetMetricsResponse(metricValues=[answer])

    def _targets(self, metadata: Mapping[str, str]) -> dict[str, float]:
        targets = {TURNS: float(self._desk.turns_per_replica)}
        if _TURNS_KEY in metadata:
            targets[TURNS] = _target(metadata, _TURNS_KEY)
        if _OLDEST_KEY in metadata:
            if not self._desk.knows_ages:
                raise InvalidRequestError(
                    f"{_OLDEST_KEY} can't be had: this broker tells no ages of what it holds; "
                    "leave it out",
                    field=f"scalerMetadata.{_OLDEST_KEY}",
                )
            targets[OLDEST_TURN] = _target(metadata, _OLDEST_KEY)
        return targets

    def _values(self, measure: Measure) -> dict[str, float]:
        ages = {OLDEST_TURN: measure.oldest_seconds} if self._desk.knows_ages else {}
        return {TURNS: float(measure.turns), **ages}


def _is_active(measure: Measure) -> bool:
    return measure.turns > 0


def _target(metadata: Mapping[str, str], key: str) -> float:
    try:
        target = float(metadata[key])
    except ValueError:
        target = math.nan
    if not 0 < target < math.inf:
        raise InvalidRequestError(f"{key} must be a number above 0", field=f"scalerMetadata.{key}")
    return target
