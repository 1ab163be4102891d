"""Requests made up from our own OpenAPI: no answer that it does not document, and no 5xx. Ten thousand of them are sent
by benchmarks/serving.py; here a few for each operation."""

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings

pytestmark = pytest.mark.slow


def test_made_up_requests_get_documented_answers(server: Any) -> None:  # noqa: ANN401
    schemathesis = pytest.importorskip("schemathesis")
    with server.client() as client:
        described = client.get("/openapi.json").json()
        schema = schemathesis.openapi.from_dict(described)
        seen: set[tuple[str, int]] = set()
        for result in schema.get_all_operations():
            operation = result.ok()

            @settings(max_examples=12, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
            @given(case=operation.as_strategy())
            def ask(case: Any) -> None:  # noqa: ANN401
                response = send(client, case)
                if response is not None:
                    documented = set(described["paths"][case.path][case.method.lower()]["responses"])
                    assert str(response.status_code) in documented, (case.method, case.path, response.text)
                    assert response.status_code < 500, response.text
                    seen.add((case.path, response.status_code))

            ask()
        assert len({path for path, _ in seen}) > 8


def send(client: httpx.Client, case: Any) -> httpx.Response | None:  # noqa: ANN401
    """Send a made-up request; what cannot be written as HTTP at all is none."""
    try:
        parts = case.as_transport_kwargs(base_url=str(client.base_url))
        request = client.build_request(
            parts["method"],
            parts["url"],
            params=parts.get("params"),
            headers={name: value for name, value in (parts.get("headers") or {}).items() if name.lower() != "host"},
            json=parts.get("json"),
            data=parts.get("data") if isinstance(parts.get("data"), dict) else None,
            content=parts.get("data") if isinstance(parts.get("data"), bytes | str) else None,
        )
    except (UnicodeError, ValueError, TypeError):
        return None
    return client.send(request)
