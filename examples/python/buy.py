"""Buys once what is at X402_URL, and prints it. `x402-kit judge client` starts it with these variables.

It signs one authorization, and sends it again, as it is, while no goods come: a token moves for an authorization once,
however often it is sent. To sign another one is to pay twice.
"""

import base64
import http.client
import json
import os
import secrets
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

from signer import address_of, sign_authorization

# In seconds, before a payment is sent again.
WAITS = (0.5, 1, 2)

# In seconds, however long the shop asks for: until then the shop can take the payment.
LONGEST_VALIDITY = 600


class WithinTheShop(urllib.request.HTTPRedirectHandler):
    """A payment is for nobody else: redirects to another origin are not followed."""

    def redirect_request(self, request, file, code, message, headers, url):
        here, there = urllib.parse.urlsplit(request.full_url), urllib.parse.urlsplit(url)
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            return None
        # In every version of Python: urllib has followed 308 since 3.11 alone.
        return urllib.request.Request(url, headers=request.headers, unverifiable=True)


OPENER = urllib.request.build_opener(WithinTheShop)


def get(url: str, headers: dict):
    """The status, headers and body of the answer; a status of 0 where none came."""
    try:
        with OPENER.open(urllib.request.Request(url, headers=headers), timeout=5) as response:
            return response.status, response.headers, response.read()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read()
    except (OSError, http.client.HTTPException) as error:
        return 0, {}, str(error).encode()


def read_terms(headers, body: bytes) -> dict:
    """What a shop asks: version 2 has it in a header, version 1 in the body."""
    encoded = headers.get("PAYMENT-REQUIRED")
    asked = json.loads(base64.b64decode(encoded) if encoded else body)
    if not isinstance(asked, dict) or asked.get("x402Version") not in (1, 2):
        raise ValueError("no version of x402 that is known")
    return asked


def choose(asked: dict) -> tuple:
    """The first entry that may be paid, and its amount."""
    version = asked["x402Version"]
    network = os.environ["X402_NETWORK" if version == 1 else "X402_CAIP2"]
    for entry in asked.get("accepts", []):
        amount = str(entry.get("maxAmountRequired" if version == 1 else "amount"))
        method = (entry.get("extra") or {}).get("assetTransferMethod", "eip3009")
        if (
            (entry.get("scheme"), entry.get("network"), method) == ("exact", network, "eip3009")
            and str(entry.get("asset")).lower() == os.environ["X402_ASSET"].lower()
            and amount.isdecimal()
            and int(amount) <= int(os.environ["X402_MAX_AMOUNT"])
        ):
            return entry, amount
    sys.exit("the shop asks for nothing that may be paid")


def pay(asked: dict) -> tuple:
    """Signs one authorization; returns the header that carries it, and the end of its validity in seconds since 1970."""
    entry, amount = choose(asked)
    key = os.environ["X402_PRIVATE_KEY"]
    valid_before = int(time.time()) + min(entry["maxTimeoutSeconds"], LONGEST_VALIDITY)
    authorization = {
        "from": address_of(key),
        "to": entry["payTo"],
        "value": amount,
        "validAfter": "0",
        "validBefore": str(valid_before),
        "nonce": "0x" + secrets.token_hex(32),
    }
    domain = {
        "name": entry["extra"]["name"],
        "version": entry["extra"]["version"],
        "chainId": int(os.environ["X402_CAIP2"].split(":")[1]),
        "verifyingContract": entry["asset"],
    }
    payload = {"signature": sign_authorization(domain, authorization, key), "authorization": authorization}
    payment = {"x402Version": asked["x402Version"], "payload": payload}
    if asked["x402Version"] == 1:
        name = "X-PAYMENT"
        payment.update(scheme=entry["scheme"], network=entry["network"])
    else:
        name = "PAYMENT-SIGNATURE"
        payment["accepted"] = entry
        payment.update({member: asked[member] for member in ("resource", "extensions") if member in asked})
    return {name: base64.b64encode(json.dumps(payment).encode()).decode()}, valid_before


def main() -> None:
    url = os.environ["X402_URL"]
    status, headers, body = get(url, {})
    not_yet = ""
    if status == 402:
        try:
            asked = read_terms(headers, body)
        except ValueError as error:
            sys.exit(f"the shop's terms cannot be read: {error}")
        payment, valid_before = pay(asked)
        until = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(valid_before))
        not_yet = f"\nNot bought yet; it can still be taken until {until}"
        for wait in (*WAITS, 0):
            status, headers, body = get(url, payment)
            if status == 200:
                break
            asked_to_wait = headers.get("Retry-After") or ""
            time.sleep(max(wait, min(int(asked_to_wait), 5)) if asked_to_wait.isdecimal() and wait else wait)
    text = body.decode(errors="replace")
    if status != 200:
        sys.exit(f"the shop answers {status or 'nothing'}: {text}{not_yet}")
    print(text)


if __name__ == "__main__":
    main()
