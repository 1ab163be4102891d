"""Metrics for Prometheus: counts and times by route and status, never an address, a key or a text."""

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128)


class Metrics:
    """The server's metrics, in their own registry."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry(auto_describe=True)
        counter, gauge = partial(Counter, registry=self._registry), partial(Gauge, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        self.requests = counter("transduce_requests", "Requests answered.", ["route", "status"])
        self.request_seconds = histogram("transduce_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS)
        self.waiting = gauge("transduce_waiting_texts", "Texts in the queue.")
        self.rounds = counter("transduce_rounds", "Batches computed by the model process.")
        self.round_texts = histogram("transduce_round_texts", "Texts per batch.", buckets=_TEXTS)
        self.round_seconds = histogram("transduce_round_seconds", "Time to compute a batch.", buckets=_SECONDS)
        self.source_tokens = counter("transduce_source_tokens", "Source tokens computed.")
        self.loads = counter("transduce_model_loads", "Models loaded on demand, because they had been dropped.")
        self.skipped = counter("transduce_skipped_texts", "Texts dropped because the client left or time ran out.")
        self.child_deaths = counter("transduce_child_deaths", "Crashes of the model process.")
        self.child_renewals = counter("transduce_child_renewals", "Planned replacements of the model process.")
        self.child_is_up = gauge("transduce_child_up", "1 while a model process can compute.")
        self.child_bytes = gauge("transduce_child_resident_bytes", "Resident memory of the model process.")

    def render(self) -> bytes:
        """Return the metrics in Prometheus's text format."""
        return generate_latest(self._registry)
