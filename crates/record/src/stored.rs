//! How a file stores a histogram: base64 of its standard compressed form, as in HdrHistogram's own
//! logs.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize as _, Deserializer, Serializer, de::Error as _};
use stats::Histogram;

pub(crate) fn serialize<S: Serializer>(histogram: &Histogram, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&STANDARD.encode(histogram.encode()))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Histogram, D::Error> {
    let text = String::deserialize(from)?;
    let bytes = STANDARD.decode(text).map_err(D::Error::custom)?;
    Histogram::decode(&bytes).map_err(D::Error::custom)
}
