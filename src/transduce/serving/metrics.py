"""What Prometheus may ask: counts and times by route and status, never an address, a key or a text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The server's figures, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry(auto_describe=True)
        self.requests = Counter("transduce_requests", "Requests answered.", ["route", "status"], registry=self.registry)
        self.request_seconds = Histogram(
            "transduce_request_seconds", "Time to answer.", ["route"], buckets=_SECONDS, registry=self.registry
        )
        self.waiting = Gauge("transduce_waiting_texts", "Texts that wait for the child.", registry=self.registry)
        self.rounds = Counter("transduce_rounds", "Rounds the child has computed.", registry=self.registry)
        self.round_texts = Histogram(
            "transduce_round_texts", "Texts in a round.", buckets=(1, 2, 4, 8, 16, 32, 64, 128), registry=self.registry
        )
        self.round_seconds = Histogram(
            "transduce_round_seconds", "Time of a round.", buckets=_SECONDS, registry=self.registry
        )
        self.source_tokens = Counter("transduce_source_tokens", "Tokens computed from.", registry=self.registry)
        self.skipped = Counter(
            "transduce_skipped_texts", "Texts whose client had gone or whose time had run out.", registry=self.registry
        )
        self.child_deaths = Counter("transduce_child_deaths", "Deaths of the child.", registry=self.registry)
        self.child_renewals = Counter(
            "transduce_child_renewals", "Children replaced on purpose: memory or reload.", registry=self.registry
        )
        self.child_is_up = Gauge("transduce_child_up", "1 while a child can compute.", registry=self.registry)
        self.child_bytes = Gauge(
            "transduce_child_resident_bytes", "Memory that the child occupies.", registry=self.registry
        )

    def render(self) -> bytes:
        """Return the figures as Prometheus reads them."""
        return generate_latest(self.registry)
