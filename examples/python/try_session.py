"""Shows x402_session: one payment that settles, and one whose settle is made to fail.

    python3 try_session.py [PORT or URL]
"""

import json
import sys
import urllib.request

from x402_session import ControlError, Session


def post(session: Session, operation: str, body: dict) -> dict:
    headers = {"Content-Type": "application/json", "Authorization": session.api_key}
    request = urllib.request.Request(f"{session.url}/{operation}", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


def main() -> None:
    where = sys.argv[1] if len(sys.argv) > 1 else "4402"
    with Session(int(where) if where.isdigit() else where) as session:
        payment = session.payment(amount="0.012345")
        print("settle", post(session, "settle", payment["settleBody"])["success"])
        session.scenario("settle.insufficient_funds")
        print("settle", post(session, "settle", session.payment()["settleBody"])["errorReason"])
        print("verify", post(session, "verify", session.payment(broken="expired")["body"])["invalidReason"])
        print("calls", [call["operation"] for call in session.calls()])
        try:
            session.scenario("settle.nope")
        except ControlError as error:
            print(error)


if __name__ == "__main__":
    main()
