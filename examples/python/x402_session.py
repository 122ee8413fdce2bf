"""Tests against `x402-kit mock`, each with a facilitator of its own. A file to copy: it needs nothing but Python 3.8.

    from x402_session import Session

    with Session() as session:                      # or Session(4500), Session("http://mock:4402")
        session.scenario("settle.insufficient_funds")
        header = session.payment(payer="funded", amount="0.01")["header"]
        answer = shop_under_test(session.url, session.api_key, {header["name"]: header["value"]})
        assert answer.status == 402
        assert [call["operation"] for call in session.calls()] == ["verify", "settle"]
"""

import json
import urllib.error
import urllib.request
from typing import Any, Dict, List, Optional, Union


class ControlError(Exception):
    """What the mock says to a request that it cannot do."""


class Session:
    def __init__(self, mock: Union[int, str] = 4402, clock: Optional[str] = None):
        """A new session of the mock at a port, or at an origin; `clock` is its time, such as 2026-01-01T00:00:00Z."""
        self.origin = f"http://127.0.0.1:{mock}" if isinstance(mock, int) else mock.rstrip("/")
        made = _call("POST", f"{self.origin}/__sessions", {} if clock is None else {"clock": clock})
        self.id: str = made["id"]
        self.base = f"{self.origin}/__sessions/{self.id}"
        #: What the shop under test calls its facilitator.
        self.url: str = made["facilitator"]["url"]
        self.api_key: str = made["organization"]["apiKey"]
        self.networks: Dict[str, Any] = made["networks"]
        self.payers: Dict[str, Any] = made["payers"]

    def scenario(self, name: str, times: Union[int, str] = 1, delay_ms: Optional[float] = None) -> None:
        """Chooses the outcome of the next requests: one, several, or "always"."""
        wanted: Dict[str, Any] = {"name": name, "times": times}
        if delay_ms is not None:
            wanted["delayMs"] = delay_ms
        _call("POST", f"{self.base}/__scenario", wanted)

    def payment(self, **order: Any) -> Dict[str, Any]:
        """A signed payment: `body` and `settleBody` for a facilitator, `header` for a shop.

        The order may have payer, network, amount, x402Version, method, validForSeconds, broken and so on.
        """
        return _call("POST", f"{self.base}/__payment", order)

    def calls(self) -> List[Dict[str, Any]]:
        """What was asked of this facilitator, oldest first."""
        return _call("GET", f"{self.base}/__calls")

    def advance_time(self, seconds: float) -> None:
        _call("POST", f"{self.base}/__advance-time", {"seconds": seconds})

    def close(self) -> None:
        _call("DELETE", self.base)

    def __enter__(self) -> "Session":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _call(method: str, url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            text = response.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        raise ControlError(json.load(error).get("error", f"status {error.code}")) from None
