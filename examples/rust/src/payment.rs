//! A payment for what a shop asks, in version 1 and 2 of the protocol.

use crate::authorization::{address, to_hex, Authorization, Domain, Error};
use data_encoding::BASE64;
use k256::ecdsa::SigningKey;
use serde_json::{json, Value};
use std::time::{SystemTime, UNIX_EPOCH};

/// In seconds, however long the shop asks for: until then the shop can take the payment.
const LONGEST_VALIDITY: u64 = 600;

/// What may be paid.
pub struct Limits {
    /// The chain as version 2 names it (`eip155:8453`), and as version 1 does (`base`).
    pub caip2: String,
    pub v1_network: String,
    pub asset: String,
    /// In the token's smallest unit.
    pub max_amount: u128,
}

/// What a shop asks with 402: the header `PAYMENT-REQUIRED` in version 2, the body in version 1.
pub fn read_challenge(header: Option<&str>, body: &str) -> Result<Value, Error> {
    let asked: Value = match header {
        Some(encoded) => serde_json::from_slice(&BASE64.decode(encoded.as_bytes())?)?,
        None => serde_json::from_str(body)?,
    };
    match asked["x402Version"].as_u64() {
        Some(1 | 2) => Ok(asked),
        _ => Err("the shop's terms are of no version of x402 that is known here".into()),
    }
}

/// The header that carries a payment. The shop can take it until `valid_before`, in seconds since 1970.
pub struct Payment {
    pub name: &'static str,
    pub value: String,
    pub valid_before: u64,
}

/// Signs one authorization for what the shop asks.
pub fn pay(asked: &Value, limits: &Limits, key: &SigningKey) -> Result<Payment, Error> {
    let is_v1 = asked["x402Version"] == 1;
    let (network, amount_name) = if is_v1 {
        (&limits.v1_network, "maxAmountRequired")
    } else {
        (&limits.caip2, "amount")
    };
    let may_be_paid = |terms: &&Value| {
        let amount = text(&terms[amount_name]).parse::<u128>();
        text(&terms["scheme"]) == "exact"
            && text(&terms["network"]) == network
            && text(&terms["asset"]).eq_ignore_ascii_case(&limits.asset)
            && amount.is_ok_and(|amount| amount <= limits.max_amount)
    };
    let accepted = asked["accepts"]
        .as_array()
        .and_then(|accepts| accepts.iter().find(may_be_paid))
        .ok_or("the shop asks for nothing that may be paid")?;

    let domain = Domain {
        name: text(&accepted["extra"]["name"]).into(),
        version: text(&accepted["extra"]["version"]).into(),
        chain_id: limits
            .caip2
            .strip_prefix("eip155:")
            .unwrap_or_default()
            .parse()?,
        verifying_contract: limits.asset.clone(),
    };
    let mut nonce = [0; 32];
    getrandom::getrandom(&mut nonce)?;
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs();
    let validity = accepted["maxTimeoutSeconds"].as_u64().unwrap_or(60);
    let valid_before = now + validity.min(LONGEST_VALIDITY);
    let authorization = Authorization {
        from: address(key),
        to: text(&accepted["payTo"]).into(),
        value: text(&accepted[amount_name]).into(),
        valid_after: "0".into(),
        valid_before: valid_before.to_string(),
        nonce: to_hex(&nonce),
    };
    let signature = authorization.sign(&domain, key)?;
    let payload = json!({ "signature": signature, "authorization": authorization });
    let header = |name, payment: Value| Payment {
        name,
        value: BASE64.encode(payment.to_string().as_bytes()),
        valid_before,
    };
    if is_v1 {
        let payment =
            json!({ "x402Version": 1, "scheme": "exact", "network": network, "payload": payload });
        return Ok(header("X-PAYMENT", payment));
    }
    let mut payment = json!({ "x402Version": 2, "accepted": accepted, "payload": payload });
    for name in ["resource", "extensions"] {
        if let Some(value) = asked.get(name) {
            payment[name] = value.clone();
        }
    }
    Ok(header("PAYMENT-SIGNATURE", payment))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
