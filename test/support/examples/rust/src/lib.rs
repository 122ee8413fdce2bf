//! Stands in for k256 where that cannot be had: what examples/rust uses of it, done by Node.

pub mod ecdsa {
    use std::{env, io, process::Command};

    pub struct SigningKey([u8; 32]);
    pub struct VerifyingKey(Vec<u8>);
    pub struct EncodedPoint(Vec<u8>);
    pub struct Signature([u8; 64]);
    pub struct RecoveryId(u8);

    impl SigningKey {
        pub fn from_slice(bytes: &[u8]) -> Result<Self, io::Error> {
            let key = bytes
                .try_into()
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "not 32 bytes"))?;
            Ok(Self(key))
        }

        pub fn verifying_key(&self) -> VerifyingKey {
            VerifyingKey(ask("public", &[&self.0]).expect("a public key"))
        }

        pub fn sign_prehash_recoverable(
            &self,
            prehash: &[u8],
        ) -> Result<(Signature, RecoveryId), io::Error> {
            let bytes = ask("sign", &[&self.0, prehash])?;
            Ok((
                Signature(bytes[..64].try_into().expect("r and s")),
                RecoveryId(bytes[64]),
            ))
        }
    }

    impl VerifyingKey {
        pub fn to_encoded_point(&self, compress: bool) -> EncodedPoint {
            assert!(!compress);
            EncodedPoint(self.0.clone())
        }
    }

    impl EncodedPoint {
        pub fn as_bytes(&self) -> &[u8] {
            &self.0
        }
    }

    impl Signature {
        pub fn to_bytes(&self) -> [u8; 64] {
            self.0
        }
    }

    impl RecoveryId {
        pub fn to_byte(self) -> u8 {
            self.0
        }
    }

    fn ask(operation: &str, values: &[&[u8]]) -> Result<Vec<u8>, io::Error> {
        let variable =
            |name| env::var(name).map_err(|error| io::Error::new(io::ErrorKind::NotFound, error));
        let mut command = Command::new(variable("TEST_NODE")?);
        command.arg(variable("TEST_SECP256K1")?).arg(operation);
        for value in values {
            command.arg(
                value
                    .iter()
                    .map(|byte| format!("{byte:02x}"))
                    .collect::<String>(),
            );
        }
        let output = String::from_utf8_lossy(&command.output()?.stdout).into_owned();
        let digits = |at| u8::from_str_radix(&output[at..at + 2], 16);
        let bytes: Result<_, _> = (0..output.len()).step_by(2).map(digits).collect();
        bytes.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }
}
