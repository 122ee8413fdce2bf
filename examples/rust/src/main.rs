//! Buys once what is at X402_URL, and prints it. `x402-kit judge client` starts it with these variables.

mod authorization;
mod payment;

use authorization::{parse_key, Error};
use payment::{pay, read_challenge, Limits, Payment};
use std::{env, process::ExitCode, thread::sleep, time::Duration};

fn main() -> ExitCode {
    match buy() {
        Ok(goods) => {
            println!("{goods}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

/// Signs one authorization, and sends it again, as it is, while no goods come: a token moves for an authorization once,
/// however often it is sent. To sign another one is to pay twice.
fn buy() -> Result<String, Error> {
    let variable = |name| env::var(name).map_err(|error| format!("{name}: {error}"));
    let url = variable("X402_URL")?;
    let key = parse_key(&variable("X402_PRIVATE_KEY")?)?;
    let limits = Limits {
        caip2: variable("X402_CAIP2")?,
        v1_network: variable("X402_NETWORK")?,
        asset: variable("X402_ASSET")?,
        max_amount: variable("X402_MAX_AMOUNT")?.parse()?,
    };
    // Redirects are not followed: a payment is for nobody else.
    let agent = ureq::AgentBuilder::new()
        .timeout(Duration::from_secs(5))
        .redirects(0)
        .build();

    let first = get(&agent, &url, None)?;
    if first.status != 402 {
        return first.goods();
    }
    let asked = read_challenge(first.payment_required.as_deref(), &first.body)?;
    let payment = pay(&asked, &limits, &key)?;
    let mut last = get(&agent, &url, Some(&payment));
    for wait in [500, 1_000, 2_000].map(Duration::from_millis) {
        let asked = match &last {
            Ok(answer) if answer.status == 200 => break,
            Ok(answer) => answer.retry_after.min(Duration::from_secs(5)),
            Err(_) => Duration::ZERO,
        };
        sleep(wait.max(asked));
        last = get(&agent, &url, Some(&payment));
    }
    last.and_then(Answer::goods).map_err(|error| {
        let until = time_of_day(payment.valid_before);
        format!("{error}\nNot bought yet; it can still be taken until {until}").into()
    })
}

/// Ten minutes ahead at most, so that it needs no date.
fn time_of_day(seconds: u64) -> String {
    let (hours, minutes) = (seconds / 3_600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02} UTC", seconds % 60)
}

struct Answer {
    status: u16,
    payment_required: Option<String>,
    retry_after: Duration,
    body: String,
}

impl Answer {
    fn goods(self) -> Result<String, Error> {
        match self.status {
            200 => Ok(self.body),
            status => Err(format!("the shop answers {status}: {}", self.body).into()),
        }
    }
}

fn get(agent: &ureq::Agent, url: &str, payment: Option<&Payment>) -> Result<Answer, Error> {
    let request = agent.get(url);
    let request = match payment {
        Some(Payment { name, value, .. }) => request.set(name, value),
        None => request,
    };
    let response = match request.call() {
        // Any status is an answer.
        Ok(response) | Err(ureq::Error::Status(_, response)) => response,
        Err(error) => return Err(error.into()),
    };
    Ok(Answer {
        status: response.status(),
        payment_required: response.header("PAYMENT-REQUIRED").map(str::to_owned),
        retry_after: Duration::from_secs(
            response
                .header("Retry-After")
                .and_then(|seconds| seconds.parse().ok())
                .unwrap_or(0),
        ),
        body: response.into_string()?,
    })
}
