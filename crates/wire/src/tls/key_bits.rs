//! The size of a public key, from its SubjectPublicKeyInfo (RFC 5280, 4.1). Owns only the DER parsing that this needs.
//! Start reading at [`of`].

/// Encoded object identifiers: rsaEncryption, the named curves, Ed25519 and Ed448.
const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01];
const CURVES: [(&[u8], u32); 5] = [
    (&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07], 256),
    (&[0x2b, 0x81, 0x04, 0x00, 0x22], 384),
    (&[0x2b, 0x81, 0x04, 0x00, 0x23], 521),
    (&[0x2b, 0x65, 0x70], 256),
    (&[0x2b, 0x65, 0x71], 456),
];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OBJECT_IDENTIFIER: u8 = 0x06;
const SEQUENCE: u8 = 0x30;

/// Bits of the key; `None` if it is of another kind, or malformed.
pub(super) fn of(key_info: &[u8]) -> Option<u32> {
    let (info, _) = element(key_info, SEQUENCE)?;
    let (algorithm, behind) = element(info, SEQUENCE)?;
    let (kind, parameters) = element(algorithm, OBJECT_IDENTIFIER)?;
    if kind == RSA {
        let (bits, _) = element(behind, BIT_STRING)?;
        // The first octet counts the unused bits of the last: none.
        let (key, _) = element(bits.get(1..)?, SEQUENCE)?;
        let (modulus, _) = element(key, INTEGER)?;
        let modulus = &modulus[modulus.iter().position(|byte| *byte != 0)?..];
        let n_bits = 8 * u32::try_from(modulus.len()).ok()?;
        return Some(n_bits - modulus[0].leading_zeros());
    }
    let curve = element(parameters, OBJECT_IDENTIFIER).map_or(kind, |(curve, _)| curve);
    CURVES.iter().find(|(name, _)| *name == curve).map(|(_, bits)| *bits)
}

/// The content of the element at the start of `bytes`, if it has that tag, and the bytes after it.
fn element(bytes: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[first, length], rest) = bytes.split_first_chunk::<2>()?;
    if first != tag {
        return None;
    }
    let (length, rest) = match length {
        0..=0x7f => (usize::from(length), rest),
        0x81 => (usize::from(*rest.first()?), &rest[1..]),
        0x82 => {
            let (high_low, rest) = rest.split_first_chunk::<2>()?;
            (usize::from(u16::from_be_bytes(*high_low)), rest)
        }
        // No server has a key longer than 64 KiB.
        _ => return None,
    };
    (rest.len() >= length).then(|| rest.split_at(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(tag: u8, content: &[u8]) -> Vec<u8> {
        let length = content.len();
        let mut bytes = vec![tag];
        match length {
            0..=0x7f => bytes.push(length as u8),
            _ => bytes.extend([0x82, (length >> 8) as u8, length as u8]),
        }
        bytes.extend(content);
        bytes
    }

    #[test]
    fn an_rsa_key_has_the_bits_of_its_modulus() {
        let mut modulus = vec![0, 0x80];
        modulus.extend([7; 255]);
        let key = [encoded(INTEGER, &modulus), encoded(INTEGER, &[1, 0, 1])].concat();
        let bits = [vec![0], encoded(SEQUENCE, &key)].concat();
        let algorithm = encoded(SEQUENCE, &[encoded(OBJECT_IDENTIFIER, RSA), vec![5, 0]].concat());
        let info = encoded(SEQUENCE, &[algorithm, encoded(BIT_STRING, &bits)].concat());
        assert_eq!(of(&info), Some(2048));
        for end in 0..info.len() {
            assert_eq!(of(&info[..end]), None, "cut at {end}");
        }
    }

    #[test]
    fn a_curve_has_the_bits_of_its_name() {
        let ec = encoded(OBJECT_IDENTIFIER, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01]);
        let of_curve = |curve: &[u8]| {
            let parameters = [ec.clone(), encoded(OBJECT_IDENTIFIER, curve)].concat();
            of(&encoded(SEQUENCE, &encoded(SEQUENCE, &parameters)))
        };
        assert_eq!(of_curve(CURVES[0].0), Some(256));
        assert_eq!(of_curve(CURVES[1].0), Some(384));
        assert_eq!(of_curve(&[1, 2]), None);
        let ed25519 = encoded(SEQUENCE, &encoded(OBJECT_IDENTIFIER, CURVES[3].0));
        assert_eq!(of(&encoded(SEQUENCE, &ed25519)), Some(256));
    }
}
