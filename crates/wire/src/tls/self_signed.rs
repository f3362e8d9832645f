//! Owns certificates that are generated for trying out. Start reading at [`self_signed`].

use super::identity::PemIdentity;

/// A self-signed certificate for these names, with a new P-256 key; valid from 1975 to 4096, so that it does not depend
/// on the clock.
///
/// # Errors
/// A name that is not allowed in a certificate.
pub fn self_signed(names: &[&str]) -> Result<PemIdentity, String> {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let made = rcgen::generate_simple_self_signed(names)
        .map_err(|error| format!("cannot make a certificate: {error}"))?;
    Ok(PemIdentity {
        chain: made.cert.pem().into_bytes(),
        key: made.signing_key.serialize_pem().into_bytes(),
    })
}
