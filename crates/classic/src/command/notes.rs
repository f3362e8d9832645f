//! Footnotes that several tools have. Start reading at [`generator_limit`].

use record::LoadRecord;

/// Where the generator was the limit, the figures are not the server's.
pub(crate) fn generator_limit(record: &LoadRecord) -> Option<String> {
    let is_limit = !record.generator_limits().is_empty();
    is_limit.then(|| "the load generator itself was the limit; `joust load` says why".to_owned())
}

/// `1 answer`, `3 answers`.
pub(crate) fn answers(n: u64) -> String {
    if n == 1 { "1 answer".to_owned() } else { format!("{n} answers") }
}
