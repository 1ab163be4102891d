"""Why a request got no answer: a status, a sentence for the user, and when to come back."""

from starlette.exceptions import HTTPException


class Refusal(HTTPException):
    """Ends a request with a status and `{"error": message}`."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        super().__init__(status, message, headers)
