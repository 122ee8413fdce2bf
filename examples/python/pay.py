"""Pays once through a facilitator: `x402-kit mock` or `x402-kit up` on this machine, unless told otherwise.

    python3 pay.py [PORT or URL]        the port of another mock, or where its /v1 is; X402_KIT_URL by default
"""

import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from signer import sign_authorization

# In a project of your own: node_modules/x402-facilitator-kit/fixtures/scenarios.json.
TABLE = Path(os.environ.get("X402_SCENARIOS", Path(__file__).parent / "../../fixtures/scenarios.json"))


def build_payment(table: dict, payer: str = "funded", network_name: str = "base", amount: int = 10_000) -> dict:
    """The body of verify and settle, in version 2: 0.01 USDC that is good for a minute."""
    network = next(one for one in table["networks"] if one["name"] == network_name)
    domain, account = network["domain"], table["payers"][payer]
    authorization = {
        "from": account["address"],
        "to": network["facilitatorContract"],
        "value": str(amount),
        "validAfter": "0",
        "validBefore": str(int(time.time()) + 60),
        "nonce": "0x" + secrets.token_hex(32),
    }
    signature = sign_authorization(domain, authorization, account["privateKey"])
    accepted = {
        "scheme": "exact",
        "network": network["caip2"],
        "amount": str(amount),
        "asset": network["asset"],
        "payTo": network["facilitatorContract"],
        "maxTimeoutSeconds": 60,
        "extra": {"name": domain["name"], "version": domain["version"]},
    }
    return {
        "x402Version": 2,
        "paymentPayload": {
            "x402Version": 2,
            "resource": {"url": "https://merchant.example/report"},
            "accepted": accepted,
            "payload": {"signature": signature, "authorization": authorization},
        },
        "paymentRequirements": accepted,
    }


def call(url: str, body: dict, api_key: str) -> dict:
    headers = {"Content-Type": "application/json", "Authorization": api_key}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=90) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        return json.load(error)
    except urllib.error.URLError as error:
        sys.exit(f"Nothing was reached at {url} ({error.reason}): is `npx --no-install x402-kit mock` running?")


def base_url_of(where: str) -> str:
    """`4500`, `http://127.0.0.1:4500` and `http://127.0.0.1:4500/v1` are the same."""
    if where.isdigit():
        where = f"http://127.0.0.1:{where}"
    where = where.rstrip("/")
    return where if urllib.parse.urlsplit(where).path else f"{where}/v1"


def main() -> None:
    usual = os.environ.get("X402_KIT_URL", "http://127.0.0.1:4402")
    base_url = base_url_of(sys.argv[1] if len(sys.argv) > 1 else usual)
    table = json.loads(TABLE.read_text())
    api_key = table["apiKeys"]["local"]["apiKey"]
    for payer in ("funded", "empty"):
        payment = build_payment(table, payer)
        for operation in ("verify", "settle"):
            answer = call(f"{base_url}/{operation}", payment, api_key)
            verdict = answer.get("success", answer.get("isValid"))
            said = answer.get("transaction") or answer.get("errorMessage") or answer.get("invalidMessage")
            # Without a verdict the answer is no payment's: it says why in `detail`.
            print(payer, operation, verdict, said or ("valid" if verdict else answer.get("detail", answer)))


if __name__ == "__main__":
    main()
