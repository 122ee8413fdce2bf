//! Tests against `x402-kit mock`, each with a facilitator of its own. A file to copy: it needs the standard library alone, so
//! JSON comes and goes as text.
//!
//! ```no_run
//! let session = Session::new("127.0.0.1:4402")?;
//! session.scenario(r#"{"name":"settle.insufficient_funds"}"#)?;
//! let payment = session.payment(r#"{"payer":"funded","amount":"0.01"}"#)?; // body, settleBody, header
//! let calls = session.calls()?;
//! ```
//! What the shop under test needs is in [`Session::description`]: `facilitator.url`, `organization.apiKey`, and the payers.
#![allow(dead_code)]

use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::TcpStream;
use std::time::Duration;

pub struct Session {
    address: String,
    path: String,
    /// What the mock says of this session, as JSON.
    pub description: String,
}

impl Session {
    /// A new session of the mock at an address, such as `127.0.0.1:4402`.
    pub fn new(address: &str) -> Result<Session> {
        let description = call(address, "POST", "/__sessions", "{}")?;
        let id = description
            .split("\"id\":\"")
            .nth(1)
            .and_then(|rest| rest.split('"').next())
            .ok_or_else(|| Error::new(ErrorKind::InvalidData, description.clone()))?;
        let path = format!("/__sessions/{id}");
        Ok(Session { address: address.to_owned(), path, description })
    }

    /// Chooses the outcome of the next requests, by `{"name": …, "times": …, "delayMs": …}`.
    pub fn scenario(&self, wanted: &str) -> Result<String> {
        self.call("POST", "/__scenario", wanted)
    }

    /// A signed payment: `body` and `settleBody` for a facilitator, `header` for a shop.
    pub fn payment(&self, order: &str) -> Result<String> {
        self.call("POST", "/__payment", order)
    }

    /// What was asked of this facilitator, oldest first.
    pub fn calls(&self) -> Result<String> {
        self.call("GET", "/__calls", "")
    }

    /// Moves the time forward, by `{"seconds": …}`.
    pub fn advance_time(&self, wanted: &str) -> Result<String> {
        self.call("POST", "/__advance-time", wanted)
    }

    fn call(&self, method: &str, path: &str, body: &str) -> Result<String> {
        call(&self.address, method, &format!("{}{path}", self.path), body)
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // The mock ends the oldest ones by itself.
        let _ = self.call("DELETE", "", "");
    }
}

fn call(address: &str, method: &str, path: &str, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    // HTTP/1.0: the answer ends with the connection, and is not in chunks.
    write!(
        stream,
        "{method} {path} HTTP/1.0\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    let (head, text) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
    let status = head.split(' ').nth(1).unwrap_or("");
    if status.starts_with('2') {
        Ok(text.to_owned())
    } else {
        Err(Error::new(ErrorKind::Other, format!("{method} {path}: {status} {text}")))
    }
}
