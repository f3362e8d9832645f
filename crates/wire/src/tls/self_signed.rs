//! Owns certificates that are made on the spot, for trying out. Start reading at [`self_signed`].

use super::identity::PemIdentity;

/// A certificate for these names that nobody signed, and a new key of P-256; valid from 1975 to 4096, so
/// that no clock is asked.
///
/// # Errors
/// A name that no certificate can be for.
pub fn self_signed(names: &[&str]) -> Result<PemIdentity, String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| format!("cannot make a certificate: {error}"))?;
    Ok(PemIdentity {
        chain: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    })
}
