"""The backlog of each runner task, as a metric: what an ECS service of runners scales by."""

from turnline.backlog_metric.measures import Fleet, Measure, Queue, measures

__all__ = ["Fleet", "Measure", "Queue", "measures"]
