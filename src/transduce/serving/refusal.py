"""The exception that ends a request with an HTTP error."""

from starlette.exceptions import HTTPException


class Refusal(HTTPException):
    """An error answer: status, `{"error": message}`, and after how many seconds to try again."""

    def __init__(self, status: int, message: str, *, retry_after: int | None = None) -> None:
        headers = {"Retry-After": str(retry_after)} if retry_after is not None else {}
        if status == 401:
            headers["WWW-Authenticate"] = "Bearer"
        super().__init__(status, message, headers)
