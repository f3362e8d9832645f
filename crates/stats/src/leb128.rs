//! Numbers of as many bytes as they need, seven bits each, lowest first (LEB128; DWARF 5, section 7.6).

/// Bytes of the largest number, of which the last has one bit.
const BYTES_MAX: usize = 10;

/// Appends a number.
pub fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Takes the first number of bytes that need not be trusted; `None`, and nothing is taken, where it is cut off, has
/// more than 64 bits, or more bytes than it needs: each number has one form.
pub fn take(rest: &mut &[u8]) -> Option<u64> {
    // Most numbers are small.
    if let Some((&first, after)) = rest.split_first()
        && first < 0x80
    {
        *rest = after;
        return Some(u64::from(first));
    }
    let mut number = 0;
    for (index, byte) in rest.iter().take(BYTES_MAX).enumerate() {
        if index + 1 == BYTES_MAX && *byte > 1 {
            return None;
        }
        number |= u64::from(byte & 0x7f) << (7 * index);
        if byte & 0x80 == 0 {
            if *byte == 0 && index > 0 {
                return None;
            }
            *rest = &rest[index + 1..];
            return Some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_comes_back_and_what_is_cut_or_too_large_does_not() {
        for number in (0..64).map(|bits| 1u64 << bits).chain([0, 127, 128, u64::MAX]) {
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            assert_eq!(take(&mut &bytes[..bytes.len() - 1]), None);
            bytes.push(9);
            let mut rest = &bytes[..];
            assert_eq!((take(&mut rest), rest), (Some(number), &[9][..]));
        }
        assert_eq!(take(&mut &[&[0xff; 9][..], &[2]].concat()[..]), None, "65 bits");
        assert_eq!(take(&mut &[0x85, 0][..]), None, "5 in two bytes");
    }
}
