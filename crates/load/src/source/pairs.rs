//! Header fields in JSON, in each way that people write them. Start reading at [`Pairs`].

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Names and values in the order of the text: `{"A": "b"}`, `{"A": ["b", "c"]}` or `[["A", "b"]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Pairs(pub(super) Vec<(String, String)>);

#[derive(Deserialize)]
#[serde(untagged)]
enum Values {
    One(String),
    Several(Vec<String>),
}

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(PairsVisitor)
    }
}

struct PairsVisitor;

impl<'de> Visitor<'de> for PairsVisitor {
    type Value = Pairs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("header fields as {\"Name\": \"value\"} or [[\"Name\", \"value\"]]")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some((name, values)) = map.next_entry::<String, Values>()? {
            match values {
                Values::One(value) => pairs.push((name, value)),
                Values::Several(values) => {
                    pairs.extend(values.into_iter().map(|value| (name.clone(), value)));
                }
            }
        }
        Ok(Pairs(pairs))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = list.next_element()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_keep_their_order_however_they_are_written() {
        let texts = [
            "{\"B\": \"1\", \"A\": \"2\", \"B\": \"3\"}",
            "[[\"B\",\"1\"],[\"A\",\"2\"],[\"B\",\"3\"]]",
        ];
        let expected = [("B", "1"), ("A", "2"), ("B", "3")];
        let expected = Pairs(expected.map(|(n, v)| (n.to_owned(), v.to_owned())).to_vec());
        for text in texts {
            assert_eq!(serde_json::from_str::<Pairs>(text).unwrap(), expected);
        }
        let several = serde_json::from_str::<Pairs>("{\"A\": [\"b\", \"c\"]}").unwrap();
        assert_eq!(several.0.len(), 2);
        let error = serde_json::from_str::<Pairs>("\"A: b\"").unwrap_err().to_string();
        assert!(error.contains("expected header fields as"), "{error}");
    }
}
