//! What a payer signs: EIP-3009, by EIP-712.

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use k256::ecdsa::SigningKey;
use serde::{Deserialize, Serialize};
use sha3::{Digest, Keccak256};

pub type Error = Box<dyn std::error::Error>;
type Word = [u8; 32];

/// The EIP-712 domain of a token.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Domain {
    pub name: String,
    pub version: String,
    pub chain_id: u64,
    pub verifying_contract: String,
}

/// Amounts and times are decimal strings, as in the payment's JSON.
#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Authorization {
    pub from: String,
    pub to: String,
    pub value: String,
    pub valid_after: String,
    pub valid_before: String,
    pub nonce: String,
}

const DOMAIN_TYPE: &str =
    "EIP712Domain(string name,string version,uint256 chainId,address verifyingContract)";
const AUTHORIZATION_TYPE: &str = "TransferWithAuthorization(address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce)";

impl Authorization {
    /// The hash that is signed.
    pub fn digest(&self, domain: &Domain) -> Result<Word, Error> {
        let separator = keccak256(&[
            &keccak256(&[DOMAIN_TYPE.as_bytes()]),
            &keccak256(&[domain.name.as_bytes()]),
            &keccak256(&[domain.version.as_bytes()]),
            &uint_word(&domain.chain_id.to_string())?,
            &address_word(&domain.verifying_contract)?,
        ]);
        let message = keccak256(&[
            &keccak256(&[AUTHORIZATION_TYPE.as_bytes()]),
            &address_word(&self.from)?,
            &address_word(&self.to)?,
            &uint_word(&self.value)?,
            &uint_word(&self.valid_after)?,
            &uint_word(&self.valid_before)?,
            &bytes::<32>(&self.nonce)?,
        ]);
        Ok(keccak256(&[b"\x19\x01", &separator, &message]))
    }

    /// The 65 bytes that the token takes: r, s in the lower half, and v of 27 or 28.
    pub fn sign(&self, domain: &Domain, key: &SigningKey) -> Result<String, Error> {
        let (signature, recovery_id) = key.sign_prehash_recoverable(&self.digest(domain)?)?;
        Ok(format!(
            "{}{:02x}",
            to_hex(&signature.to_bytes()),
            27 + recovery_id.to_byte()
        ))
    }
}

/// Reads a private key: 0x and 64 digits.
pub fn parse_key(text: &str) -> Result<SigningKey, Error> {
    let key = bytes::<32>(text).map_err(|_| "a private key is 0x and 64 hexadecimal digits")?;
    Ok(SigningKey::from_slice(&key)?)
}

/// The account of a key.
pub fn address(key: &SigningKey) -> String {
    let point = key.verifying_key().to_encoded_point(false);
    to_hex(&keccak256(&[&point.as_bytes()[1..]])[12..])
}

pub fn to_hex(bytes: &[u8]) -> String {
    format!("0x{}", HEXLOWER.encode(bytes))
}

fn keccak256(parts: &[&[u8]]) -> Word {
    let mut hash = Keccak256::new();
    for part in parts {
        hash.update(part);
    }
    hash.finalize().into()
}

fn bytes<const SIZE: usize>(text: &str) -> Result<[u8; SIZE], Error> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let bytes = HEXLOWER_PERMISSIVE.decode(digits.as_bytes())?;
    bytes
        .try_into()
        .map_err(|_| format!("{text:?} is not {SIZE} bytes in hexadecimal").into())
}

fn address_word(text: &str) -> Result<Word, Error> {
    let mut word = [0; 32];
    word[12..].copy_from_slice(&bytes::<20>(text)?);
    Ok(word)
}

/// A decimal number as one ABI word.
fn uint_word(text: &str) -> Result<Word, Error> {
    let wrong = || format!("{text:?} is not a uint256");
    let mut word = [0u8; 32];
    for digit in text.chars() {
        let mut carry = digit.to_digit(10).ok_or_else(wrong)?;
        for byte in word.iter_mut().rev() {
            carry += u32::from(*byte) * 10;
            *byte = carry as u8;
            carry >>= 8;
        }
        if carry != 0 {
            return Err(wrong().into());
        }
    }
    if text.is_empty() {
        return Err(wrong().into());
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        vectors: Vec<Vector>,
    }

    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Vector {
        name: String,
        domain: Domain,
        message: Authorization,
        digest: String,
        private_key: Option<String>,
        signature: String,
    }

    /// The digests and signatures of the kit's vectors, to the byte.
    #[test]
    fn vectors() -> Result<(), Error> {
        let path =
            std::env::var("X402_VECTORS").unwrap_or("../../fixtures/signature-vectors.json".into());
        let File { vectors } = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let mut signed = 0;
        for Vector {
            name,
            domain,
            message,
            digest,
            private_key,
            signature,
        } in &vectors
        {
            assert_eq!(&to_hex(&message.digest(domain)?), digest, "{name}");
            // The others are signatures as they should not be, or of a key that is not published.
            if !name.starts_with("a payment on ") {
                continue;
            }
            let key = parse_key(private_key.as_deref().unwrap_or_default())?;
            assert_eq!(address(&key), message.from.to_lowercase(), "{name}");
            assert_eq!(&message.sign(domain, &key)?, signature, "{name}");
            signed += 1;
        }
        println!(
            "{} digests and {signed} signatures are as they should be",
            vectors.len()
        );
        Ok(())
    }

    #[test]
    fn numbers() {
        assert_eq!(uint_word("258").unwrap()[29..], [0, 1, 2]);
        for wrong in ["", "-1", "0x1", " 1", &format!("1{}", "0".repeat(78))] {
            assert!(uint_word(wrong).is_err(), "{wrong:?}");
        }
    }
}
